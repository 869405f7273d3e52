"""Failures: reference models that remember everything but one thing, each by a strength of 0 to 1.

A failure is a function (film, strength, rng) -> frames; strength 0 is the truth, 1 the whole failure, and more
strength is never nearer to the truth. To add one, write its function and add a row to FAILURES.

Failures of memory begin in the middle of the time in which the target is out of view: until then every frame is the
truth, and no change of the target is seen to happen. Failures of the camera and of the whole clip may begin at once;
the first frame, which models are given, is always the truth. Draws from rng never depend on the strength.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from revisit.core import UsageError
from revisit.geometry.rotations import rotation_from_axis_angle
from revisit.worlds import effects, story
from revisit.worlds.film import Film
from revisit.worlds.state import TARGET

NOISE = 0.8  # standard deviation in grey levels: visible to no eye, and gone after compression in flat parts
LEAST_TURN = 0.25  # share of the script that a timid camera makes at full strength
LATEST = 0.7  # share of the way back that a late camera waits at full strength
DRIFT = (10.0, 3.0, 4.0)  # degrees of yaw, pitch and roll by which a drifting camera is off in the end
SLIP = 0.2  # metres, likewise
CUT = 0.5  # share of the clip that a cut shows of another place

Frames = Iterator[np.ndarray]
Making = Callable[[Film, float, np.random.Generator], Frames]


@dataclass(frozen=True)
class Failure:
    """What goes wrong, in a few words and in a sentence, the frames it makes of a film, and where it can happen."""

    title: str
    what: str
    frames: Making
    applies: Callable[[Film], bool] = lambda film: True
    path: Callable[[Film, float, np.random.Generator], np.ndarray] | None = None  # its camera poses, if not the truth's


def perfect_frames(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """The truth, whatever the strength."""
    for frame in range(len(film)):
        yield film.truth(frame).rgb


# The target


def vanish_on_return(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """On return the target is see-through; strength is the share of it that is gone."""
    for frame, away in story.frames_with_memory_failed(film):
        truth = film.truth(frame).rgb
        yield effects.towards(truth, film.shot(frame).rgb, strength) if away else truth


def change_target_on_return(field: str, film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """On return the target has other colours, another pattern or another shape; strength is how far it has changed."""
    change: dict[str, Any] = {field: strength}
    return story.frames_with_wrong_state(film, lambda state: replace(state, **change))


def undo_event_on_return(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """On return the event is undone; strength is the share of its path that the target went back to the first state."""
    return story.frames_with_event_position(film, lambda progress: progress * (1 - strength))


def stop_event_on_return(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """On return the event stands where it was last seen; strength is the share of the unseen part that is missing."""
    last = film.phases[0] - 1
    return story.frames_with_event_position(film, lambda progress: progress - strength * (progress - progress[last]))


def move_target_aside_on_return(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """On return the target is aside from the event's path; strength 1 is half a metre, more than its own width."""
    aside = strength * story.sideways_step_for_target(film)
    return story.frames_with_wrong_state(film, lambda state: story.state_with_target_moved(state, aside))


def add_second_target_on_return(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """On return a second target stands half a metre from the first; strength is how solid it is."""
    towards_middle = story.sign_towards_view_middle(film) * story.right_direction_of_last_view(film)
    aside = story.ELSEWHERE * towards_middle
    for frame, away in story.frames_with_memory_failed(film):
        truth, state = film.truth(frame).rgb, film.states[frame]
        if away:
            both = film.shot(frame, state, story.state_with_target_moved(state, aside)).rgb
            truth = effects.towards(truth, both, strength)
        yield truth


# The place


def replace_background_on_return(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """On return the place is another around the target and what it stands on; strength is the share of things replaced.

    Which walls and things come first is drawn from rng. A thing that leaves the view is another from then on; one that
    stays in view fades over while the target is hidden.
    """
    other = story.film_in_another_place(film)
    things = [instance for instance in film.world.instances if instance not in (TARGET, story.support_instance(film))]
    amounts = np.zeros(256, np.float32)
    amounts[rng.permutation(things)] = np.clip(strength * len(things) - np.arange(len(things)), 0, 1)
    come = story.replaced_share_by_frame_and_instance(film)
    for frame in range(len(film)):
        shot = film.truth(frame)
        share = effects.soften_edges((amounts * come[frame])[shot.mask])
        yield effects.towards(shot.rgb, other.truth(frame).rgb, share) if share.any() else shot.rgb


def change_light_on_return(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """On return the light is dimmer, of another colour and from one side; strength is how far it has changed."""
    colour = np.array((0.60, 0.48, 0.34) if rng.random() < 0.5 else (0.32, 0.44, 0.62), np.float32)
    angle = rng.uniform(0, 2 * np.pi)
    side = np.array([np.cos(angle), -0.3, np.sin(angle)], np.float32)
    for frame, come in enumerate(story.hidden_share(film)):
        truth = film.truth(frame).rgb
        if come > 0:
            facing = story.pixel_directions_in_world(film, frame) @ side
            light = colour * (1 + 0.45 * facing[..., None])
            truth = effects.towards(truth, effects.multiply_by_light(truth, light), strength * come)
        yield truth


def show_cartoon_on_return(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """On return the picture is a cartoon; strength is how much of the cartoon lies over the truth."""
    for frame, come in enumerate(story.hidden_share(film)):
        truth = film.truth(frame).rgb
        yield effects.towards(truth, effects.draw_as_cartoon(truth), strength * come) if come > 0 else truth


# The whole clip


def flicker_brightness_and_colour(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """Brightness and colours jump from frame to frame, unevenly over the picture; strength is by how much."""
    shape = film.truth(0).mask.shape
    brighter = rng.uniform(0.15, 0.35, (len(film), 1)) * rng.choice([-1, 1], (len(film), 1))
    gains = brighter + rng.normal(0, 0.06, (len(film), 3))
    for frame in range(len(film)):
        uneven = effects.smooth_noise_field(rng, shape, 4)[..., None]
        truth = film.truth(frame).rgb
        yield effects.multiply_by_light(truth, 1 + strength * (gains[frame] + 0.2 * uneven)) if frame else truth


def cut_to_another_place_and_back(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """The clip cuts to another place and back; strength 1 is half of the clip, a little one frame."""
    other = story.film_in_another_place(film)
    start = film.phases[0] + 1
    stop = start + int(np.ceil(strength * CUT * len(film)))
    for frame in range(len(film)):
        yield (other if start <= frame < stop else film).truth(frame).rgb


def blur_after_first_frames(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """The clip is out of focus after its first frames; strength is how far."""
    for frame in range(len(film)):
        yield effects.blur_picture(film.truth(frame).rgb, strength * min(frame / 4, 1))


def decay_picture_gradually(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """The picture decays frame by frame into bent, glaring mush; strength is how far it is in the end."""
    shape = film.truth(0).mask.shape
    bend = np.stack([effects.smooth_noise_field(rng, shape, 5) for _ in range(2)])
    for frame in range(len(film)):
        amount = strength * (frame / (len(film) - 1)) ** 1.5
        yield effects.bend_smear_and_overexpose(film.truth(frame).rgb, amount, bend)


# The camera


def stopping_camera_poses(film: Film, strength: float, rng: np.random.Generator) -> np.ndarray:
    """The poses of a camera that stops on its way out and waits there; strength 1 never moves."""
    away = story.distance_from_first_pose(film.poses)
    turning = int(np.argmax(away))
    stops = round((1 - strength) * turning)
    frames = np.arange(len(film))
    stays = (frames <= turning) | (away > away[stops])
    return film.poses[np.where(stays, np.minimum(frames, stops), frames)]


def shortened_move_poses(film: Film, strength: float, rng: np.random.Generator) -> np.ndarray:
    """The poses of a camera that goes only part of every move; strength 1 makes a quarter of it."""
    share = 1 - strength * (1 - LEAST_TURN)
    return np.stack([story.interpolate_pose(film.poses[0], pose, share) for pose in film.poses])


def drifting_camera_poses(film: Film, strength: float, rng: np.random.Generator) -> np.ndarray:
    """The poses of a camera whose error grows from frame to frame; strength 1 is 10 degrees and 20 cm in the end.

    It strays towards the target, which is in view on return as it should.
    """
    signs = -story.sign_towards_view_middle(film), *rng.choice([-1.0, 1.0], 2)
    slip = rng.normal(size=3) * (1, 0.4, 1)
    slip *= SLIP / np.linalg.norm(slip)
    poses: np.ndarray = film.poses.copy()
    for frame, share in enumerate(strength * np.linspace(0, 1, len(film))):
        for axis, degrees, sign in zip(((0, 1, 0), (1, 0, 0), (0, 0, 1)), DRIFT, signs, strict=True):
            poses[frame, :3, :3] = poses[frame, :3, :3] @ rotation_from_axis_angle(axis, share * sign * degrees)
        poses[frame, :3, 3] += share * slip
    return poses


def late_return_poses(film: Film, strength: float, rng: np.random.Generator) -> np.ndarray:
    """The poses of a camera that waits where it turns and then hurries back; strength 1 waits for most of the way."""
    turning, last = story.last_farthest_frame(film), len(film) - 1
    wait = strength * LATEST * (last - turning)
    times = np.arange(len(film), dtype=float)
    late = turning + np.maximum(times - turning - wait, 0) * (last - turning) / max(last - turning - wait, 1e-9)
    return story.poses_at_times(film.poses, np.where(times <= turning, times, late))


def partial_return_poses(film: Film, strength: float, rng: np.random.Generator) -> np.ndarray:
    """The poses of a camera that stops on its way back; strength is the share of the way that is missing."""
    turning, last = story.last_farthest_frame(film), len(film) - 1
    return film.poses[np.minimum(np.arange(len(film)), turning + round((1 - strength) * (last - turning)))]


def opposite_camera_poses(film: Film, strength: float, rng: np.random.Generator) -> np.ndarray:
    """The poses of a camera that makes every step the other way; strength is the share of each step."""
    poses = [film.poses[0]]
    for before, after in pairwise(film.poses):
        poses.append(poses[-1] @ story.interpolate_pose(np.eye(4), np.linalg.inv(after) @ before, strength))
    return np.stack(poses)


def _camera_failure(title: str, what: str, path: Callable[[Film, float, np.random.Generator], np.ndarray]) -> Failure:
    """The failure of a camera that takes another path."""

    def frames_along_path(film: Film, strength: float, rng: np.random.Generator) -> Frames:
        film_of_model = story.film_along_poses(film, path(film, strength, rng))
        for frame, state in enumerate(story.states_without_visible_jumps(film_of_model)):
            yield film_of_model.shot(frame, state).rgb

    return Failure(title, what, frames_along_path, camera_returns, path)


# Floors: what no metric may reward


def random_noise_frames(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """Noise and nothing else."""
    for _ in range(len(film)):
        yield rng.integers(0, 256, film.truth(0).rgb.shape, np.uint8)


def poses_all_equal_to_first(film: Film, strength: float, rng: np.random.Generator) -> np.ndarray:
    """The poses that can be read from pictures without content: the first one, throughout."""
    return np.tile(film.poses[0], (len(film), 1, 1))


def grey_frames(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """One grey and nothing else."""
    for _ in range(len(film)):
        yield np.full_like(film.truth(0).rgb, 128)


def frames_in_random_order(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """The true frames in another order."""
    for frame in rng.permutation(len(film)):
        yield film.truth(int(frame)).rgb


def frames_of_another_place(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """Another place without the target, filmed from half of the script on."""
    other = story.film_in_another_place(film)
    for frame in np.roll(np.arange(len(film)), len(film) // 2):
        yield other.shot(int(frame)).rgb


# Where failures can happen


def camera_returns(film: Film) -> bool:
    """Whether the camera goes away and comes back, so that it can fail to."""
    away = story.distance_from_first_pose(film.poses)
    return bool(away.max() > 0.1 and away[-1] < 0.5 * away.max())


def returned_state_differs_from_first(film: Film) -> bool:
    """Whether the target returned in another state than the one it was first seen in."""
    return bool(story.event_path_and_progress(film)[1][film.phases[1] :].max() > 0.05)


def event_is_partly_seen(film: Film) -> bool:
    """Whether part of the event was seen before the target left, and part of it was not."""
    progress = story.event_path_and_progress(film)[1]
    total, in_view = progress[-1], progress[film.phases[0] - 1]
    return bool(total > 0.05 and 0.1 * total < in_view < 0.9 * total)


PERFECT = Failure("perfect memory", "nothing: every frame is the truth", perfect_frames)

FAILURES: dict[str, Failure] = {
    "frozen_camera": _camera_failure("camera frozen", "the camera stops on its way out", stopping_camera_poses),
    "timid_camera": _camera_failure("camera timid", "the camera makes only part of its turn", shortened_move_poses),
    "camera_drift": _camera_failure("camera drifts", "the camera strays from its script", drifting_camera_poses),
    "late_return": _camera_failure("camera returns late", "the camera waits too long before it turns back",
    late_return_poses),
    "partial_return": _camera_failure("camera returns in part", "the camera stops on its way back",
    partial_return_poses),
    "vanish": Failure("object vanishes", "the target is gone on return", vanish_on_return),
    "colour_drift": Failure("identity drifts: colour", "the target returns in other colours",
    partial(change_target_on_return, "colour")),
    "texture_drift": Failure("identity drifts: texture", "the target returns with another pattern",
    partial(change_target_on_return, "texture")),
    "shape_drift": Failure("identity drifts: shape", "the target returns in another shape",
    partial(change_target_on_return, "shape")),
    "state_reset": Failure(
        "state reset", "the target returns as it was before the event", undo_event_on_return,
        returned_state_differs_from_first
    ),
    "state_frozen": Failure(
        "state frozen", "the target returns as it was last seen, in the middle of the event", stop_event_on_return,
        event_is_partly_seen,
    ),
    "teleport": Failure("wrong place", "the target returns aside from where it ought to be",
    move_target_aside_on_return),
    "duplicate": Failure("duplicated", "a second target has come on return", add_second_target_on_return),
    "background": Failure("background hallucinated", "walls and furniture are others on return",
    replace_background_on_return),
    "lighting": Failure("lighting drifts", "the light is another on return", change_light_on_return),
    "style": Failure("style drifts", "the picture is a cartoon on return", show_cartoon_on_return),
    "flicker": Failure("flicker", "brightness and colours jump from frame to frame", flicker_brightness_and_colour),
    "cut": Failure("cut", "the clip cuts to another place and back", cut_to_another_place_and_back),
    "blur": Failure("blur", "the clip is out of focus", blur_after_first_frames),
    "collapse": Failure("collapse", "the picture decays into mush", decay_picture_gradually),
}  # fmt: skip

FLOORS: dict[str, Failure] = {
    "noise": Failure("noise", "every frame is noise", random_noise_frames, path=poses_all_equal_to_first),
    "shuffled": Failure("shuffled frames", "the true frames come in another order", frames_in_random_order),
    "other_clip": Failure("another clip", "the clip shows another place", frames_of_another_place),
}

# What benchmarks as wholes are tried on (`revisit audit --benchmarks`); the audit of metrics leaves them out.
TRIALS: dict[str, Failure] = {
    "opposite_camera": _camera_failure(
        "camera goes the other way", "the camera does the opposite", opposite_camera_poses
    ),
    "constant": Failure("constant picture", "every frame is one grey", grey_frames, path=poses_all_equal_to_first),
}


def failure_of_kind(kind: str) -> Failure:
    """The failure, or the floor, of a kind; "perfect" is one too."""
    failures = {"perfect": PERFECT, **FAILURES, **FLOORS, **TRIALS}
    if kind not in failures:
        raise UsageError(f"unknown failure {kind!r}; choose one of {', '.join(failures)}")
    return failures[kind]


def generate(kind: str, film: Film, strength: float = 1.0, seed: int = 0) -> Frames:
    """The frames (uint8 RGB) that a model with a failure makes of a film, with faint noise.

    The noise depends on the seed and the world alone, so that two failures differ by the failures alone.
    """
    frames = failure_of_kind(kind).frames(*_checked_arguments(kind, film, strength, seed))
    return add_faint_noise(frames, np.random.default_rng([seed, film.world.seed, zlib.crc32(b"noise")]))


def add_faint_noise(frames: Frames, rng: np.random.Generator) -> Frames:
    """Frames with faint noise. One field of it serves all frames, read from another corner each time."""
    import cv2

    field: np.ndarray | None = None
    for rgb in frames:
        height, width = rgb.shape[:2]
        if field is None:
            field = np.round(rng.normal(0, NOISE, (height + 64, width + 64, 3))).astype(np.int16)
        x, y = rng.integers(0, 65, 2)
        yield cv2.add(rgb, field[y : y + height, x : x + width], dtype=cv2.CV_8U)


def camera_path(kind: str, film: Film, strength: float = 1.0, seed: int = 0) -> np.ndarray:
    """The poses (n, 4, 4) from which the frames of `generate` are seen."""
    path = failure_of_kind(kind).path
    return film.poses if path is None else path(*_checked_arguments(kind, film, strength, seed))


def _checked_arguments(kind: str, film: Film, strength: float, seed: int) -> tuple[Film, float, np.random.Generator]:
    """What a failure is called with."""
    if not 0 <= strength <= 1:
        raise UsageError(f"a strength is a number from 0 to 1, not {strength}")
    return film, float(strength), np.random.default_rng([seed, film.world.seed, zlib.crc32(kind.encode())])
