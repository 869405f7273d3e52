"""Decoders that are forked from a process which has loaded PyAV; loading it takes as long as decoding a dozen frames.

Each clip still has a decoder of its own, with all its limits; the process that they are forked from never sees a clip.
It is one for each process that decodes (`worker.py FOLDER`), and ends with it.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

ENDED = 10.0  # seconds in which the server says what became of a decoder that was killed
AWAKE = 2.0  # seconds after which a server that was stopped goes on


class NotForked(OSError):
    """The server has ended, or found no room for one more process."""


class DecoderServer:
    """The process that decoders are forked from."""

    def __init__(self, worker: Path, folder: str, environment: Mapping[str, str]) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._lock = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(worker), folder],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=dict(environment),
                cwd="/",
                start_new_session=True,  # Ctrl-C reaches this process only, whose end is the end of the other
            )

    def request_fork(self, clip: int | None) -> ForkedDecoder:
        """A decoder, which holds an open clip as its file 3."""
        stdin, own_in = os.pipe()
        own_out, stdout = os.pipe()
        own_status, status = os.pipe()
        try:
            with self._lock:
                socket.send_fds(self._requests, [b"f"], [stdin, stdout, status, *([] if clip is None else [clip])])
        except OSError:
            for file in (own_in, own_out, own_status):
                os.close(file)
            raise NotForked from None
        finally:
            for file in (stdin, stdout, status):
                os.close(file)
        poll = select.poll()
        poll.register(own_status, select.POLLIN)
        while not poll.poll(AWAKE * 1000):  # it was stopped, or is still loading PyAV
            self._process.send_signal(signal.SIGCONT)
        return ForkedDecoder(own_in, own_out, own_status)

    def is_running(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        """End it, and wait until it has ended."""
        self._requests.close()
        self._process.wait()


class ForkedDecoder:
    """A decoder that was forked, with what `DecoderProcess` uses of `subprocess.Popen`."""

    def __init__(self, stdin: int, stdout: int, status: int) -> None:
        self.stdin, self.stdout = os.fdopen(stdin, "wb", buffering=0), os.fdopen(stdout, "rb", buffering=0)
        self._status = os.fdopen(status, "rb", buffering=0)
        self.returncode: int | None = None
        pid = self._status.read(4)
        if len(pid) < 4:
            self._close_pipes()
            raise NotForked
        self.pid = int(struct.unpack("=i", pid)[0])

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, negative for a signal that ended it; its server, if that has ended, took it along."""
        if self.returncode is None:
            poll = select.poll()
            poll.register(self._status, select.POLLIN)
            if not poll.poll(None if timeout is None else timeout * 1000):
                raise subprocess.TimeoutExpired("a decoder", timeout or 0.0)
            code = self._status.read(4)
            self.returncode = struct.unpack("=i", code)[0] if len(code) == 4 else -signal.SIGKILL
        return int(self.returncode)

    def kill(self) -> None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(timeout=0)
        if self.returncode is None:
            with suppress(ProcessLookupError):  # it has just ended by itself
                os.kill(self.pid, signal.SIGKILL)

    def __enter__(self) -> ForkedDecoder:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(ENDED)
        self._close_pipes()

    def _close_pipes(self) -> None:
        for file in (self.stdin, self.stdout, self._status):
            file.close()


_servers: dict[tuple[int, Path, str], DecoderServer] = {}
_starting = threading.Lock()


def fork_decoder(worker: Path, folder: str, environment: Mapping[str, str], clip: int | None) -> ForkedDecoder | None:
    """A decoder of this script, with PyAV from this folder; None where none can be forked, as on a Mac."""
    if sys.platform != "linux":  # system libraries of a Mac do not survive a fork
        return None
    key = os.getpid(), worker, folder
    for _ in range(2):  # a server may have been ended from outside
        with _starting:
            server = _servers.get(key) or _servers.setdefault(key, DecoderServer(worker, folder, environment))
        try:
            return server.request_fork(clip)
        except NotForked:
            if server.is_running():  # others decode: their server stays
                return None
            with _starting:
                _servers.pop(key, None)
    return None


def close_own_decoder_servers() -> None:
    """End the servers of this process, and wait for them: their processor time then counts as this process's."""
    with _starting:
        for key in [key for key in _servers if key[0] == os.getpid()]:
            _servers.pop(key).close()
