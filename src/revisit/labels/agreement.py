"""Agreement of raters: coefficients with intervals by dimension and by scene, the heat map, and who the raters are.

Preferences become 1 (the first is better), 0 (a tie, or both bad) and -1; "cannot judge" is no rating. Marks and
reviews are compared as they are. Intervals leave out one scene at a time, or one item where there are fewer than three.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

from revisit.core.grouping import group_items
from revisit.labels.formats import SIGNS
from revisit.labels.label import CANNOT, JUDGEABLE, Label
from revisit.stats import agreement as coefficients
from revisit.stats.intervals import wilson_interval

ALL = "all"
FEWEST = 3  # things rated twice or more: with fewer, what chance would do cannot be told, and no coefficient is given
NO_RATING = (CANNOT, "cannot tell")  # answers that are none


@dataclass(frozen=True)
class AgreementRow:
    """How far raters agree on one dimension."""

    task: str
    dimension: str
    items: int  # questions about items that somebody rated
    rated_twice: int
    ratings: int
    cannot: int  # answers "cannot judge"
    decided: int  # with a majority
    split: int  # with a full tie, which is left out
    alike: float | None  # share of pairs of ratings of one thing that are the same
    ac1: coefficients.Agreement
    ac2: coefficients.Agreement | None  # where ratings have an order
    cohen: coefficients.Agreement
    fleiss: coefficients.Agreement
    alpha: coefficients.Agreement
    alpha_ordinal: coefficients.Agreement | None


@dataclass(frozen=True)
class AgreementReport:
    """What `revisit agree` says."""

    rows: tuple[AgreementRow, ...]
    heat: dict[str, dict[str, tuple[float, int]]]  # scene -> dimension -> (share of pairs alike, how many)
    raters: tuple[Quality, ...]
    labels: int
    examples: int


def agreement_report(labels: Sequence[Label]) -> AgreementReport:
    """The agreement of all raters; examples, which show their answers, are left out."""
    rated = [label for label in labels if not label.example]
    groups = group_items(rated, lambda label: (label.task, agreement_dimension(label)))
    rows = [_agreement_row(task, dimension, some) for (task, dimension), some in groups.items()]
    for task in dict.fromkeys(task for task, _ in groups):
        several = [name for kind, name in groups if kind == task and name != JUDGEABLE]
        if len(several) > 1:
            judged = [one for one in rated if one.task == task and one.question != JUDGEABLE]
            rows.append(_agreement_row(task, ALL, judged))
    heat: dict[str, dict[str, tuple[float, int]]] = defaultdict(dict)
    cells = group_items(rated, lambda label: (label.scene, agreement_dimension(label)))
    for (scene, dimension), some in cells.items():
        agreeing = _share_and_count_of_equal_pairs(ratings_and_scenes(some)[0])
        if agreeing is not None:
            heat[scene][dimension] = agreeing
    order = tuple(sorted(rows, key=lambda row: (row.task, row.dimension == ALL)))
    return AgreementReport(order, dict(heat), tuple(rater_qualities(labels)), len(rated), len(labels) - len(rated))


def agreement_dimension(label: Label) -> str:
    """What a label is about: a dimension, or for kinds of failure that question."""
    return "failure" if label.task == "failure" else label.dimension or label.question


def ratings_and_scenes(labels: Sequence[Label]) -> tuple[coefficients.Ratings, list[str]]:
    """A row per question about an item and a column per rater, and the scene of each row."""
    raters = {rater: k for k, rater in enumerate(sorted({label.rater for label in labels}))}
    rows: dict[tuple[str, str], list[Any]] = {}
    scenes: dict[tuple[str, str], str] = {}
    if labels and labels[0].task == "failure":
        labels = _yes_no_labels_per_kind(labels)
    for label in labels:
        key = (label.item, label.question)
        scenes[key] = label.scene
        row = rows.setdefault(key, [None] * len(raters))
        row[raters[label.rater]] = _rating_of_label(label)  # of several answers of a rater the last counts
    return list(rows.values()), list(scenes.values())


def _rating_of_label(label: Label) -> Any:
    """A label as a rating: preferences as numbers, "cannot judge" as none."""
    if label.answer in NO_RATING:
        return None
    return SIGNS[label.answer] if label.is_preference else label.answer


def _yes_no_labels_per_kind(labels: Sequence[Label]) -> list[Label]:
    """A yes or no of each rater to every kind of failure that somebody named for the item."""
    answers = []
    for some in group_items(labels, lambda label: label.item).values():
        kinds = {label.question for label in some} - {"none"}
        for own in group_items(some, lambda label: label.rater).values():
            named = {label.question for label in own}
            answers += [replace(own[0], question=kind, answer="yes" if kind in named else "no") for kind in kinds]
    return answers


def _agreement_row(task: str, dimension: str, labels: Sequence[Label]) -> AgreementRow:
    ratings, scenes = ratings_and_scenes(labels)
    clusters = scenes if len(set(scenes)) >= 3 else None
    rated = [[rating for rating in row if rating is not None] for row in ratings]
    ordered = task == "pairwise" and dimension != JUDGEABLE
    agreeing = _share_and_count_of_equal_pairs(ratings)
    most = [coefficients.most_frequent_vote(row) for row in rated if row]

    def coefficient_if_enough(coefficient: Any) -> coefficients.Agreement:
        agreement = coefficients.agreement_with_jackknife_interval(coefficient, ratings, clusters)
        return agreement if agreement.things >= FEWEST else replace(agreement, value=None, interval=None)

    categories = [-1, 0, 1] if ordered else None
    return AgreementRow(
        task, dimension, sum(bool(row) for row in rated), sum(len(row) > 1 for row in rated), sum(map(len, rated)),
        sum(label.answer in NO_RATING for label in labels), sum(one is not None for one in most),
        sum(one is None for one in most), None if agreeing is None else agreeing[0],
        coefficient_if_enough(partial(coefficients.gwet_ac, categories=categories)),
        coefficient_if_enough(partial(coefficients.gwet_ac, scale="ordinal", categories=categories))
        if ordered else None,
        coefficient_if_enough(coefficients.light_kappa), coefficient_if_enough(coefficients.fleiss_kappa),
        coefficient_if_enough(coefficients.krippendorff_alpha),
        coefficient_if_enough(partial(coefficients.krippendorff_alpha, scale="ordinal")) if ordered else None,
    )  # fmt: skip


def _share_and_count_of_equal_pairs(ratings: coefficients.Ratings) -> tuple[float, int] | None:
    """The share of pairs of ratings of one thing that are the same, and how many pairs there are."""
    equal = [a == b for row in ratings for a, b in combinations([rating for rating in row if rating is not None], 2)]
    return (sum(equal) / len(equal), len(equal)) if equal else None


@dataclass(frozen=True)
class Quality:
    """Figures of one rater; None where there was nothing to see them from."""

    rater: str
    items: int
    labels: int
    seconds: float | None  # median per item
    compared: int  # labels on which the others have a majority
    agrees: float | None  # share of these that are the same
    kappa: float | None  # with the majority of the others
    gold: int
    gold_right: float | None
    gold_interval: tuple[float, float] | None
    left: float | None  # share of preferences that went to the left, 0.5 where sides do not matter
    cannot: float  # share of answers "cannot judge"


def rater_qualities(labels: Sequence[Label]) -> list[Quality]:
    """The figures of every rater; examples, which are for practice, are in none of them."""
    answers_by_question: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    by_rater: dict[str, list[Label]] = defaultdict(list)
    for label in labels:
        if not label.example:
            answers_by_question[label.item, label.question][label.rater] = label.answer
            by_rater[label.rater].append(label)
    rows = []
    for rater, own in sorted(by_rater.items()):
        pairs = []
        for label in own:
            answers = answers_by_question[label.item, label.question]
            others = [answer for who, answer in answers.items() if who != rater and answer not in NO_RATING]
            most = coefficients.most_frequent_vote(others)
            if most is not None and label.answer not in NO_RATING:  # those are counted by themselves
                pairs.append((label.answer, most))
        gold = [label.answer == label.right for label in own if label.right]
        took = {label.item: label.seconds for label in own if label.seconds}
        sided = [label for label in own if label.is_preference and label.answer in ("a", "b")]
        left_choices = [(label.answer == "a") != label.swapped for label in sided]
        own_answers, most_ = zip(*pairs, strict=True) if pairs else ((), ())
        rows.append(
            Quality(
                rater, len({label.item for label in own}), len(own), statistics.median(took.values()) if took else None,
                len(pairs), sum(a == b for a, b in pairs) / len(pairs) if pairs else None,
                coefficients.cohen_kappa(own_answers, most_), len(gold), sum(gold) / len(gold) if gold else None,
                wilson_interval(sum(gold), len(gold)),
                sum(left_choices) / len(left_choices) if left_choices else None,
                sum(label.answer == CANNOT for label in own) / len(own),
            )
        )  # fmt: skip
    return rows
