"""Overlay: the returned view of a clip aligned with the truth, the first view and the last view before the target left.

Evidence: `Departures`, the phases, and the target's box from the case. For the few sampled frames in which
the target's place is in full view again, four pictures are aligned pixel by pixel:

- `truth`: what the reference shows;  - `shown`: what the clip shows, its light made that of the truth;
- `first`: the reference's first view;  - `last`: the reference's last view of the target before it left.

Where truth and first differ lies the mark of what happened meanwhile. Colours are CIELAB, so that a
difference of about 2 is just noticeable and one of 20 is seen at a glance.
"""

from __future__ import annotations

import numpy as np

from revisit.core import Case, Unscored, derived
from revisit.evidence.frames import CasePhases
from revisit.evidence.reference import Departures, Overlay
from revisit.metrics.answers import cache_recent_results

MOST_ROWS = 3  # returned frames that speak: enough for a median, few enough to be quick
WHOLE = 0.85  # of the target's box is inside the frame: in full view
REACHED = 0.8  # of the box is reached by the clip's frame
NEIGHBOURS = ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1))  # shifts by which a fine edge may be off
BLUR = 1  # pixels on each side: hides noise and what is left of a misalignment
CHANGED = 14.0  # CIELAB: of an event's mark; seen at a glance, and more than compression does to a blurred picture
LEAST_MARK = 0.06  # of the target's box
MOST_GAPS = 0.4  # of the steps of a camera may be unknown
ROLL_WEIGHT = 0.5  # widths per radian: how far a roll moves the frame's edge
STRAY = 0.12  # widths: chains of steps stray by less over a clip of a few seconds
ALONE = 0.5  # share of the points at which a registration is believed without the cameras' steps
THINNED = 5  # every fifth pixel tells the light as well as all
TRIM = 0.6  # share of the pixels, those that fit best, from which the light is read


def rgb_to_lab(rgb: np.ndarray) -> np.ndarray:
    """CIELAB (D65) of sRGB values from 0 to 255."""
    scaled = np.clip(np.asarray(rgb, dtype=np.float32) / 255, 0, 1)
    linear = np.where(scaled > 0.04045, ((scaled + 0.055) / 1.055) ** 2.4, scaled / 12.92)
    to_xyz = np.array(
        [[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]], np.float32
    )
    xyz = linear @ to_xyz.T / np.array([0.950456, 1.0, 1.088754], np.float32)
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.stack(
        [116 * f[..., 1] - 16, 500 * (f[..., 0] - f[..., 1]), 200 * (f[..., 1] - f[..., 2])], axis=-1
    ).astype(np.float32)


def box_blur_float32(picture: np.ndarray, reach: int = BLUR) -> np.ndarray:
    """(H, W, ...) averaged over a small square, as single floats."""
    return box_blur(picture, reach).astype(np.float32)


def box_blur(picture: np.ndarray, reach: int) -> np.ndarray:
    """(H, W, ...) the mean of the square of so many pixels on each side, as floats."""
    side = 2 * reach + 1
    (height, width), before = picture.shape[:2], reach + 1
    padded = np.empty((height + side, width + side, *picture.shape[2:]))  # with its border repeated on all sides
    inner = slice(before, before + width)
    padded[before : before + height, inner] = picture
    padded[:before, inner], padded[before + height :, inner] = picture[0], picture[-1]
    padded[:, :before] = padded[:, before : before + 1]
    padded[:, before + width :] = padded[:, before + width - 1 : before + width]
    sums = padded.cumsum(axis=0, out=padded).cumsum(axis=1, out=padded)
    means = sums[side:, side:] - sums[:-side, side:]
    means -= sums[side:, :-side]
    means += sums[:-side, :-side]
    means /= side**2
    return means


def channel_sum(picture: np.ndarray) -> np.ndarray:
    """(H, W) sum over three channels, as `sum(axis=-1)` gives it, in a tenth of its time."""
    return np.asarray(picture[..., 0] + picture[..., 1] + picture[..., 2])


def channel_mean(picture: np.ndarray) -> np.ndarray:
    """(H, W) mean of three channels of floats, as `mean(axis=-1)` gives it."""
    return channel_sum(picture) / picture.dtype.type(3)


def rolled_values(picture: np.ndarray, region: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """(shifts, pixels of the region) what `np.roll(picture, shift, axis=(0, 1))[region]` is for each shift (y, x)."""
    margin = int(np.abs(shifts).max())
    wrapped = np.pad(picture, margin, mode="wrap")
    rows, columns = np.nonzero(region)
    places = (rows + margin) * wrapped.shape[1] + columns + margin
    return np.asarray(wrapped.take(places - (shifts @ [wrapped.shape[1], 1])[:, None]))


def row_medians(values: np.ndarray) -> np.ndarray:
    """The median of each row, as `np.median` gives it, in a fifth of its time; nan for rows without values."""
    if not values.shape[1]:
        return np.full(len(values), np.nan)
    half = values.shape[1] // 2
    ordered = np.partition(values, half, axis=1)
    upper = ordered[:, half]
    return np.asarray(upper if values.shape[1] % 2 else (ordered[:, :half].max(axis=1) + upper) / 2)


def dilate_mask(mask: np.ndarray, reach: int) -> np.ndarray:
    """The mask with so many pixels more on all sides."""
    across = mask.copy()
    for step in range(1, reach + 1):
        across[:, step:] |= mask[:, :-step]
        across[:, :-step] |= mask[:, step:]
    both = across.copy()
    for step in range(1, reach + 1):
        both[step:] |= across[:-step]
        both[:-step] |= across[step:]
    return both


def warp_picture(picture: np.ndarray, warp: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(H, W, C) the picture under a warp in fractions, bilinear, and the pixels that it reaches."""
    height, width = picture.shape[:2]
    y, x = np.mgrid[:height, :width]
    at = np.stack([(x + 0.5) / width, (y + 0.5) / height, np.ones_like(x, float)], axis=-1) @ np.linalg.inv(warp).T
    depth = np.where(at[..., 2] > 1e-6, at[..., 2], 1e-6)
    u, v = at[..., 0] / depth * width - 0.5, at[..., 1] / depth * height - 0.5
    inside = (at[..., 2] > 1e-6) & (u >= -0.5) & (v >= -0.5) & (u <= width - 0.5) & (v <= height - 0.5)
    u, v = np.clip(u, 0, width - 1.001), np.clip(v, 0, height - 1.001)
    left, top = u.astype(int), v.astype(int)
    du, dv = (u - left)[..., None], (v - top)[..., None]
    picture = np.asarray(picture, np.float32)
    upper = picture[top, left] * (1 - du) + picture[top, left + 1] * du
    lower = picture[top + 1, left] * (1 - du) + picture[top + 1, left + 1] * du
    return np.asarray(upper * (1 - dv) + lower * dv, np.float32), np.asarray(inside)


def warp_fractional_points(warp: np.ndarray, xy: np.ndarray) -> np.ndarray:
    """Where positions (n, 2) in fractions land under a warp; far outside for those behind the camera."""
    moved = np.c_[xy, np.ones(len(xy))] @ np.asarray(warp, float).T
    ahead = moved[:, 2:] > 1e-6
    return np.where(ahead, moved[:, :2] / np.where(ahead, moved[:, 2:], 1.0), 1e3)


def share_of_box_in_frame(warp: np.ndarray, box: tuple[float, float, float, float]) -> float:
    """Share of a box that is inside the frame after a warp."""
    x0, y0, x1, y1 = box
    at = (np.arange(8) + 0.5) / 8
    grid = np.stack(np.meshgrid(x0 + at * (x1 - x0), y0 + at * (y1 - y0)), axis=-1).reshape(-1, 2)
    landed = warp_fractional_points(warp, grid)
    return float(((landed >= 0) & (landed <= 1)).all(axis=1).mean())


def fit_channel_gain_and_offset(
    picture: np.ndarray, truth: np.ndarray, valid: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Gain and offset of each channel that make `truth` into `shown`, from the pixels that fit best."""
    gains, offsets = np.ones(picture.shape[-1]), np.zeros(picture.shape[-1])
    for channel in range(picture.shape[-1]):
        t = truth[..., channel][valid][::THINNED].astype(float)
        s = picture[..., channel][valid][::THINNED].astype(float)
        if len(t) < 32 or t.std() < 2:
            offsets[channel] = float(np.median(s - t)) if len(t) else 0.0
            continue
        gain, offset = 1.0, float(np.median(s - t))
        for _ in range(4):
            error = np.abs(s - gain * t - offset)
            inliers = error <= np.quantile(error, TRIM)
            spread = float(t[inliers].var())
            if spread < 1:
                break
            covariance = ((t[inliers] - t[inliers].mean()) * (s[inliers] - s[inliers].mean())).mean()
            gain = float(np.clip(covariance / spread, 0.4, 2.5))
            offset = float(s[inliers].mean() - gain * t[inliers].mean())
        gains[channel], offsets[channel] = gain, offset
    return gains, offsets


def shift_tolerant_lab_distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(H, W) CIELAB distance of each pixel, the smallest over shifts of a pixel, so that a fine edge may be off."""
    best = np.full(a.shape[:2], np.inf, np.float32)
    a, b = (np.ascontiguousarray(picture.transpose(2, 0, 1)) for picture in (a, b))  # sums over channels are then quick
    for shift in NEIGHBOURS:
        difference = np.roll(b, shift, axis=(1, 2)) - a
        difference *= difference
        np.minimum(best, difference[0] + difference[1] + difference[2], out=best)
    return np.sqrt(best, out=best)


def connected_parts(mask: np.ndarray, least_pixels: int) -> list[np.ndarray]:
    """Connected parts of a mask with at least so many pixels, largest first."""
    label = np.where(mask, np.arange(1, mask.size + 1).reshape(mask.shape), 0)
    across, down = _run_starts(mask), _run_starts(mask.T)
    while True:
        # every pixel takes the highest number of its row's run, then of its column's
        spread = _highest_of_runs(_highest_of_runs(label, across).T, down).T
        if (spread == label).all():
            break
        label = spread
    names, counts = np.unique(label[mask], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return [label == names[k] for k in order if counts[k] >= least_pixels]


def _run_starts(mask: np.ndarray) -> np.ndarray:
    """Where runs of equal values begin in a mask, read row by row; each row begins one."""
    begins = np.ones(mask.shape, bool)
    begins[:, 1:] = mask[:, 1:] != mask[:, :-1]
    return np.flatnonzero(begins)


def _highest_of_runs(label: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The numbers of a picture, each replaced by the highest of its run."""
    flat = label.ravel()
    highest = np.maximum.reduceat(flat, starts)
    return np.repeat(highest, np.diff(starts, append=flat.size)).reshape(label.shape)


def warps_to_motion_vectors(warps: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """(N, 4) shift of the centre in widths (x, y), half the log of the zoom, half the roll in radians.

    `size` is the width and height of the pictures.
    """
    aspect = size[1] / size[0]
    centre = warps @ np.array([0.5, 0.5, 1.0])
    at = centre[:, :2] / centre[:, 2:]
    # the linear part at the centre, with y in widths
    third = warps[:, 2]
    linear = (warps[:, :2, :2] - at[:, :, None] * third[:, None, :2]) / centre[:, 2, None, None]
    linear = linear * np.array([[1.0, 1 / aspect], [aspect, 1.0]])
    zoom = 0.5 * np.log(np.maximum(np.linalg.det(linear), 1e-6))
    roll = np.arctan2(linear[:, 1, 0] - linear[:, 0, 1], linear[:, 0, 0] + linear[:, 1, 1])
    return np.stack([at[:, 0] - 0.5, (at[:, 1] - 0.5) * aspect, 0.5 * zoom, ROLL_WEIGHT * roll], axis=1)


def accumulate_steps(steps: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """(N, 4) sum of the steps; an unknown step is that of its known neighbours."""
    rows = np.arange(len(steps))
    filled = np.stack([np.interp(rows, rows[valid], column[valid]) for column in steps.T], axis=1)
    filled[0] = 0
    return np.asarray(np.cumsum(filled, axis=0))


def camera_paths_from_steps(departures: Departures) -> tuple[np.ndarray, np.ndarray] | None:
    """(N, 4) where the cameras of clip and reference are by their chained steps; None where a chain is broken."""
    mine, true = departures.clip_step_share > 0, departures.reference_step_share > 0
    if (~mine).mean() > MOST_GAPS or (~true).mean() > MOST_GAPS:
        return None
    path = accumulate_steps(warps_to_motion_vectors(departures.clip_step, departures.size), mine)
    return path, accumulate_steps(warps_to_motion_vectors(departures.reference_step, departures.size), true)


def trusted_registration_mask(departures: Departures) -> np.ndarray:
    """(N,) whether a frame really lies over its partner: joined, and where the steps of both cameras say it should be.

    Tiles, planks and bricks join with each other a few tiles off.
    """
    paths = camera_paths_from_steps(departures)
    if paths is None:
        return np.asarray(departures.offset_share >= ALONE)
    expected = paths[1] - paths[0]
    stray = np.linalg.norm((warps_to_motion_vectors(departures.offset, departures.size) - expected)[:, :2], axis=1)
    return np.asarray((departures.offset_share > 0) & (stray < STRAY + 0.25 * np.linalg.norm(expected[:, :2], axis=1)))


@derived(makes=Overlay, needs=(Departures, CasePhases, Case), version=1)
def build_overlay(departures: Departures, phases: CasePhases, case: Case) -> Overlay | Unscored:
    """The returned frames that show the target's place best, laid over truth, first and last view."""
    if case.target is None:
        return Unscored("no_target", "no target was given for this case")
    box = case.target.box
    returned = departures.index >= phases.first_returned
    if not returned.any():
        return Unscored("no_overlap", f"no frame after the return at frame {phases.first_returned} could be compared")
    visible = np.array([share_of_box_in_frame(warp, box) for warp in departures.reference_first])
    in_view = (departures.reference_first_share > 0) & (visible >= WHOLE)
    if not (returned & in_view).any():
        return Unscored("no_return", "the reference does not come back to where the target first was")
    joined = returned & in_view & trusted_registration_mask(departures)
    if not joined.any():
        return Unscored("no_overlap", "the clip returns to a different view or place than the reference")
    trust = departures.offset_share * departures.reference_first_share
    rows = np.sort(np.argsort(np.where(joined, -trust, 1.0), kind="stable")[: min(MOST_ROWS, int(joined.sum()))])
    before = np.flatnonzero((departures.index < phases.first_hidden) & in_view)
    last = int(before[-1]) if len(before) else -1
    overlays = [one for row in rows if (one := _overlay_of_frame(departures, int(row), last, box)) is not None]
    if not overlays:
        return Unscored("no_overlap", "the returned view of the clip shows too little of where the target was")
    columns = {name: np.stack([one[name] for one in overlays]) for name in overlays[0]}
    return Overlay(last_frame=int(departures.index[last]) if last >= 0 else -1, **columns)


def _overlay_of_frame(
    departures: Departures, row: int, last: int, box: tuple[float, float, float, float]
) -> dict[str, np.ndarray] | None:
    """The pictures and masks of one returned frame; None where the clip does not reach the target's place."""
    warps, pictures = departures.reference_first, departures.truth
    valid = departures.covered[row]
    was = warped_box_mask(warps[row], box, valid.shape)
    if not was.any() or (was & valid).sum() < REACHED * was.sum():
        return None
    earlier = (pictures[last], warps[last]) if last >= 0 else (None, None)
    truth, views = _returned_truth_and_views(pictures[row], warps[row], was, pictures[0], *earlier)
    picture = box_blur_float32(departures.shown[row])
    gain, offset = fit_channel_gain_and_offset(picture, truth, valid & ~dilate_mask(was, 4))
    picture = (picture - offset.astype(np.float32)) / gain.astype(np.float32)
    return {
        **views, "shown": rgb_to_lab(picture), "index": departures.index[row], "reference": departures.reference[row],
        "valid": valid, "was": was,
    }  # fmt: skip


@cache_recent_results(12)  # of one scene and its models
def _returned_truth_and_views(
    picture: np.ndarray, warp: np.ndarray, first_mask: np.ndarray, first: np.ndarray, last: np.ndarray | None,
    last_warp: np.ndarray | None,
) -> tuple[np.ndarray, dict[str, np.ndarray]]:  # fmt: skip
    """A returned frame of the reference, and what it tells without the clip: earlier views, and where the target is.

    `warp` and `last_warp` take the first view to this frame and to the last one before the target left.
    """
    truth = box_blur_float32(picture)
    first_view, first_valid = _warp_and_align_view(first, warp, truth)
    if last is None or last_warp is None:
        last_view, last_valid = np.zeros_like(truth), np.zeros(first_mask.shape, bool)
    else:
        last_view, last_valid = _warp_and_align_view(last, warp @ np.linalg.inv(last_warp), truth)
    lab = {"truth": rgb_to_lab(truth), "first": rgb_to_lab(first_view), "last": rgb_to_lab(last_view)}
    here, moved = locate_target(lab["first"], lab["truth"], first_mask, first_valid)
    return truth, {
        **lab, "first_valid": first_valid, "last_valid": last_valid, "here": here, "moved": np.asarray(moved, bool),
    }  # fmt: skip


def _warp_and_align_view(picture: np.ndarray, warp: np.ndarray, onto: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An earlier view under a warp, at the shift of up to 2 pixels at which it fits best, and what it reaches."""
    moved, inside = warp_picture(picture, warp)
    moved = box_blur_float32(moved)
    gray, target = channel_mean(moved), channel_mean(onto)
    region = inside.copy()
    region[:3], region[-3:], region[:, :3], region[:, -3:] = False, False, False, False
    if not region.any():
        return moved, inside
    some = np.zeros(region.size, bool)
    some[np.flatnonzero(region)[::THINNED]] = True
    some = some.reshape(region.shape)
    shifts = np.array([(y, x) for y in range(-2, 3) for x in range(-2, 3)])
    medians = row_medians(np.abs(rolled_values(gray, some, shifts) - target[some]))
    errors = [float(away) + 0.01 * (abs(y) + abs(x)) for away, (y, x) in zip(medians, shifts.tolist(), strict=True)]
    best = tuple(shifts[int(np.argmin(errors))].tolist())
    return np.roll(moved, best, axis=(0, 1)), np.roll(inside, best, axis=(0, 1))


def warped_box_mask(warp: np.ndarray, box: tuple[float, float, float, float], shape: tuple[int, ...]) -> np.ndarray:
    """(H, W) pixels that a box of the first frame covers after a warp."""
    height, width = shape
    y, x = np.mgrid[:height, :width]
    places = np.stack([(x + 0.5) / width, (y + 0.5) / height], axis=-1).reshape(-1, 2)
    u, v = warp_fractional_points(np.linalg.inv(warp), places).T
    x0, y0, x1, y1 = box
    return np.asarray(((u >= x0) & (u <= x1) & (v >= y0) & (v <= y1)).reshape(height, width))


def locate_target(
    first_lab: np.ndarray, truth_lab: np.ndarray, first_mask: np.ndarray, valid: np.ndarray
) -> tuple[np.ndarray, bool]:
    """(H, W) where the target is in the truth, and whether that is another place than in the first view.

    It moved when its old place changed and something of its size changed elsewhere; a change that touches
    its old place belongs to it there.
    """
    change = (shift_tolerant_lab_distances(first_lab, truth_lab) > CHANGED) & valid
    size = int(first_mask.sum())
    least = max(4, int(LEAST_MARK * size))
    parts = connected_parts(change, least)
    near = dilate_mask(first_mask, 2)
    away = [part & ~near for part in parts if (part & ~near).sum() > 0.25 * size]
    if not away:
        # A target before a busy wall changes it in pieces; pieces next to each other, clear of the old place, are one.
        joined = connected_parts(dilate_mask(change, 2), least)
        away = [part for part in joined if not (part & near).any() and (part & change).sum() > 0.15 * size]
    if (change & first_mask).sum() > 0.3 * size and away:
        return dilate_mask(max(away, key=lambda part: int(part.sum())), 1), True
    touching = [part for part in parts if (part & near).any()]
    return np.asarray(dilate_mask(np.any([first_mask, *touching], axis=0), 1)), False
