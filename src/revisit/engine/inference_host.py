"""The host: one process that holds the networks and the GPU and serves the decoding processes.

A worker sends the frames of a clip in chunks, through a file in shared memory. The host uploads each chunk once, for
all observers that want its frames, and puts the frames of all clips into one queue per observer and picture size, so
that a GPU gets full batches from short clips. It never waits while there is work: a batch is as large as what has
arrived, at most what fits. Frames that wait on the device are bounded; a worker that is too fast waits for its chunk.
Sequence observers with networks run here, too, fed frame by frame.

A worker sends, on one connection and clip by clip:

    ("clip", info, [task, ...])                      what is to be observed
    ("memory", number)                               a file in shared memory, which follows, open
    ("frames", number, shape, type, pairs, rows)     a chunk in it, with a Row for each frame; with pairs, every second
                                                     picture is the partner of the one before
    ("forget", number)                               a file that will not be used again
    ("end",)                                         answered by {key: (record or None, sentence, seconds)}

and a chunk is answered by ("free", number) as soon as its memory can be written again. A sentence alone is the last
answer: the host could not take what was sent.
"""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing.connection import Connection, Listener
from multiprocessing.reduction import recv_handle
from typing import Any

import numpy as np

from revisit.core import Batch, Frame, Observer, UsageError
from revisit.core.concurrency import start_thread
from revisit.core.evidence import allow_rows_of_several_clips
from revisit.core.observer import concatenate_evidence, single_threaded_libraries, start_observer
from revisit.engine.inference_client import Address
from revisit.engine.inference_queues import (
    MOST,
    SHARE,
    Chunk,
    DeviceMemory,
    Entry,
    HostedClip,
    Queue,
    is_out_of_memory,
    map_shared_file_as_tensor,
    slice_record_rows,
    unpin_if_on_gpu,
)
from revisit.engine.jobs import ObserverTask, error_sentence, inputs_of, observer_of
from revisit.networks import settings
from revisit.results.file_types import Details

DARK = (240, 320)  # height and width of the frame that observers are shown to load their networks
SWITCH = 0.0005  # seconds that a thread which receives may keep those that compute waiting
AHEAD = 4  # batches at a time: short ones are on their way to the GPU while a long one is computed
TOO_LARGE = object()  # stands for the evidence of a batch that did not fit, and is tried again in parts


def run_network_host(address: Address, parent: Connection, tasks: Sequence[ObserverTask] = ()) -> None:
    """Run the host until its parent goes away. The parent hears the device once the host is ready, or what is wrong.

    `tasks` are examples of what will be asked: their networks are loaded while the first frames are being decoded.
    """
    from revisit.networks import compiled, runtime

    with single_threaded_libraries():
        try:
            device = runtime.describe_device()
        except UsageError as error:
            parent.send(error)
            return
        sys.setswitchinterval(SWITCH)
        listener = Listener(address.path, family="AF_UNIX", authkey=address.key, backlog=64)
        try:
            parent.send(device)
        except BrokenPipeError:  # the command ended before its networks were ready
            return
        host = Host()
        host.start_listening(listener, parent)
        if host.gpu:
            host.warm_up(tasks)
            if settings.compile_mode() != "off":
                compiled.enable_compilation(
                    settings.requested_batch_size() or MOST, compiled.AFTER[settings.compile_mode()]
                )
        host.run_until_stopped()


class Host:
    """The networks at work: threads receive, upload and compute, the main thread says what comes next."""

    def __init__(self) -> None:
        from revisit.networks import runtime

        self.memory = DeviceMemory(runtime.device())
        self.gpu = self.memory.gpu
        self.events: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self.queues: dict[Any, Queue] = {}
        self.batches: queue.SimpleQueue[tuple[Queue, list[Entry]]] = queue.SimpleQueue()
        self.at_work: list[Queue] = []
        self.done = 0.0  # when the last batch was
        if self.gpu:
            for _ in range(AHEAD):
                start_thread(self._compute_batches_forever)

    def warm_up(self, tasks: Sequence[ObserverTask]) -> None:
        """Show each observer a dark frame: what it loads for the first one is there when the first clip comes."""
        import torch

        dark = torch.zeros((1, *DARK, 3), dtype=torch.uint8, device=self.memory.device)
        zero = np.zeros(1, np.int64)
        for task in tasks:
            observer = observer_of(task)
            batch = Batch(zero, zero.astype(float), dark, dark if observer.pairs else (), zero, [inputs_of(task)])
            if observer.kind == "frame":
                with contextlib.suppress(Exception):  # what is wrong will be said of the first clip
                    observer.fn(batch, **task.params)

    def start_listening(self, listener: Listener, parent: Connection) -> None:
        """Take in frames from now on, while networks are still being loaded."""
        start_thread(self._accept_connections, listener)
        start_thread(self._stop_when_parent_ends, parent)

    def run_until_stopped(self) -> None:
        while self._handle_events(block=self._next_queue_to_compute() is None):
            if q := self._next_queue_to_compute():
                self._start_batch(q)

    def _next_queue_to_compute(self) -> Queue | None:
        """The queue whose rows are computed next, if any are to be now; how much one takes is measured alone.

        While a batch is at work, only a full one may follow it: in the meantime smaller ones grow.
        """
        waiting = [q for q in self.queues.values() if q.rows]
        full = [q for q in waiting if q.rows >= q.most]
        if not waiting or len(self.at_work) >= AHEAD or (self.at_work and not full):
            return None
        chosen = max(full or waiting, key=lambda q: q.rows)
        return chosen if not self.at_work or (chosen.measured and self.at_work[0].measured) else None

    def _start_batch(self, q: Queue) -> None:
        batch = q.take_batch()
        self.at_work.append(q)
        if self.gpu:
            self.batches.put((q, batch))
        else:
            self._compute_batch(q, batch)

    def _compute_batches_forever(self) -> None:
        self.memory.set_current_device_of_thread()
        while True:
            self._compute_batch(*self.batches.get())

    def _accept_connections(self, listener: Listener) -> None:
        while True:
            connection = listener.accept()
            try:
                start_thread(self._receive_messages, connection)
            except (MemoryError, RuntimeError):  # no room for a thread: the worker tells its clips so
                connection.close()

    def _stop_when_parent_ends(self, parent: Connection) -> None:
        with contextlib.suppress(EOFError, OSError):
            parent.recv()
        self.events.put(("stop", None))

    def _receive_messages(self, connection: Connection) -> None:
        """Messages of one worker, in order; chunks are on the device before they become events."""
        slots: dict[int, Any] = {}
        sending = threading.Lock()
        clip: HostedClip | None = None
        try:
            self.memory.set_current_device_of_thread()
            while True:
                kind, *rest = connection.recv()
                if kind == "clip":
                    info, tasks = rest
                    clip = HostedClip(connection, sending, info, {task.key: task for task in tasks})
                    self.events.put(("clip", clip))
                elif kind == "memory":
                    slots[rest[0]] = map_shared_file_as_tensor(recv_handle(connection), self.gpu)
                elif kind == "frames":
                    assert clip is not None
                    number, shape, dtype, pairs, rows = rest
                    here, size = self.memory.upload(slots[number], shape, dtype)
                    pictures, partners = (here[::2], here[1::2]) if pairs else (here, None)
                    self.events.put(("frames", Chunk(clip, pictures, partners, rows, size)))
                    with sending:
                        connection.send(("free", number))
                elif kind == "forget":
                    unpin_if_on_gpu(slots.pop(rest[0], None), self.gpu)
                else:
                    self.events.put(("end", clip))
        except (EOFError, OSError):
            pass
        except Exception as error:  # the worker must hear of it, or it would wait for ever
            with sending, contextlib.suppress(OSError):
                connection.send(
                    f"the process that runs the networks could not receive the frames: {error_sentence(error)}"
                )
        finally:
            self.events.put(("gone", connection))
            connection.close()
            for slot in slots.values():
                unpin_if_on_gpu(slot, self.gpu)

    def _handle_events(self, block: bool) -> bool:
        """Take in what has arrived; False when the parent is gone."""
        while True:
            try:
                kind, thing = self.events.get(block=block)
            except queue.Empty:
                return True
            block = False
            if kind == "stop":
                return False
            if kind == "clip":
                self._start_clip_observers(thing)
            elif kind == "frames":
                self._distribute_chunk(thing)
            elif kind == "end":
                thing.ended = True
                self._send_evidence_if_complete(thing)
            elif kind == "computed":
                self._distribute_batch_results(*thing)
            else:
                self._forget_connection(thing)

    def _start_clip_observers(self, clip: HostedClip) -> None:
        for key, task in clip.tasks.items():
            observer = observer_of(task)
            if observer.kind != "frame":
                try:
                    clip.watchers[key] = start_observer(observer, clip.info, inputs_of(task), task.params)
                except Exception as error:  # one observer that fails must not cost the others their evidence
                    clip.failed[key] = error_sentence(error)

    def _distribute_chunk(self, chunk: Chunk) -> None:
        clip = chunk.clip
        rows_by_key: dict[str, list[int]] = defaultdict(list)
        for number, row in enumerate(chunk.rows):
            for key in row.keys:
                rows_by_key[key].append(number)
        pictures: np.ndarray | None = None
        for key, rows in rows_by_key.items():
            if key in clip.failed:
                continue
            if key in clip.watchers:
                if pictures is None:
                    pictures = chunk.pictures.cpu().numpy()
                self._feed_sequence_observer(chunk, key, rows, pictures)
                continue
            task = clip.tasks[key]
            shape = tuple(chunk.pictures.shape[1:])
            partner = None if chunk.partners is None else tuple(chunk.partners.shape[1:])
            place = (task.observer, repr(sorted(task.params.items())), shape, partner)
            if place not in self.queues:
                self.queues[place] = Queue(observer_of(task), task.params)
            self.queues[place].put(chunk, key, rows)
        if not chunk.users:
            self.memory.release_bytes(chunk.bytes)

    def _feed_sequence_observer(self, chunk: Chunk, key: str, rows: list[int], pictures: np.ndarray) -> None:
        """Show frames to an observer that sees a clip in order."""
        started = time.perf_counter()
        clip = chunk.clip
        for number in rows:
            row = chunk.rows[number]
            try:
                clip.watchers[key].see(Frame(row.number, row.time, pictures[number], row.digest), None)
            except Exception as error:  # as above
                clip.failed[key] = f"{clip.tasks[key].observer} failed on frame {row.number}: {error_sentence(error)}"
                del clip.watchers[key]
                break
        clip.seconds[key] += time.perf_counter() - started

    def _compute_batch(self, q: Queue, batch: list[Entry]) -> None:
        """Run one batch; what it made is an event."""
        from revisit.networks import runtime

        start = time.perf_counter()
        try:
            with runtime.torch_turn_among_threads():
                result = self._run_observer_on_batch(q, batch)
        except Exception as error:  # as above
            result = error
        self.events.put(("computed", (q, batch, result, start, time.perf_counter())))

    def _distribute_batch_results(self, q: Queue, batch: list[Entry], result: Any, start: float, end: float) -> None:
        """Give the rows of a batch to their clips."""
        self.at_work.remove(q)
        spent = end - max(start, self.done)  # batches overlap
        self.done = end
        if result is TOO_LARGE:
            q.put_back(batch)
            return
        total = sum(len(rows) for _, _, rows in batch)
        place = 0
        for chunk, key, rows in batch:
            try:
                if isinstance(result, Exception):
                    raise result
                part = slice_record_rows(result, place, place + len(rows), total, q.observer.id)
                chunk.clip.parts[key].append((chunk.number, rows[0], part))
            except Exception as error:  # one clip's rows are no reason against another's
                chunk.clip.failed[key] = f"{q.observer.id} failed: {error_sentence(error)}"
            place += len(rows)
            chunk.clip.seconds[key] += spent * len(rows) / total
            chunk.clip.pending -= len(rows)
            self._release_chunk_user(chunk)
            self._send_evidence_if_complete(chunk.clip)

    def _release_chunk_user(self, chunk: Chunk) -> None:
        """Count down the observers that want a chunk; after the last one it leaves the device."""
        chunk.users -= 1
        if not chunk.users:
            self.memory.release_bytes(chunk.bytes)

    def _run_observer_on_batch(self, q: Queue, batch_entries: Sequence[Entry]) -> Any:
        """What the observer makes of a batch, or TOO_LARGE."""
        import torch

        def select_rows(rows: list[int], pictures: Any) -> Any:
            first, last = rows[0], rows[-1]
            if last - first + 1 == len(rows):  # a copy of numbers to the GPU would wait for the batch before
                return pictures[first : last + 1]
            return pictures[torch.tensor(rows, device=pictures.device)]

        def concatenate(parts: list[Any]) -> Any:
            return parts[0] if len(parts) == 1 else torch.cat(parts)

        described = [chunk.rows[row] for chunk, _, rows in batch_entries for row in rows]
        pairs = batch_entries[0][0].partners is not None
        before = torch.cuda.memory_allocated() if self.gpu else 0
        if self.gpu and not q.measured:
            torch.cuda.reset_peak_memory_stats()
        try:
            batch = Batch(
                np.array([row.number for row in described]),
                np.array([row.time for row in described]),
                concatenate([select_rows(rows, chunk.pictures) for chunk, _, rows in batch_entries]),
                concatenate([select_rows(rows, chunk.partners) for chunk, _, rows in batch_entries]) if pairs else (),
                np.array([row.partner for row in described if pairs], dtype=np.int64),
                [inputs_of(chunk.clip.tasks[key]) for chunk, key, rows in batch_entries for _ in rows],
            )
            batch = resize_batch_on_gpu(q.observer, q.params, batch) if self.gpu else batch
            with allow_rows_of_several_clips():
                record = q.observer.fn(batch, **q.params)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            torch.cuda.empty_cache()
            if q.most == 1:
                raise RuntimeError(
                    "the GPU has too little free memory for a single frame; close other programs, or pass --device cpu"
                ) from error
            q.most, q.measured = max(1, min(q.most, len(described)) // 2), True
            return TOO_LARGE
        if self.gpu and not q.measured:
            q.measured = True
            used_by_row = max((torch.cuda.max_memory_allocated() - before) / len(described), 1)
            q.most = int(np.clip(int(self.memory.capacity_bytes() * SHARE / used_by_row), 1, MOST))
        return record

    def _send_evidence_if_complete(self, clip: HostedClip) -> None:
        """Send a clip's evidence back once all of it is there."""
        if not clip.ended or clip.pending or not clip.tasks:
            return
        answer: dict[str, tuple[Any, str, float]] = {}
        for key, task in clip.tasks.items():
            record = None
            started = time.perf_counter()
            if key not in clip.failed:
                try:
                    if key in clip.watchers:
                        record = clip.watchers[key].finish()
                    else:  # batches that overlap may end in any order
                        parts = sorted(clip.parts[key], key=lambda part: part[:2])
                        record = concatenate_evidence([rows for _, _, rows in parts])
                except Exception as error:  # as above
                    clip.failed[key] = f"{task.observer} failed: {error_sentence(error)}"
            clip.seconds[key] += time.perf_counter() - started
            answer[key] = (record, clip.failed.get(key, ""), clip.seconds[key])
        clip.tasks = {}
        with clip.sending, contextlib.suppress(OSError):  # where its worker died, the engine says so
            clip.connection.send(answer)

    def _forget_connection(self, connection: Connection) -> None:
        """Forget the rows of a worker that is gone."""
        for q in self.queues.values():
            gone = [entry for entry in q.waiting if entry[0].clip.connection is connection]
            q.waiting = [entry for entry in q.waiting if entry[0].clip.connection is not connection]
            for chunk, _, rows in gone:
                q.rows -= len(rows)
                self._release_chunk_user(chunk)


def resize_batch_on_gpu(observer: Observer, params: Details, batch: Batch) -> Batch:
    """The batch at the size that its observer wants, where workers leave that to the GPU."""
    if observer.gpu_size is None:
        return batch
    from revisit.networks import preprocessing

    pictures: Any = batch.rgb
    size = observer.gpu_size(tuple(pictures.shape[1:3]), **params)
    if size is None:
        return batch
    reference: Any = batch.reference
    return replace(
        batch,
        rgb=preprocessing.resize_bytes_as_on_cpu(pictures, size),
        reference=preprocessing.resize_bytes_as_on_cpu(reference, size) if observer.pairs else reference,
    )
