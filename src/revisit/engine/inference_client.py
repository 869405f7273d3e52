"""Connects a worker to the host of the networks: frames go through shared memory, evidence comes back.

Frames that several observers want at one size travel once. A worker writes into one of a few files in shared memory
while the host copies from the others; when all are in use it waits. These files have no names: they are handed over
open, so that nothing is left behind whatever ends a process.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection
from multiprocessing.reduction import send_handle
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from revisit.core import ClipInfo, Frame, RevisitError
from revisit.core.observer import PreparedFrame, prepare_frame
from revisit.engine.jobs import ObserverTask, observer_of

MEMORY = Path("/dev/shm")
PATIENCE = 60.0  # seconds for a host that died to be started again
SLOTS = 3  # files in shared memory of each worker that the host may have to copy yet
SLOT_BYTES = 24 << 20  # a chunk is at most so large, or one frame
ENDED = "the process that runs the networks ended; run the same command again, or add --device cpu to avoid the GPU"


class Address(NamedTuple):
    """Where the host listens."""

    path: str
    key: bytes
    device: str = ""  # on what the host runs the networks, in words


class FrameRow(NamedTuple):
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
    if not observer.weights or (observer.pairs and observer.kind != "frame"):
        return False
    from revisit import weights  # which few workers need

    return "torch" in weights.required_libraries(observer.weights)


class HostError(RevisitError):
    """What went wrong with an observer at the host, in a whole sentence."""


class HostConnection:
    """A worker's connection to the host."""

    def __init__(self, address: Address) -> None:
        self.address, self.device = address, address.device
        self.folder = MEMORY if os.access(MEMORY, os.W_OK) else None  # None: that of temporary files
        self.numbers = itertools.count()
        self.patience = PATIENCE
        self.connect()

    def connect(self) -> None:
        """Begin to talk with the host, or begin anew after it broke off; one that died may be on its way back."""
        self.connection: Connection | None = None
        self.slots: dict[int, np.ndarray] = {}
        self.free: list[int] = []
        self.sent: set[int] = set()  # chunks that the host has not copied yet
        self.answer: dict[str, tuple[Any, str, float]] | None = None
        self.clip: HostClip | None = None  # the one that is being sent
        until = time.monotonic() + self.patience
        while self.connection is None:
            try:
                self.connection = Client(self.address.path, family="AF_UNIX", authkey=self.address.key)
            except (OSError, EOFError, AuthenticationError):
                if time.monotonic() >= until:
                    break
                time.sleep(0.1)
        self.broken = self.connection is None
        self.patience = 0.0 if self.broken else PATIENCE  # it is waited for once

    @contextlib.contextmanager
    def _open_connection(self) -> Iterator[Connection]:
        """The connection; HostGone where it breaks off within the block, or did before."""
        try:
            if self.connection is None:
                raise EOFError
            yield self.connection
        except (EOFError, OSError) as error:
            raise self._host_gone_error() from error

    def send(self, message: Any) -> None:
        with self._open_connection() as connection:
            connection.send(message)

    def handle_next_message(self) -> None:
        """Take one message of the host."""
        with self._open_connection() as connection:
            message = connection.recv()
        if isinstance(message, dict):
            self.answer = message
        elif isinstance(message, str):
            raise self._host_gone_error(message)
        else:
            self.sent.discard(message[1])
            self.free.append(message[1])

    def _host_gone_error(self, words: str = "") -> HostGone:
        """What is raised where the host broke off: its last words, or that it ended."""
        self.broken = True
        with contextlib.suppress(EOFError, OSError):
            while not words and self.connection is not None and self.connection.poll():
                message = self.connection.recv()
                words = message if isinstance(message, str) else ""
        return HostGone(words or ENDED)

    def acquire_slot(self, size: int) -> tuple[int, np.ndarray]:
        """A file that may be written, of at least this size.

        Only what has been sent is waited for: a clip may fill as many files at a time as it has sizes of pictures.
        """
        while len(self.sent) >= SLOTS:
            self.handle_next_message()
        for number in self.free:
            if len(self.slots[number]) >= size:
                self.free.remove(number)
                return number, self.slots[number]
        return self._allocate_new_slot(max(size, SLOT_BYTES))

    def _allocate_new_slot(self, size: int) -> tuple[int, np.ndarray]:
        for number in self.free:  # too small for this clip
            del self.slots[number]
            self.send(("forget", number))
        self.free = []
        number = next(self.numbers)
        with self._create_unnamed_file(size) as file:
            self.slots[number] = np.memmap(file, dtype=np.uint8, mode="r+")
            self.send(("memory", number))
            with self._open_connection() as connection:
                send_handle(connection, file.fileno(), None)
        return number, self.slots[number]

    def _create_unnamed_file(self, size: int) -> IO[bytes]:
        """A file without a name, in shared memory as long as there is some."""
        file = tempfile.TemporaryFile(prefix="revisit-", dir=self.folder)  # noqa: SIM115 - the caller closes it
        try:
            _allocate(file, size)
        except OSError as error:
            file.close()
            if error.errno != errno.ENOSPC or self.folder is None:
                raise
            self.folder = None  # little shared memory, as in a container: ordinary files serve, too
            return self._create_unnamed_file(size)
        return file

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()


class HostClip:
    """One clip's observers at the host."""

    def __init__(self, host: HostConnection, info: ClipInfo, tasks: Sequence[ObserverTask]) -> None:
        self.host = host
        self.tasks = {task.key: task for task in tasks}
        self.streams: dict[Any, _Stream] = {}
        self.seconds: dict[str, float] = {}
        self.answers: dict[str, tuple[Any, str, float]] | None = None
        self.info = info
        if host.broken:  # one that does not come back is told with the first frame
            host.connect()
        if host.clip is not None:  # one that could not be read to its end; what was sent of it is never answered
            for stream in host.clip.streams.values():
                stream.discard()
        host.clip = None

    def create_watcher(self, task: ObserverTask) -> HostWatcher:
        """An observer of this clip at the host, which hears of the clip with the first one."""
        if self.host.clip is not self:
            self.host.send(("clip", self.info, list(self.tasks.values())))
            self.host.clip = self
        return HostWatcher(self, task)

    def wait_for_evidence(self, key: str) -> Any:
        """The evidence under `key`; the first call waits for all of the clip's."""
        if self.answers is None:
            for stream in self.streams.values():
                stream.flush()
            self.host.send(("end",))
            while self.host.answer is None:
                self.host.handle_next_message()
            self.answers, self.host.answer = self.host.answer, None
        record, sentence, self.seconds[key] = self.answers[key]
        if sentence:
            raise HostError(sentence)
        return record


class HostWatcher:
    """An observer at the host, as a worker sees it."""

    def __init__(self, clip: HostClip, task: ObserverTask) -> None:
        self.clip, self.task, self.observer = clip, task, observer_of(task)

    def see(self, frame: Frame, reference: Frame | None) -> None:
        stream = self.clip.streams.setdefault(self._stream_key(), _Stream(self.clip.host, self.observer.pairs))
        if self.observer.pairs or not stream.rows or stream.rows[-1].number != frame.index:
            stream.append_picture(self._picture_to_send(frame, reference), self.task.key)
            return
        stream.rows[-1].keys.append(self.task.key)  # the last one that was put serves one more observer
        if self.observer.kind != "frame":  # whoever put it may not have needed its digest
            stream.rows[-1] = stream.rows[-1]._replace(digest=frame.digest)

    def _stream_key(self) -> Any:
        """What pictures have in common that may travel together."""
        if self.observer.kind != "frame":
            return None
        own = self.observer.pairs or self.observer.prepare is not None
        return self.task.key if own else self.observer.long_side_pixels(self.task.params)

    def _picture_to_send(self, frame: Frame, reference: Frame | None) -> PreparedFrame:
        """What the host gets: pictures ready for a batch, or whole frames, which its observer prepares as here."""
        if self.observer.kind != "frame":
            return PreparedFrame(frame.index, frame.time, frame.rgb, digest=frame.digest)
        if reference is not None and self._is_resized_on_gpu(frame, reference):
            return PreparedFrame(frame.index, frame.time, frame.rgb, reference.index, reference.rgb)
        return prepare_frame(self.observer, self.task.params, frame, reference)

    def _is_resized_on_gpu(self, frame: Frame, reference: Frame) -> bool:
        """Whether a GPU brings this pair of whole frames to the size that the observer wants."""
        gpu_size = self.observer.gpu_size
        if gpu_size is None or not self.clip.host.device.startswith("cuda") or frame.rgb.shape != reference.rgb.shape:
            return False
        return gpu_size(frame.rgb.shape[:2], **self.task.params) is not None

    def finish(self) -> Any:
        return self.clip.wait_for_evidence(self.task.key)


class _Stream:
    """Pictures of one size on their way to the host."""

    def __init__(self, host: HostConnection, pairs: bool) -> None:
        self.host, self.pairs = host, pairs
        self.rows: list[FrameRow] = []
        self.memory: np.ndarray | None = None
        self.number = -1
        self.shape: tuple[int, ...] = ()
        self.dtype = np.dtype(np.uint8)
        self.room = 0

    def append_picture(self, picture: PreparedFrame, key: str) -> None:
        if len(self.rows) and (len(self.rows) == self.room or picture.rgb.shape != self.shape):
            self.flush()
        if self.memory is None:
            self.shape, self.dtype = picture.rgb.shape, picture.rgb.dtype
            each = picture.rgb.nbytes * (2 if self.pairs else 1)
            self.room = max(1, SLOT_BYTES // each)
            self.number, self.memory = self.host.acquire_slot(self.room * each)
        shown = [picture.rgb] if picture.reference is None else [picture.rgb, picture.reference]
        for number, array in enumerate(shown, len(self.rows) * len(shown)):
            place = number * array.nbytes
            self.memory[place : place + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self.rows.append(FrameRow(picture.index, picture.time, picture.reference_index, picture.digest, [key]))

    def flush(self) -> None:
        """Send what has been put."""
        if self.memory is None or not self.rows:
            return
        shape = ((2 if self.pairs else 1) * len(self.rows), *self.shape)
        self.host.send(("frames", self.number, shape, self.dtype.name, self.pairs, self.rows))
        self.host.sent.add(self.number)
        self.rows, self.memory = [], None

    def discard(self) -> None:
        """Forget what has been put, and give its file back."""
        if self.memory is not None:
            self.host.free.append(self.number)
        self.rows, self.memory = [], None


def _allocate(file: IO[bytes], size: int) -> None:
    """Give a file memory that is really there: a sparse one would end the process when the memory runs out."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
    else:  # a Mac
        file.truncate(size)
