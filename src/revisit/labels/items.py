"""Items: what a rater is shown at once, what is asked of it in each task (docs/labels.md), and which items are drawn.

When there are more than people have time for, they are asked

- `balanced`: the strata (models against each other, subset, condition) in turn, and within each the scenes in turn;
- `scenes`: so many questions of each scene, its dimensions and polarities in turn, as MemoBench's survey was drawn;
- `uncertain`: the items first on which the metric is least certain: the smallest difference between two clips, a gate
  that could not decide, a score nearest to the middle of its range.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import msgspec

from revisit.core import METRICS, SUITES, Case, UsageError, digest
from revisit.core.grouping import group_items
from revisit.core.text import read_package_yaml
from revisit.diagnosis.kinds import KINDS
from revisit.geometry.camera_script import UNITS, parse_script
from revisit.labels.label import CANNOT, HIDDEN, JUDGEABLE, PREFERENCES, TASKS
from revisit.results import Results

WHOSE = ("both", "a", "b", "neither")
YES_NO = ("yes", "no", CANNOT)
REVIEWS = ("keep", "edit", "drop")
WORDS = read_package_yaml("revisit.labels", "words.yaml")
RULES = ("balanced", "scenes", "uncertain")


@dataclass(frozen=True)
class ItemQuestion:
    """A question of an item."""

    id: str
    text: str
    answers: tuple[str, ...]
    dimension: str = ""
    polarity: str = ""
    returned: bool = False  # only where the return of both clips can be judged
    several: bool = False  # any number of answers


@dataclass(frozen=True)
class LabelItem:
    """One or two clips with their questions."""

    id: str
    task: str
    cases: tuple[str, ...]
    questions: tuple[ItemQuestion, ...]
    scene: str
    stratum: str = ""  # what samples are balanced over: models, subset, condition
    context: tuple[tuple[str, str], ...] = ()  # what raters are told: (heading, text)
    captions: tuple[str, ...] = ()
    form: int = 0
    gold: Mapping[str, str] = field(default_factory=dict)  # question -> known answer
    example: bool = False
    note: str = ""  # why the known answer is right


@dataclass(frozen=True)
class ComparedDimension:
    """What two clips are compared in, and the metrics that measure it."""

    id: str
    text: str
    metrics: tuple[str, ...] = ()
    subset: str = ""
    returned: bool = False


def people_settings(suite: str) -> Mapping[str, Any]:
    """What a suite asks people: `people` of its card, or that of plain folders."""
    card = SUITES[suite].card if suite in SUITES else {}
    questions: Mapping[str, Any] = card.get("people") or SUITES["folder"].card["people"]
    return questions


def compared_dimensions(suite: str) -> tuple[ComparedDimension, ...]:
    """The dimensions in which people compare clips of a suite."""
    return msgspec.convert(people_settings(suite)["dimensions"], tuple[ComparedDimension, ...])


def reference_cases(cases: Iterable[Case]) -> list[Case]:
    """The references of cases as cases of their own, once each."""
    references: dict[str, Case] = {}
    for case in cases:
        if case.reference is not None and str(case.reference.path) not in references:
            id = f"{'/'.join(filter(None, (case.subset, case.sample)))}@reference"
            reference = replace(case, id=id, model="reference", clip=case.reference, reference=None, seed=0)
            references[str(case.reference.path)] = reference
    if not references:
        raise UsageError("no clip of these runs has a reference; leave --of out to label the clips themselves")
    return list(references.values())


def items_of_task(
    task: str, cases: Sequence[Case], *, forms: int = 1, dimensions: Sequence[str] = ()
) -> list[LabelItem]:
    """All items of a task that these cases give."""
    if task not in TASKS:
        raise UsageError(f"unknown task {task!r}; choose one of {', '.join(TASKS)}")
    if task == "pairwise":
        pairs = [_pairwise_item(one, other, dimensions) for one, other in pairs_of_models_clips(cases)]
        if not pairs:
            raise UsageError("no two models have a clip of the same case, so there is nothing to compare")
        items = [item for item in pairs if item.questions]  # some dimensions are those of one subset
        if not items:
            raise UsageError(f"no clip of these runs is compared in {' or '.join(dimensions)}")
        return items
    if task == "answer":
        items = [item for case in cases for item in _bank_items_by_form(case, forms)]
    elif task == "review":
        items = [
            _make_item(task, (case,), [_item_question_of_bank(question, REVIEWS)], str(question["id"]))
            for case in cases
            for question in bank_questions_of_case(case)
        ]
    else:
        items = [_make_item(task, (case,), [_question_about_clip(task, case)]) for case in cases]
    if not items:
        raise UsageError(f"no clip of these runs has questions of a bank, as the task {task} asks (docs/memobench.md)")
    return items


def pairs_of_models_clips(cases: Sequence[Case]) -> list[tuple[Case, Case]]:
    """Two models' clips of one case, the models in alphabetical order."""
    by = group_items(cases, lambda case: (case.suite, *case.pairing_key))
    return [
        (one, other)
        for clips in by.values()
        for one, other in combinations(sorted(clips, key=lambda case: case.model), 2)
        if one.model != other.model
    ]


def bank_questions_of_case(case: Case) -> list[Mapping[str, object]]:
    """The questions of a case's bank: id, dimension, positive, text."""
    return list(case.annotations.get("questions") or ())


def _pairwise_item(one: Case, other: Case, dimension_ids: Sequence[str]) -> LabelItem:
    dimensions = compared_dimensions(one.suite)
    unknown = sorted(set(dimension_ids) - {dimension.id for dimension in dimensions})
    if unknown:
        raise UsageError(f"unknown dimension {unknown[0]!r}; choose one of {', '.join(d.id for d in dimensions)}")
    name, questions = target_phrase(one), []
    for dimension in dimensions:
        is_chosen = not dimension_ids or dimension.id in dimension_ids
        if is_chosen and dimension.subset in ("", one.subset or dimension.subset):
            text, id = dimension.text.replace("{target}", name), dimension.id
            questions.append(ItemQuestion(id, text, PREFERENCES, id, returned=dimension.returned))
    if any(question.returned for question in questions):
        questions.insert(0, ItemQuestion(JUDGEABLE, WORDS["watched"].replace("{target}", name), WHOSE, JUDGEABLE))
    return _make_item("pairwise", (one, other), questions)


def _bank_items_by_form(case: Case, forms: int) -> list[LabelItem]:
    """The questions of a clip's bank dealt over forms, so that every form has some of every clip."""
    questions = [_item_question_of_bank(question, YES_NO) for question in bank_questions_of_case(case)]
    return [
        replace(_make_item("answer", (case,), questions[form::forms], str(form)), form=form)
        for form in range(min(forms, len(questions)))
    ]


def _item_question_of_bank(question: Mapping[str, object], answers: tuple[str, ...]) -> ItemQuestion:
    polarity = "positive" if question["positive"] else "negative"
    return ItemQuestion(str(question["id"]), str(question["text"]), answers, str(question["dimension"]), polarity)


def _question_about_clip(task: str, case: Case) -> ItemQuestion:
    """The one question of the tasks trigger, marks and failure."""
    if task == "trigger":
        words = people_settings(case.suite).get("triggers", {}).get(case.subset.lower(), WORDS["posed"])
        return ItemQuestion("trigger", words, YES_NO, "trigger")
    if task == "marks":
        return ItemQuestion("target", f"What becomes of {target_phrase(case)}?", HIDDEN, "target")
    return ItemQuestion("failure", "What goes wrong in this video?", (*KINDS, "none"), "failure", several=True)


def target_phrase(case: Case) -> str:
    """The target in words."""
    name = case.target.name if case.target is not None else case.target_name
    return f"the {name}" if name and name != "target" else "what matters"


def _make_item(task: str, cases: Sequence[Case], questions: Sequence[ItemQuestion], part: str = "") -> LabelItem:
    first = cases[0]
    scene = "/".join(one for one in (first.subset, first.sample) if one)
    stratum = " | ".join((" against ".join(case.model for case in cases), first.subset, first.condition))
    item_id = digest("\n".join([task, part, *(case.id for case in cases)]), 16)
    captions = tuple(map(str, first.annotations.get("caption_segments") or ()))
    case_ids = tuple(case.id for case in cases)
    return LabelItem(item_id, task, case_ids, tuple(questions), scene, stratum, rater_context(first), captions)


def rater_context(case: Case) -> tuple[tuple[str, str], ...]:
    """What a rater is told of a case, whoever made the clip."""
    notes = case.annotations
    entries = [
        ("Asked for", "" if notes.get("caption_segments") else case.prompt),
        ("Camera", camera_instruction_text(case)),
        ("Target", case.target.name if case.target is not None else case.target_name),
        ("Event", str(notes.get("event") or "")),
        ("Expected", str(notes.get("expected") or "")),
    ]
    return tuple((heading, text) for heading, text in entries if text and text != "target")


def camera_instruction_text(case: Case) -> str:
    """What the camera was asked to do, in words."""
    if case.annotations.get("told_camera"):
        return str(case.annotations["told_camera"])
    try:
        steps = parse_script(case.camera) if case.camera else ()
    except UsageError:
        return case.camera.replace("_", " ")
    return ", then ".join(" and ".join(map(_move_text, step.moves)) or "hold still" for step in steps)


def _move_text(move: Any) -> str:
    verb = {"yaw": "turn", "tilt": "look", "roll": "roll", "orbit": "go round"}.get(move.kind)
    unit = {"degrees": "°", "metres": " m"}.get(UNITS.get(move.kind, ""), "")
    return f"{verb or ('move' if unit else move.kind)} {move.direction} by {move.amount:g}{unit}"


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
    groups = group_items(things, outer).values()
    return _round_robin([_round_robin(list(group_items(group, inner).values())) for group in groups])


def _round_robin(queues: Sequence[Sequence[Any]]) -> list[Any]:
    longest = max(map(len, queues), default=0)
    return [queue[k] for k in range(longest) for queue in queues if k < len(queue)]
