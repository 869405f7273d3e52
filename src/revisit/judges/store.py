"""The answer store: every answer that was paid for, one JSON line each, appended the moment it is there.

An answer lies under (frames, question, judge with model and parameters). The shared store of the cache serves
every run; a run keeps a copy of the lines it used, from which `ReplayJudge` answers without a network: it is the same
judge, so the numbers are comparable. A process that is killed loses at most the calls under way. Answers that failed
are never kept: they are asked again.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from revisit.core import UsageError, digest
from revisit.core.text import convert_read_errors, parse_json, parse_json_or_none
from revisit.judges.canary import CANARY
from revisit.judges.protocol import Frames, Judge, JudgeAnswer, Refused, Reply, Usage
from revisit.judges.questions import Question
from revisit.media.files import append_all_or_nothing


def answer_key(frames_digest: str, question_digest: str, judge: Mapping[str, object]) -> str:
    """Address of an answer: the digests of the frames and of the question, and the facts of the judge."""
    return digest({"frames": frames_digest, "question": question_digest, "judge": dict(judge)}, 40)


AnswerLine = dict[str, Any]  # a line of an answer file, as `AnswerStore.record_answer` writes it


class AnswerStore:
    """Answers in memory and in one or two files: the shared one, and the copy of this run.

    Where the shared one cannot be written, the copy alone keeps what is answered, and `problems` says so.
    """

    def __init__(self, shared: Path | None, copy: Path | None = None, problems: dict[str, str] | None = None) -> None:
        self._lock = threading.Lock()
        self._shared, self._has_copy = shared, copy is not None
        self.problems = {} if problems is None else problems
        self._lines: dict[str, bytes] = {}  # as they are in the files, which is a fifth of what they take when read
        self._files: dict[int, set[str]] = {}  # open file -> keys it holds
        for path in [path for path in (shared, copy) if path is not None]:
            lines = {str(line["key"]): _encode_json_line(line) for line in read_answer_lines(path)}
            self._lines |= lines
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._files[_open_for_append_after_repair(path)] = set(lines)
            except OSError as error:
                if path == copy:
                    raise
                self._go_on_without_shared_file(error)

    def find_answer(self, frames: Frames, question: Question, judge: Mapping[str, object]) -> JudgeAnswer | None:
        """The recorded answer, or None; the copy of this run gets the line too."""
        key = answer_key(frames.digest, question.digest, judge)
        with self._lock:
            line = self._lines.get(key)
            if line is None:
                return None
            self._append_to_files(key, line)
        return JudgeAnswer.from_json(parse_json(line)["answer"])

    def record_answer(
        self, frames: Frames, question: Question, judge: Mapping[str, object], answer: JudgeAnswer
    ) -> None:
        """Record an answer; one that failed is not kept."""
        if answer.status == "failed":
            return
        key = answer_key(frames.digest, question.digest, judge)
        line = _encode_json_line(
            {
                "key": key,
                "frames": frames.digest,
                "question": {"id": question.id, "digest": question.digest, "text": question.text},
                "judge": dict(judge),
                "answer": answer.as_json(),
                "asked": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            }
        )
        with self._lock:
            self._lines[key] = line
            for holds in self._files.values():
                holds.discard(key)
            self._append_to_files(key, line)

    def close(self) -> None:
        with self._lock:
            for file in self._files:
                os.close(file)
            self._files = {}

    def _append_to_files(self, key: str, line: bytes) -> None:
        files = [*self._files]
        for file in files:
            if key in (holds := self._files[file]):
                continue
            try:
                append_all_or_nothing(file, line)  # a kill tears no line but the last, which _open_mended cuts off
            except OSError as error:
                if file == files[-1]:  # the copy, or the only one
                    raise
                self._go_on_without_shared_file(error)
                os.close(file)
                del self._files[file]
            else:
                holds.add(key)

    def _go_on_without_shared_file(self, error: OSError) -> None:
        """Raise the error again where no copy of this run keeps the answers."""
        if not self._has_copy:
            raise error
        why = error.strerror or type(error).__name__
        problem = f"{self._shared} cannot be written ({why}): the judge's answers are kept with this run only"
        self.problems.setdefault("answers", problem)


def _encode_json_line(line: Mapping[str, object]) -> bytes:
    return (json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8", "replace")


def read_answer_lines(path: Path) -> list[AnswerLine]:
    """The whole lines of an answer file; a line torn by a kill is passed over, and the last of a key counts."""
    if not path.is_file():
        return []
    lines: dict[str, AnswerLine] = {}
    for line in path.read_bytes().split(b"\n")[:-1]:
        content = parse_json_or_none(line)
        if _is_valid_answer_line(content):
            lines[str(content["key"])] = content
    return list(lines.values())


def _is_valid_answer_line(line: Any) -> bool:
    """Whether a line has all that an answer is kept with; what it lacks is asked again."""
    try:
        JudgeAnswer.from_json(line["answer"])
        _encode_json_line(line)  # ValueError where a number is none that JSON has
        texts = line["key"], line["frames"], line["question"]["digest"]
        return isinstance(line["judge"], dict) and all(isinstance(text, str) for text in texts)
    except (KeyError, TypeError, ValueError, AttributeError):
        return False


def shared_answers_path(cache: Path, judge: Mapping[str, object]) -> Path:
    """Where the answers of a judge lie in the cache."""
    return cache / "answers" / f"{digest(dict(judge), 16)}.jsonl"


def _open_for_append_after_repair(path: Path) -> int:
    """The file, open for appending, without a last line that a kill left torn."""
    if path.is_file():
        content = path.read_bytes()
        if not content.endswith(b"\n"):
            os.truncate(path, content.rfind(b"\n") + 1)
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)


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
