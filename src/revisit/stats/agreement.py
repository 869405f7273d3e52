"""Agreement of two raters, one of whom may be right by definition: accuracy, precision, recall, F1, Cohen's kappa.

Kappa is 1 - (observed disagreement) / (disagreement expected by chance), with every disagreement counted alike
(nominal), by its distance (linear) or by the square of that (quadratic). 1 is full agreement, 0 is chance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Literal

from revisit.core import UsageError

Weights = Literal["nominal", "linear", "quadratic"]


@dataclass(frozen=True)
class YesNoAgreement:
    """How a judge's yes and no agree with the right ones; a rate is None where nothing could show it."""

    n: int
    right_yes: int  # said yes, and yes is right
    wrong_yes: int
    wrong_no: int
    right_no: int
    accuracy: float | None
    balanced_accuracy: float | None  # mean of the accuracies where yes is right and where no is; 0.5 is chance
    precision: float | None
    recall: float | None
    f1: float | None
    kappa: float | None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def yes_no_agreement(said: Sequence[bool], right: Sequence[bool]) -> YesNoAgreement:
    """The agreement of answers with labels, in equal order."""
    counts = Counter(zip((bool(x) for x in said), (bool(x) for x in right), strict=True))
    tp, fp, fn, tn = counts[True, True], counts[True, False], counts[False, True], counts[False, False]
    recall, rejection = _share(tp, tp + fn), _share(tn, tn + fp)
    return YesNoAgreement(
        n=len(said),
        right_yes=tp,
        wrong_yes=fp,
        wrong_no=fn,
        right_no=tn,
        accuracy=_share(tp + tn, len(said)),
        balanced_accuracy=None if recall is None or rejection is None else (recall + rejection) / 2,
        precision=_share(tp, tp + fp),
        recall=recall,
        f1=_share(2 * tp, 2 * tp + fp + fn),
        kappa=cohen_kappa([bool(x) for x in said], [bool(x) for x in right]),
    )


def cohen_kappa(one: Sequence[Any], other: Sequence[Any], weights: Weights = "nominal") -> float | None:
    """Cohen's kappa of two raters; None where both always gave one and the same rating, or there are none.

    With linear and quadratic weights ratings are numbers, and their distance counts.
    """
    if len(one) != len(other):
        raise UsageError(f"two raters rate the same things; got {len(one)} and {len(other)} ratings")
    if weights not in ("nominal", "linear", "quadratic"):
        raise UsageError(f"there are no weights {weights!r}; choose nominal, linear or quadratic")
    observed = sum(_apart(a, b, weights) for a, b in zip(one, other, strict=True))
    ones, others, n = Counter(one), Counter(other), len(one)
    expected = sum(k * m * _apart(a, b, weights) for a, k in ones.items() for b, m in others.items())
    return 1 - observed * n / expected if expected else None


def repeat_agreement(repeats: Sequence[Sequence[Hashable]]) -> tuple[float, float] | None:
    """The share of questions that were always answered alike, and the mean share of equal pairs of answers.

    One sequence of answers per question; None where no question was answered twice.
    """
    asked = [answers for answers in repeats if len(answers) > 1]
    if not asked:
        return None
    same = [len(set(answers)) == 1 for answers in asked]
    pairs = [[a == b for a, b in combinations(answers, 2)] for answers in asked]
    return sum(same) / len(same), sum(sum(pair) / len(pair) for pair in pairs) / len(pairs)


def _apart(one: Any, other: Any, weights: Weights) -> float:
    if weights == "nominal":
        return float(one != other)
    distance = abs(float(one) - float(other))
    return distance if weights == "linear" else distance * distance


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
