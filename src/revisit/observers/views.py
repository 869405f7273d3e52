"""Views: compares all sampled frames of a clip with each other, by points and by structure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from revisit.core import ClipInfo, FrameStream, observer
from revisit.evidence.views import ViewLinks
from revisit.observers.matching import (
    CELLS,
    Points,
    best_shift_correlations,
    gradient_structure,
    link_by_similarity,
    match_points,
    points_of_frame,
    warp_points,
)
from revisit.observers.pictures import VIEWED, gray_at_long_side
from revisit.observers.rows import columns_of_rows

SIZE = 288
MOVES = 0.02  # of the width, between sampled frames: the picture moves
RESTS = 0.004  # of the width: the point stays where it is in the frame
LEAST_COVER = 0.3  # of the textured cells move in a step that tells the camera's motion from an object's


@observer(
    id="lite.views", version=4, kind="sequence", makes=ViewLinks, frames=VIEWED, size=SIZE,
    sets=("lite",),
)  # fmt: skip
def links_between_views(clip: ClipInfo) -> FrameStream:
    """Links between all pairs of at most 36 frames: matched points, gradient correlation, their warps."""
    rows: list[tuple[int, float, np.ndarray, Points]] = []
    while (frame := (yield)) is not None:
        grey = gray_at_long_side(frame, SIZE)
        rows.append((frame.index, frame.time, grey, points_of_frame(frame, grey)))
    index, time, greys, points = columns_of_rows(rows, 4)
    matches: dict[tuple[int, int], np.ndarray] = {}
    hidden = cells_resting_while_camera_moves(points, matches)
    if hidden.any():
        points, matches = tuple(p.points_outside_cells(hidden) for p in points), {}
    fields = [gradient_structure(g, hidden) for g in greys]
    n = len(index)
    inliers, support = np.zeros((n, n), np.int32), np.zeros((n, n), np.float32)
    warp = np.tile(np.eye(3, dtype=np.float32), (n, n, 1, 1))
    dense, lead = np.zeros((n, n), np.float32), np.zeros((n, n), np.float32)
    shift = np.zeros((n, n, 2), np.float32)
    for i in range(n):
        inliers[i, i], support[i, i], dense[i, i], lead[i, i] = len(points[i].xy), 1.0, 1.0, 1.0
        for j in range(i + 1, n):
            match = link_by_similarity(points[i], points[j], matches.get((i, j)))
            inliers[i, j] = inliers[j, i] = match.inliers
            support[i, j] = support[j, i] = match.support
            warp[i, j] = match.warp
        for j, (peak, ahead, at) in enumerate(best_shift_correlations(fields[i], fields[i + 1 :]), i + 1):
            dense[i, j] = dense[j, i] = peak
            lead[i, j] = lead[j, i] = ahead
            shift[i, j], shift[j, i] = at, (-at[0], -at[1])
    later, earlier = np.triu_indices(n, 1)[::-1]
    warp[later, earlier] = np.linalg.inv(warp[earlier, later].astype(np.float64))
    change = [np.abs(a.astype(np.float32) - b).mean() / 255 for a, b in pairwise(greys)]
    return ViewLinks(
        index=np.array(index, np.int64), time=np.array(time), points=np.array([len(p.xy) for p in points], np.int64),
        inliers=inliers, support=support, warp=warp, structure=dense, lead=lead, shift=shift,
        change=np.array(change), attached=float(hidden.mean()),
    )  # fmt: skip


def cells_resting_while_camera_moves(
    points: Sequence[Points], matches: dict[tuple[int, int], np.ndarray]
) -> np.ndarray:
    """Cells of the frame whose points rest while the picture around them moves: overlays, a handlebar.

    Such points would say that the view never changed. A step counts only where the moving points cover
    at least as many cells as the resting ones: otherwise something moves before a resting camera. What was matched on
    the way is kept in `matches`, by the numbers of both frames.
    """
    cells = CELLS[0] * CELLS[1]
    static, move = np.zeros(cells), np.zeros(cells)
    for gap in (1, 2, 4):
        for k, (a, b) in enumerate(zip(points, points[gap:], strict=False)):
            pairs = matches[k, k + gap] = match_points(a, b)
            if not len(pairs):
                continue
            distance = np.hypot(*(b.xy[pairs[:, 1]] / a.size[0] - a.xy[pairs[:, 0]] / a.size[0]).T)
            agreed = link_by_similarity(a, b, pairs[distance > MOVES])
            if agreed.inliers < 0.5 * (distance > MOVES).sum():
                continue
            # where the agreed motion itself rests, as at the vanishing point ahead, resting says nothing
            carried = warp_points(agreed.warp, a.xy[pairs[:, 0]] / a.size) - a.xy[pairs[:, 0]] / a.size
            dragged = np.hypot(carried[:, 0], carried[:, 1] * a.size[1] / a.size[0]) > MOVES
            moving = np.unique(a.cell[pairs[(distance > MOVES), 0]])
            resting = np.unique(a.cell[pairs[(distance < RESTS) & dragged, 0]])
            if len(moving) < max(LEAST_COVER * len(np.unique(a.cell)), len(resting)):
                continue
            static[resting] += 1
            move[moving] += 1
    return np.asarray((static >= 3) & (static > 2 * move))
