"""The process that decodes one clip (`worker.py`), as its parent sees it: what goes in, what comes out, how it ends.

Decoders have bugs that hostile files use, so nothing that comes out is trusted: every length, type and range is
checked, and every way the process can fail is one MediaError.

Decoders are forked from a process which has loaded PyAV: loading it takes as long as decoding a dozen frames. Each clip
still has a decoder of its own, with all its limits; the process that they are forked from never sees a clip. It is one
for each process that decodes (`worker.py FOLDER`), and ends with it.
"""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import re
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, TypedDict, TypeVar

import msgspec
import numpy as np

from revisit.core import MediaError, MissingPrerequisite, UsageError
from revisit.core.concurrency import signal_name
from revisit.media.colour import Plane, pixel_layout_of_format, rgb_of
from revisit.media.container import ANIMATION
from revisit.media.error_names import printable_line
from revisit.media.limits import GIB, Limits, format_size
from revisit.media.pixel_rules import decoding_by_name

WORKER = Path(__file__).with_name("worker.py")
FORKED = True  # from a process that has loaded PyAV, where that can be done
THREADS = 2  # of the decoder; the frames do not depend on it
GPU_DECODING = "REVISIT_DECODE"  # cpu (the default), cuda, cuda:1, or several GPUs: cuda:0,cuda:1
ENDED = 10.0  # seconds in which the server says what became of a decoder that was killed
AWAKE = 2.0  # seconds after which a server that was stopped goes on
_LONGEST_MESSAGE = 1 << 26  # of JSON
_LONGEST_WAIT = 2e6  # seconds; a system call takes no more
_KEPT_VARIABLES = (  # how libraries are found, and GPUs
    "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
)  # fmt: skip
Positive = Annotated[int, msgspec.Meta(gt=0)]
Message = TypeVar("Message")  # of the decoder


class ClipHeader(TypedDict):
    """What the decoder says about a clip before its first frame."""

    width: Positive
    height: Positive
    count: Positive
    rotation: Literal[0, 90, 180, 270]  # degrees counterclockwise
    mirrored: bool  # left and right change places before it is turned
    fps: Annotated[float, msgspec.Meta(gt=0)]
    times: list[float]
    notes: list[str]


class FrameHeader(TypedDict):
    """What the decoder says about the planes of a frame."""

    format: str  # as FFmpeg calls it
    matrix: int
    range: int
    strides: list[int]  # bytes from one row to the next, of each plane


class DecoderProcess:
    """The decoding process, with its wall clock. Every way it can fail is a MediaError."""

    def __init__(self, limits: Limits, fd: int | None = None, decoding: str = "") -> None:
        self._limits, self._patience = limits, float(limits.seconds)
        if decoding == ANIMATION:
            modules: tuple[str, ...] = ("av", "cv2", "numpy")
        else:
            modules = ("av", *(decoding_by_name(decoding).modules if decoding else ()))
        gpu = None if fd is None or decoding else gpu_number_for_decoding()
        paths = list(dict.fromkeys(map(_import_folder_of, modules)))
        env = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        forked = fork_decoder(WORKER, paths[0], env, fd) if FORKED else None
        self._process: subprocess.Popen[bytes] | ForkedDecoder = forked or subprocess.Popen(
            [sys.executable, "-I", "-S", str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            pass_fds=() if fd is None else (fd,),
            env=env,
            cwd="/",
            start_new_session=True,  # Ctrl-C reaches this process only, which then ends the other
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._in, False)
        with suppress(AttributeError, OSError):  # Linux only: fewer turns between the two processes
            fcntl.fcntl(self._out, fcntl.F_SETPIPE_SZ, 1 << 20)
        self._facts = {"parent": os.getpid(), "threads": THREADS, "paths": paths, "decoding": decoding, "gpu": gpu}
        if fd is not None:
            self._facts["fd"] = fd if forked is None else 3

    def send_job(self, job: Mapping[str, object]) -> None:
        self.send_json_line({**job, **self._facts, **asdict(self._limits)})

    def read_header(self) -> ClipHeader:
        """What the decoder says about the clip, checked: it may have been taken over by the clip."""
        head = self._read_message(b"HEAD", ClipHeader)
        fits = head["width"] * head["height"] <= self._limits.pixels and head["count"] <= self._limits.frames
        if not fits or len(head["times"]) != head["count"]:
            raise _invalid_output_error()
        return head

    def read_frame(self, height: int, width: int) -> np.ndarray:
        """The next frame as height x width x 3 bytes."""
        import cv2

        head = self._read_message(b"FRAM", FrameHeader)
        name, strides = head["format"], head["strides"]
        expected = pixel_layout_of_format(printable_line(name, longest=40), width, height).planes
        if len(strides) != len(expected):
            raise _invalid_output_error()
        planes = [self._read_plane(plane, stride) for plane, stride in zip(expected, strides, strict=True)]
        try:
            return rgb_of(name, head["matrix"], head["range"], width, height, planes)
        except cv2.error as error:  # of planes whose sizes are right: OpenCV found no memory
            raise MemoryError(str(error)) from None

    def _read_plane(self, plane: Plane, stride: int) -> np.ndarray:
        """The next plane, without the padding of its rows."""
        needed = plane.columns * plane.dtype.itemsize
        if not needed <= stride <= needed + 4096:
            raise _invalid_output_error()
        rows = np.empty((plane.rows, stride), dtype=np.uint8)
        self._read_into(rows.data.cast("B"))
        return rows[:, :needed].view(plane.dtype)

    def require_trailer(self) -> None:
        """Return when the decoder says that the clip was whole."""
        self._read_message(b"TAIL", dict[str, Any])

    def send_json_line(self, content: Any) -> None:
        self.send_bytes(json.dumps(content).encode() + b"\n")

    def send_bytes(self, *parts: bytes) -> None:
        """Write to the decoder. If it is gone, reading will tell why."""
        for part in parts:
            view = memoryview(part)
            while view:
                self._wait_until_ready(self._in, select.POLLOUT)
                try:
                    view = view[os.write(self._in, view) :]
                except BlockingIOError:
                    continue
                except BrokenPipeError:
                    return

    def kill(self) -> None:
        self._process.kill()

    def close_pipes_and_wait(self) -> None:
        """Close the pipes and reap the process, once nobody reads any more."""
        with self._process:
            pass

    def _read_message(self, tag: bytes, kind: type[Message]) -> Message:
        """The next message, which must be a `tag`."""
        head = bytearray(8)
        self._read_into(memoryview(head))
        received, length = struct.unpack(">4sI", head)
        if received not in (tag, b"FAIL") or length > _LONGEST_MESSAGE:
            raise _invalid_output_error()
        data = bytearray(length)
        self._read_into(memoryview(data))
        try:
            if received == tag:
                return msgspec.json.decode(data, type=kind)
            report = msgspec.json.decode(data, type=dict[str, Any])
        except ValueError:
            raise _invalid_output_error() from None
        if report.get("memory"):
            raise self._memory_limit_error()
        raise MediaError(printable_line(str(report.get("problem")), 600))

    def _read_into(self, view: memoryview) -> None:
        while view:
            self._wait_until_ready(self._out, select.POLLIN)
            count = os.readv(self._out, [view])
            if not count:
                self._raise_reason_of_end()
            view = view[count:]

    def _wait_until_ready(self, fd: int, event: int) -> None:
        start = time.monotonic()
        ready = _becomes_ready(fd, event, min(max(self._patience, 0), _LONGEST_WAIT))
        self._patience -= time.monotonic() - start
        if not ready:
            raise self._time_limit_error()

    def _raise_reason_of_end(self) -> NoReturn:
        """Say why the process is gone; its pipe has ended."""
        try:
            code = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            raise _invalid_output_error() from None
        if code == -signal.SIGXCPU:
            raise self._time_limit_error()
        if code == -signal.SIGKILL:
            raise MediaError(
                "the decoder was killed, most likely because the machine ran out of memory; use fewer --workers, or "
                "leave this clip out"
            )
        if code < 0:
            raise MediaError(
                f"the decoder crashed ({signal_name(-code)}): the file is damaged or malicious; re-encode it or "
                "leave it out"
            )
        raise MediaError(f"the decoder ended early (exit code {code}); run `revisit doctor` to check PyAV")

    def _time_limit_error(self) -> MediaError:
        return MediaError(
            f"decoding took longer than {self._limits.seconds} s; shorten the clip, or raise the limit with "
            f"--limits seconds={2 * self._limits.seconds}"
        )

    def _memory_limit_error(self) -> MediaError:
        allowed = resource.getrlimit(resource.RLIMIT_AS)[0]  # of this process, which the decoder inherits
        if allowed != resource.RLIM_INFINITY and allowed < self._limits.memory:
            return MediaError(
                f"decoding needs more than the {format_size(allowed)} of memory that this process may use "
                "(`ulimit -v`); raise that limit"
            )
        return MediaError(
            f"decoding needs more than {format_size(self._limits.memory)} of memory; if the clip is meant to be this "
            f"large, raise the limit with --limits memory={max(1, round(2 * self._limits.memory / GIB))}G"
        )


def gpu_number_for_decoding() -> str | None:
    """The number of the GPU that decodes clips in this process, None for the CPU; several GPUs share the processes."""
    value = os.environ.get(GPU_DECODING, "") or "cpu"
    if value == "cpu":
        return None
    numbers = [re.fullmatch(r"cuda(?::(\d+))?", name.strip()) for name in value.split(",")]
    choice = numbers[os.getpid() % len(numbers)]
    if choice is None or None in numbers:
        raise UsageError(f"{GPU_DECODING}={value}: choose cpu, cuda or cuda:1; several GPUs are written cuda:0,cuda:1")
    return choice[1] or "0"


def _import_folder_of(module: str) -> str:
    """The folder that a library is imported from."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        name = {"av": "PyAV", "cv2": "OpenCV"}.get(module, module)
        package = {"cv2": "opencv-python-headless"}.get(module, module)
        raise MissingPrerequisite(f"{name} is not installed; install it with `pip install {package}`")
    return str(Path(spec.origin).parents[1])


def _becomes_ready(file: int, event: int, seconds: float | None) -> bool:
    """Whether one can read from a file, or write to it, within so many seconds; None for as long as it takes."""
    poll = select.poll()
    poll.register(file, event)
    return bool(poll.poll(None if seconds is None else seconds * 1000))


def _invalid_output_error() -> MediaError:
    return MediaError("the decoder sent something that is not a frame: the file may be malicious; leave it out")


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
        while not _becomes_ready(own_status, select.POLLIN, AWAKE):  # it was stopped, or is still loading PyAV
            self._process.send_signal(signal.SIGCONT)
        return ForkedDecoder(own_in, own_out, own_status)

    def is_running(self) -> bool:
        return self._process.poll() is None


class ForkedDecoder(AbstractContextManager["ForkedDecoder"]):
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
            if not _becomes_ready(self._status.fileno(), select.POLLIN, timeout):
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
