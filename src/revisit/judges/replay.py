"""Replay: the answers of an earlier run, without a network. It is the same judge, so the numbers are comparable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from revisit.core import UsageError, digest
from revisit.core.text import convert_read_errors
from revisit.judges.canary import CANARY
from revisit.judges.protocol import Frames, Judge, JudgeAnswer, Refused, Reply, Usage
from revisit.judges.questions import Question
from revisit.judges.store import read_answer_lines


class ReplayJudge(Judge):
    """Answers from a file of recorded answers (`answers.jsonl` of a run), as the judge that gave them."""

    batch = 1

    def __init__(self, path: Path, model: str = "", server: str = "") -> None:
        lines = read_answer_lines(path)
        if not lines:
            raise UsageError(f"{path}: no recorded answers found; a run with a judge writes them to answers.jsonl")
        criteria = {name: value for name, value in (("model", model), ("server", server)) if value}
        every = list({digest(line["judge"]): line["judge"] for line in lines}.values())
        judges = [judge for judge in every if all(judge.get(k) == v for k, v in criteria.items())]
        if len(judges) != 1:
            named = ((judge.get("model"), judge.get("server")) for judge in every)
            names = ", ".join(sorted({" at ".join(map(str, filter(None, pair))) for pair in named}))
            raise UsageError(
                f"{path}: it holds answers of {names}; choose one with `model:` and `server:` in a judge file"
            )
        self.facts: Mapping[str, object] = judges[0]
        self.path = path
        with convert_read_errors(path, "a file of recorded answers"):
            own = [line for line in lines if line["judge"] == self.facts]
            self.answers = {
                (line["frames"], line["question"]["digest"]): JudgeAnswer.from_json(line["answer"]) for line in own
            }
            # A judge that was asked no control questions cannot be asked them now.
            self.has_controls = any(line["question"]["id"].startswith(CANARY) for line in own)

    def reply(self, frames: Frames, questions: Sequence[Question], notes: Sequence[str]) -> list[Reply]:
        """The recorded replies, which are read and checked like new ones and cost nothing."""
        return [self._recorded_reply(frames, question) for question in questions]

    def _recorded_reply(self, frames: Frames, question: Question) -> Reply:
        answer = self.answers.get((frames.digest, question.digest))
        if answer is None:
            raise Refused(
                f"{self.path} holds no answer to {question.id!r} about these frames; use a judge that can be asked"
            )
        fault = answer.reason if answer.status == "unanswered" else ""  # such as a reply that was cut off
        return Reply(answer.reply, answer.p_yes, answer.p_from, Usage(), answer.model, fault)
