"""Names of scores: a metric's own for what was measured, and one more for what is held to the truth.

One name, one number, on every surface: `return_consistency` is what was measured, `return_consistency.held` what that
is worth beside the truth (`ceilings.py`); `display.score_title` says the same in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from revisit.core import METRICS, SUITES, Metric, UsageError
from revisit.core.text import split_commas, suggest_names

HELD = ".held"
STAND_IN = ".stand_in"  # scores that another network than the published one made (`stand_ins.py`)


def add_held_suffix(metric_id: str) -> str:
    """The name of a metric's score that is held to the truth: `return_consistency.held`."""
    return f"{metric_id}{HELD}"


def strip_held_suffix(score_name: str) -> str:
    """The metric of a score, whichever of its two names is given."""
    return score_name.removesuffix(HELD)


def zero_below_noise_floor(score_name: str, score: float) -> float:
    """A score as models are compared by it: 0 below the noise floor of its metric."""
    metric = find_metric_of_score(score_name)
    return 0.0 if metric is not None and score < metric.noise_floor else score


def find_metric_of_score(score_name: str) -> Metric | None:
    """The metric of a score; None where its plugin is not installed here."""
    measured = strip_held_suffix(score_name).removesuffix(STAND_IN)
    if measured not in METRICS:
        return None
    return METRICS[measured]


def resolve_score_ids(
    names_or_groups: Iterable[str], available: Sequence[str], run_label: object, suite: str = ""
) -> list[str]:
    """Ids of scores that a run has, from ids (also of what is held to the truth) and groups, joined by commas or not.

    Parameters
    ----------
    names_or_groups
        What was typed, such as ``["psnr,ssim", "fidelity"]``.
    available
        Metrics that the run, or one of the runs, asked.
    run_label
        What the run is called in a sentence.
    suite
        The suite whose groups may be named.

    Examples
    --------
    >>> resolve_score_ids(["psnr,ssim"], ["ssim", "psnr"], "runs/a")
    ['psnr', 'ssim']
    """
    groups = SUITES[suite].groups if suite in SUITES else {}
    chosen: dict[str, None] = {}
    for name in split_commas(names_or_groups):
        members = [id for id in groups.get(name, ()) if id in available]
        if strip_held_suffix(name) in available:
            chosen[name] = None
        elif members:
            chosen.update(dict.fromkeys(members))
        elif name in METRICS or name in groups:
            raise UsageError(f"{name} was not asked in {run_label}; the same eval command with `-m {name}` adds it")
        else:
            hint = suggest_names(name, dict.fromkeys([*available, *METRICS, *groups]))
            raise UsageError(f"there is no metric called {name!r}; {hint}")
    return list(chosen)
