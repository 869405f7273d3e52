"""Is the target there when a clip begins? Its box is that of the scene's first frame; a model may begin with another.

Evidence: `PairedViews`, small pictures of the clip and of its reference at the same times.
"""

from __future__ import annotations

import numpy as np

from revisit.evidence.fidelity import PairedViews
from revisit.evidence.target import TargetTrack
from revisit.metrics.overlay import averaged
from revisit.metrics.resting_camera import pixels_of

BLUR = 1  # pixels on each side, of pictures 160 wide
REACH = 2  # pixels by which the clip's picture may be off
LEAST_PIXELS = 24
ABSENT = 0.4  # correlation below which the box shows another thing: 0.10 and 0.24 where it did, 0.62 and more elsewhere


def start_likeness(track: TargetTrack, views: PairedViews | None) -> float | None:
    """Correlation of what is in the target's box with what the reference shows there, both in their first frames.

    None without a reference, where the first frame is not among the pairs, or where the box is too small.
    """
    if views is None or not len(views.index) or not len(track.index) or views.index[0] != track.index[0]:
        return None
    x0, y0, x1, y1 = (float(value) for value in np.clip(track.box[0], 0, 1))
    return box_likeness(views.clip[0], views.reference[0], (x0, y0, x1, y1))


def box_likeness(picture: np.ndarray, truth: np.ndarray, box: tuple[float, float, float, float]) -> float | None:
    """The largest correlation of colours inside a box of two pictures (H, W, 3), over shifts by a few pixels."""
    rows, columns = pixels_of(box, picture.shape[:2])
    wanted = averaged(truth, BLUR)[rows, columns]
    if wanted[..., 0].size < LEAST_PIXELS:
        return None
    given = np.pad(averaged(picture, BLUR), ((REACH, REACH), (REACH, REACH), (0, 0)), mode="edge")
    height, width = wanted.shape[:2]
    shifts = [(y, x) for y in range(2 * REACH + 1) for x in range(2 * REACH + 1)]
    top, left = rows.start, columns.start
    return max(_correlation(given[top + y :, left + x :][:height, :width], wanted) for y, x in shifts)


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Correlation of two pictures of one size, each channel around its own mean."""
    a, b = (values - values.mean(axis=(0, 1)) for values in (a, b))
    return float((a * b).sum() / max(float(np.sqrt((a * a).sum() * (b * b).sum())), 1e-9))
