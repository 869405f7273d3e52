"""Student's t with any degrees of freedom, from the incomplete beta function.

Here, and not from scipy: intervals stand in every table, and scipy would triple the size of what is installed.
"""

from __future__ import annotations

import math
from functools import lru_cache


def t_tail(t: float, freedom: float) -> float:
    """P(|T| >= |t|): the p-value of a two-sided test."""
    if math.isinf(t):
        return 0.0
    return _incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5)


@lru_cache(maxsize=1024)  # most means of a run rest on the same number of scenes
def t_quantile(probability: float, freedom: float) -> float:
    """Where P(T <= t) is this probability, by bisection."""
    if probability < 0.5:
        return -t_quantile(1 - probability, freedom)
    beyond = 2 * (1 - probability)
    low, high = 0.0, 1.0
    while t_tail(high, freedom) > beyond:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if t_tail(middle, freedom) > beyond:
            low = middle
        else:
            high = middle
        if high - low <= 1e-13 * high:
            break
    return (low + high) / 2


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised one, by its continued fraction (Lentz's method), on the side where that converges quickly."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1 - front * _fraction(1 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    made = d
    for m in range(1, 500):
        for top in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                    -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):  # fmt: skip
            d = 1 / (1 + top * d)
            c = 1 + top / c
            made *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return made
