"""Camera departure: does the camera go as far as the reference's, when, and does it come back as far?

Evidence: `Departures`. The motion between sampled frames is chained to a path of the picture's centre (in
widths, with zoom and roll as further axes, a half each), for the clip and for the reference alike; wherever
the two are joined directly, that corrects the chain. Distances are measured along the axis on which the reference moves
most. Both paths are estimated from pictures in the same way, so that common errors cancel.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from revisit.core import Score, Series, Unscored, derived, metric
from revisit.evidence.reference import CameraPaths, Departures
from revisit.metrics import overlay

FAMILY = "camera_departure"  # the group of these metrics, by which users name it

LEAST_WAY = 0.15  # widths: a reference that moves less has no way out and back
SURE = 0.5  # share of the points at which clip and reference are joined beyond doubt
NEAR = 0.35  # widths: offsets up to here are read off directly; larger ones are bent by perspective
CLOSE = 0.15  # widths along the way: near enough that perspective does not look like a shift across it
STILL = 0.12  # of the reference's usual speed on its way: the camera stands
WAY_BACK = 0.6  # of the farthest point of the clip: where its return is timed
FOLLOWS = 0.35  # share of the reference's way: a camera that makes less of it has no path that could stray
# Of right cameras in clips with other failures: up to 0.0030 in the three places on which it was set, up to 0.0029 in
# three others. Where all of the background is another one it is more: up to 0.0052, in the other places 0.02.
NOISE = 0.005
sign = partial(metric, version=1, needs=(CameraPaths,), suites=("folder",))  # what all cards here share


@derived(makes=CameraPaths, needs=(Departures,), version=1)
def camera_paths_along_main_axis(departures: Departures) -> CameraPaths | Unscored:
    """The ways of both cameras along the axis on which the reference moves most."""
    n = len(departures.index)
    if n < 4:
        return Unscored("too_short", f"a movement out and back needs more than the {n} frames that were compared")
    paths = overlay.camera_paths_from_steps(departures)
    if paths is None:
        side = "reference" if (departures.reference_step_share <= 0).mean() > overlay.MOST_GAPS else "clip"
        return Unscored("not_followed", f"the camera of the {side} cannot be tracked (too little texture, or cuts)")
    path, truth = paths
    offset = overlay.warps_to_motion_vectors(departures.offset, departures.size)
    near = np.hypot(offset[:, 0], offset[:, 1]) < NEAR
    direct = overlay.trusted_registration_mask(departures) & (departures.offset_share >= SURE) & near
    if direct.any():
        # the picture moves against the camera: a clip that lies left of the reference has moved further left
        rows = np.arange(n)
        error = truth - offset - path
        path = path + np.stack([np.interp(rows, rows[direct], column[direct]) for column in error.T], axis=1)
    far = int(np.argmax(np.linalg.norm(truth - truth[0], axis=1)))
    direction = truth[far] - truth[0]
    length = float(np.linalg.norm(direction))
    if length < LEAST_WAY:
        facts = {"reference_widths": round(length, 3)}
        return Unscored("at_rest", f"the camera of the reference hardly moves ({length:.2f} frame widths)", facts)
    axis = direction / length
    difference = path - truth
    return CameraPaths(
        index=departures.index, seconds=departures.seconds, clip=(path - path[0]) @ axis,
        reference=(truth - truth[0]) @ axis, off=difference - np.outer(difference @ axis, axis), direct=direct,
    )  # fmt: skip


@sign(
    id="camera_reach", title="How far the camera goes", unit="ratio", range=(0, None), higher_is_better=None,
    responds_to=("frozen_camera", "timid_camera"),
    blind_to=("content", "a path that is long enough but wrong", "when the camera moves"),
)  # fmt: skip
def camera_reach(paths: CameraPaths) -> Score | Unscored:
    """Farthest way of the clip's camera from its start over that of the reference's: 1 as far, 0 never left."""
    share = float(max(paths.clip.max(), 0.0) / paths.reference.max())
    units = Series(frame=paths.index, value=paths.clip, reference=paths.reference)
    return Score(share, units=units, facts={"reference_widths": float(paths.reference.max())})


@sign(
    id="camera_standstill", title="Camera stops on the way out", unit="share", range=(0, 1), higher_is_better=False,
    responds_to=("frozen_camera",),
    blind_to=("content", "a camera that moves, but less", "a camera that stops on the way back"),
)  # fmt: skip
def camera_standstill(paths: CameraPaths) -> Score | Unscored:
    """Share of the reference's way out during which the clip's camera stands still."""
    out, still = reference_moves_and_clip_stands(paths)
    turn = int(paths.reference.argmax())
    out[turn:] = False
    if not out.any():
        return Unscored("at_rest", "the camera of the reference does not move on the way out")
    weight = np.abs(np.diff(paths.reference))[out]
    units = Series(frame=paths.index[1:][out], value=still[out].astype(float))
    return Score(float((weight * still[out]).sum() / weight.sum()), units=units)


def reference_moves_and_clip_stands(paths: CameraPaths) -> tuple[np.ndarray, np.ndarray]:
    """(N - 1,) steps in which the reference moves, and those in which the clip stands."""
    truth, mine = np.abs(np.diff(paths.reference)), np.abs(np.diff(paths.clip))
    usual = float(np.quantile(truth, 0.75))
    return truth > 0.3 * usual, mine < STILL * usual


@sign(
    id="camera_scale", title="Share of the turn made", unit="ratio", range=(0, None), higher_is_better=None,
    responds_to=("timid_camera",),
    blind_to=("content", "stops and delays"),
)  # fmt: skip
def camera_scale(paths: CameraPaths) -> Score | Unscored:
    """Median speed of the clip's camera over the reference's while both are on their way out: 1 as fast."""
    moves, still = reference_moves_and_clip_stands(paths)
    moves[int(paths.reference.argmax()) :] = False
    both = moves & ~still
    if both.sum() < 2:
        return Unscored("at_rest", "the camera of the clip does not move while the reference's moves out")
    ratio = np.diff(paths.clip)[both] / np.diff(paths.reference)[both]
    return Score(float(max(np.median(ratio), 0.0)), units=Series(frame=paths.index[1:][both], value=ratio))


@sign(
    id="return_shortfall", title="Missing part of the return", unit="share", range=(0, None), higher_is_better=False,
    noise_floor=NOISE, responds_to=("partial_return",),
    blind_to=("content", "a camera that never left", "when the camera comes back"),
)  # fmt: skip
def return_shortfall(paths: CameraPaths) -> Score | Unscored:
    """How far the clip's camera is from the reference's at the end, along the way, as a share of that way."""
    apart = paths.clip - paths.reference
    end = float(np.median(apart[-2:]))
    back = int(paths.reference.argmax())
    units = Series(frame=paths.index[back:], value=np.abs(apart[back:]) / paths.reference.max())
    facts = {"reference_returns": round(1 - float(np.median(paths.reference[-2:]) / paths.reference.max()), 3)}
    return Score(abs(end) / float(paths.reference.max()), raw=end, units=units, facts=facts)


@sign(
    id="return_delay", title="Delay of the return", unit="share", range=(-1, 1), higher_is_better=None,
    responds_to=("late_return",),
    blind_to=("content", "a camera that never left", "a return that stops halfway"),
)  # fmt: skip
def return_delay(paths: CameraPaths) -> Score | Unscored:
    """How much later than the reference's the clip's camera is back within 60 % of its farthest point.

    As a share of the time that the reference takes for its way back. Both are timed at the same point.
    """
    point = WAY_BACK * float(paths.clip.max())
    if point < 0.5 * WAY_BACK * LEAST_WAY:
        return Unscored("at_rest", "the camera of the clip never left, so it cannot return late")
    ways = paths.clip, paths.reference
    mine, truth = (seconds_of_final_fall_below(way, paths.seconds, point) for way in ways)
    if truth is None:
        return Unscored("no_return", "the camera of the reference does not come back that far")
    if mine is None:
        return Unscored("no_return", "the camera of the clip does not come back that far")
    turn = paths.seconds[int(paths.reference.argmax())]
    span = float(paths.seconds[-1] - turn)
    if span <= 0:
        return Unscored("no_return", "the reference ends at its turning point, so it has no return")
    return Score(float(np.clip((mine - truth) / span, -1, 1)), raw=mine - truth, facts={"point": point})


def seconds_of_final_fall_below(position: np.ndarray, seconds: np.ndarray, point: float) -> float | None:
    """When a way falls below a point after its farthest moment, for good; None if it never does."""
    above = np.flatnonzero(position > point)
    if not len(above) or above[-1] + 1 >= len(position):
        return None
    k = int(above[-1])
    share = (position[k] - point) / max(float(position[k] - position[k + 1]), 1e-9)
    return float(seconds[k] + share * (seconds[k + 1] - seconds[k]))


@sign(
    id="camera_strays", version=2, title="Camera off the reference path", unit="widths", range=(0, None),
    higher_is_better=False, noise_floor=NOISE, responds_to=("camera_drift",),
    blind_to=("content", "going too far or not far enough along the right path", "a camera that never left"),
)  # fmt: skip
def camera_strays(paths: CameraPaths) -> Score | Unscored:
    """How far the clip's camera is across the reference's way in the last sixth of the clip, in widths.

    Across means a shift at right angles, a zoom or a roll that the reference does not make. Only frames that lie close
    to the reference's count, for chains of steps stray by themselves; and only of a camera that left, for one that
    stays never strays.
    """
    if float(paths.clip.max()) < FOLLOWS * float(paths.reference.max()):
        return Unscored("at_rest", "the camera of the clip never left, so it has no path that could stray")
    n = len(paths.index)
    last = np.arange(n) >= n - max(3, n // 6)
    close = last & paths.direct & (np.abs(paths.clip - paths.reference) < CLOSE)
    if not close.any():
        return Unscored("no_overlap", "at the end of the clip no frame lies close to the reference's")
    size = np.linalg.norm(paths.off, axis=1)
    facts = {"roll_degrees": float(np.degrees(np.median(paths.off[close, 3]) / overlay.ROLL_WEIGHT))}
    units = Series(frame=paths.index[close], value=size[close])
    return Score(float(np.median(size[close])), units=units, facts=facts)
