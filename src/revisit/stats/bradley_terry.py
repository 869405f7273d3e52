"""Bradley and Terry (1952): strengths of models from pairwise preferences.

The chance that one beats another is 1 / (1 + exp(other - one)). A tie counts as half a win for each. Strengths are
centred on 0; their intervals are those of the fit, robust to comparisons of one scene not being independent.

Strengths have no bound where one group of models never lost to the rest. Then half a tie is added between every two
models that were compared, and the fit says so.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from revisit.stats.intervals import student_t_quantile

Comparison = tuple[str, str, float]  # first, second, what the first got: 1 a win, 0.5 a tie, 0 a loss


@dataclass(frozen=True)
class Strength:
    """A model's strength in log odds, with its interval, and its chance against an average one."""

    model: str
    strength: float
    interval: tuple[float, float] | None
    chance: float
    comparisons: int


@dataclass(frozen=True)
class Fit:
    """Strengths, the strongest first."""

    strengths: tuple[Strength, ...]
    steadied: bool  # whether half a tie was added between models, because strengths had no bound


def bradley_terry(
    comparisons: Sequence[Comparison], clusters: Sequence[Hashable] | None = None, level: float = 0.95
) -> Fit | None:
    """The strengths of all models that were compared; None where some were never compared with the others."""
    models = sorted({name for one, other, _ in comparisons for name in (one, other)})
    if len(models) < 2:
        return None
    place = {model: k for k, model in enumerate(models)}
    first = np.array([place[one] for one, _, _ in comparisons])
    second = np.array([place[other] for _, other, _ in comparisons])
    won = np.array([score for _, _, score in comparisons], dtype=float)
    beats = np.zeros((len(models), len(models)), dtype=bool)
    beats[first[won > 0], second[won > 0]] = True
    beats[second[won < 1], first[won < 1]] = True
    if not _all_reach(beats | beats.T):
        return None
    steadied = not _all_reach(beats)
    extra = sorted({(min(i, j), max(i, j)) for i, j in zip(first, second, strict=True)}) if steadied else []
    weight = np.r_[np.ones(len(won)), np.full(len(extra), 0.5)]
    first = np.r_[first, np.array([i for i, _ in extra], dtype=int)]
    second = np.r_[second, np.array([j for _, j in extra], dtype=int)]
    won = np.r_[won, np.full(len(extra), 0.5)]
    design = np.zeros((len(won), len(models)))
    design[np.arange(len(won)), first] = 1
    design[np.arange(len(won)), second] -= 1
    strength = np.zeros(len(models))
    for _ in range(200):
        chance = 1 / (1 + np.exp(-design @ strength))
        step = np.linalg.pinv(_information(design, chance, weight)) @ (design.T @ (weight * (won - chance)))
        strength += step * min(1.0, 2 / max(float(np.abs(step).max()), 1e-12))
        if np.abs(step).max() < 1e-12:
            break
    chance = 1 / (1 + np.exp(-design @ strength))
    bread = np.linalg.pinv(_information(design, chance, weight))
    names = list(range(len(comparisons))) if clusters is None else list(clusters)
    margins = _margins(design * (weight * (won - chance))[:, None], bread, names, level)
    counts = Counter(name for one, other, _ in comparisons for name in (one, other))
    made = [
        Strength(
            model,
            float(strength[k]),
            None if margins is None else (float(strength[k] - margins[k]), float(strength[k] + margins[k])),
            1 / (1 + math.exp(-float(strength[k]))),
            counts[model],
        )
        for model, k in place.items()
    ]
    return Fit(tuple(sorted(made, key=lambda one: (-one.strength, one.model))), steadied)


def _information(design: np.ndarray, chance: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return np.asarray(design.T @ (design * (weight * chance * (1 - chance))[:, None]))


def _margins(scores: np.ndarray, bread: np.ndarray, names: Sequence[Hashable], level: float) -> np.ndarray | None:
    """Half the width of each interval, from what each cluster of comparisons adds to the score."""
    groups = {name: k for k, name in enumerate(dict.fromkeys(names))}
    if len(groups) < 3:
        return None
    sums = np.zeros((len(groups), scores.shape[1]))
    for row, name in zip(scores, names, strict=False):  # rows that were added belong to nobody
        sums[groups[name]] += row
    variance = np.diag(bread @ (sums.T @ sums) @ bread) * len(groups) / (len(groups) - 1)
    return student_t_quantile((1 + level) / 2, len(groups) - 1) * np.sqrt(variance)


def _all_reach(edges: np.ndarray) -> bool:
    """Whether every node leads to every other one."""
    reach = np.linalg.matrix_power((edges | np.eye(len(edges), dtype=bool)).astype(float), len(edges)) > 0
    return bool(reach.all())
