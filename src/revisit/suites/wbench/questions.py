"""WBench's judged columns, asked in our own words: ratings from 1 to 5, as shares from 0 to 1.

What a case says of its place, its subject, its turns and their consequences goes into the question. The benchmark's own
questions and judge are others, so that these answers stand in for its columns and are never put into them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

import numpy as np

from revisit.core import observer
from revisit.core.text import read_package_yaml
from revisit.evidence.judged import JudgeFrames
from revisit.judges.banks import first_model_name, unanswered_sentences
from revisit.judges.instrumented import StoryAnswerFunction, register_story_answers
from revisit.judges.protocol import Frames, JudgeAnswer, JudgeDialogue
from revisit.judges.questions import JsonObject, Question, Rating
from revisit.suites.wbench.evidence import CaseRatings

SCALE = "1: nothing of it, 3: about half of it or with clear mistakes, 5: all of it, and nothing to object to"
QUESTIONS = read_package_yaml(__package__, "questions.yaml")


@observer(id="judge.wb_ratings", version=1, kind="judge", makes=CaseRatings, shows=JudgeFrames, inputs=("annotations",))
def ask_case_ratings(frames: Frames, annotations: Mapping[str, object]) -> JudgeDialogue:
    """How well the clip shows what the case describes, one question each."""
    judged = annotations.get("judged")  # question -> what the case says that the video should show
    texts = {name: str(judged[name]) for name in QUESTIONS if judged.get(name)} if isinstance(judged, Mapping) else {}
    schema = JsonObject({"rating": Rating(1, 5)})
    questions = []
    for name, text in texts.items():
        asked = f"{QUESTIONS[name]['ask']}\nDescribed is: {text}\nRate it from 1 to 5 ({SCALE})."
        questions.append(Question(f"wbench.{name}", asked, schema))
    answers: Sequence[JudgeAnswer] = (yield questions) if questions else []
    values = [math.nan if answer.value is None else (float(answer.value["rating"]) - 1) / 4 for answer in answers]
    return CaseRatings(
        question=tuple(texts), value=np.array(values, dtype=float), judge=first_model_name(answers),
        frames=frames.digest,
        problems=unanswered_sentences(list(texts), answers),
    )  # fmt: skip


@register_story_answers("wbench")
def wbench_story_answer_function(question: Question) -> StoryAnswerFunction | None:
    """How a rendered story answers: by the place and state of the target after its return."""
    if not question.id.startswith("wbench."):
        return None
    return lambda story: json.dumps({"rating": 1 + 2 * story.spatial + 2 * story.state})
