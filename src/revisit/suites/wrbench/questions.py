"""WRBench (arXiv 2606.20545): probes of one event, and the gate that says whether a return can be judged.

The gate is another question, asked of the same frames and kept apart from the probes; a second look, with a wider
notion of what counts, is taken only where the first finds no return. The wording is our own (`OURS`); a file of the
user's may bring another (`wording` reads it), which is part of the protocol (docs/wrbench.md).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import UsageError, observer
from revisit.core.text import read_package_yaml, read_yaml_file
from revisit.evidence.judged import JudgeFrames
from revisit.judges.banks import (
    bank_questions_from_rows,
    fill_template,
    first_model_name,
    judge_questions_of_bank,
    load_package_bank,
    make_bank_evidence,
    unanswered_sentences,
    yes_no_or_empty,
)
from revisit.judges.instrumented import ELSEWHERE, ClipStory, StoryAnswerFunction, register_story_answers, yes_no_text
from revisit.judges.protocol import Frames, JudgeAnswer, JudgeDialogue
from revisit.judges.questions import JsonObject, Many, Question, Schema, Text, YesNo
from revisit.suites.wrbench.evidence import Judgeability, ProbeAnswers, classify_judgeable_seconds

PROBES = load_package_bank(__package__, "probes.yaml")
LOOKS: dict[str, str] = read_package_yaml(__package__, "looks.yaml")  # first_look and second_look
OURS = "revisit"  # the name of our own wording
DIMENSIONS = tuple(dict.fromkeys(probe.dimension for probe in PROBES))
QuestionSet = Mapping[str, Any]  # probes, first_look, second_look and context, as `wording` reads them


@observer(
    id="judge.probes", version=3, kind="judge", makes=ProbeAnswers, shows=JudgeFrames, inputs=("prompt", "annotations")
)
def ask_event_probes(
    frames: Frames,
    prompt: str,
    annotations: Mapping[str, object],
    *,
    wording: str = OURS,
    questions: QuestionSet | None = None,
) -> JudgeDialogue:
    """A judge's answers to ten probes about the event of the case, with the probability of yes."""
    asking, preamble = PROBES, format_event_context(prompt, annotations)
    if questions is not None:
        places, preamble = _template_values_and_context(questions, frames, prompt, annotations)
        rows = [{**one, "text": fill_template(one["text"], places)} for one in questions["probes"]]
        asking = bank_questions_from_rows(rows)
    answers = yield judge_questions_of_bank(asking, preamble)
    return make_bank_evidence(ProbeAnswers, asking, answers, frames.digest)


@observer(
    id="judge.judgeability", version=3, kind="judge", makes=Judgeability, shows=JudgeFrames,
    inputs=("prompt", "annotations"),
)  # fmt: skip
def ask_judgeability(
    frames: Frames,
    prompt: str,
    annotations: Mapping[str, object],
    *,
    wording: str = OURS,
    questions: QuestionSet | None = None,
) -> JudgeDialogue:
    """The seconds in which the subject can be judged and, where they show no return, a second look."""
    places, context = _template_values_and_context(questions or {}, frames, prompt, annotations)
    count = int(places["seconds"])

    def look(name: str, parts: Mapping[str, Schema]) -> Question:
        text = format_event_context(prompt, annotations) + fill_template(LOOKS[f"{name}_look"], places)
        if questions is not None and questions.get(f"{name}_look"):
            text = context + fill_template(questions[f"{name}_look"], places)
        return Question(f"judgeability.{name}", text, JsonObject({**parts, "seconds": Many(YesNo(), count, count)}))

    answers: list[JudgeAnswer] = yield [look("first", {"subject": Text(120)})]
    seconds = _judgeable_seconds(answers[0])
    second = np.zeros(0, np.int8)
    spatial = state = -1
    if classify_judgeable_seconds(seconds) != "returned":
        answers = [*answers, *(yield [look("second", {"place": YesNo(), "state": YesNo()})])]
        second = _judgeable_seconds(answers[1])
        if len(second):
            spatial, state = (int(answers[1].value[name]) for name in ("place", "state"))
    return Judgeability(
        seconds=seconds,
        subject=answers[0].value["subject"] if len(seconds) else "",
        second_seconds=second,
        second_spatial=spatial,
        second_state=state,
        judge=first_model_name(answers),
        frames=frames.digest,
        problems=unanswered_sentences(["the first look", "the second look"][: len(answers)], answers),
    )


def event_context_fields(prompt: str, annotations: Mapping[str, object]) -> dict[str, str]:
    """What is known of the event of a case, piece by piece; empty where the dataset does not tell it."""
    event_pieces = {name: str(annotations.get(name) or "").strip() for name in ("event", "scene", "subject", "acts_on")}
    judge_pieces = {name: str(annotations.get(f"told_{name}") or "").strip() for name in ("camera", "visible", "ends")}
    return {**event_pieces, **judge_pieces, "event": event_pieces["event"] or prompt.strip()}


def format_event_context(prompt: str, annotations: Mapping[str, object]) -> str:
    """What stands before a question: what the video was asked to show, a line each for what is known of it."""
    titles = {
        "event": "Event", "scene": "Scene", "subject": "Subject", "acts_on": "It deals with", "camera": "Camera",
        "visible": "In view", "ends": "In the end",
    }  # fmt: skip
    known_pieces = event_context_fields(prompt, annotations)
    lines = [f"{title}: {known_pieces[name]}" for name, title in titles.items() if known_pieces[name]]
    return "\n".join(["The video was asked to show this.", *lines]) + "\n"


def read_custom_question_set(path: Path) -> QuestionSet:
    """The questions in a file: YAML or JSON with `probes` and, where they differ, the two looks and `context`.

    A probe has a `dimension`, the right `answer` (yes or no) and a `text`. Texts may name {event}, {scene} and so on.
    """
    content = read_yaml_file(path, "neither YAML nor JSON")
    if not isinstance(content, dict) or not isinstance(content.get("probes"), list):
        raise UsageError(f"{path}: expected `probes:`, a list of objects with dimension, answer and text")
    fields = {"probes", "first_look", "second_look", "context"}
    if unknown := sorted(set(content) - fields):
        raise UsageError(f"{path}: unknown field {unknown[0]!r}; a file of questions has {', '.join(sorted(fields))}")
    probes = []
    for number, one in enumerate(content["probes"], start=1):
        answer = yes_no_or_empty(one)
        if not answer or one.get("dimension") not in DIMENSIONS or not str(one.get("text") or ""):
            dimension = f"a dimension ({', '.join(DIMENSIONS)})"
            raise UsageError(f"{path}: probe {number} needs {dimension}, an answer (yes or no) and a text")
        probes.append({"dimension": one["dimension"], "answer": answer, "text": str(one["text"])})
    missing = [name for name in DIMENSIONS if all(one["dimension"] != name for one in probes)]
    if missing:
        raise UsageError(f"{path}: no probe asks about {missing[0]}; each of {', '.join(DIMENSIONS)} needs one")
    return {**{name: str(content[name]) for name in fields - {"probes"} if content.get(name)}, "probes": probes}


def _template_values_and_context(
    questions: QuestionSet, frames: Frames, prompt: str, annotations: Mapping[str, object]
) -> tuple[dict[str, str], str]:
    """What the user's templates may name, and their context."""
    count = max(1, math.ceil(frames.seconds - 1e-6))
    places = {**event_context_fields(prompt, annotations), "seconds": str(count), "last": str(count - 1)}
    return places, fill_template(questions.get("context") or "", places)


def _judgeable_seconds(answer: JudgeAnswer) -> np.ndarray:
    answers: Sequence[bool] = answer.value["seconds"] if answer.status == "answered" else ()
    return np.array(answers, np.int8)


@register_story_answers("wrbench")
def wrbench_story_answer_function(question: Question) -> StoryAnswerFunction | None:
    """How a rendered story answers probes and looks."""
    probe = next((one for one in PROBES if question.text.endswith(one.text)), None)
    if probe is not None:
        return lambda story: yes_no_text(TRUTHS[probe.dimension](story) == probe.positive)
    return (lambda story: _judgeability_json(story, question)) if question.id.startswith("judgeability.") else None


def _is_never_elsewhere(story: ClipStory, field: str) -> bool:
    """Whether every clear reading has a `place`, or a `state`, of the event."""
    return all(getattr(reading, field) != ELSEWHERE for reading in story.valid_readings if reading.clear)


TRUTHS: dict[str, Callable[[ClipStory], bool]] = {
    "visible_spatial": lambda story: _is_never_elsewhere(story, "place"),
    "visible_state": lambda story: story.event_progress > 0 and _is_never_elsewhere(story, "state"),
    "returned_spatial": lambda story: story.spatial,
    "returned_state": lambda story: story.state,
}


def _judgeability_json(story: ClipStory, question: Question) -> str:
    """For every second, whether the target is in sight in the frame nearest to its middle."""
    form: Any = question.schema
    seconds = []
    for second in range(form.fields["seconds"].at_least):
        inside = [reading for reading in story.valid_readings if second <= reading.time < second + 1]
        near = min(story.valid_readings, key=lambda reading: abs(reading.time - second - 0.5))
        seconds.append(yes_no_text(any(reading.in_sight for reading in inside) if inside else near.in_sight))
    answer: dict[str, object] = {"seconds": seconds}
    if "subject" in form.fields:
        answer["subject"] = f"the {story.scene.kind}"
    else:
        answer |= {"place": yes_no_text(story.returned), "state": yes_no_text(story.returned)}
    return json.dumps(answer)
