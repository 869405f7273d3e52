"""MBench (arXiv 2606.00793): does a clip pose the memory test at all, and how far did the change go, how rightly?

The trigger is one question, which depends on the subset of the case, with a confidence. Progress and correctness are
two ratings in one call, so that the second is given in view of the first. Both are asked about the same frames (eight,
evenly spread, by default). Our own wording, with the paper's meaning: numbers are comparable with published ones only
in kind. `annotations["wording"]` may hold words of the user's own by id (`trigger.object`, ..., `progress`): captions
still go before them and the form of the answer after them, and judges are told apart by the words they were asked with.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from revisit.core import UsageError, digest, observer
from revisit.core.text import read_package_yaml
from revisit.evidence.judged import JudgeFrames
from revisit.judges.banks import first_model_name, unanswered_sentences, yes_no_code
from revisit.judges.instrumented import ClipStory, StoryAnswerFunction, register_story_answers, yes_no_text
from revisit.judges.protocol import Frames, JudgeAnswer, JudgeDialogue
from revisit.judges.questions import JsonObject, Number, Question, Rating, YesNo
from revisit.suites.mbench.evidence import ProgressRatings, TriggerAnswer

WORDS = read_package_yaml(__package__, "questions.yaml")
TRIGGERS: Mapping[str, str] = WORDS["triggers"]
RATINGS: str = WORDS["ratings"]


@observer(
    id="judge.trigger", version=3, kind="judge", makes=TriggerAnswer, shows=JudgeFrames,
    inputs=("subset", "prompt", "annotations"),
)  # fmt: skip
def ask_trigger(frames: Frames, subset: str, prompt: str, annotations: Mapping[str, object]) -> JudgeDialogue:
    """Whether the clip poses the memory test of its subset, and how sure the judge is of it."""
    name = subset.lower()
    if name not in TRIGGERS:
        raise UsageError(f"there is no trigger question for the subset {subset!r}; choose one of {', '.join(TRIGGERS)}")
    question_id = f"trigger.{name}"
    words, by = question_words_and_judge_suffix(question_id, TRIGGERS[name], annotations)
    target_name = annotations.get("object") if name == "object" else ""
    target = f"The target object is: {target_name}.\n" if target_name else ""
    text = f"{requested_content_text(prompt, annotations)}{target}{words} Say also how sure you are, from 0 to 1."
    schema = JsonObject({"triggered": YesNo(), "confidence": Number(0.0, 1.0)})
    answers: list[JudgeAnswer] = yield [Question(question_id, text, schema, {"ask": "triggered"})]
    value = answers[0].value or {}
    return TriggerAnswer(
        triggered=int(value["triggered"]) if value else yes_no_code(answers[0]),
        confidence=float(value.get("confidence", math.nan)),
        question=name,
        judge=first_model_name(answers) + by,
        frames=frames.digest,
        problems=unanswered_sentences(["the trigger"], answers),
    )


@observer(
    id="judge.progress", version=2, kind="judge", makes=ProgressRatings, shows=JudgeFrames,
    inputs=("prompt", "annotations"),
)  # fmt: skip
def ask_progress_ratings(frames: Frames, prompt: str, annotations: Mapping[str, object]) -> JudgeDialogue:
    """How far the described change went and how rightly, from 1 to 5 each, in one call."""
    schema = JsonObject({"progress": Rating(1, 5), "correctness": Rating(1, 5)})
    words, by = question_words_and_judge_suffix("progress", RATINGS, annotations)
    text = requested_content_text(prompt, annotations) + words
    answers: list[JudgeAnswer] = yield [Question("progress", text, schema)]
    value = answers[0].value or {}
    return ProgressRatings(
        progress=float(value.get("progress", math.nan)),
        correctness=float(value.get("correctness", math.nan)),
        judge=first_model_name(answers) + by,
        frames=frames.digest,
        problems=unanswered_sentences(["the ratings"], answers),
    )


@register_story_answers("mbench")
def simulated_story_answer_function(question: Question) -> StoryAnswerFunction | None:
    """How a rendered story answers the trigger and the ratings."""
    if question.id.startswith("trigger."):
        return lambda story: json.dumps(
            {"triggered": yes_no_text(story.has_place_left_and_returned), "confidence": 1.0}
        )
    return _ratings_answer_for_story if question.text.endswith(RATINGS) else None


def _ratings_answer_for_story(story: ClipStory) -> str:
    right = 1 + 2 * story.spatial + 2 * story.state
    return json.dumps({"progress": 1 + round(4 * story.event_progress), "correctness": right})


def question_words_and_judge_suffix(
    question_id: str, default_words: str, annotations: Mapping[str, object]
) -> tuple[str, str]:
    """The words of a question, and what to add to the judge's name: nothing, or which words of the user's these are."""
    wording = annotations.get("wording")
    theirs = wording.get(question_id) if isinstance(wording, Mapping) else None
    return (default_words, "") if theirs is None else (str(theirs), f", asked in the words {digest(theirs, 8)}")


def requested_content_text(prompt: str, annotations: Mapping[str, object]) -> str:
    """What the video was asked to show, part by part where the dataset says it so."""
    segments = annotations.get("caption_segments")
    if isinstance(segments, list | tuple) and segments:
        parts = "\n".join(f"{number}. {part}" for number, part in enumerate(segments, 1))
        return f"The video was asked to show, one after the other:\n{parts}\n"
    return f"The video was asked to show: {prompt.strip()}\n"
