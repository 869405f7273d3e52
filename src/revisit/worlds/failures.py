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
from itertools import pairwise
from typing import Any

import numpy as np

from revisit.core import UsageError
from revisit.geometry.rotations import axis_angle
from revisit.worlds import effects, story
from revisit.worlds.film import Film
from revisit.worlds.paths import at_times, between, how_far, seen_from, turns_back, view_rays
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


def perfect(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """The truth, whatever the strength."""
    for frame in range(len(film)):
        yield film.truth(frame).rgb


# The target


def vanish(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """On return the target is see-through; strength is the share of it that is gone."""
    for frame, away in story.moments(film):
        truth = film.truth(frame).rgb
        yield effects.towards(truth, film.shot(frame).rgb, strength) if away else truth


def _drift(what: str) -> Making:
    """On return the target has other colours, another pattern or another shape; strength is how far it has changed."""

    def frames(film: Film, strength: float, rng: np.random.Generator) -> Frames:
        change: dict[str, Any] = {what: strength}
        return story.with_wrong_state(film, lambda state: replace(state, **change))

    return frames


def state_reset(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """On return the event is undone; strength is the share of its path that the target went back to the first state."""
    return story.with_event_at(film, lambda progress: progress * (1 - strength))


def state_frozen(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """On return the event stands where it was last seen; strength is the share of the unseen part that is missing."""
    return story.with_event_at(film, lambda progress: progress - strength * (progress - progress[film.phases[0] - 1]))


def teleport(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """On return the target is aside from the event's path; strength 1 is half a metre, more than its own width."""
    aside = strength * story.step_aside(film)
    return story.with_wrong_state(film, lambda state: replace(state, place=story.moved_by(state.place, aside)))


def duplicate(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """On return a second target stands half a metre from the first; strength is how solid it is."""
    aside = story.ELSEWHERE * story.inwards(film) * story.rightwards(film)  # towards the middle of the last view
    for frame, away in story.moments(film):
        truth, state = film.truth(frame).rgb, film.states[frame]
        if away:
            both = film.shot(frame, state, replace(state, place=story.moved_by(state.place, aside))).rgb
            truth = effects.towards(truth, both, strength)
        yield truth


# The place


def background(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """On return the place is another around the target and what it stands on; strength is the share of things replaced.

    Which walls and things come first is drawn from rng. A thing that leaves the view is another from then on; one that
    stays in view fades over while the target is hidden.
    """
    other = story.another_place(film)
    things = [instance for instance in film.world.instances if instance not in (TARGET, story.support(film))]
    amounts = np.zeros(256, np.float32)
    amounts[rng.permutation(things)] = np.clip(strength * len(things) - np.arange(len(things)), 0, 1)
    come = story.share_replaced(film)
    for frame in range(len(film)):
        shot = film.truth(frame)
        share = effects.soft_edges((amounts * come[frame])[shot.mask])
        yield effects.towards(shot.rgb, other.truth(frame).rgb, share) if share.any() else shot.rgb


def lighting(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """On return the light is dimmer, of another colour and from one side; strength is how far it has changed."""
    colour = np.array((0.60, 0.48, 0.34) if rng.random() < 0.5 else (0.32, 0.44, 0.62), np.float32)
    angle = rng.uniform(0, 2 * np.pi)
    side = np.array([np.cos(angle), -0.3, np.sin(angle)], np.float32)
    for frame, come in enumerate(story.hidden_share(film)):
        truth = film.truth(frame).rgb
        if come > 0:
            facing = view_rays(film, frame) @ side
            light = colour * (1 + 0.45 * facing[..., None])
            truth = effects.towards(truth, effects.relit(truth, light), strength * come)
        yield truth


def style(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """On return the picture is a cartoon; strength is how much of the cartoon lies over the truth."""
    for frame, come in enumerate(story.hidden_share(film)):
        truth = film.truth(frame).rgb
        yield effects.towards(truth, effects.drawn(truth), strength * come) if come > 0 else truth


# The whole clip


def flicker(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """Brightness and colours jump from frame to frame, unevenly over the picture; strength is by how much."""
    shape = film.truth(0).mask.shape
    gains = rng.uniform(0.15, 0.35, (len(film), 1)) * rng.choice([-1, 1], (len(film), 1)) + rng.normal(
        0, 0.06, (len(film), 3)
    )
    for frame in range(len(film)):
        uneven = effects.smooth_field(rng, shape, 4)[..., None]
        truth = film.truth(frame).rgb
        yield effects.relit(truth, 1 + strength * (gains[frame] + 0.2 * uneven)) if frame else truth


def cut(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """The clip cuts to another place and back; strength 1 is half of the clip, a little one frame."""
    other = story.another_place(film)
    start = film.phases[0] + 1
    stop = start + int(np.ceil(strength * CUT * len(film)))
    for frame in range(len(film)):
        yield (other if start <= frame < stop else film).truth(frame).rgb


def blur(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """The clip is out of focus after its first frames; strength is how far."""
    for frame in range(len(film)):
        yield effects.blurred(film.truth(frame).rgb, strength * min(frame / 4, 1))


def collapse(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """The picture decays frame by frame into bent, glaring mush; strength is how far it is in the end."""
    shape = film.truth(0).mask.shape
    bend = np.stack([effects.smooth_field(rng, shape, 5) for _ in range(2)])
    for frame in range(len(film)):
        yield effects.mush(film.truth(frame).rgb, strength * (frame / (len(film) - 1)) ** 1.5, bend)


# The camera


def frozen_camera(film: Film, strength: float, rng: np.random.Generator) -> np.ndarray:
    """The poses of a camera that stops on its way out and waits there; strength 1 never moves."""
    away = how_far(film.poses)
    turning = int(np.argmax(away))
    stops = round((1 - strength) * turning)
    index = [
        min(frame, stops) if frame <= turning or away[frame] > away[stops] else frame for frame in range(len(film))
    ]
    return film.poses[index]


def timid_camera(film: Film, strength: float, rng: np.random.Generator) -> np.ndarray:
    """The poses of a camera that goes only part of every move; strength 1 makes a quarter of it."""
    share = 1 - strength * (1 - LEAST_TURN)
    return np.stack([between(film.poses[0], pose, share) for pose in film.poses])


def camera_drift(film: Film, strength: float, rng: np.random.Generator) -> np.ndarray:
    """The poses of a camera whose error grows from frame to frame; strength 1 is 10 degrees and 20 cm in the end.

    It strays towards the target, which is in view on return as it should.
    """
    signs = -story.inwards(film), *rng.choice([-1.0, 1.0], 2)
    slip = rng.normal(size=3) * (1, 0.4, 1)
    slip *= SLIP / np.linalg.norm(slip)
    poses: np.ndarray = film.poses.copy()
    for frame, share in enumerate(strength * np.linspace(0, 1, len(film))):
        for axis, degrees, sign in zip(((0, 1, 0), (1, 0, 0), (0, 0, 1)), DRIFT, signs, strict=True):
            poses[frame, :3, :3] = poses[frame, :3, :3] @ axis_angle(axis, share * sign * degrees)
        poses[frame, :3, 3] += share * slip
    return poses


def late_return(film: Film, strength: float, rng: np.random.Generator) -> np.ndarray:
    """The poses of a camera that waits where it turns and then hurries back; strength 1 waits for most of the way."""
    turning, last = turns_back(film), len(film) - 1
    wait = strength * LATEST * (last - turning)
    times = np.arange(len(film), dtype=float)
    late = turning + np.maximum(times - turning - wait, 0) * (last - turning) / max(last - turning - wait, 1e-9)
    return at_times(film.poses, np.where(times <= turning, times, late))


def partial_return(film: Film, strength: float, rng: np.random.Generator) -> np.ndarray:
    """The poses of a camera that stops on its way back; strength is the share of the way that is missing."""
    turning, last = turns_back(film), len(film) - 1
    return film.poses[np.minimum(np.arange(len(film)), turning + round((1 - strength) * (last - turning)))]


def opposite_camera(film: Film, strength: float, rng: np.random.Generator) -> np.ndarray:
    """The poses of a camera that makes every step the other way; strength is the share of each step."""
    poses = [film.poses[0]]
    for before, after in pairwise(film.poses):
        poses.append(poses[-1] @ between(np.eye(4), np.linalg.inv(after) @ before, strength))
    return np.stack(poses)


def _camera(title: str, what: str, path: Callable[[Film, float, np.random.Generator], np.ndarray]) -> Failure:
    """The failure of a camera that takes another path."""

    def frames(film: Film, strength: float, rng: np.random.Generator) -> Frames:
        film_of_model = seen_from(film, path(film, strength, rng))
        for frame, state in enumerate(story.without_jumps(film_of_model)):
            yield film_of_model.shot(frame, state).rgb

    return Failure(title, what, frames, camera_returns, path)


# Floors: what no metric may reward


def noise(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """Noise and nothing else."""
    for _ in range(len(film)):
        yield rng.integers(0, 256, film.truth(0).rgb.shape, np.uint8)


def at_rest(film: Film, strength: float, rng: np.random.Generator) -> np.ndarray:
    """The poses that can be read from pictures without content: the first one, throughout."""
    return np.tile(film.poses[0], (len(film), 1, 1))


def constant(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """One grey and nothing else."""
    for _ in range(len(film)):
        yield np.full_like(film.truth(0).rgb, 128)


def shuffled(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """The true frames in another order."""
    for frame in rng.permutation(len(film)):
        yield film.truth(int(frame)).rgb


def other_clip(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """Another place without the target, filmed from half of the script on."""
    other = story.another_place(film)
    for frame in np.roll(np.arange(len(film)), len(film) // 2):
        yield other.shot(int(frame)).rgb


# Where failures can happen


def camera_returns(film: Film) -> bool:
    """Whether the camera goes away and comes back, so that it can fail to."""
    away = how_far(film.poses)
    return bool(away.max() > 0.1 and away[-1] < 0.5 * away.max())


def something_happened(film: Film) -> bool:
    """Whether the target returned in another state than the one it was first seen in."""
    return bool(story.event_path(film)[1][film.phases[1] :].max() > 0.05)


def happens_in_view(film: Film) -> bool:
    """Whether part of the event was seen before the target left, and part of it was not."""
    progress = story.event_path(film)[1]
    total, in_view = progress[-1], progress[film.phases[0] - 1]
    return bool(total > 0.05 and 0.1 * total < in_view < 0.9 * total)


PERFECT = Failure("perfect memory", "nothing: every frame is the truth", perfect)

FAILURES: dict[str, Failure] = {
    "frozen_camera": _camera("camera frozen", "the camera stops on its way out", frozen_camera),
    "timid_camera": _camera("camera timid", "the camera makes only part of its turn", timid_camera),
    "camera_drift": _camera("camera drifts", "the camera strays from its script", camera_drift),
    "late_return": _camera("camera returns late", "the camera waits too long before it turns back", late_return),
    "partial_return": _camera("camera returns in part", "the camera stops on its way back", partial_return),
    "vanish": Failure("object vanishes", "the target is gone on return", vanish),
    "colour_drift": Failure("identity drifts: colour", "the target returns in other colours", _drift("colour")),
    "texture_drift": Failure("identity drifts: texture", "the target returns with another pattern", _drift("texture")),
    "shape_drift": Failure("identity drifts: shape", "the target returns in another shape", _drift("shape")),
    "state_reset": Failure(
        "state reset", "the target returns as it was before the event", state_reset, something_happened
    ),
    "state_frozen": Failure(
        "state frozen", "the target returns as it was last seen, in the middle of the event", state_frozen,
        happens_in_view,
    ),
    "teleport": Failure("wrong place", "the target returns aside from where it ought to be", teleport),
    "duplicate": Failure("duplicated", "a second target has come on return", duplicate),
    "background": Failure("background hallucinated", "walls and furniture are others on return", background),
    "lighting": Failure("lighting drifts", "the light is another on return", lighting),
    "style": Failure("style drifts", "the picture is a cartoon on return", style),
    "flicker": Failure("flicker", "brightness and colours jump from frame to frame", flicker),
    "cut": Failure("cut", "the clip cuts to another place and back", cut),
    "blur": Failure("blur", "the clip is out of focus", blur),
    "collapse": Failure("collapse", "the picture decays into mush", collapse),
}  # fmt: skip

FLOORS: dict[str, Failure] = {
    "noise": Failure("noise", "every frame is noise", noise, path=at_rest),
    "shuffled": Failure("shuffled frames", "the true frames come in another order", shuffled),
    "other_clip": Failure("another clip", "the clip shows another place", other_clip),
}

# What benchmarks as wholes are tried on (`revisit audit --benchmarks`); the audit of metrics leaves them out.
TRIALS: dict[str, Failure] = {
    "opposite_camera": _camera("camera goes the other way", "the camera does the opposite", opposite_camera),
    "constant": Failure("constant picture", "every frame is one grey", constant, path=at_rest),
}


def failure(kind: str) -> Failure:
    """The failure, or the floor, of a kind; "perfect" is one too."""
    failures = {"perfect": PERFECT, **FAILURES, **FLOORS, **TRIALS}
    if kind not in failures:
        raise UsageError(f"unknown failure {kind!r}; choose one of {', '.join(failures)}")
    return failures[kind]


def generate(kind: str, film: Film, strength: float = 1.0, seed: int = 0) -> Frames:
    """The frames (uint8 RGB) that a model with a failure makes of a film, with faint noise.

    The noise depends on the seed and the world alone, so that two failures differ by the failures alone.
    """
    frames = failure(kind).frames(film, _checked(strength), _draws(kind, film, seed))
    return with_noise(frames, np.random.default_rng([seed, film.world.seed, zlib.crc32(b"noise")]))


def with_noise(frames: Frames, rng: np.random.Generator) -> Frames:
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
    path = failure(kind).path
    return film.poses if path is None else path(film, _checked(strength), _draws(kind, film, seed))


def _checked(strength: float) -> float:
    if not 0 <= strength <= 1:
        raise UsageError(f"a strength is a number from 0 to 1, not {strength}")
    return float(strength)


def _draws(kind: str, film: Film, seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, film.world.seed, zlib.crc32(kind.encode())])
