"""A distance between two sets of features with its error, and the scenes that the features are of.

Clips of one scene are not independent, nor is a model's clip of the truth of its scene, so whole scenes are left out,
in both sets at once. `frechet_distance.py` and `kernel_distance.py` are the two distances.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from revisit.stats.intervals import Estimate, Interval

Features = np.ndarray  # (clips, dimensions)


@dataclass(frozen=True)
class SetDistance:
    """A distance between two sets with its error; `contributions` are those of the scenes to that error."""

    value: float
    error: float
    scenes: int  # of the smaller set
    plain: float  # without the correction for few samples
    contributions: dict[Hashable, float] = field(repr=False)
    freedom: float  # degrees of freedom of the error
    curvature_skew: float = 0.0  # skew beyond that of the contributions, from pairs of scenes

    @property
    def estimate(self) -> Estimate:
        """The distance as other estimates of this house, whose intervals have room for skew."""
        skew = _skew_of_sum(list(self.contributions.values())) + self.curvature_skew
        return Estimate(self.value, self.error, max(self.freedom, 1.0), self.scenes, skew)

    @property
    def interval(self) -> Interval:
        """At 95 %."""
        return self.estimate.interval()

    def estimate_of_difference(self, other: SetDistance) -> Estimate:
        """How much larger this is than another distance to the same set; scenes that both have in common cancel."""
        names = self.contributions.keys() | other.contributions.keys()
        apart = [self.contributions.get(name, 0.0) - other.contributions.get(name, 0.0) for name in names]
        error = math.sqrt(math.fsum(one * one for one in apart))
        freedom = max(min(self.freedom, other.freedom), 1.0)
        return Estimate(self.value - other.value, error, freedom, min(self.scenes, other.scenes), _skew_of_sum(apart))


def _skew_of_sum(contributions: Sequence[float]) -> float:
    """Of the sum of independent contributions of these sizes."""
    size = np.asarray(contributions, dtype=float)
    spread = float((size**2).sum())
    return float((size**3).sum()) / spread**1.5 if spread > 0 else 0.0


@dataclass(frozen=True)
class SceneSets:
    """Two sets of features, and the number of the scene of each row."""

    a: Features
    b: Features
    a_scene: np.ndarray
    b_scene: np.ndarray
    names: list[Hashable]

    @classmethod
    def from_features(
        cls, a: Features, b: Features, scenes_a: Sequence[Hashable] | None, scenes_b: Sequence[Hashable] | None
    ) -> SceneSets:
        """Check the features and number the scenes; by default every row is a scene of its own."""
        a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
        if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1] or not len(a) or not len(b):
            raise ValueError(f"two sets are rows of as many features each, not arrays of {a.shape} and {b.shape}")
        names_a = [("a", k) for k in range(len(a))] if scenes_a is None else list(scenes_a)
        names_b = [("b", k) for k in range(len(b))] if scenes_b is None else list(scenes_b)
        names: list[Hashable] = list(dict.fromkeys([*names_a, *names_b]))
        place = {name: number for number, name in enumerate(names)}
        return cls(a, b, np.array([place[n] for n in names_a]), np.array([place[n] for n in names_b]), names)

    def rows_per_scene(self, scene: np.ndarray) -> np.ndarray:
        """Rows of each scene."""
        return np.bincount(scene, minlength=len(self.names)).astype(float)

    @property
    def scenes_of_smaller_set(self) -> int:
        """Scenes of the smaller set."""
        return int(min(len(np.unique(self.a_scene)), len(np.unique(self.b_scene))))
