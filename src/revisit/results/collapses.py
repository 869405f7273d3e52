"""Clips whose picture collapses: it turns to noise, or is sharpened or smeared until it breaks, and does not recover.

It is counted apart from memory, because a clip that collapses often has no score of memory at all, so that no ranking
shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from revisit.core import Case
from revisit.core.text import count_and_noun, join_names

if TYPE_CHECKING:
    from revisit.results.results import Results

COLLAPSE = "time_to_collapse"  # share of the clip before its picture decays for good; 1 where it does not
NAMES = 8  # of models, in a sentence


def picture_collapses_unlike_truth(results: Results, case: Case) -> bool | None:
    """Whether the picture of a clip collapses, and that of its truth does not; None where nobody asked."""
    score = results.score(case, COLLAPSE)
    if score is None:
        return None
    truth = results.truth_of(case)
    ceiling = None if truth is None else results.score(truth, COLLAPSE)
    return score < 1 and (ceiling is None or ceiling >= 1)


def count_collapses_by_model(results: Results) -> dict[str, tuple[int, int]]:
    """Models of which clips collapse: how many, and of how many that were asked; the most first."""
    counts = {}
    for model, part in results.groups("model").items():
        answers = [
            answer for case in part.cases if (answer := picture_collapses_unlike_truth(results, case)) is not None
        ]
        if any(answers):
            counts[model] = (sum(answers), len(answers))
    return dict(sorted(counts.items(), key=lambda item: (-item[1][0] / item[1][1], item[0])))


def collapse_counts_text(counts: Mapping[str, tuple[int, int]]) -> str:
    """`the picture collapses on 2 of 5 clips of wan and 1 of 5 of svc`; nothing where no clip does."""
    if not counts:
        return ""
    shares = [f"{n} of {of} of {model}" for model, (n, of) in counts.items()]
    model, (n, of) = next(iter(counts.items()))
    shares[0] = f"{n} of {count_and_noun(of, 'clip')} of {model}"
    return f"the picture collapses on {join_names(shares, NAMES)}"
