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
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from revisit.core import RevisitError, UsageError, digest

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

    def claim_all_or_none(self, names: Iterable[str]) -> bool:
        """Claim all of these, or none where another process has one of them."""
        mine: list[str] = []
        for name in sorted(set(names) - self._held):
            if not self._lock_byte(_byte_offset_of_clip(name), wait=False):
                self.release(mine)
                return False
            self._held.add(name)
            mine.append(name)
        return True

    def release(self, names: Iterable[str]) -> None:
        for name in names:
            if name in self._held:
                self._held.remove(name)
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _byte_offset_of_clip(name))

    @contextmanager
    def hold_write_lock(self) -> Iterator[None]:
        """One process at a time changes a file of the run."""
        self._lock_byte(WRITING, wait=True)
        try:
            yield
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, WRITING)

    def close(self) -> None:
        os.close(self._file)  # gives everything back

    def _lock_byte(self, place: int, *, wait: bool) -> bool:
        return _is_lock_granted(fcntl.lockf, self._file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, place)


def _is_lock_granted(lock: Callable[..., None], *request: Any) -> bool:
    """Whether nobody else holds what is asked for; UsageError on a file system that has no locks."""
    try:
        lock(*request)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            return False
        raise UsageError(
            f"the folder of the run cannot be locked ({error.strerror}); choose an --out on a file system with locks"
        ) from error
    return True


def _byte_offset_of_clip(name: str) -> int:
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
        self.first = self._try_flock(fcntl.LOCK_EX)
        if self.first:
            self._file.seek(0)
            self._file.truncate()
            self._file.write(ALONE if alone else "")
            self._file.flush()
        elif alone:
            self._file.close()
            raise RunInUse(out)
        else:
            self.acquire_shared_lock()
        self.claims = Claims(out)

    def acquire_shared_lock(self, plan_file: Path | None = None) -> None:
        """Let others in, or wait until the process that opens the run does.

        Who lets others in may find that one of them came first and `plan_file` the run in its own way.
        """
        before = None if plan_file is None else plan_file.stat()
        while not self._try_flock(fcntl.LOCK_SH):
            self._file.seek(0)
            if self._file.read() == ALONE:
                self._file.close()
                raise RunInUse(self.out)
            time.sleep(POLL)
        if before is not None and plan_file is not None and not os.path.samestat(before, plan_file.stat()):
            raise RunInUse(self.out)

    def close(self) -> None:
        self.claims.close()
        self._file.close()

    def _try_flock(self, operation: int) -> bool:
        return _is_lock_granted(fcntl.flock, self._file, operation | fcntl.LOCK_NB)
