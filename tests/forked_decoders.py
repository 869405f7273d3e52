"""Decoders of tests are forked from one process that has loaded PyAV: to load it takes most of a small clip's time.

What runs is `media/worker.py` with all its limits, only its start is shared. Decoders as users have them: in
`tests/media/test_media_decode.py`, in tests of workers and of the command in a process of its own.
"""

from __future__ import annotations

import array
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Any

from revisit.media import decoder_process

# Run by a bare interpreter, as the decoder itself. On its standard input comes one message for each decoder: what it is
# to be like, with its standard input and output, a pipe for its process id and exit status, and the clip.
SERVER = r"""
import array, ctypes, fcntl, importlib.util, json, os, signal, socket, struct, sys

worker_path, folder_of_av = sys.argv[1:]
requests = socket.socket(fileno=os.dup(0))
status_pipes = {}


def move_to(wanted):
    # Descriptors get the numbers they are wanted at; first they go where none of these is.
    high = {number: fcntl.fcntl(fd, fcntl.F_DUPFD, 500) for number, fd in wanted.items()}
    os.closerange(3, 500)
    for number, fd in high.items():
        os.dup2(fd, number)
        os.close(fd)


def reap():
    while status_pipes:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        pipe = status_pipes.pop(pid)
        try:
            os.write(pipe, struct.pack("i", os.waitstatus_to_exitcode(status)))
        except BrokenPipeError:
            pass
        os.close(pipe)


def become_decoder(request, fds):
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    move_to({0: fds[0], 1: fds[1], **dict(zip(request["pass_fds"], fds[3:]))})
    os.setsid()
    os.getppid = lambda: request["parent"]  # its life is tied to this process, and this one's to the parent
    code = 1
    try:
        worker.main()
        sys.stdout.flush()
        code = 0
    finally:
        os._exit(code)


spec = importlib.util.spec_from_file_location("worker", worker_path)
worker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(worker)
sys.path.append(folder_of_av)
av = worker.import_av()
try:
    import cv2  # which some protocols decode by
except ImportError:
    pass
worker.import_av = lambda: av
sys.path.pop()
signal.signal(signal.SIGCHLD, lambda *_: reap())
while True:
    message, ancillary, _, _ = requests.recvmsg(1 << 16, socket.CMSG_SPACE(16 * 4))
    if not message:
        sys.exit()
    fds = array.array("i")
    for _, _, data in ancillary:
        fds.frombytes(data)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    pid = os.fork()
    if not pid:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        become_decoder(json.loads(message), list(fds))
    os.write(fds[2], struct.pack("i", pid))
    status_pipes[pid] = fds[2]
    for fd in fds[:2] + fds[3:]:
        os.close(fd)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
"""


class DecoderServer:
    """The process that decoders are forked from."""

    def __init__(self) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        self.worker = str(decoder_process.WORKER)
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", SERVER, self.worker, decoder_process._place_of("av")],
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={name: os.environ[name] for name in decoder_process._KEPT_VARIABLES if name in os.environ},
            cwd="/",
            start_new_session=True,
        )
        theirs.close()

    def fork(self, request: dict[str, Any], fds: list[int]) -> None:
        with self._lock:
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))
            self._requests.sendmsg([json.dumps(request).encode()], [rights])

    def close(self) -> None:
        self._requests.close()
        self._process.wait(timeout=60)


class ForkedDecoder:
    """What `DecoderProcess` uses of `subprocess.Popen`."""

    def __init__(self, server: DecoderServer, pass_fds: tuple[int, ...]) -> None:
        stdin, self_in = os.pipe()
        self_out, stdout = os.pipe()
        self._status, status = os.pipe()
        self.stdin, self.stdout = os.fdopen(self_in, "wb", buffering=0), os.fdopen(self_out, "rb", buffering=0)
        server.fork({"parent": os.getpid(), "pass_fds": pass_fds}, [stdin, stdout, status, *pass_fds])
        for fd in (stdin, stdout, status):
            os.close(fd)
        self.pid: int = struct.unpack("i", os.read(self._status, 4))[0]
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            poll = select.poll()
            poll.register(self._status, select.POLLIN)
            if not poll.poll(None if timeout is None else timeout * 1000):
                raise subprocess.TimeoutExpired("a forked decoder", timeout or 0)
            self.returncode = struct.unpack("i", os.read(self._status, 4))[0]
            os.close(self._status)
        return self.returncode

    def kill(self) -> None:
        if self.returncode is None:
            with suppress(ProcessLookupError):  # it has ended by itself
                os.kill(self.pid, signal.SIGKILL)

    def __enter__(self) -> ForkedDecoder:
        return self

    def __exit__(self, *_: object) -> None:
        self.stdout.close()
        self.stdin.close()
        self.wait()


class ForkingSubprocess:
    """Stands for the module `subprocess` in `decoder_process`."""

    PIPE, DEVNULL, TimeoutExpired = subprocess.PIPE, subprocess.DEVNULL, subprocess.TimeoutExpired

    def __init__(self, server: DecoderServer) -> None:
        self._server = server

    def Popen(
        self, command: list[str], *, pass_fds: tuple[int, ...] = (), **settings: Any
    ) -> ForkedDecoder | subprocess.Popen[bytes]:
        if command[-1] != self._server.worker:  # a test's own decoder
            return subprocess.Popen(command, pass_fds=pass_fds, **settings)
        return ForkedDecoder(self._server, pass_fds)
