"""Frames that wait for networks: chunks of clips, and a queue for each observer and picture size."""

from __future__ import annotations

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


def slice_record_rows(record: Any, start: int, end: int, count: int, observer: str) -> Any:
    """Some rows of a record."""
    parts = {}
    for f in fields(record):
        value = getattr(record, f.name)
        if isinstance(value, np.ndarray):
            if len(value) != count:
                raise ValueError(f"{observer} made {len(value)} rows of {f.name} from {count} frames")
            value = value[start:end]
        parts[f.name] = value
    return type(record)(**parts)
