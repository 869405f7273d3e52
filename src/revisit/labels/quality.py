"""Quality of raters: how often they agree with the others and with gold, how quick they are, which side they favour."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from revisit.labels.export import labels_of
from revisit.labels.items import JUDGEABLE
from revisit.labels.label import CANNOT, Label
from revisit.labels.project import Project
from revisit.labels.store import Store
from revisit.stats.agreement import cohen_kappa, majority
from revisit.stats.intervals import share_interval


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


def qualities(labels: Sequence[Label]) -> list[Quality]:
    """The figures of every rater; examples, which are for practice, are in none of them."""
    asked: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    by_rater: dict[str, list[Label]] = defaultdict(list)
    for label in labels:
        if not label.example:
            asked[label.item, label.question][label.rater] = label.answer
            by_rater[label.rater].append(label)
    found = []
    for rater, own in sorted(by_rater.items()):
        pairs = []
        for label in own:
            others = [answer for who, answer in asked[label.item, label.question].items() if who != rater]
            most = majority(others)
            if most is not None:
                pairs.append((label.answer, most))
        gold = [label.answer == label.right for label in own if label.right]
        took = {label.item: label.seconds for label in own if label.seconds}
        chosen = [
            (label.answer == "a") != label.swapped
            for label in own
            if label.task == "pairwise" and label.question != JUDGEABLE and label.answer in ("a", "b")
        ]
        said, most_ = zip(*pairs, strict=True) if pairs else ((), ())
        found.append(
            Quality(
                rater, len({label.item for label in own}), len(own), statistics.median(took.values()) if took else None,
                len(pairs), sum(a == b for a, b in pairs) / len(pairs) if pairs else None, cohen_kappa(said, most_),
                len(gold), sum(gold) / len(gold) if gold else None, share_interval(sum(gold), len(gold)),
                sum(chosen) / len(chosen) if chosen else None, sum(label.answer == CANNOT for label in own) / len(own),
            )
        )  # fmt: skip
    return found


def rater_rows(project: Project, store: Store) -> list[dict[str, Any]]:
    """A row per rater for the page of the project."""
    known = {one.rater: one for one in qualities(labels_of(project, store))}
    rows = []
    for rater in store.raters():
        one = known.get(rater.name)
        rows.append(
            {
                "id": rater.id,
                "name": rater.name,
                "closed": rater.closed,
                "answers": one.items if one else 0,
                "seconds": _shown(one.seconds if one else None, "{:.0f}"),
                "agrees": _shown(one.agrees if one else None, "{:.0%}"),
                "gold": f"{one.gold_right:.0%} of {one.gold}" if one and one.gold_right is not None else "–",
                "left": _shown(one.left if one else None, "{:.0%}"),
            }
        )
    return rows


def _shown(value: float | None, how: str) -> str:
    return "–" if value is None else how.format(value)
