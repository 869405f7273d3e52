"""Seconds of the processor of everything that a piece of work started, decoders among it.

Decoders are forked from a server, and a process that decodes may end without waiting for its server: the time of both
would be nobody's. So a measuring process adopts what its children leave behind, and waits for it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import sys
from collections.abc import Mapping
from pathlib import Path
from subprocess import CompletedProcess, run

import psutil

ADOPT = 36  # PR_SET_CHILD_SUBREAPER


def adopt() -> None:
    """Become the parent of processes whose own parent ends (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(ADOPT, 1, 0, 0, 0)


def wait_for_decoders() -> None:
    """Wait until the decoders and servers that were adopted have ended, as they do with those who used them."""
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error, ChildProcessError):  # it has ended meanwhile
            if child.status() == psutil.STATUS_ZOMBIE or any(word.endswith("worker.py") for word in child.cmdline()):
                os.waitpid(child.pid, 0)


def of_children() -> float:
    """Of children that have ended, and of the servers of this process with the decoders that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime + sum(map(_of_running, _servers()))


def so_far() -> float:
    """Of this process and of its children."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime + of_children()


def of_command(command: list[str], env: Mapping[str, str]) -> tuple[float, CompletedProcess[bytes]]:
    """Of a command and all that it started, and what came of it."""
    adopt()
    before = of_children()
    done = run(command, env=dict(env), capture_output=True, check=False)
    wait_for_decoders()
    return of_children() - before, done


def _servers() -> list[int]:
    """Process ids of the servers of this process, where it has decoded anything."""
    module = sys.modules.get("revisit.media.decoder_process")
    return [] if module is None else [server._process.pid for server in module._servers.values()]


def _of_running(pid: int) -> float:
    """Of a process that runs, with its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
