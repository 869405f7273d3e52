"""Frames that wait for networks: memory of the device, chunks of clips, and a queue for each observer and size."""

from __future__ import annotations

import os
import threading
from bisect import insort
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from itertools import count
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from revisit.core import ClipInfo, Observer
from revisit.core.observer import RunningObserver
from revisit.engine.inference_client import FrameRow
from revisit.engine.jobs import ObserverTask
from revisit.networks import settings
from revisit.results.file_types import Details

FIRST, MOST = 8, 64  # rows of the first batch, by which memory is measured, and of the largest
SHARE = 0.25  # of the device's memory that a batch may take; a few are at work at a time
WAITING = 0.1  # of it that frames which wait may take
PATIENCE = 60.0  # seconds that an upload waits for memory which others hold
NO_MEMORY = ("out of memory", "ALLOC_FAILED")  # how libraries below torch say it


@dataclass(eq=False)
class Chunk:
    """A few pictures of one clip on the device, for several observers."""

    clip: HostedClip
    pictures: Any  # (rows, height, width, 3) uint8
    partners: Any  # likewise, or None
    rows: Sequence[FrameRow]
    bytes: int
    users: int = 0  # observers whose queue still holds it
    number: int = field(default_factory=count().__next__)


@dataclass(eq=False)
class HostedClip:
    """A clip that a worker decodes."""

    connection: Connection
    sending: threading.Lock
    info: ClipInfo
    tasks: dict[str, ObserverTask]
    parts: dict[str, list[Part]] = field(default_factory=lambda: defaultdict(list))
    watchers: dict[str, RunningObserver] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    pending: int = 0  # rows in queues
    ended: bool = False
    turn: int = field(default_factory=count().__next__)  # clips that came first are done first


Part = tuple[int, int, Any]  # chunk, row in it, and what was made of the rows from there on


Entry = tuple[Chunk, str, list[int]]  # chunk, evidence key, rows of the chunk


class Queue:
    """Rows that wait for one observer with one set of parameters, all of one size; clips that began first go first."""

    def __init__(self, observer: Observer, params: Details) -> None:
        self.observer, self.params = observer, params
        self.waiting: list[Entry] = []
        self.rows = 0
        self.most = settings.requested_batch_size() or FIRST
        self.measured = settings.requested_batch_size() is not None

    def put(self, chunk: Chunk, key: str, rows: list[int]) -> None:
        insort(self.waiting, (chunk, key, rows), key=lambda entry: entry[0].clip.turn)
        self.rows += len(rows)
        chunk.users += 1
        chunk.clip.pending += len(rows)

    def take_batch(self) -> list[Entry]:
        """At most `most` rows, the first ones."""
        taken: list[Entry] = []
        room = self.most
        while self.waiting and room:
            chunk, key, rows = self.waiting.pop(0)
            if len(rows) > room:
                self.waiting.insert(0, (chunk, key, rows[room:]))
                chunk.users += 1  # what is left of it counts by itself
                rows = rows[:room]
            room -= len(rows)
            taken.append((chunk, key, rows))
        self.rows -= self.most - room
        return taken

    def put_back(self, taken: Sequence[Entry]) -> None:
        self.waiting[:0] = taken
        self.rows += sum(len(rows) for _, _, rows in taken)


def slice_record_rows(record: Any, start: int, end: int, expected_rows: int, observer: str) -> Any:
    """Some rows of a record."""
    parts = {}
    for f in fields(record):
        value = getattr(record, f.name)
        if isinstance(value, np.ndarray):
            if len(value) != expected_rows:
                raise ValueError(f"{observer} made {len(value)} rows of {f.name} from {expected_rows} frames")
            value = value[start:end]
        parts[f.name] = value
    return type(record)(**parts)


class DeviceMemory:
    """Memory of the device that networks run on; frames that wait on it are bounded."""

    def __init__(self, device: str) -> None:
        self.device, self.gpu = device, device.startswith("cuda")
        self.set_current_device_of_thread()
        self.held = 0  # bytes of frames that wait
        self.room = threading.Condition()
        self.limit = int(self.capacity_bytes() * WAITING)

    def set_current_device_of_thread(self) -> None:
        """Make the device the current one of this thread: streams and memory figures are of that one."""
        if self.gpu:
            import torch

            torch.cuda.set_device(int(self.device.partition(":")[2] or 0))

    def capacity_bytes(self) -> int:
        """Bytes of the device."""
        if self.gpu:
            import torch

            return int(torch.cuda.get_device_properties(self.device).total_memory)
        return 4 << 30

    def upload(self, slot: Any, shape: Sequence[int], dtype: str) -> tuple[Any, int]:
        """A chunk of frames on the device, and its bytes; waits while too many others wait there."""
        import torch

        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        with self.room:
            self.room.wait_for(lambda: self.held + size <= self.limit or self.held == 0)
            self.held += size
        try:
            return self.copy(slot[:size].view(getattr(torch, dtype)).view(*shape), size), size
        except BaseException:
            self.release_bytes(size)
            raise

    def copy(self, there: Any, size: int) -> Any:
        """What lies in shared memory, on the device."""
        import torch

        if not self.gpu:
            return there.clone()
        try:
            return self._copy_to_gpu(there)
        except torch.OutOfMemoryError:  # others use this GPU, too: wait until ours have left it, and try once more
            with self.room:
                self.room.wait_for(lambda: self.held <= size, timeout=PATIENCE)
            torch.cuda.empty_cache()
            return self._copy_to_gpu(there)

    def _copy_to_gpu(self, there: Any) -> Any:
        import torch

        stream, copied = torch.cuda.Stream(), torch.cuda.Event(blocking=True)  # sleeps: cores are for those who decode
        with torch.cuda.stream(stream):
            tensor = there.to(self.device, non_blocking=True)
            copied.record()
        copied.synchronize()
        return tensor

    def release_bytes(self, size: int) -> None:
        with self.room:
            self.held -= size
            self.room.notify_all()


def is_out_of_memory(error: RuntimeError) -> bool:
    """Whether a batch failed because it was too large."""
    import torch

    return isinstance(error, torch.OutOfMemoryError) or any(words in str(error) for words in NO_MEMORY)


def map_shared_file_as_tensor(file_descriptor: int, gpu: bool) -> Any:
    """A file in shared memory as a flat tensor; with a GPU it is pinned, so that copies need no second buffer."""
    import torch

    with os.fdopen(file_descriptor, "r+b") as opened:
        flat = torch.from_numpy(np.memmap(opened, dtype=np.uint8, mode="r+"))
    if gpu:
        torch.cuda.cudart().cudaHostRegister(flat.data_ptr(), flat.numel(), 0)  # a failure only makes it slower
    return flat


def unpin_if_on_gpu(flat: Any, gpu: bool) -> None:
    """Let go of a file in shared memory."""
    if gpu and flat is not None:
        import torch

        torch.cuda.cudart().cudaHostUnregister(flat.data_ptr())
