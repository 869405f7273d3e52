"""Queue: what a rater is shown next, and when an item has been answered often enough.

Examples come first, to everybody. Then the items of the rater's form in the order of the sample; every so manyeth is a
gold question, which everybody gets. An item is done when so many raters have answered it, or, where the project says
so, once so many of them agree on all its questions.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from revisit.labels.items import LabelItem
from revisit.labels.project import Project
from revisit.labels.store import Rater, Store


class ItemQueue:
    """Hands out items."""

    def __init__(self, project: Project, store: Store) -> None:
        self.project, self.store = project, store
        self.forms = max((item.form for item in project.items), default=0) + 1
        self.multiple = {item.id for item in project.items if item.gold}

    def items_for_rater(self, rater: Rater, task: str = "") -> list[LabelItem]:
        """The items that a rater may get, in order: examples, then those of the rater's form with gold in between."""
        form = rater.number % self.forms
        items = [
            item
            for item in self.project.items
            if task in ("", item.task)
            and (item.task != "answer" or item.form == form or (item.example and item.form == 0))
        ]
        examples = [item for item in items if item.example]
        gold = [item for item in items if item.gold and not item.example]
        plain = [item for item in items if not item.gold]
        random.Random(f"{self.project.settings.seed} {rater.id}").shuffle(gold)
        every = max(2, self.project.settings.gold_every)
        mixed: list[LabelItem] = []
        for item in plain:
            if gold and len(mixed) % every == every - 1:
                mixed.append(gold.pop(0))
            mixed.append(item)
        return [*examples, *mixed, *gold]

    def hold_next_item(self, rater: Rater, task: str = "") -> LabelItem | None:
        """The next item for a rater, held for them; None when there is nothing left."""
        items_by_id = {item.id: item for item in self.items_for_rater(rater, task)}
        finished = self._items_agreed_on()

        def choose_item_id(answered: set[str], busy: dict[str, int], held: list[str]) -> str | None:
            again = [item_id for item_id in held if item_id in items_by_id]  # what was shown and not answered
            wanting = [id for id in items_by_id if id not in finished and self._wants_answers(id, busy)]
            return next((item_id for item_id in (*again, *wanting) if item_id not in answered), None)

        chosen_id = self.store.hold_chosen_item(rater.id, choose_item_id)
        return items_by_id.get(chosen_id) if chosen_id else None

    def rater_progress(self, rater: Rater, task: str = "") -> dict[str, int]:
        """How many items are `done` by a rater, `of` those that they may get; those done by others count as gone."""
        order = {item.id for item in self.items_for_rater(rater, task)}
        answered = set(self.store.answered_item_ids(rater.id)) & order
        busy = self.store.answer_count_by_item()
        open_ = sum(self._wants_answers(item_id, busy) for item_id in order - answered - self._items_agreed_on())
        return {"done": len(answered), "of": len(answered) + open_}

    def _wants_answers(self, item_id: str, busy: Mapping[str, int]) -> bool:
        return item_id in self.multiple or busy.get(item_id, 0) < self.project.settings.raters

    def _items_agreed_on(self) -> set[str]:
        """Items on which so many agree already that nobody else need be asked."""
        least = self.project.settings.agree
        if not least:
            return set()
        answers: dict[str, list[Mapping[str, str]]] = defaultdict(list)
        for answer in self.store.all_answers():
            answers[answer.item].append(answer.answers)
        open_ = [item for item in self.project.items if not item.gold and item.id in answers]
        return {item.id for item in open_ if raters_agree(item, answers[item.id], least)}


def raters_agree(item: LabelItem, answers_of_raters: Sequence[Mapping[str, str]], least: int) -> bool:
    """Whether so many raters agree on every question of an item."""
    for question in item.questions:
        if question.several:
            counts = Counter(",".join(sorted(answers)) for answers in answers_of_raters)
        else:
            counts = Counter(answers[question.id] for answers in answers_of_raters if question.id in answers)
        if not counts or counts.most_common(1)[0][1] < least:
            return False
    return True


def is_swapped(project: Project, item: LabelItem, rater: str) -> bool:
    """Whether a rater sees the second clip of a pair on the left: by chance, and the same whenever they look."""
    return item.task == "pairwise" and random.Random(f"{project.secret} {item.id} {rater}").random() < 0.5
