"""What may go wrong in a call to a server: try again, not so, or never again."""

from __future__ import annotations

from revisit.core import RevisitError


class NoReply(RevisitError):
    """A call that brought nothing, and may bring something later; `wait` is what the server asked for, in seconds."""

    def __init__(self, sentence: str, wait: float | None = None) -> None:
        super().__init__(sentence)
        self.wait = wait


class Refused(RevisitError):
    """A request that this server will not take, however often it is sent."""


class Stopped(RevisitError):
    """Nothing further can be asked: a wrong key, no such model, a spent budget."""
