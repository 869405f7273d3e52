"""How many clusters a paired difference needs before a test would find it.

The number is that of a two-sided t-test which finds the difference with 80 % power (Guenther 1981). The difference seen
is itself uncertain, and so is the number. Its range comes from the differences, in units of their spread, between which
the true one lies in half of all cases, by the normal approximation to the noncentral t (Johnson and Welch 1940). A
range at 95 % would have no upper end: what is undecided at 95 % may also be no difference at all.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from revisit.stats.intervals import Estimate

POWER = 0.8
LEVEL = 0.5  # of the range
MANY = 1000  # nobody will make so many clips to tell two models apart


def clusters_to_detect(effect: float, alpha: float = 0.05) -> float:
    """How many clusters show a mean difference of `effect` standard deviations (of the clusters' differences)."""
    normal = NormalDist()
    sure = normal.inv_cdf(1 - alpha / 2)
    return ((sure + normal.inv_cdf(POWER)) / effect) ** 2 + sure**2 / 2


def clusters_needed(difference: Estimate, alpha: float = 0.05) -> list[float | None] | None:
    """How many clusters would decide, judging by what was seen; None where all differences are equal.

    In all, not more: the likely number, and the ends of its range; None where there is no end to it.
    """
    if difference.error == 0:
        return None
    t = abs(difference.mean) / difference.error

    def clusters_at_share(share: float) -> float | None:
        shift = _shift_exceeding_t_in_share(t, difference.freedom, share)
        return clusters_to_detect(shift / math.sqrt(difference.clusters), alpha) if shift > 0 else None

    return [clusters_at_share(share) for share in (0.5, (1 + LEVEL) / 2, (1 - LEVEL) / 2)]


def _shift_exceeding_t_in_share(t: float, freedom: float, share_of_cases: float) -> float:
    """The true difference, in standard errors, from which |t| comes out larger than seen in this share of cases.

    0 where it would in more cases even without a difference.
    """
    normal = NormalDist()
    centre, spread = t * (1 - 1 / (4 * freedom)), math.sqrt(1 + t * t / (2 * freedom))

    def chance_of_larger_t(shift: float) -> float:
        return normal.cdf((shift - centre) / spread) + normal.cdf((-shift - centre) / spread)

    if chance_of_larger_t(0.0) >= share_of_cases:
        return 0.0
    low, high = 0.0, centre + 10 * spread
    for _ in range(60):
        midpoint = (low + high) / 2
        low, high = (midpoint, high) if chance_of_larger_t(midpoint) < share_of_cases else (low, midpoint)
    return (low + high) / 2
