"""Names of scores: a metric's own for what was measured, and one more for what is held to the truth.

One name, one number, on every surface: `return_consistency` is what was measured, `return_consistency.held` what that
is worth beside the truth (`ceilings.py`); `display.score_title` says the same in words.
"""

from __future__ import annotations

from revisit.core import METRICS, Metric

HELD = ".held"
STAND_IN = ".stand_in"  # scores that another network than the published one made (`stand_ins.py`)


def add_held_suffix(metric_id: str) -> str:
    """The name of a metric's score that is held to the truth: `return_consistency.held`."""
    return f"{metric_id}{HELD}"


def strip_held_suffix(score_name: str) -> str:
    """The metric of a score, whichever of its two names is given."""
    return score_name.removesuffix(HELD)


def compared_score(score_name: str, score: float) -> float:
    """A score as models are compared by it: 0 below the noise floor of its metric."""
    metric = find_metric_of_score(score_name)
    return 0.0 if metric is not None and score < metric.noise_floor else score


def find_metric_of_score(score_name: str) -> Metric | None:
    """The metric of a score; None where its plugin is not installed here."""
    measured = strip_held_suffix(score_name).removesuffix(STAND_IN)
    if measured not in METRICS:
        return None
    return METRICS[measured]
