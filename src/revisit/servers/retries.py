"""Calls that may have to be made again: a look at the server first, pauses that grow, and one end for all of them.

What may go wrong in a call has one of three ends: try again, not so, or never again.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import TypeVar

from revisit.core import RevisitError

T = TypeVar("T")
LONGEST_PAUSE = 60.0  # seconds between two calls
LONGEST_WAIT = 600.0  # seconds that a server may ask for


class NoReply(RevisitError):
    """A call that brought nothing, and may bring something later; `wait` is what the server asked for, in seconds."""

    def __init__(self, sentence: str, wait: float | None = None) -> None:
        super().__init__(sentence)
        self.wait = wait


class Refused(RevisitError):
    """A request that this server will not take, however often it is sent."""


class Stopped(RevisitError):
    """Nothing further can be asked: a wrong key, no such model, a spent budget."""


class RetryingCaller:
    """Makes calls to one server, from any number of threads."""

    def __init__(self, check: Callable[[], None], tries: int, pause: float) -> None:
        """`check` looks at the server once, before the first call; a pause doubles with every call, and is random."""
        self.check, self.tries, self.pause = check, tries, pause
        self.quit = threading.Event()
        self._stopped: Stopped | None = None
        self._checking, self._checked = threading.Lock(), False

    def call_with_retries(self, attempt: Callable[[], T], thing: str, work: str) -> T:
        """What an attempt returns, after as many as it takes; sentences name the thing and the work."""
        pause = self.pause
        for number in range(1, self.tries + 1):
            self._require_checked_server()
            if self.quit.is_set():
                raise NoReply(f"{work} was interrupted")
            try:
                return attempt()
            except NoReply as error:
                if number == self.tries:
                    raise NoReply(f"no {thing} after {number} calls; the last one: {error}") from None
                # A random share of the pause keeps many callers from coming back at the same moment.
                wait = random.uniform(0.5, 1.0) * min(pause, LONGEST_PAUSE)
                self.quit.wait(wait if error.wait is None else min(error.wait, LONGEST_WAIT) + wait / 10)
                pause *= 2
        raise AssertionError("unreachable")

    def stop_all_calls(self, error: Stopped) -> None:
        """Let no further call begin; all of them end with this error."""
        self._stopped = error

    def _require_checked_server(self) -> None:
        with self._checking:
            if not self._checked and self._stopped is None:
                self._checked = True
                try:
                    self.check()
                except RevisitError as error:
                    self._stopped = Stopped(str(error))
        if self._stopped is not None:
            raise self._stopped
