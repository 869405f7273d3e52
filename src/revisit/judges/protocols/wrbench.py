"""WRBench (arXiv 2606.20545): probes of one event, and the gate that says whether a return can be judged.

Ten probes in four dimensions, place and state, seen and seen again: each dimension has probes whose right answer is
yes and probes whose right answer is no, and the score is the mean probability of the right answer (eq. 4-6). The gate
is another question, asked of the same frames and kept apart from the probes: for every whole second, can the subject
be judged? A second look, with a wider notion of what counts, is taken only where the first finds no return. Our own
wording: numbers are comparable with published ones only in kind.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from revisit.core import observer
from revisit.evidence import answers as bank
from revisit.evidence.answers import NO, YES
from revisit.evidence.judged import Judgeability, JudgeFrames, ProbeAnswers, regime
from revisit.judges.asking import Answer, Frames, Talk
from revisit.judges.protocols.banks import answered, asked, judge_of, problems
from revisit.judges.questions import Many, Question, Record, Text, YesNo

HIDDEN = "At some point the subject of the event may be out of sight, and later in sight again. "
# dimension, what the right answer is, question
_PROBES = (
    ("visible_spatial", YES, "Wherever the things of this event can be seen, is each of them in a believable place: "
     "the right thing, touching or resting on what it should, and moving as the event asks?"),
    ("visible_spatial", YES, "Do the fixed parts of the scene, such as walls, ground and furniture, agree with where "
     "the things of this event are and how they move?"),
    ("visible_spatial", NO, "Is there a clear mistake of place in what can be seen: a wrong thing or side, something "
     "that hovers or passes through something else, a touch that is missing, or things that slide along with the "
     "picture?"),
    ("visible_state", YES, "Does the action, posture or result that the event asks for really appear in the frames?"),
    ("visible_state", YES, "Over the frames, does it go on, come to its end, or last, as the event asks?"),
    ("visible_state", NO, "Is there a clear mistake of state in what can be seen: the event never happens, stands "
     "still, begins again, is undone, or ends in something else?"),
    ("returned_spatial", YES, HIDDEN + "Once in sight again, is it the same subject, in the part of the scene where it "
     "should be, judged by the fixed things around it and by what was seen before?"),
    ("returned_spatial", NO, HIDDEN + "Once its place is in sight again, is the subject missing, in a wrong place, "
     "back where it began for no reason, or moved by an impossible jump?"),
    ("returned_state", YES, HIDDEN + "Once in sight again, does the action or its result look as if time had gone on "
     "while nobody saw it?"),
    ("returned_state", NO, HIDDEN + "Once in sight again, does the action or its result look stopped, begun again, "
     "taken back, or lost?"),
)  # fmt: skip
PROBES = tuple(bank.Question(k, name, right == YES, text) for k, (name, right, text) in enumerate(_PROBES, 1))


@observer(
    id="judge.probes", version=1, kind="judge", makes=ProbeAnswers, shows=JudgeFrames, inputs=("prompt", "annotations")
)
def probes(frames: Frames, prompt: str, annotations: Mapping[str, Any]) -> Talk:
    """A judge's answers to ten probes about the event of the case, with the probability of yes."""
    answers = yield asked(PROBES, event(prompt, annotations))
    return answered(ProbeAnswers, PROBES, answers, frames.digest)


@observer(
    id="judge.judgeability", version=1, kind="judge", makes=Judgeability, shows=JudgeFrames,
    inputs=("prompt", "annotations"),
)  # fmt: skip
def judgeability(frames: Frames, prompt: str, annotations: Mapping[str, Any]) -> Talk:
    """The seconds in which the subject can be judged and, where they show no return, a second look."""
    told, count = event(prompt, annotations), max(1, math.ceil(frames.seconds - 1e-6))
    answers: list[Answer] = yield [first_look(told, count)]
    seconds = _seconds(answers[0])
    second = np.zeros(0, np.int8)
    spatial = state = -1
    if regime(seconds) != "returned":
        answers = [*answers, *(yield [second_look(told, count)])]
        second = _seconds(answers[1])
        if len(second):
            spatial, state = (int(answers[1].value[name]) for name in ("place", "state"))
    return Judgeability(
        seconds=seconds,
        subject=answers[0].value["subject"] if len(seconds) else "",
        second_seconds=second,
        second_spatial=spatial,
        second_state=state,
        judge=judge_of(answers),
        frames=frames.digest,
        problems=problems(["the first look", "the second look"][: len(answers)], answers),
    )


def event(prompt: str, annotations: Mapping[str, Any]) -> str:
    """What the video was asked to show, as it stands before a question: the event alone, where the dataset tells it."""
    return f"The video was asked to show this event: {str(annotations.get('event') or prompt).strip()}\n"


def first_look(told: str, count: int) -> Question:
    """The question whether the subject can be judged, for each of `count` seconds."""
    text = (
        f"{told}Name the main subject of the event in a few words. Then go through the video second by "
        f"second, from second 0 to second {count - 1}. For each, answer yes if the subject is in sight, can be told "
        "from other things, and its rough place and what it does can be made out; else answer no."
    )
    return Question("judgeability.first", text, _schema(count, {"subject": Text(120)}))


def second_look(told: str, count: int) -> Question:
    """The same with a wider notion of what counts, and a plain word on place and on state."""
    text = (
        f"{told}Everything that bears on the event counts here: the subject, what it acts on, traces and "
        "results of the action, and fixed things that mark its place. Something that can be seen and is wrong counts "
        f"as well as something right. Go through the video from second 0 to second {count - 1}: answer yes for each "
        "second in which such evidence is in sight. Then say whether, after a time out of sight, enough is in sight "
        "again to judge the place of the subject (place), and what became of its action or state (state)."
    )
    return Question("judgeability.second", text, _schema(count, {"place": YesNo(), "state": YesNo()}))


def _schema(count: int, more: dict[str, Any]) -> Record:
    return Record({**more, "seconds": Many(YesNo(), count, count)})


def _seconds(answer: Answer) -> np.ndarray:
    said: Sequence[bool] = answer.value["seconds"] if answer.status == "answered" else ()
    return np.array(said, np.int8)
