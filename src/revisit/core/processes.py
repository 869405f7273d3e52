"""Processes: the cores they may use, and the end of those that lead a session of their own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from typing import Any


def cores() -> int:
    """Cores that this process may use, which a scheduler or container may have limited."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def kill_process_group(process: subprocess.Popen[Any]) -> None:
    """Kill a process with everything that it started, reap it and close its pipes."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def signal_name(number: int) -> str:
    """SIGKILL for 9; some have no name in Python, such as most of the real-time signals."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
