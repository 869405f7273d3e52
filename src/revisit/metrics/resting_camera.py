"""Beside a reference whose camera rests: is the target in view what it is in the truth?

Where the camera does not look away, memory is not tested, and yet a target may vanish, become another or never do what
it does in the truth. Evidence: `PairedViews`, small pictures of clip and reference at the same times.
"""

from __future__ import annotations

import numpy as np

from revisit.core import Case, Score, Series, Unscored, metric
from revisit.evidence.reference import PairedViews
from revisit.metrics.overlay import box_blur, channel_mean

FAMILY = "fidelity"
BLUR = 2  # pixels on each side, of pictures 160 wide
LEAST_FRAMES = 4
LEAST_PIXELS = 24


@metric(
    id="target_in_view", version=1, title="Target against the truth, in view", unit="gray levels", range=(0, 255),
    higher_is_better=False, needs=(Case, PairedViews), suites=("folder",), responds_to=("state reset in view",),
    blind_to=("a target of the same gray as what is behind it", "anything where a camera moves", "small targets"),
)  # fmt: skip
def target_in_view(case: Case, views: PairedViews) -> Score | Unscored:
    """Median difference of the target's first place from the truth's at the same time; 0 is the same.

    The facts hold the same of the first frame, and how much clip and truth change there against their own first frames.
    Only beside a reference whose camera rests does this speak of the target.
    """
    if case.target is None:
        return Unscored("no_target", "no target was given for this case, or not where it is")
    if len(views.index) < LEAST_FRAMES:
        return Unscored("too_short", f"only {len(views.index)} frames could be compared with the reference")
    inside = box_pixel_slices(case.target.box, views.clip.shape[1:3])
    sides = views.clip, views.reference
    mine, truth = ([box_blur_part(picture, inside) for picture in pictures] for pictures in sides)
    if mine[0][..., 0].size < LEAST_PIXELS:
        return Unscored("not_followed", "the target's box is too small for pictures of this size")

    def mean_gray_difference(a: np.ndarray, b: np.ndarray) -> float:
        return float(channel_mean(np.abs(a - b)).ravel().mean())

    wrong = np.array([mean_gray_difference(a, b) for a, b in zip(mine, truth, strict=True)])
    facts = {
        "first": wrong[0],
        "clip_change": float(np.median([mean_gray_difference(picture, mine[0]) for picture in mine[1:]])),
        "truth_change": float(np.median([mean_gray_difference(picture, truth[0]) for picture in truth[1:]])),
    }
    facts = {name: round(float(value), 2) for name, value in facts.items()}
    return Score(float(np.median(wrong[1:])), units=Series(frame=views.index, value=wrong), facts=facts)


def box_pixel_slices(box: tuple[float, float, float, float], shape: tuple[int, ...]) -> tuple[slice, slice]:
    """Rows and columns inside a box in fractions of the picture."""
    height, width = shape
    x0, y0, x1, y1 = box
    rows, columns = (round(y0 * height), round(y1 * height)), (round(x0 * width), round(x1 * width))
    return slice(max(rows[0], 0), max(rows[1], 0)), slice(max(columns[0], 0), max(columns[1], 0))


def box_blur_part(picture: np.ndarray, part: tuple[slice, slice]) -> np.ndarray:
    """Some rows and columns of the averaged picture; what is too far away to count is not averaged."""
    reach = BLUR + 1
    wide = [slice(max(one.start - reach, 0), one.stop + reach) for one in part]
    inner = [slice(one.start - out.start, one.stop - out.start) for one, out in zip(part, wide, strict=True)]
    return box_blur(picture[wide[0], wide[1]], BLUR)[inner[0], inner[1]]
