"""Looking again and again: when may one say "better" without counting on luck?

Whoever tests every checkpoint at 5 % finds an improvement that is none in a third of all trainings of 20 looks. Here
4 % are spent over the looks (alpha spending): the k-th may err in 4 % / (k (k + 1)), which adds up to 4 % over any
number of looks, whatever they have in common; the rest to 5 % is room for skewed scores, on which Student's t errs more
often far out. So nobody needs to say beforehand how often one will look.
`benchmarks/stopping.py` is the simulation.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from revisit.stats.paired import paired_test

SPENT = 0.04  # of false findings over all looks, of the 5 % that are promised
PATIENCE = 3  # looks without an improvement after which one may stop


@dataclass(frozen=True)
class Look:
    """A checkpoint beside the best one so far."""

    point: int
    against: int
    difference: float
    p: float | None  # one-sided; None for too few scenes
    limit: float  # of p, for this look
    better: bool


@dataclass(frozen=True)
class Looks:
    """All looks of a training, in order; `incumbent` is the last point that was better beyond doubt."""

    looks: tuple[Look, ...]
    incumbent: int

    @property
    def looks_since_gain(self) -> int:
        """Looks after the last improvement."""
        return sum(1 for look in self.looks if look.point > self.incumbent)

    @property
    def may_stop(self) -> bool:
        """Whether the last looks found nothing better."""
        return self.looks_since_gain >= PATIENCE


def alpha_of_look(look: int, alpha: float = SPENT) -> float:
    """The chance of a false finding that the k-th look may take, k from 1."""
    return alpha / (look * (look + 1))


def compare_with_best_so_far(
    points: Sequence[Mapping[Hashable, float]],
    scenes: Mapping[Hashable, Hashable],
    higher_is_better: bool = True,
    alpha: float = SPENT,
) -> Looks:
    """Compare each point with the best one so far, on the clips that both have a score of.

    Parameters
    ----------
    points
        Clip -> score, a mapping per checkpoint, in the order of training.
    scenes
        Clip -> its scene.
    higher_is_better
        Which way is better.
    alpha
        Chance that any of the improvements, over all looks, is none.

    Returns
    -------
    Looks

    Examples
    --------
    >>> points = [{k: 0.5 + 0.010 * k for k in range(9)}, {k: 0.7 + 0.013 * k for k in range(9)}]
    >>> compare_with_best_so_far(points, {k: k for k in range(9)}).incumbent
    1
    """
    incumbent, looks = 0, []
    for number in range(1, len(points)):
        before, now, limit = points[incumbent], points[number], alpha_of_look(number, alpha)
        clips = [clip for clip in before if clip in now]
        test = paired_test([before[c] for c in clips], [now[c] for c in clips], [scenes[c] for c in clips])
        if test is None or test.p is None:
            looks.append(Look(number, incumbent, 0.0 if test is None else test.difference, None, limit, False))
            continue
        towards = test.difference > 0 if higher_is_better else test.difference < 0
        p = test.p / 2 if towards else 1 - test.p / 2
        looks.append(Look(number, incumbent, test.difference, p, limit, p <= limit))
        if p <= limit:
            incumbent = number
    return Looks(tuple(looks), incumbent)
