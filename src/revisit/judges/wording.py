"""The words around every question. They are part of the judge's identity: other words give other answers."""

from __future__ import annotations

from collections.abc import Sequence

from revisit.core import digest
from revisit.core.text import read_package_yaml
from revisit.judges.questions import JsonObject, Question

RULES: str = read_package_yaml("revisit.judges", "wording.yaml")["rules"]


def frames_intro(times: Sequence[float]) -> str:
    """What is said before the frames."""
    if len(times) == 1:
        return "One frame:"
    return f"{len(times)} frames, taken at these seconds: {', '.join(f'{time:.2f}' for time in times)}."


def question_prompt(question: Question, note: str = "") -> str:
    """The question, how to answer it, and what was wrong with the last reply, if there was one."""
    form = question.schema.says()
    ask = f"Reply with {form}." if isinstance(question.schema, JsonObject) else f"Answer with {form}, and nothing else."
    mend = f"\nYour last reply could not be used ({note}). Keep to the form." if note else ""
    return f"{question.text}\n{ask}{mend}"


def wording_digest() -> str:
    """Changes when the words around the questions do."""
    return digest(
        [
            RULES,
            frames_intro((0.0,)),
            frames_intro((0.0, 1.0)),
            question_prompt(Question("", "?")),
            question_prompt(Question("", "?"), "!"),
        ]
    )
