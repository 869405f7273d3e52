"""Who works on what, where several processes share a run directory: on one machine, or on a folder that many share.

`.lock` says who may write: one process alone, or all that carry out the same plan. A clip is claimed by a lock on one
byte of `.claims`, whose place comes from the digest of the clip. The system gives locks back when a process ends,
however it ends, so that a killed process leaves nothing to clear away; byte locks also hold on network file systems.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from revisit.core import RevisitError, digest

WRITING = 0  # the byte that is held while a file of the run is changed
FIRST = 16  # of the bytes that stand for clips
PLACES = 1 << 52
POLL = 0.2  # seconds
ALONE = "alone"
_here: set[Path] = set()  # runs that this process writes to: it cannot lock itself out


class RunInUse(RevisitError):
    """Another process writes to the run, and this one cannot join it."""

    def __init__(self, out: Path, how: str = "") -> None:
        super().__init__(f"{out}: another process is writing to this run{how}; wait, or choose another --out")


class Claims:
    """Clips that this process works on; nobody else does at the same time."""

    def __init__(self, out: Path) -> None:
        self._file = os.open(out / ".claims", os.O_RDWR | os.O_CREAT, 0o644)
        self._held: set[str] = set()

    def take(self, names: Iterable[str]) -> bool:
        """Claim all of these, or none where another process has one of them."""
        mine: list[str] = []
        for name in sorted(set(names) - self._held):
            if not self._lock(_place(name), wait=False):
                self.give_back(mine)
                return False
            self._held.add(name)
            mine.append(name)
        return True

    def give_back(self, names: Iterable[str]) -> None:
        for name in names:
            if name in self._held:
                self._held.remove(name)
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _place(name))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One process at a time changes a file of the run."""
        self._lock(WRITING, wait=True)
        try:
            yield
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, WRITING)

    def close(self) -> None:
        os.close(self._file)  # gives everything back

    def _lock(self, place: int, *, wait: bool) -> bool:
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, place)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                return False
            raise
        return True


def _place(name: str) -> int:
    """The byte of a clip; two clips at one place would only wait for each other."""
    return FIRST + int(digest(name, 16), 16) % PLACES


@contextmanager
def lock_run(out: Path, *, alone: bool) -> Iterator[RunLock]:
    """The right to write to a run: together with others that carry out the same plan, or `alone`."""
    place = out.resolve()
    if place in _here:
        raise RunInUse(out)
    _here.add(place)
    try:
        with closing(RunLock(out, alone)) as entry:
            yield entry
    finally:
        _here.discard(place)


class RunLock:
    """How this process is in a run: `first` where nobody else is, so that it may open the run anew."""

    def __init__(self, out: Path, alone: bool) -> None:
        self.out = out
        self._file = (out / ".lock").open("a+")
        self.first = self._flock(fcntl.LOCK_EX)
        if self.first:
            self._say(ALONE if alone else "")
        elif alone:
            self._file.close()
            raise RunInUse(out)
        else:
            self.share()
        self.claims = Claims(out)

    def share(self, opened: Path | None = None) -> None:
        """Let others in, or wait until the process that opens the run does.

        Who lets others in may find that one of them came first and `opened` the run in its own way.
        """
        before = None if opened is None else opened.stat()
        while not self._flock(fcntl.LOCK_SH):
            self._file.seek(0)
            if self._file.read() == ALONE:
                self._file.close()
                raise RunInUse(self.out)
            time.sleep(POLL)
        if before is not None and opened is not None and not os.path.samestat(before, opened.stat()):
            raise RunInUse(self.out)

    def close(self) -> None:
        self.claims.close()
        self._file.close()

    def _say(self, word: str) -> None:
        self._file.seek(0)
        self._file.truncate()
        self._file.write(word)
        self._file.flush()

    def _flock(self, how: int) -> bool:
        try:
            fcntl.flock(self._file, how | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
