"""Connects a worker to the host of the networks: frames go through shared memory, evidence comes back.

Frames that several observers want at one size travel once. A worker writes into one of a few files in shared memory
while the host copies from the others; when all are in use it waits. A file loses its name as soon as both have mapped
it, so that nothing is left behind whatever ends a process.
"""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Sequence
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from revisit import weights
from revisit.core import ClipInfo, Frame, RevisitError
from revisit.core.watching import Prepared, prepared
from revisit.engine.tasks import observer_of
from revisit.engine.work import ObserverTask

SLOTS = 3  # files in shared memory of each worker that the host may have to copy yet
SLOT_BYTES = 24 << 20  # a chunk is at most so large, or one frame
ENDED = "the process that runs the networks ended; run the same command again, or add --device cpu to avoid the GPU"


class Address(NamedTuple):
    """Where the host listens."""

    path: str
    key: bytes
    memory: str  # folder in shared memory for frames on their way
    device: str = ""  # on what the host runs the networks


class Row(NamedTuple):
    """A frame on its way to the host."""

    number: int
    time: float
    partner: int | None  # number of the frame that it is compared with
    digest: str  # of the frame as it was decoded: observers remember by it what they know of a frame
    keys: list[str]  # of the evidence that it serves


class HostGone(RevisitError):
    """The process that runs the networks ended."""


def runs_at_host(task: ObserverTask) -> bool:
    """Whether an observer belongs to the host, where there is one: its networks run on torch.

    One that follows pairs of frames through a clip stays with the worker, which has them in their own sizes.
    """
    observer = observer_of(task)
    follows_pairs = observer.pairs and observer.kind != "frame"
    return not follows_pairs and "torch" in weights.needs(observer.weights)


class ToldByHost(RevisitError):
    """What went wrong with an observer at the host, in a whole sentence."""


class Remote:
    """A worker's connection to the host."""

    def __init__(self, address: Address) -> None:
        self.address, self.device = address, address.device
        self.folder = Path(address.memory)
        self.spare: tempfile.TemporaryDirectory[str] | None = None  # where shared memory is too small
        self.slots: dict[Path, np.ndarray] = {}
        self.connect()

    def connect(self) -> None:
        """Begin to talk with the host, or begin anew after it broke off."""
        self.connection: Connection = Client(self.address.path, family="AF_UNIX", authkey=self.address.key)
        self._unlink()
        self.slots = {}
        self.free: list[Path] = []
        self.sent: set[Path] = set()  # chunks that the host has not copied yet
        self.answer: dict[str, tuple[Any, str, float]] | None = None
        self.clip: RemoteClip | None = None  # the one that is being sent
        self.broken = False

    def send(self, message: Any) -> None:
        try:
            self.connection.send(message)
        except OSError as error:
            raise self._gone() from error

    def hear(self) -> None:
        """Take one message of the host."""
        try:
            message = self.connection.recv()
        except (EOFError, OSError) as error:
            raise self._gone() from error
        if isinstance(message, dict):
            self.answer = message
        elif isinstance(message, str):
            raise self._gone(message)
        else:
            path = Path(message[1])
            self.sent.discard(path)
            self.free.append(path)
            path.unlink(missing_ok=True)  # both have it in their memory now, and nothing is left behind by a kill

    def _gone(self, words: str = "") -> HostGone:
        """What is raised where the host broke off: its last words, or that it ended."""
        self.broken = True
        with contextlib.suppress(EOFError, OSError):
            while not words and self.connection.poll():
                message = self.connection.recv()
                words = message if isinstance(message, str) else ""
        return HostGone(words or ENDED)

    def slot(self, size: int) -> tuple[Path, np.ndarray]:
        """A file that may be written, of at least this size.

        Only what has been sent is waited for: a clip may fill as many files at a time as it has sizes of pictures.
        """
        while len(self.sent) >= SLOTS:
            self.hear()
        for path in self.free:
            if len(self.slots[path]) >= size:
                self.free.remove(path)
                return path, self.slots[path]
        return self._new_slot(max(size, SLOT_BYTES))

    def _new_slot(self, size: int) -> tuple[Path, np.ndarray]:
        for path in self.free:  # too small for this clip
            path.unlink(missing_ok=True)
            del self.slots[path]
            self.send(("forget", str(path)))
        self.free = []
        path = self.folder / os.urandom(8).hex()
        try:
            _allocate(path, size)
        except OSError as error:
            path.unlink(missing_ok=True)
            if error.errno != errno.ENOSPC or self.spare is not None:
                raise
            self.spare = tempfile.TemporaryDirectory(prefix="revisit-")
            self.folder = Path(self.spare.name)  # little shared memory, as in a container: ordinary files serve, too
            path = self.folder / path.name
            _allocate(path, size)
        self.slots[path] = np.memmap(path, dtype=np.uint8, mode="r+")
        return path, self.slots[path]

    def close(self) -> None:
        self.connection.close()
        self._unlink()
        if self.spare is not None:
            with contextlib.suppress(OSError):
                self.spare.cleanup()

    def _unlink(self) -> None:
        for path in self.slots:
            path.unlink(missing_ok=True)


class RemoteClip:
    """One clip's observers at the host."""

    def __init__(self, host: Remote, info: ClipInfo, tasks: Sequence[ObserverTask]) -> None:
        self.host = host
        self.tasks = {task.key: task for task in tasks}
        self.streams: dict[Any, _Stream] = {}
        self.seconds: dict[str, float] = {}
        self.answers: dict[str, tuple[Any, str, float]] | None = None
        self.info = info
        if host.broken:  # one that ended stays so, and is told with the first frame
            with contextlib.suppress(OSError, EOFError, AuthenticationError):
                host.connect()
        if host.clip is not None:
            host.clip.give_up()
        host.clip = None

    def watcher(self, task: ObserverTask) -> RemoteWatcher:
        """An observer of this clip at the host, which hears of the clip with the first one."""
        if self.host.clip is not self:
            self.host.send(("clip", self.info, list(self.tasks.values())))
            self.host.clip = self
        return RemoteWatcher(self, task)

    def stream(self, place: Any, pairs: bool) -> _Stream:
        if place not in self.streams:
            self.streams[place] = _Stream(self.host, pairs)
        return self.streams[place]

    def give_up(self) -> None:
        """Leave a clip that could not be read to its end; what was sent of it is never answered."""
        for stream in self.streams.values():
            stream.drop()

    def finish(self, key: str) -> Any:
        """The evidence under `key`; the first call waits for all of the clip's."""
        if self.answers is None:
            for stream in self.streams.values():
                stream.flush()
            self.host.send(("end",))
            while self.host.answer is None:
                self.host.hear()
            self.answers, self.host.answer = self.host.answer, None
        record, sentence, self.seconds[key] = self.answers[key]
        if sentence:
            raise ToldByHost(sentence)
        return record


class RemoteWatcher:
    """An observer at the host, as a worker sees it."""

    def __init__(self, clip: RemoteClip, task: ObserverTask) -> None:
        self.clip, self.task, self.observer = clip, task, observer_of(task)

    def see(self, frame: Frame, reference: Frame | None) -> None:
        if self.observer.pairs and reference is None:
            return  # the reference ended before the clip
        stream = self.clip.stream(self._place(), self.observer.pairs)
        if not stream.also(frame.index, self.task.key, repeat=self.observer.pairs):
            stream.put(self._picture(frame, reference), self.task.key)

    def _place(self) -> Any:
        """What pictures have in common that may travel together."""
        if self.observer.kind != "frame":
            return None
        own = self.observer.pairs or self.observer.prepare is not None
        return self.task.key if own else self.observer.side(self.task.params)

    def _picture(self, frame: Frame, reference: Frame | None) -> Prepared:
        """What the host gets: pictures ready for a batch, or whole frames, which its observer prepares as here."""
        if self.observer.kind != "frame":
            return Prepared(frame.index, frame.time, frame.rgb, frame.digest)
        return prepared(self.observer, self.task.params, frame, reference)

    def finish(self) -> Any:
        return self.clip.finish(self.task.key)


class _Stream:
    """Pictures of one size on their way to the host."""

    def __init__(self, host: Remote, pairs: bool) -> None:
        self.host, self.pairs = host, pairs
        self.rows: list[Row] = []
        self.memory: np.ndarray | None = None
        self.path = Path()
        self.shape: tuple[int, ...] = ()
        self.dtype = np.dtype(np.uint8)
        self.room = 0

    def also(self, index: int, key: str, repeat: bool) -> bool:
        """Whether this frame is the last one that was put, which then serves one more observer."""
        if repeat or not self.rows or self.rows[-1].number != index:
            return False
        self.rows[-1].keys.append(key)
        return True

    def put(self, picture: Prepared, key: str) -> None:
        if len(self.rows) and (len(self.rows) == self.room or picture.rgb.shape != self.shape):
            self.flush()
        if self.memory is None:
            self.shape, self.dtype = picture.rgb.shape, picture.rgb.dtype
            each = picture.rgb.nbytes * (2 if self.pairs else 1)
            self.room = max(1, SLOT_BYTES // each)
            self.path, self.memory = self.host.slot(self.room * each)
        shown = [picture.rgb] if picture.reference is None else [picture.rgb, picture.reference]
        for number, array in enumerate(shown, len(self.rows) * len(shown)):
            place = number * array.nbytes
            self.memory[place : place + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self.rows.append(Row(picture.index, picture.time, picture.reference_index, picture.digest, [key]))

    def flush(self) -> None:
        """Send what has been put."""
        if self.memory is None or not self.rows:
            return
        shape = ((2 if self.pairs else 1) * len(self.rows), *self.shape)
        self.host.send(("frames", str(self.path), shape, self.dtype.name, self.pairs, self.rows))
        self.host.sent.add(self.path)
        self.rows, self.memory = [], None

    def drop(self) -> None:
        """Forget what has been put, and give its file back."""
        if self.memory is not None:
            self.host.free.append(self.path)
        self.rows, self.memory = [], None


def _allocate(path: Path, size: int) -> None:
    """Make a file whose memory is really there: a sparse one would end the process when the memory runs out."""
    with path.open("wb") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:  # a Mac
            file.truncate(size)
