"""Failures: reference models that remember everything but one thing, each by a strength of 0 to 1.

A failure is a function (film, strength, rng) -> frames; strength 0 is the truth, 1 the whole failure, and more
strength is never nearer to the truth. To add one, write its function and add a row to FAILURES.

Failures of memory begin in the middle of the time in which the target is out of view: until then every frame is the
truth, and nothing jumps before anybody's eyes. Failures of the camera and of the whole clip may begin at once; the
first frame, which models are given, is always the truth. Draws from rng never depend on the strength.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from revisit.core import UsageError
from revisit.geometry.rotations import axis_angle, geodesic, slerp
from revisit.worlds import effects
from revisit.worlds.film import Film
from revisit.worlds.places import make_world
from revisit.worlds.state import TARGET, State

NOISE = 0.8  # standard deviation in grey levels: visible to no eye, and gone after compression in flat parts
LEAST_TURN = 0.25  # share of the script that a timid camera makes at full strength
LATEST = 0.7  # share of the way back that a late camera waits at full strength
DRIFT = (10.0, 3.0, 4.0)  # degrees of yaw, pitch and roll by which a drifting camera is off in the end
SLIP = 0.2  # metres, likewise
ELSEWHERE = 0.5  # metres from where the target ought to be
CUT = 0.5  # share of the clip that a cut shows of another place
OTHER = 5003  # added to a seed for the place that is not this one

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
    for frame, away in _moments(film):
        truth = film.truth(frame).rgb
        yield effects.towards(truth, film.shot(frame).rgb, strength) if away else truth


def colour_drift(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """On return the target has other colours; strength is how far they have moved."""
    return _restated(film, lambda state: replace(state, colour=strength))


def texture_drift(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """On return the target bears another pattern; strength is how much of it covers the true one."""
    return _restated(film, lambda state: replace(state, texture=strength))


def shape_drift(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """On return the target has another shape; strength is how far it is deformed."""
    return _restated(film, lambda state: replace(state, shape=strength))


def state_reset(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """On return the event is undone; strength is the share of its path that the target went back to the first state."""
    path, gone = _path(film)
    for frame, away in _moments(film):
        yield _pictured(film, frame, _on_path(path, gone[frame] * (1 - strength))) if away else film.truth(frame).rgb


def state_frozen(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """On return the event stands where it was last seen; strength is the share of the unseen part that is missing."""
    path, gone = _path(film)
    last = gone[film.phases[0] - 1]
    for frame, away in _moments(film):
        position = gone[frame] - strength * (gone[frame] - last)
        yield _pictured(film, frame, _on_path(path, position)) if away else film.truth(frame).rgb


def teleport(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """On return the target is aside from the event's path; strength 1 is half a metre, more than its own width."""
    aside = strength * _aside(film)
    return _restated(film, lambda state: replace(state, place=_moved(state.place, aside)))


def duplicate(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """On return a second target stands half a metre from the first; strength is how solid it is."""
    aside = _beside(film)
    for frame, away in _moments(film):
        truth, state = film.truth(frame).rgb, film.states[frame]
        if away:
            both = film.shot(frame, state, replace(state, place=_moved(state.place, aside))).rgb
            truth = effects.towards(truth, both, strength)
        yield truth


# The place


def background(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """On return the place is another around the target and what it stands on; strength is the share of things replaced.

    Which walls and things come first is drawn from rng. A thing that leaves the view is another from then on; one that
    stays in view fades over while the target is hidden.
    """
    other = _another(film)
    things = [id for id in film.world.instances if id not in (TARGET, _support(film))]
    amounts = np.zeros(256, np.float32)
    amounts[rng.permutation(things)] = np.clip(strength * len(things) - np.arange(len(things)), 0, 1)
    come = _replaced(film)
    for frame in range(len(film)):
        shot = film.truth(frame)
        share = effects.soft_edges((amounts * come[frame])[shot.mask])
        yield effects.towards(shot.rgb, other.truth(frame).rgb, share) if share.any() else shot.rgb


def lighting(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """On return the light is dimmer, of another colour and from one side; strength is how far it has changed."""
    colour = np.array((0.60, 0.48, 0.34) if rng.random() < 0.5 else (0.32, 0.44, 0.62), np.float32)
    angle = rng.uniform(0, 2 * np.pi)
    side = np.array([np.cos(angle), -0.3, np.sin(angle)], np.float32)
    for frame, come in enumerate(_hidden_share(film)):
        truth = film.truth(frame).rgb
        if come > 0:
            facing = _rays(film, frame) @ side
            light = colour * (1 + 0.45 * facing[..., None])
            truth = effects.towards(truth, effects.relit(truth, light), strength * come)
        yield truth


def style(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """On return the picture is a cartoon; strength is how much of the cartoon lies over the truth."""
    for frame, come in enumerate(_hidden_share(film)):
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
    other = _another(film)
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
    away = _how_far(film.poses)
    turning = int(np.argmax(away))
    stops = round((1 - strength) * turning)
    index = [
        min(frame, stops) if frame <= turning or away[frame] > away[stops] else frame for frame in range(len(film))
    ]
    return film.poses[index]


def timid_camera(film: Film, strength: float, rng: np.random.Generator) -> np.ndarray:
    """The poses of a camera that goes only part of every move; strength 1 makes a quarter of it."""
    share = 1 - strength * (1 - LEAST_TURN)
    return np.stack([_between(film.poses[0], pose, share) for pose in film.poses])


def camera_drift(film: Film, strength: float, rng: np.random.Generator) -> np.ndarray:
    """The poses of a camera whose error grows from frame to frame; strength 1 is 10 degrees and 20 cm in the end.

    It strays towards the target, which is in view on return as it should.
    """
    signs = -_inwards(film), *rng.choice([-1.0, 1.0], 2)
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
    turning, last = _turns_back(film), len(film) - 1
    wait = strength * LATEST * (last - turning)
    times = np.arange(len(film), dtype=float)
    late = turning + np.maximum(times - turning - wait, 0) * (last - turning) / max(last - turning - wait, 1e-9)
    return _at_times(film.poses, np.where(times <= turning, times, late))


def partial_return(film: Film, strength: float, rng: np.random.Generator) -> np.ndarray:
    """The poses of a camera that stops on its way back; strength is the share of the way that is missing."""
    turning, last = _turns_back(film), len(film) - 1
    return film.poses[np.minimum(np.arange(len(film)), turning + round((1 - strength) * (last - turning)))]


def _filmed(path: Callable[[Film, float, np.random.Generator], np.ndarray]) -> Making:
    """The frames of a camera that takes another path."""

    def frames(film: Film, strength: float, rng: np.random.Generator) -> Frames:
        taken = seen_from(film, path(film, strength, rng))
        for frame, state in enumerate(_without_jumps(taken)):
            yield taken.shot(frame, state).rgb

    return frames


# Floors: what no metric may reward


def noise(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """Noise and nothing else."""
    for _ in range(len(film)):
        yield rng.integers(0, 256, film.truth(0).rgb.shape, np.uint8)


def shuffled(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """The true frames in another order."""
    for frame in rng.permutation(len(film)):
        yield film.truth(int(frame)).rgb


def other_clip(film: Film, strength: float, rng: np.random.Generator) -> Frames:
    """Another place without the target, filmed from half of the script on."""
    other = _another(film)
    for frame in np.roll(np.arange(len(film)), len(film) // 2):
        yield other.shot(int(frame)).rgb


# Where failures can happen


def camera_returns(film: Film) -> bool:
    """Whether the camera goes away and comes back, so that it can fail to."""
    away = _how_far(film.poses)
    return bool(away.max() > 0.1 and away[-1] < 0.5 * away.max())


def something_happened(film: Film) -> bool:
    """Whether the target returned in another state than the one it was first seen in."""
    return bool(_path(film)[1][film.phases[1] :].max() > 0.05)


def happens_in_view(film: Film) -> bool:
    """Whether part of the event was seen before the target left, and part of it was not."""
    gone = _path(film)[1]
    whole, seen = gone[-1], gone[film.phases[0] - 1]
    return bool(whole > 0.05 and 0.1 * whole < seen < 0.9 * whole)


PERFECT = Failure("perfect memory", "nothing: every frame is the truth", perfect)

FAILURES: dict[str, Failure] = {
    "frozen_camera": Failure(
        "camera frozen", "the camera stops on its way out", _filmed(frozen_camera), camera_returns, frozen_camera
    ),
    "timid_camera": Failure(
        "camera timid", "the camera makes only part of its turn", _filmed(timid_camera), camera_returns, timid_camera
    ),
    "camera_drift": Failure(
        "camera drifts", "the camera strays from its script", _filmed(camera_drift), camera_returns, camera_drift
    ),
    "late_return": Failure(
        "camera returns late", "the camera waits too long before it turns back", _filmed(late_return), camera_returns,
        late_return,
    ),
    "partial_return": Failure(
        "camera returns in part", "the camera stops on its way back", _filmed(partial_return), camera_returns,
        partial_return,
    ),
    "vanish": Failure("object vanishes", "the target is gone on return", vanish),
    "colour_drift": Failure("identity drifts: colour", "the target returns in other colours", colour_drift),
    "texture_drift": Failure("identity drifts: texture", "the target returns with another pattern", texture_drift),
    "shape_drift": Failure("identity drifts: shape", "the target returns in another shape", shape_drift),
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
    "noise": Failure("noise", "every frame is noise", noise),
    "shuffled": Failure("shuffled frames", "the true frames come in another order", shuffled),
    "other_clip": Failure("another clip", "the clip shows another place", other_clip),
}


def failure(kind: str) -> Failure:
    """The failure, or the floor, of a kind; "perfect" is one too."""
    known = {"perfect": PERFECT, **FAILURES, **FLOORS}
    if kind not in known:
        raise UsageError(f"there is no failure called {kind!r}; known are {', '.join(known)}")
    return known[kind]


def generate(kind: str, film: Film, strength: float = 1.0, seed: int = 0) -> Frames:
    """The frames (uint8 RGB) that a model with a failure makes of a film, with faint noise.

    The noise depends on the seed and the world alone, so that two failures differ by the failures alone.
    """
    import cv2

    made = failure(kind).frames(film, _checked(strength), _draws(kind, film, seed))
    rng = np.random.default_rng([seed, film.world.seed, zlib.crc32(b"noise")])
    height, width = film.truth(0).rgb.shape[:2]
    # One field of noise serves all frames, read from another corner each time.
    field = np.round(rng.normal(0, NOISE, (height + 64, width + 64, 3))).astype(np.int16)
    for rgb in made:
        x, y = rng.integers(0, 65, 2)
        yield cv2.add(rgb, field[y : y + height, x : x + width], dtype=cv2.CV_8U)


def camera_path(kind: str, film: Film, strength: float = 1.0, seed: int = 0) -> np.ndarray:
    """The poses (n, 4, 4) from which the frames of `generate` are seen."""
    path = failure(kind).path
    return film.poses if path is None else path(film, _checked(strength), _draws(kind, film, seed))


def seen_from(film: Film, poses: np.ndarray) -> Film:
    """The film from other poses, whose views are forgotten with it: the film would hold those of every strength."""
    return replace(film, _seen=dict(film._seen)).along(poses)


def _checked(strength: float) -> float:
    if not 0 <= strength <= 1:
        raise UsageError(f"a strength is a number from 0 to 1, not {strength}")
    return float(strength)


def _draws(kind: str, film: Film, seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, film.world.seed, zlib.crc32(kind.encode())])


def _moments(film: Film) -> Iterator[tuple[int, bool]]:
    """Every frame, and whether memory has failed by then: from the middle of the time out of view."""
    switch = sum(film.phases) // 2
    return ((frame, frame >= switch) for frame in range(len(film)))


def _hidden_share(film: Film) -> np.ndarray:
    """0 before the target leaves, 1 when it returns, and in between evenly more: how far a place has changed."""
    left, back = film.phases
    return np.clip((np.arange(len(film)) - left) / (back - left), 0, 1)


def _replaced(film: Film) -> np.ndarray:
    """How far every thing (n, 256) has become another in each frame, from 0 before the target leaves to 1 on return."""
    left, back = film.phases
    come = np.repeat(_hidden_share(film)[:, None], 256, axis=1).astype(np.float32)
    in_view = np.stack([np.bincount(film.shot(k).mask.ravel(), minlength=256) > 0 for k in range(left, back)])
    for thing in np.flatnonzero(~in_view.all(axis=0)):
        come[:, thing] = np.arange(len(film)) >= left + int(np.argmin(in_view[:, thing]))
    return come


def _restated(film: Film, wrong: Callable[[State], State]) -> Frames:
    """The truth, with the target in a wrong state on return."""
    for frame, away in _moments(film):
        state = film.states[frame]
        yield film.shot(frame, wrong(state) if away else state).rgb


def _path(film: Film) -> tuple[list[tuple[float, State]], np.ndarray]:
    """The event as states with the length of path behind each, and how far along it every frame is."""
    states = film.states
    steps = [_apart(one, next) for one, next in pairwise(states)]
    gone = np.concatenate([[0.0], np.cumsum(steps)])
    return list(zip(gone.tolist(), states, strict=True)), gone


def _apart(one: State, other: State) -> float:
    """How far two states are apart: metres, or as much as a change of look, amount, or of a quarter turn."""
    distance = float(np.linalg.norm(np.subtract(one.place, other.place)))
    distance += abs(one.amount - other.amount) + float(one.look != other.look)
    return distance + (abs(one.turn - other.turn) + abs(one.roll - other.roll)) / 90


def _on_path(path: list[tuple[float, State]], position: float) -> list[tuple[float, State]]:
    """The state at a position of a path, as weighted states: two where it changes its look."""
    after = next((k for k, (gone, _) in enumerate(path) if gone >= position), len(path) - 1)
    if after == 0 or path[after][0] == position:
        return [(1.0, path[after][1])]
    (start, one), (end, other) = path[after - 1], path[after]
    share = (position - start) / (end - start)
    mixed = replace(
        one,
        place=_moved(one.place, share * np.subtract(other.place, one.place)),
        **{
            name: (1 - share) * getattr(one, name) + share * getattr(other, name) for name in ("amount", "turn", "roll")
        },
    )
    if one.look == other.look:
        return [(1.0, mixed)]
    return [(1 - share, mixed), (share, replace(mixed, look=other.look))]


def _pictured(film: Film, frame: int, weighted: list[tuple[float, State]]) -> np.ndarray:
    return effects.blend((weight, film.shot(frame, state).rgb) for weight, state in weighted)


def _moved(place: tuple[float, float, float], by: np.ndarray) -> tuple[float, float, float]:
    x, y, z = (float(a + b) for a, b in zip(place, by, strict=True))
    return x, y, z


def _aside(film: Film) -> np.ndarray:
    """A step sideways, on from where the target came; upwards where it would hardly be in view."""
    right = _right(film)
    came = float(right @ np.subtract(film.states[-1].place, film.states[0].place))
    step = ELSEWHERE * right * (np.sign(came) if abs(came) > 0.05 else _inwards(film))
    soon = (film.phases[1] + len(film)) // 2
    seen = all(_whole_in_view(film, frame, film.states[frame].place + step) for frame in (soon, len(film) - 1))
    return step if seen else np.array([0, -0.9 * ELSEWHERE, 0])


def _beside(film: Film) -> np.ndarray:
    """A step sideways towards the middle of the last view."""
    return ELSEWHERE * _inwards(film) * _right(film)


def _right(film: Film) -> np.ndarray:
    """The horizontal direction to the right in the last view."""
    right = film.poses[-1, :3, 0] * (1, 0, 1)
    return np.asarray(right / np.linalg.norm(right))


def _inwards(film: Film) -> float:
    """1 if the middle of the last view is to the right of the target, -1 if it is to the left."""
    pose = film.poses[-1]
    across = pose[:3, 0] @ (np.array(film.states[-1].place) - pose[:3, 3])
    return -1.0 if across > 0 else 1.0


def _whole_in_view(film: Film, frame: int, place: np.ndarray) -> bool:
    """Whether a target that stands at a place is whole in the view of a frame."""
    pose, (height, width) = film.poses[frame], film.size
    x, y, depth = film.K @ (pose[:3, :3].T @ (place - (0, 0.15, 0) - pose[:3, 3]))
    reach = 0.2 * film.K[0, 0]  # 20 cm around its middle
    return bool(depth > 0 and reach < x < width * depth - reach and reach < y < height * depth - reach)


def _support(film: Film) -> int:
    """The instance that the target stands on, if that is more than the ground; 0 if it is the ground."""
    place, pose = np.array(film.states[-1].place), film.poses[-1]
    x, y, depth = film.K @ (pose[:3, :3].T @ (place + np.array([0, 0.01, 0]) - pose[:3, 3]))
    mask = film.shot(len(film) - 1).mask
    row, column = round(y / depth), round(x / depth)
    on_ground = place[1] > -0.1  # y points down, and the ground is at 0
    return 0 if on_ground or not (0 <= row < mask.shape[0] and 0 <= column < mask.shape[1]) else int(mask[row, column])


@lru_cache(maxsize=2)
def _another(film: Film) -> Film:
    """The same film in another place of the kind, with the target where it was."""
    return film.in_world(make_world(film.world.seed + OTHER, film.world.place, like=film.world))


def _rays(film: Film, frame: int) -> np.ndarray:
    """The direction (height, width, 3) in the world in which every pixel looks."""
    height, width = film.truth(frame).mask.shape
    x, y = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
    rays = np.stack([x, y, np.ones_like(x)], axis=-1) @ np.linalg.inv(film.K).T.astype(np.float32)
    rays /= np.linalg.norm(rays, axis=-1, keepdims=True)
    return np.asarray(rays @ film.poses[frame][:3, :3].T.astype(np.float32))


def _how_far(poses: np.ndarray) -> np.ndarray:
    """How far every pose is from the first: metres and, for a turn of a radian, another metre."""
    turned = np.radians(geodesic(poses[0, :3, :3], poses[:, :3, :3]))
    return np.asarray(np.linalg.norm(poses[:, :3, 3] - poses[0, :3, 3], axis=1) + turned)


def _turns_back(film: Film) -> int:
    """The last frame in which the camera is as far away as it gets."""
    away = _how_far(film.poses)
    return int(np.flatnonzero(away >= away.max() - 1e-6)[-1])


def _between(one: np.ndarray, other: np.ndarray, share: float) -> np.ndarray:
    """The pose at a share of the way from one pose to another."""
    if share in (0, 1):
        return other if share else one
    pose = np.eye(4)
    pose[:3, :3] = slerp(one[:3, :3], other[:3, :3], share)
    pose[:3, 3] = (1 - share) * one[:3, 3] + share * other[:3, 3]
    return pose


def _at_times(poses: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The poses at times counted in frames."""
    first = np.minimum(times.astype(int), len(poses) - 2)
    return np.stack(
        [_between(poses[k], poses[k + 1], t - k) for k, t in zip(first.tolist(), times.tolist(), strict=True)]
    )


def _without_jumps(film: Film) -> list[State]:
    """The states of a film, with a sudden change put off while it would be seen: things do not jump in view."""
    shown, held = [film.states[0]], False
    for frame in range(1, len(film)):
        before, now = film.states[frame - 1], film.states[frame]
        held = held or _apart(before, now) > 0.25
        held = held and any(film.target_visible(frame, state) for state in (shown[-1], now))
        shown.append(shown[-1] if held else now)
    return shown
