"""The protocol of judges: what they are given, what they give back, and what may go wrong.

A judge makes one attempt at a time and never decides what a bad reply means: `batch` validates, asks again,
keeps the budget and records. What goes wrong is one of three: NoReply (try again), Refused (this question cannot
be asked so), and Stopped (ask nothing further: a wrong key, a spent budget).
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol, get_args

import numpy as np

from revisit.judges.questions import Question
from revisit.servers.retries import NoReply, Refused, Stopped

__all__ = [
    "Frames", "Judge", "JudgeAnswer", "JudgeDialogue", "NoReply", "Refused", "Reply", "Status", "Stopped", "Usage",
]  # fmt: skip

Status = Literal["answered", "unanswered", "failed"]
CUT_OFF = "the reply was too long and was cut off"
# An observer that asks: it yields questions, receives their answers (answered or unanswered) and returns evidence.
JudgeDialogue = Generator[Sequence[Question], "list[JudgeAnswer]", Any]


@dataclass(frozen=True)
class Frames:
    """Pictures shown to a judge, as JPEG files, with the seconds they were taken at."""

    jpegs: tuple[bytes, ...]
    times: tuple[float, ...]
    digest: str
    size: tuple[int, int] = (0, 0)  # width, height; for estimates of cost
    seconds: float = 0.0  # length of the clip they are from

    def pictures(self) -> list[np.ndarray]:
        """The frames as RGB arrays, for judges that look at them on this machine."""
        return [decode_jpeg(jpeg) for jpeg in self.jpegs]

    @classmethod
    def of(cls, jpegs: Sequence[bytes], times: Sequence[float] = (), size: tuple[int, int] = (0, 0)) -> Frames:
        """Frames named by their own bytes."""
        sha = hashlib.sha256()
        for jpeg in jpegs:
            sha.update(f"{len(jpeg)}\n".encode() + jpeg)
        seconds = tuple(times) or tuple(float(i) for i in range(len(jpegs)))
        return cls(tuple(jpegs), seconds, sha.hexdigest()[:40], size)


def decode_jpeg(jpeg: bytes) -> np.ndarray:
    """The RGB picture in a JPEG file."""
    import cv2

    picture = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
    if picture is None:
        raise Refused("a frame cannot be decoded as an image")
    return np.ascontiguousarray(picture[:, :, ::-1])


@dataclass(frozen=True)
class Usage:
    """What was spent: calls that brought a reply, and tokens."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.calls + other.calls, self.tokens_in + other.tokens_in, self.tokens_out + other.tokens_out)


@dataclass(frozen=True)
class Reply:
    """What one call brought for one question, before anybody has checked it."""

    text: str
    p_yes: float | None = None
    p_from: str = ""  # how p_yes was got, or why there is none
    usage: Usage = Usage(1)
    model: str = ""  # as the server calls itself
    fault: str = ""  # why this is no answer, whatever the text says: it was cut off, withheld or refused


@dataclass(frozen=True)
class JudgeAnswer:
    """An answer as evidence. `unanswered`: the judge replied, never validly. `failed`: it could not be asked."""

    status: Status
    value: Any = None
    p_yes: float | None = None
    p_from: str = ""
    reply: str = ""
    reason: str = ""
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    tries: int = 0  # replies it took

    def as_json(self) -> dict[str, object]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> JudgeAnswer:
        answer = cls(**{**content, "usage": Usage(**content.get("usage", {}))})
        if answer.status not in get_args(Status) or not isinstance(answer.reply, str):
            raise ValueError("this is no answer")
        return answer


class Judge(Protocol):
    """Anybody who answers questions about frames."""

    facts: Mapping[str, object]  # everything its answers depend on (kind, model, parameters); part of their address
    batch: int  # questions about the same frames that it takes in one call

    def check(self) -> None:
        """Raise Stopped where nothing can be asked at all; called once, before the first call."""
        return

    def reply(self, frames: Frames, questions: Sequence[Question], notes: Sequence[str]) -> list[Reply]:
        """One reply per question, in order. A note says what was wrong with the last reply to it, or is empty."""

    def close(self) -> None:
        """Let go of connections; calls under way end with NoReply."""
        return
