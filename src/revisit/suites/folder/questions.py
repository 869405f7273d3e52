"""Questions of memory that a judge can be asked about any clip, whatever it shows, and the user's own beside them.

The first asks whether a part of the scene leaves the view and comes back. Only where it does are the others asked: of
a camera that never looks away nothing can be said. A YAML file of the user's adds questions, asked of every clip:

    - {text: "Is the cup still on the table at the end?", answer: yes}
    - {text: "Is the door open and closed in turn?", answer: no, dimension: door}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from revisit.core import UsageError, observer
from revisit.core.text import read_yaml_file
from revisit.evidence.judged import YES, JudgeFrames
from revisit.judges import banks
from revisit.judges.instrumented import ClipStory, StoryAnswerFunction, register_story_answers, yes_no_text
from revisit.judges.protocol import Frames, JudgeDialogue
from revisit.judges.questions import Question
from revisit.suites.folder.evidence import OWN, RETURNS, MemoryAnswers

QUESTIONS = banks.load_package_bank(__package__, "questions.yaml")
OwnQuestions = Sequence[Mapping[str, str]]  # text, answer and dimension of each


@observer(id="judge.memory", version=1, kind="judge", makes=MemoryAnswers, shows=JudgeFrames)
def ask_memory_questions(frames: Frames, *, questions: OwnQuestions = ()) -> JudgeDialogue:
    """A judge's answers to questions of memory that fit any clip, and to the user's own."""
    rows = [{**one, "dimension": f"{OWN}: {one['dimension']}"} for one in questions]
    own = banks.bank_questions_from_rows(rows, first=len(QUESTIONS) + 1)
    asking = [QUESTIONS[0], *own]
    answers = list((yield banks.judge_questions_of_bank(asking)))
    if banks.yes_no_code(answers[0]) == YES:
        asking += QUESTIONS[1:]
        answers += list((yield banks.judge_questions_of_bank(QUESTIONS[1:])))
    return banks.make_bank_evidence(MemoryAnswers, asking, answers, frames.digest)


def folder_parameters_from_options(questions: str = "", **_: str) -> dict[str, dict[str, object]]:
    """The parameters that the option `questions` sets: the user's own questions, which are part of the protocol."""
    return {"judge.memory": {"questions": read_own_questions(Path(questions).expanduser())}} if questions else {}


def read_own_questions(path: Path) -> list[dict[str, str]]:
    """The questions of a file: a list of objects with `text`, the right `answer` (yes or no), and a `dimension`."""
    content = read_yaml_file(path, "neither YAML nor JSON")
    if not isinstance(content, list) or not content:
        raise UsageError(f"{path}: expected a list of questions, each with text and answer (yes or no)")
    read = []
    for number, one in enumerate(content, 1):
        answer = banks.yes_no_or_empty(one)
        if not answer or not isinstance(one.get("text"), str) or not one["text"].strip():
            raise UsageError(f"{path}: question {number} needs a text and the right answer, yes or no")
        if unknown := sorted(set(one) - {"text", "answer", "dimension"}):
            raise UsageError(f"{path}: question {number} has {unknown[0]!r}; known are text, answer and dimension")
        read.append({"text": one["text"].strip(), "answer": answer, "dimension": str(one.get("dimension") or "all")})
    return read


@register_story_answers("folder")
def folder_story_answer_function(question: Question) -> StoryAnswerFunction | None:
    """How a rendered story answers these questions."""
    one = next((one for one in QUESTIONS if question.text == one.text), None)
    return None if one is None else lambda story: yes_no_text(TRUTHS[one.dimension](story) == one.positive)


TRUTHS: Mapping[str, Callable[[ClipStory], bool]] = {
    RETURNS: lambda story: story.has_place_left_and_returned,
    # What shows another place is read as no view of the scene at all.
    "place": lambda story: story.has_place_left_and_returned,
    "things": lambda story: story.returned and story.spatial,
    "state": lambda story: story.state,
    "look": lambda story: story.state,
}
