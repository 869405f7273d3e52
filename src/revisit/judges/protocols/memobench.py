"""MemoBench (arXiv 2606.27537): questions about a clip, written by a judge from the prompt and the first frame.

Twenty-four questions, six in each of four dimensions, half of each positive and half negative, so that a judge who
always says yes passes half of them. What is kept of them is decided by the suite's own filters
(`revisit.suites.memobench.questions`). Our own wording.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from revisit.evidence import answers as bank
from revisit.judges.questions import Choice, Malformed, Many, Question, Rating, Record, Schema, Text

PER_DIMENSION = 6
FOCUS = {
    "Instruction Following": "whether the camera moves and the events happen as the prompt asks",
    "Object and Background": "whether the main thing and its surroundings look right and stay the same",
    "Continuity of Memory": "whether what is out of view for a while is there again, and has gone on as it should",
    "Physics Adherence": "whether motion, contact and light obey the laws of nature",
}
COUNT = PER_DIMENSION * len(FOCUS)


@dataclass(frozen=True)
class NewQuestions(Many):
    """Twenty-four questions with numbers from 1, six per dimension, three of each polarity."""

    item: Schema = field(
        default_factory=lambda: Record(
            {
                "id": Rating(1, COUNT),
                "dimension": Choice(tuple(FOCUS)),
                "polarity": Choice(("positive", "negative")),
                "question": Text(300),
            }
        )
    )
    at_least: int = COUNT
    at_most: int = COUNT

    def check(self, value: Any) -> list[Any]:
        found = super().check(value)
        if sorted(one["id"] for one in found) != list(range(1, COUNT + 1)):
            raise Malformed(f"the ids must be the numbers from 1 to {COUNT}, each once")
        counts = Counter((one["dimension"], one["polarity"]) for one in found)
        for name in FOCUS:
            for polarity in ("positive", "negative"):
                if counts[name, polarity] != PER_DIMENSION // 2:
                    raise Malformed(
                        f"{name} has {counts[name, polarity]} {polarity} questions; expected {PER_DIMENSION // 2}"
                    )
        texts = {one["question"].lower() for one in found}
        if len(texts) < COUNT:
            raise Malformed("a question is asked twice; all must differ")
        return found


def write_questions(prompt: str, unlike: Sequence[str] = ()) -> Question:
    """The request for a bank of questions; `unlike` are earlier ones, of which no more are wanted."""
    focus = "\n".join(f"- {name}: {what}" for name, what in FOCUS.items())
    other = "\nDo not repeat any of these:\n" + "\n".join(f"- {text}" for text in unlike) if unlike else ""
    text = (
        f"This is the first frame of a video that was made from this prompt: {prompt.strip()}\n"
        "Others will see the video and not the prompt. Write yes-or-no questions that tell whether the video is as "
        f"the prompt asks. Write {PER_DIMENSION} for each of these dimensions:\n{focus}\n"
        f"In each dimension {PER_DIMENSION // 2} questions are positive (yes means that the video is right) and "
        f"{PER_DIMENSION // 2} are negative (yes means that it is wrong). A question is about one thing that can be "
        "seen, names it so that it cannot be mixed up with another, and can be answered from the video alone."
        f"{other}"
    )
    return Question("memobench.questions", text, NewQuestions())


@dataclass(frozen=True)
class PublicQuestions(Many):
    """Questions as the public script asks for them: ID, Dimension, Dimension Polarity, Question."""

    item: Schema = field(
        default_factory=lambda: Record(
            {
                "ID": Rating(1, 999),
                "Dimension": Choice(tuple(FOCUS)),
                "Dimension Polarity": Choice(("Positive", "Negative")),
                "Question": Text(500),
            }
        )
    )
    at_least: int = len(FOCUS)
    at_most: int = 4 * COUNT

    def check(self, value: Any) -> list[Any]:
        found = super().check(value)
        if len({one["ID"] for one in found}) < len(found):
            raise Malformed("an ID is there twice; each question has its own")
        names = {"ID": "id", "Dimension": "dimension", "Dimension Polarity": "polarity", "Question": "question"}
        plain = [{ours: one[theirs] for theirs, ours in names.items()} for one in found]
        return [{**one, "polarity": one["polarity"].lower()} for one in plain]


def worded_questions(wording: str, prompt: str) -> Question:
    """The request for a bank of questions in the user's own words."""
    return Question("memobench.questions", wording.replace("{prompt}", prompt.strip()), PublicQuestions())


def read_questions(value: Sequence[dict[str, Any]]) -> tuple[bank.Question, ...]:
    """The questions of a valid answer, by number."""
    made = [bank.Question(one["id"], one["dimension"], one["polarity"] == "positive", one["question"]) for one in value]
    return tuple(sorted(made, key=lambda question: question.id))


def hinted(hint: str) -> str:
    """What stands before a question on a clip that is known to fail."""
    return f"Somebody who knows this video says that something is wrong with it: {hint.strip()}\n" if hint else ""
