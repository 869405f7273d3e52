"""First frames tell scenes from models: clips of one scene begin alike, whoever made them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations, product
from pathlib import Path

import numpy as np

from revisit.core import Clip, RevisitError
from revisit.media import open_clip

SIDE = 24  # pixels of the pictures that are compared
CLEAR = 0.5  # clips of one scene differ by at most this share of what clips of two scenes do
ALIKE = 6.0  # of 255, on average: one scene by two models
BLANK = 3.0  # a first picture whose pixels vary by less says nothing


def levels_sharing_first_frame(words: Sequence[tuple[str, ...]], paths: Sequence[Path]) -> list[int]:
    """The levels of a path that leave the first frame as it is, where others change it; none where nothing tells."""
    looked_at = 3 if len(words[0]) == 2 else 2  # of each level
    chosen = [list(dict.fromkeys(level))[:looked_at] for level in zip(*words, strict=True)]
    grid = dict(zip(words, paths, strict=True))
    cells = {one: grid[one] for one in product(*chosen) if one in grid}
    pictures = dict(zip(cells, load_first_frames_unless_blank(cells.values()), strict=False))
    if not pictures:
        return []
    apart: list[list[float]] = [[] for _ in chosen]
    for one, other in combinations(cells, 2):
        differing = [k for k, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
        if len(differing) == 1:
            apart[differing[0]].append(mean_picture_difference(pictures[one], pictures[other]))
    medians = [float(np.median(some)) if some else np.inf for some in apart]
    most = max((median for median in medians if median < np.inf), default=0.0)
    return [k for k, median in enumerate(medians) if median <= CLEAR * most] if most > ALIKE else []


def load_first_frames_unless_blank(paths: Iterable[Path]) -> list[np.ndarray]:
    """The small first frames of clips; none at all where one cannot be read, or shows nothing."""
    try:
        pictures = [load_small_first_frame(path) for path in paths]
    except (RevisitError, OSError):
        return []
    return pictures if min(float(picture.std()) for picture in pictures) >= BLANK else []


@lru_cache(maxsize=256)
def load_small_first_frame(path: Path) -> np.ndarray:
    """The first frame of a clip, small and without its mean colour."""
    import cv2

    with open_clip(Clip(path, count=1)) as stream:
        rgb = next(iter(stream)).rgb
    small = cv2.resize(rgb, (SIDE, SIDE), interpolation=cv2.INTER_AREA).astype(np.float64)
    return small - small.mean(axis=(0, 1))


def mean_picture_difference(one: np.ndarray, other: np.ndarray) -> float:
    """Mean absolute difference of two small pictures, of 255."""
    return float(np.abs(one - other).mean())
