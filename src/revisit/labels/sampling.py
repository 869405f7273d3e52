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
from revisit.core.grouping import group_items
from revisit.labels.items import LabelItem
from revisit.results import Results

RULES = ("balanced", "scenes", "uncertain")


def sample_items(items: Sequence[LabelItem], rule: str, count: int | None, seed: int = 0) -> list[LabelItem]:
    """So many items by a rule that looks at no score; all of them, in the order of the rule, without a count."""
    if rule not in RULES:
        raise UsageError(f"unknown sampling rule {rule!r}; choose one of {', '.join(RULES)}")
    shuffled = list(items)
    random.Random(seed).shuffle(shuffled)
    if rule == "scenes":
        order = _interleave_groups(shuffled, lambda item: item.scene, lambda item: item.stratum)
    else:
        order = _interleave_groups(shuffled, lambda item: (item.task, item.stratum), lambda item: item.scene)
    return order[:count]


def sample_least_certain(
    items: Sequence[LabelItem], results: Sequence[Results], metric: str, count: int | None, gates: Sequence[str] = ()
) -> list[LabelItem]:
    """The items on which a metric is least certain; those it has no score for come last."""
    low, high = METRICS[metric].range
    middle = (low + high) / 2 if low is not None and high is not None else None

    def uncertainty_key(item: LabelItem) -> tuple[float, float, str]:
        every = [[one.score(case, metric) for one in results] for case in item.cases]
        scores = [next((score for score in some if score is not None), None) for some in every]
        answers = [one.answer(case, gate) for one in results for case in item.cases for gate in gates]
        unsure = any(answer is not None and answer.status == "unsure" for answer in answers)
        first, other = scores if len(scores) == 2 else (scores[0], middle)
        apart = abs(first - other) if first is not None and other is not None else float("inf")
        return not unsure, apart, item.id

    return sorted(items, key=uncertainty_key)[:count]


def sample_survey_questions(items: Sequence[LabelItem], per_scene: int, forms: int, seed: int = 0) -> list[LabelItem]:
    """So many questions of each scene, their dimensions and polarities in turn, dealt over interleaved forms."""
    pairs = [(item, question) for item in items for question in item.questions]
    by_scene = group_items(pairs, lambda pair: pair[0].scene)
    items_of_forms: list[LabelItem] = []
    generator = random.Random(seed)
    for scene in sorted(by_scene):
        generator.shuffle(by_scene[scene])
        in_turn = _interleave_groups(by_scene[scene], lambda one: one[1].dimension, lambda one: one[1].polarity)
        for form in range(forms):
            for mine in group_items(in_turn[:per_scene][form::forms], lambda pair: pair[0].cases).values():
                item, own = mine[0][0], tuple(question for _, question in mine)
                items_of_forms.append(replace(item, id=f"{item.id[:-2]}{form:02d}", questions=own, form=form))
    return items_of_forms


def _interleave_groups(
    things: Sequence[Any], outer: Callable[[Any], Hashable], inner: Callable[[Any], Hashable]
) -> list[Any]:
    """The things so that every beginning of the list has as many of each group as can be, and of each part of it."""
    groups: dict[Hashable, dict[Hashable, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for thing in things:
        groups[outer(thing)][inner(thing)].append(thing)
    return _round_robin([_round_robin(list(parts.values())) for parts in groups.values()])


def _round_robin(queues: Sequence[Sequence[Any]]) -> list[Any]:
    longest = max(map(len, queues), default=0)
    return [queue[k] for k in range(longest) for queue in queues if k < len(queue)]
