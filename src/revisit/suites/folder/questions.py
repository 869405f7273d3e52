"""Questions of memory that a judge can be asked about any clip, whatever it shows, and the user's own beside them.

The first asks whether a part of the scene leaves the view and comes back. Only where it does are the others asked: of
a camera that never looks away nothing can be said. A YAML file of the user's adds questions, asked of every clip:

    - {text: "Is the cup still on the table at the end?", answer: yes}
    - {text: "Is the door open and closed in turn?", answer: no, dimension: door}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import yaml

from revisit.core import UsageError, observer
from revisit.core.text import parse_yaml
from revisit.evidence.answers import NO, YES, BankQuestion
from revisit.evidence.judged import JudgeFrames
from revisit.judges.banks import bank_evidence, bank_questions, verdict
from revisit.judges.instrumented import Answering, ClipStory, knows, word
from revisit.judges.protocol import Frames, JudgeDialogue
from revisit.judges.questions import Question
from revisit.suites.folder.evidence import OWN, RETURNS, MemoryAnswers

AWAY = "The frames are in order of time. Somewhere between them a part of the scene is out of view. "
# dimension, what the right answer is, question
_QUESTIONS = (
    (RETURNS, YES, "The frames are in order of time. Is there a part of the scene that is in view at first, out of "
     "view later, and after that in view again, or would be if the place still looked as it did?"),
    ("place", YES, AWAY + "Once the camera looks there again, is it the same place: the same walls, ground, furniture "
     "or landscape, where they were before?"),
    ("place", NO, AWAY + "Once the camera looks there again, has the place been replaced by another one, or been "
     "rearranged?"),
    ("things", YES, AWAY + "Once the camera looks there again, are the things and living beings that were there "
     "before still there, unless there is a reason in the video that they left?"),
    ("things", NO, AWAY + "Once the camera looks there again, is something gone, doubled, or in a place that it "
     "cannot have come to?"),
    ("state", YES, AWAY + "Once the camera looks there again, is each thing in a state that fits the time that has "
     "passed: what was going on has gone on, and what was finished has stayed finished?"),
    ("state", NO, AWAY + "Once the camera looks there again, has something begun again, been undone, or stood still "
     "as if no time had passed?"),
    ("look", YES, AWAY + "Once the camera looks there again, do things keep the colours, shapes and patterns that they "
     "had before?"),
    ("look", NO, AWAY + "Once the camera looks there again, does something look like another thing, or like another "
     "one of its kind?"),
)  # fmt: skip
QUESTIONS = tuple(BankQuestion(k, name, right == YES, text) for k, (name, right, text) in enumerate(_QUESTIONS, 1))
MEMORY = tuple(dict.fromkeys(one.dimension for one in QUESTIONS if one.dimension != RETURNS))
OwnQuestions = Sequence[Mapping[str, str]]  # text, answer and dimension of each


@observer(id="judge.memory", version=1, kind="judge", makes=MemoryAnswers, shows=JudgeFrames)
def memory(frames: Frames, *, questions: OwnQuestions = ()) -> JudgeDialogue:
    """A judge's answers to questions of memory that fit any clip, and to the user's own."""
    own = [
        BankQuestion(len(QUESTIONS) + k, f"{OWN}: {one['dimension']}", one["answer"] == "yes", one["text"])
        for k, one in enumerate(questions, 1)
    ]
    asked = [QUESTIONS[0], *own]
    answers = list((yield bank_questions(asked)))
    if verdict(answers[0]) == YES:
        asked += QUESTIONS[1:]
        answers += list((yield bank_questions(QUESTIONS[1:])))
    return bank_evidence(MemoryAnswers, asked, answers, frames.digest)


def settings(questions: str = "", **_: str) -> dict[str, dict[str, object]]:
    """The parameters that the option `questions` sets: the user's own questions, which are part of the protocol."""
    return {"judge.memory": {"questions": own_questions(Path(questions).expanduser())}} if questions else {}


def own_questions(path: Path) -> list[dict[str, str]]:
    """The questions of a file: a list of objects with `text`, the right `answer` (yes or no), and a `dimension`."""
    try:
        content = parse_yaml(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"{path}: cannot be read as YAML or JSON ({error})") from error
    if not isinstance(content, list) or not content:
        raise UsageError(f"{path}: expected a list of questions, each with text and answer (yes or no)")
    read = []
    for number, one in enumerate(content, 1):
        answer = one.get("answer") if isinstance(one, dict) else None
        answer = {True: "yes", False: "no"}[answer] if isinstance(answer, bool) else answer  # as YAML reads yes and no
        if answer not in ("yes", "no") or not isinstance(one.get("text"), str) or not one["text"].strip():
            raise UsageError(f"{path}: question {number} needs a text and the right answer, yes or no")
        if unknown := sorted(set(one) - {"text", "answer", "dimension"}):
            raise UsageError(f"{path}: question {number} has {unknown[0]!r}; known are text, answer and dimension")
        read.append({"text": one["text"].strip(), "answer": answer, "dimension": str(one.get("dimension") or "all")})
    return read


@knows("folder")
def known(question: Question) -> Answering | None:
    """How a rendered story answers these questions."""
    one = next((one for one in QUESTIONS if question.text == one.text), None)
    return None if one is None else lambda story: word(TRUTHS[one.dimension](story) == one.positive)


TRUTHS: Mapping[str, Callable[[ClipStory], bool]] = {
    RETURNS: lambda story: story.posed,
    "place": lambda story: story.posed,  # what shows another place is read as no view of the scene at all
    "things": lambda story: story.returned and story.spatial,
    "state": lambda story: story.state,
    "look": lambda story: story.state,
}
