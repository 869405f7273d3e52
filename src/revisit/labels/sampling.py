"""Sampling: which items people are asked, when there are more than they have time for.

- `balanced`: the strata (models against each other, subset, condition) in turn, and within each the scenes in turn;
- `scenes`: so many questions of each scene, its dimensions and polarities in turn, as MemoBench's survey was drawn;
- `uncertain`: the items first on which the metric is least certain: the smallest difference between two clips, a gate
  that could not decide, a score nearest to the middle of its range.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

from revisit.core import METRICS, UsageError
from revisit.labels.items import ItemQuestion, LabelItem
from revisit.results import Results

RULES = ("balanced", "scenes", "uncertain")


def sample_items(items: Sequence[LabelItem], rule: str, count: int | None, seed: int = 0) -> list[LabelItem]:
    """So many items by a rule that looks at no score; all of them, in the order of the rule, without a count."""
    if rule not in RULES:
        raise UsageError(f"unknown sampling rule {rule!r}; choose one of {', '.join(RULES)}")
    shuffled = list(items)
    random.Random(seed).shuffle(shuffled)
    if rule == "scenes":
        order = _interleave(shuffled, lambda item: item.scene, lambda item: item.stratum)
    else:
        order = _interleave(shuffled, lambda item: (item.task, item.stratum), lambda item: item.scene)
    return order if count is None else order[:count]


def least_certain(
    items: Sequence[LabelItem], results: Sequence[Results], metric: str, count: int | None, gates: Sequence[str] = ()
) -> list[LabelItem]:
    """The items on which a metric is least certain; those it has no score for come last."""
    low, high = METRICS[metric].range
    middle = (low + high) / 2 if low is not None and high is not None else None

    def doubt(item: LabelItem) -> tuple[float, float, str]:
        scores = [
            next((s for one in results if (s := one.score(case, metric)) is not None), None) for case in item.cases
        ]
        answers = [one.answer(case, gate) for one in results for case in item.cases for gate in gates]
        unsure = any(answer is not None and answer.status == "unsure" for answer in answers)
        if len(scores) == 2 and scores[0] is not None and scores[1] is not None:
            return not unsure, abs(scores[0] - scores[1]), item.id
        if len(scores) == 1 and scores[0] is not None and middle is not None:
            return not unsure, abs(scores[0] - middle), item.id
        return not unsure, float("inf"), item.id

    ordered = sorted(items, key=doubt)
    return ordered if count is None else ordered[:count]


def survey_sample(items: Sequence[LabelItem], per_scene: int, forms: int, seed: int = 0) -> list[LabelItem]:
    """So many questions of each scene, their dimensions and polarities in turn, dealt over interleaved forms."""
    by_scene: dict[str, list[tuple[LabelItem, ItemQuestion]]] = defaultdict(list)
    for item in items:
        by_scene[item.scene].extend((item, question) for question in item.questions)
    items_of_forms: list[LabelItem] = []
    generator = random.Random(seed)
    for scene in sorted(by_scene):
        questions = list(by_scene[scene])
        generator.shuffle(questions)
        questions_of_scene = _interleave(questions, lambda one: one[1].dimension, lambda one: one[1].polarity)[
            :per_scene
        ]
        for form in range(forms):
            mine = questions_of_scene[form::forms]
            for case in dict.fromkeys(item.cases for item, _ in mine):
                own = tuple(question for item, question in mine if item.cases == case)
                item = next(item for item, _ in mine if item.cases == case)
                items_of_forms.append(replace(item, id=f"{item.id[:-2]}{form:02d}", questions=own, form=form))
    return items_of_forms


def _interleave(things: Sequence[Any], outer: Callable[[Any], Hashable], inner: Callable[[Any], Hashable]) -> list[Any]:
    """The things so that every beginning of the list has as many of each group as can be, and of each part of it."""
    groups: dict[Hashable, dict[Hashable, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for thing in things:
        groups[outer(thing)][inner(thing)].append(thing)
    queues = [_round_robin(list(parts.values())) for parts in groups.values()]
    return _round_robin(queues)


def _round_robin(queues: Sequence[Sequence[Any]]) -> list[Any]:
    longest = max(map(len, queues), default=0)
    return [queue[k] for k in range(longest) for queue in queues if k < len(queue)]
