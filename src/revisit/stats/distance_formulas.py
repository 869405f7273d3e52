"""The two distances between sets of features, each with the scenes that it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from revisit.stats.distribution_distance import SetDistance
from revisit.stats.frechet_distance import frechet_distance, least_scenes_of_frechet
from revisit.stats.kernel_distance import kernel_distance, least_scenes_of_kernel


@dataclass(frozen=True)
class DistanceFormula:
    """How far two sets of features are apart, and from how many scenes of so many dimensions on."""

    compute: Callable[..., SetDistance]
    least_scenes: Callable[[int], int]


FRECHET = DistanceFormula(frechet_distance, least_scenes_of_frechet)
KERNEL = DistanceFormula(kernel_distance, least_scenes_of_kernel)
