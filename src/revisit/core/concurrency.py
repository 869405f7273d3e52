"""Threads that have room, processes that are ended with all that they started, and the cores that both may use.

Where memory is limited from outside (`ulimit -v`), a thread may get its stack and nothing else. It then dies before its
first line, and Python's `Thread.start`, which waits for that line, waits for ever.
"""

from __future__ import annotations

import mmap
import os
import queue
import resource
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

STACK = 8 << 20  # bytes, where the system names none
BESIDE = 4 << 20  # bytes that a thread needs to begin, with much to spare


def cores() -> int:
    """Cores that this process may use, which a scheduler or container may have limited."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def kill_process_group(process: subprocess.Popen[Any]) -> None:
    """Kill a process with everything that it started, reap it and close its pipes."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def signal_name(number: int) -> str:
    """SIGKILL for 9; some have no name in Python, such as most of the real-time signals."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def require_room_for_thread() -> None:
    """Raise MemoryError where a further thread might not come to its first line."""
    stack = resource.getrlimit(resource.RLIMIT_STACK)[0]
    try:
        mmap.mmap(-1, (STACK if stack == resource.RLIM_INFINITY else stack) + BESIDE).close()
    except OSError:
        raise MemoryError("there is no room for a further thread") from None


def start_thread(target: Callable[..., None], *args: Any, name: str | None = None) -> threading.Thread:
    """A daemon thread that runs; MemoryError where there is no room for it."""
    require_room_for_thread()
    thread = threading.Thread(target=target, args=args, name=name, daemon=True)
    thread.start()
    return thread


def put_lines_in_queue(stream: Iterable[Item], lines: queue.SimpleQueue[Item | None]) -> None:
    """Hand over the lines of a process as they come, and None at the end."""
    with suppress(OSError, ValueError):
        for line in stream:
            lines.put(line)
    lines.put(None)


def results_of_threads(
    workers: Sequence[Callable[[Iterator[Item]], Iterable[Result]]], items: Sequence[Item]
) -> Iterator[Result]:
    """What workers make of items, as it ends: each has a thread, and takes the next item when it is free.

    What one of them raises is raised here. Who stops reading lets no worker begin another item.
    """
    stop = threading.Event()
    waiting = takewhile(lambda _: not stop.is_set(), iter(items))  # one for all workers
    ended: queue.SimpleQueue[Result | BaseException] = queue.SimpleQueue()

    def put_results(worker: Callable[[Iterator[Item]], Iterable[Result]]) -> None:
        try:
            for result in worker(waiting):
                ended.put(result)
        except BaseException as error:
            ended.put(error)

    try:
        threads = [start_thread(put_results, worker) for worker in workers]
        for _ in items:
            result = ended.get()
            if isinstance(result, BaseException):
                raise result
            yield result
        for thread in threads:
            thread.join()
    finally:
        stop.set()
