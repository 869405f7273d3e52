"""The two distances between sets of features, each with the scenes that it needs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from revisit.stats.distribution_distance import (
    SetDistance,
    frechet_distance,
    kernel_distance,
    least_scenes,
    least_scenes_of_kernel,
)

MOST_ROWS = 4  # of a scene that Fréchet's distance uses; clips and frames of one scene are much alike


@dataclass(frozen=True)
class DistanceFormula:
    """How far two sets of features are apart, and from how many scenes of so many dimensions on."""

    compute: Callable[..., SetDistance]
    least_scenes: Callable[[int], int]


def frechet_by_scene(
    a: np.ndarray, b: np.ndarray, scenes_a: Sequence[Hashable] | None = None, scenes_b: Sequence[Hashable] | None = None
) -> SetDistance:
    """`frechet_distance` of sets with one row of each scene, averaged over up to four rows of a scene.

    The bias of few samples falls as 1 / n for independent rows, and that is what the extrapolation takes off. Rows of
    one scene are not independent: all of them at once leave a bias of some percent, which is more than its interval.

    Parameters
    ----------
    a, b
        Features, a row per clip or frame.
    scenes_a, scenes_b
        The scene of each row. By default every row is one of its own.

    Returns
    -------
    SetDistance
        That of `frechet_distance` where every scene has one row.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> near = frechet_by_scene(rng.normal(size=(200, 4)), rng.normal(1, 1, size=(200, 4)), [*range(100)] * 2)
    >>> near.scenes
    100
    """
    rows_a, rows_b = _rows_by_scene(scenes_a, len(a), "a"), _rows_by_scene(scenes_b, len(b), "b")
    count = min(MOST_ROWS, max(len(rows) for rows in (*rows_a.values(), *rows_b.values())))
    found = []
    for turn in range(count):
        chosen_a, chosen_b = (
            [rows[turn * len(rows) // count] for rows in by_scene.values()] for by_scene in (rows_a, rows_b)
        )
        found.append(frechet_distance(np.asarray(a)[chosen_a], np.asarray(b)[chosen_b], [*rows_a], [*rows_b]))
    if count == 1:
        return found[0]
    contributions = {
        name: float(np.mean([one.contributions[name] for one in found])) for name in found[0].contributions
    }
    return SetDistance(
        value=float(np.mean([one.value for one in found])),
        error=math.sqrt(math.fsum(one**2 for one in contributions.values())),
        scenes=found[0].scenes,
        plain=float(np.mean([one.plain for one in found])),
        contributions=contributions,
    )


def _rows_by_scene(scenes: Sequence[Hashable] | None, count: int, side: str) -> dict[Hashable, list[int]]:
    rows: dict[Hashable, list[int]] = defaultdict(list)
    for row, scene in enumerate(((side, k) for k in range(count)) if scenes is None else scenes):
        rows[scene].append(row)
    return rows


FRECHET = DistanceFormula(frechet_by_scene, least_scenes)
KERNEL = DistanceFormula(kernel_distance, least_scenes_of_kernel)
