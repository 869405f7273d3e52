"""Object geometry of MBench: does the target return in the shape it had (docs/mbench-metrics.md)?

SSIM (Gauss 11, sigma 1.5, grey) of the early frame and the late one warped to it, over the target's pixels that both
see, five pixels in from their edge, so that no window reaches what is not the target or not seen. `paper` multiplies
both with the mask first (eq. 4), so that a small target scores near 1 whatever becomes of it.
"""

from __future__ import annotations

import numpy as np

from revisit.core import NEEDS_BOX, Case, PublishedMaker, Score, Series, Unscored, derived
from revisit.evidence.pictures import EDGE, SIGMA, WINDOW, ssim_map
from revisit.evidence.target import HIDDEN, ObjectMasks, TargetPhases
from revisit.metrics.rows import nearest_rows
from revisit.suites.mbench.evidence import ObjectRegion, WarpedViews
from revisit.suites.mbench.metrics.rules import PAPER, check_rule, score_metric

LEAST_PIXELS, LEAST_SHARE = 400, 0.3  # of the target, after erosion, on a grid with a longer side of 504; of its mask
FEWEST_PIXELS = 100  # on whatever grid: about one window of SSIM
LONG_SIDE = 504
NEAR_FRAMES = 2  # a mask may belong to a neighbouring frame, where only some were segmented


def scaled_gaussian_window_mean(picture: np.ndarray, scale: float, offset: float) -> np.ndarray:
    """Gaussian mean of the window around each pixel, borders reflected, times `scale` plus `offset`."""
    at = np.arange(WINDOW) - EDGE
    weights = np.exp(-(at**2) / (2 * SIGMA**2))
    weights /= weights.sum()
    rows, columns = picture.shape
    wide = np.pad(picture, EDGE, mode="reflect")
    down = sum((w * wide[k : k + rows] for k, w in enumerate(weights)), np.zeros((rows, wide.shape[1])))
    mean = sum((w * down[:, k : k + columns] for k, w in enumerate(weights)), np.zeros((rows, columns)))
    return scale * mean + offset


def ssim_of_grey_pictures(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """SSIM around each pixel of two grey pictures with levels 0 to 255."""
    return ssim_map(first.astype(float), second.astype(float), scaled_gaussian_window_mean)


def slices_around_mask(mask: np.ndarray) -> tuple[slice, slice]:
    """Rows and columns of the mask and of a margin as wide as the window reaches twice."""
    spans = [np.flatnonzero(mask.any(axis=axis)) for axis in (1, 0)]
    margin = 2 * EDGE
    first, second = (slice(max(0, int(at[0]) - margin), int(at[-1]) + margin + 1) for at in spans)
    return first, second


def mean_ssim_inside_mask(first: np.ndarray, second: np.ndarray, mask: np.ndarray) -> float:
    """Mean SSIM over the pixels in `mask`."""
    part = slices_around_mask(mask)
    return float(ssim_of_grey_pictures(first[part], second[part])[mask[part]].mean())


def mean_ssim_with_zeroed_background(first: np.ndarray, second: np.ndarray, mask: np.ndarray) -> float:
    """Mean SSIM over the whole frame of two pictures that are zero outside the mask: 1 wherever both are zero."""
    part = slices_around_mask(mask)
    near = ssim_of_grey_pictures(first[part] * mask[part], second[part] * mask[part])
    return float((near.sum() + mask.size - near.size) / mask.size)


def erode_mask(mask: np.ndarray) -> np.ndarray:
    """The pixels whose neighbours up to EDGE away are all in the mask; outside the picture there is nothing."""
    rows, columns = mask.shape
    wide = np.pad(mask, EDGE)
    down = np.all([wide[k : k + rows] for k in range(WINDOW)], axis=0)
    return np.asarray(np.all([down[:, k : k + columns] for k in range(WINDOW)], axis=0))


@derived(makes=ObjectRegion, needs=(Case,), optional=(ObjectMasks, TargetPhases), version=1)
def target_region_from_masks_or_boxes(
    case: Case, masks: ObjectMasks | None, phases: TargetPhases | None
) -> ObjectRegion | Unscored:
    """Where the target is: masks where there are some, else the box in which it was followed."""
    if masks is not None:
        visible = np.array([mask.any() for mask in masks.mask], dtype=bool)
        box = np.stack([_mask_bounding_box(mask) for mask in masks.mask]) if len(masks.mask) else np.zeros((0, 4))
        return ObjectRegion(masks.index, visible, box, masks.mask, f"masks by {masks.maker}")
    if phases is not None:
        none = np.zeros((len(phases.index), 0, 0), bool)
        return ObjectRegion(phases.index, phases.state != HIDDEN, phases.box, none, "box of the followed target")
    if case.target_name:
        return Unscored(NEEDS_BOX)
    return Unscored("no_target", "the target's position is unknown: there are no masks, and no box to track it from")


def _mask_bounding_box(mask: np.ndarray) -> np.ndarray:
    rows, columns = np.nonzero(mask)
    if not len(rows):
        return np.zeros(4)
    height, width = mask.shape
    edges = [columns.min() / width, rows.min() / height, (columns.max() + 1) / width, (rows.max() + 1) / height]
    return np.array(edges)


def target_mask_on_grid(region: ObjectRegion, row: int, shape: tuple[int, int]) -> np.ndarray:
    """The target's pixels on a grid of (height, width)."""
    height, width = shape
    if region.mask.shape[1:] != (0, 0):
        mask = region.mask[row]
        y = np.minimum(((np.arange(height) + 0.5) * mask.shape[0] / height).astype(int), mask.shape[0] - 1)
        x = np.minimum(((np.arange(width) + 0.5) * mask.shape[1] / width).astype(int), mask.shape[1] - 1)
        return np.asarray(mask[np.ix_(y, x)])
    x0, y0, x1, y1 = region.box[row] * [width, height, width, height]
    y, x = np.arange(height)[:, None] + 0.5, np.arange(width)[None] + 0.5
    return np.asarray((x >= x0) & (x <= x1) & (y >= y0) & (y <= y1))


@score_metric(
    id="mb_object_geometry", version=1, title="Object geometry", needs=(WarpedViews, ObjectRegion),
    paper=f"{PAPER} eq. 4", upstream="object_geometry",
    published_by=(PublishedMaker("SAM 2", "target_from", ("masks by sam2", "masks by sam-2")),),
    responds_to=("shape drift", "texture drift", "vanished target", "another target"),
    blind_to=("what is not seen twice", "colour", "why it changed: light and blur count too"),
)  # fmt: skip
def object_geometry(
    views: WarpedViews,
    region: ObjectRegion,
    *,
    rule: str = "corrected",
    least_pixels: int = LEAST_PIXELS,
    least_share: float = LEAST_SHARE,
) -> Score | Unscored:
    """Mean over pairs of SSIM inside the target, between the early frame and the late one warped to it.

    Facts: the same with pictures set to zero outside the mask (the paper's reading), the share of the target that
    both frames see, who told where it is, and whether it was seen again.
    """
    check_rule(rule)
    later = region.index >= (views.other.min() if len(views.other) else 0)
    facts = {
        "pairs": len(views.frame), "pairs_chosen_by": views.how, "target_from": region.source, "note": views.note,
        "visible": float(region.visible.mean()) if len(region.visible) else 0.0,
        "return_visible": bool(region.visible[later].any()),
    }  # fmt: skip
    if not len(views.frame):
        sentence = "no pair of frames could be warped" + (f": {views.note}" if views.note else "")
        return Unscored("no_overlap", sentence, facts)
    if not len(region.index):
        return Unscored("not_seen", "no frame shows where the target is", facts)
    shrunk = min(1.0, max(views.picture.shape[1:]) / LONG_SIDE)
    least = max(min(FEWEST_PIXELS, least_pixels), round(least_pixels * shrunk**2))
    near = nearest_rows(region.index, views.frame)
    rows, inside, zeroed, shares = [], [], [], []
    unseen = small = 0
    for k, at in enumerate(near.tolist()):
        if not region.visible[at] or abs(int(region.index[at]) - int(views.frame[k])) > NEAR_FRAMES:
            unseen += 1
            continue
        mask = target_mask_on_grid(region, at, views.picture.shape[1:])
        valid = mask & views.visible[k]
        core = erode_mask(valid)
        if core.sum() < least or valid.sum() < least_share * mask.sum():
            small += 1
            continue
        rows.append(k)
        inside.append(mean_ssim_inside_mask(views.picture[k], views.warped[k], core))
        zeroed.append(mean_ssim_with_zeroed_background(views.picture[k], views.warped[k], mask))
        shares.append(float(valid.sum() / mask.sum()))
    facts |= {"least_pixels": least, "pairs_without_target": unseen, "pairs_with_too_little_of_it": small}
    if not rows:
        sentence = (
            f"no pair shows enough of the target twice: {unseen} do not show it, {small} share less than "
            f"{least} of its pixels or {least_share:.0%} of it (target from {region.source})"
        )
        return Unscored("not_seen", sentence, facts)
    value = np.array(zeroed if rule == "paper" else inside)
    facts |= {"zero_padded": float(np.mean(zeroed)), "inside": float(np.mean(inside)), "shared": float(np.mean(shares))}
    units = Series(frame=views.frame[rows], other=views.other[rows], value=np.clip(value, 0, 1), raw=value)
    return Score(float(np.clip(value, 0, 1).mean()), raw=float(value.mean()), units=units, facts=facts)
