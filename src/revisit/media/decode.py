"""Decode: the frames of a clip, in order, decoded in a separate process, by the rules of docs/media.md.

Of a clip that starts later, the frames before are decoded, because later ones build on them, and go nowhere:
there is no seeking, since where a seek ends depends on how the file was written. Of a clip with an end of its
own, nothing behind the last wanted frame is decoded.

Decoders have bugs that hostile files use, so each clip is decoded by a fresh process (`worker.py`)
that has limited memory and processor time, holds the clip and a pipe, and can open nothing else.
Whatever happens to it becomes one MediaError that names the clip. The next frame is read and converted in a thread
while the caller looks at this one; at most three are in flight.
"""

from __future__ import annotations

import fcntl
import importlib.util
import json
import math
import os
import resource
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np

from revisit.core import Clip, ClipInfo, Frame, MediaError, MissingPrerequisite, UsageError
from revisit.core.cases import FRAME_RATE_OF_FOLDERS
from revisit.core.frames import frame_digest
from revisit.core.threads import require_room
from revisit.media.colour import Plane, layout_of, rgb_of
from revisit.media.container import demuxer_of
from revisit.media.error_names import in_clip, printable
from revisit.media.frame_folder import FrameFiles, frame_files
from revisit.media.limits import GIB, Limits, in_words
from revisit.media.perturb import disturbed
from revisit.media.pixel_rules import decoding_of

Wanted = np.ndarray | Callable[[int, float], np.ndarray] | None
WORKER = Path(__file__).with_name("worker.py")
THREADS = 2  # of the decoder; the frames do not depend on it
_LONGEST_MESSAGE = 1 << 26  # of JSON
_KEPT_VARIABLES = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH")  # how libraries are found


def open_clip(clip: Clip, limits: Limits = Limits(), wanted: Wanted = None) -> ClipStream | FramesInMemory:
    """A stream of the clip's frames, to be used in a `with` block.

    `wanted` are the frame numbers to deliver, or a function of (count, fps) that names them;
    the other frames are decoded, because later ones build on them, but never leave the decoder.
    """
    return ClipStream(clip, limits, wanted) if clip.frames is None else FramesInMemory(clip, wanted)


class FramesInMemory(AbstractContextManager["FramesInMemory"]):
    """A stream of frames that need no decoding."""

    def __init__(self, clip: Clip, wanted: Wanted) -> None:
        assert clip.frames is not None
        self._clip, self._rgb = clip, clip.frames.rgb
        count, height, width = self._rgb.shape[:3]
        fps = float(clip.fps or FRAME_RATE_OF_FOLDERS)
        times = _stretch(clip, np.arange(count) / fps)
        self.info = ClipInfo(width, height, len(times), fps, times)
        self.notes: tuple[str, ...] = ()
        self.passed = 0
        self._wanted = _frame_numbers(wanted, self.info)

    def __iter__(self) -> Iterator[Frame]:
        for number in self._wanted.tolist():
            rgb = np.ascontiguousarray(self._rgb[self._clip.start + number])
            if self._clip.disturbed:
                rgb = disturbed(rgb, self._clip.disturbed, number)
            yield Frame(number, float(self.info.times[number]), rgb, frame_digest(rgb))
        self.passed = self.info.count

    def __exit__(self, *ending: object) -> None:
        pass


class ClipStream(AbstractContextManager["ClipStream"]):
    """Frames of a clip in order. `info` is known from the start, `notes` are complete after the last frame.

    `passed` counts the frames of the file that were decoded for it.
    """

    info: ClipInfo
    notes: tuple[str, ...]
    passed: int = 0

    def __init__(self, clip: Clip, limits: Limits, wanted: Wanted) -> None:
        self._path, self._limits, self._disturbed = clip.path, limits, clip.disturbed
        self._worker: _Worker | None = None
        self._reader: ThreadPoolExecutor | None = None
        with in_clip(clip.path):
            try:
                self._start(clip, wanted)
            except BaseException:
                self.close()
                raise

    def _start(self, clip: Clip, wanted: Wanted) -> None:
        self._images: tuple[Path, ...] = ()
        self._fed = 0
        if clip.path.is_dir():
            found = frame_files(clip.path)
            _check_size(sum(path.stat().st_size for path in found.paths), self._limits)
            self._worker = _Worker(self._limits, decoding=clip.decoding)
            self._worker.begin(_folder_job(clip, found))
            self._images = found.paths
            self._feed(0)
            notes = found.notes
        else:
            with _regular_file(clip.path) as file:
                _check_size(os.fstat(file.fileno()).st_size, self._limits)
                job = {"demuxer": demuxer_of(file), "fd": file.fileno(), "default_fps": FRAME_RATE_OF_FOLDERS}
                self._worker = _Worker(self._limits, file.fileno(), clip.decoding)
                self._worker.begin(job)
            ignored = "the video has its own timestamps; the given {:g} frames per second were ignored"
            notes = (ignored.format(clip.fps),) if clip.fps else ()
        head = self._worker.header()
        self._size = head["height"], head["width"]
        self._turns, self._mirrored = head["rotation"] // 90, head["mirrored"]
        height, width = self._size[::-1] if self._turns % 2 else self._size
        self._has_end = clip.count is not None
        self._first, times = clip.start, _stretch(clip, np.asarray(head["times"], dtype=np.float64))
        self.info = ClipInfo(width, height, len(times), head["fps"], times)
        turned = f"rotated by {head['rotation']} degrees counterclockwise" if self._turns else ""
        changes = " and ".join(filter(None, ["mirrored left to right" if self._mirrored else "", turned]))
        if changes:
            notes += (f"{changes}, as its display matrix says",)
        self.notes = notes + tuple(printable(str(note)) for note in head["notes"])
        self._wanted = _frame_numbers(wanted, self.info)
        self._total = head["count"]
        self._worker.send_line(None if len(self._wanted) == self._total else (self._wanted + self._first).tolist())

    def __iter__(self) -> Iterator[Frame]:
        with in_clip(self._path):
            try:
                yield from self._frames()
            finally:
                self.close()

    def _frames(self) -> Iterator[Frame]:
        worker = self._worker
        if worker is None:
            raise MediaError("the frames were already read; open the clip again")
        require_room()  # for the thread
        self._reader = ThreadPoolExecutor(1)
        numbers = self._wanted.tolist()
        coming = [self._reader.submit(self._read, number, worker) for number in numbers[:1]]
        for k, number in enumerate(numbers):
            rgb = coming.pop().result()
            coming = [self._reader.submit(self._read, following, worker) for following in numbers[k + 1 : k + 2]]
            if self._disturbed:
                rgb = disturbed(rgb, self._disturbed, number)
            self.passed = self._first + number + 1
            yield Frame(number, float(self.info.times[number]), rgb, frame_digest(rgb))
        if self._has_end:
            return
        self._feed(len(self._images))
        worker.trailer()
        self.passed = self._total

    def _read(self, number: int, worker: _Worker) -> np.ndarray:
        self._feed(self._first + number)
        rgb = worker.frame(*self._size)
        self._feed(self._first + number + 1)  # is decoded while this one is looked at
        if self._mirrored:
            rgb = rgb[:, ::-1]
        return np.ascontiguousarray(np.rot90(rgb, self._turns))

    def _feed(self, last: int) -> None:
        """Hand the images of a folder up to number `last` to the decoder; a video it reads by itself."""
        while self._fed <= last and self._fed < len(self._images):
            path = self._images[self._fed]
            with in_clip(path), _regular_file(path) as file:
                data = file.read()
            assert self._worker is not None
            self._worker.send(struct.pack(">Q", len(data)), data)
            self._fed += 1

    def close(self) -> None:
        """End the decoder, wherever it stands."""
        if self._worker is not None:
            self._worker.kill()
            if self._reader is not None:
                self._reader.shutdown()  # soon: what it reads from is gone
            self._worker.clean_up()
            self._worker = None

    def __exit__(self, *ending: object) -> None:
        self.close()


class _Worker:
    """The decoding process, with its wall clock. Every way it can fail is a MediaError."""

    def __init__(self, limits: Limits, fd: int | None = None, decoding: str = "") -> None:
        self._limits, self._patience = limits, float(limits.seconds)
        modules = ("av", *(decoding_of(decoding).modules if decoding else ()))
        paths = list(dict.fromkeys(map(_place_of, modules)))
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            pass_fds=() if fd is None else (fd,),
            env={name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ},
            cwd="/",
            start_new_session=True,  # Ctrl-C reaches this process only, which then ends the other
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._in, False)
        with suppress(AttributeError, OSError):  # Linux only: fewer turns between the two processes
            fcntl.fcntl(self._out, fcntl.F_SETPIPE_SZ, 1 << 20)
        self._facts = {"parent": os.getpid(), "threads": THREADS, "paths": paths, "decoding": decoding}

    def begin(self, job: dict[str, Any]) -> None:
        self.send_line({**job, **self._facts, **asdict(self._limits)})

    def header(self) -> dict[str, Any]:
        """What the decoder says about the clip, checked: it may have been taken over by the clip."""
        head = self._json(b"HEAD")
        try:
            head = {
                **{name: int(head[name]) for name in ("width", "height", "count", "rotation")},
                "mirrored": bool(head["mirrored"]),
                "fps": float(head["fps"]),
                "times": [float(t) for t in head["times"]],
                "notes": list(head["notes"]),
            }
            fits = head["width"] * head["height"] <= self._limits.pixels and head["count"] <= self._limits.frames
            sound = min(head["width"], head["height"], head["count"]) > 0 and 0 < head["fps"] < math.inf
            if not (fits and sound and len(head["times"]) == head["count"] and head["rotation"] in (0, 90, 180, 270)):
                raise ValueError
        except (KeyError, TypeError, ValueError, OverflowError):
            raise _nonsense() from None
        return head

    def frame(self, height: int, width: int) -> np.ndarray:
        """The next frame as height x width x 3 bytes."""
        import cv2

        head = self._json(b"FRAM")
        try:
            name, matrix, range_ = str(head["format"]), int(head["matrix"]), int(head["range"])
            strides = [int(stride) for stride in head["strides"]]
        except (KeyError, TypeError, ValueError):
            raise _nonsense() from None
        expected = layout_of(printable(name, longest=40), width, height).planes
        if len(strides) != len(expected):
            raise _nonsense()
        planes = [self._plane(plane, stride) for plane, stride in zip(expected, strides, strict=True)]
        try:
            return rgb_of(name, matrix, range_, width, height, planes)
        except cv2.error as error:  # of planes whose sizes are right: OpenCV found no memory
            raise MemoryError(str(error)) from None

    def _plane(self, plane: Plane, stride: int) -> np.ndarray:
        """The next plane, without the padding of its rows."""
        needed = plane.columns * plane.dtype.itemsize
        if not needed <= stride <= needed + 4096:
            raise _nonsense()
        rows = np.empty((plane.rows, stride), dtype=np.uint8)
        self._read(rows.data.cast("B"))
        return rows[:, :needed].view(plane.dtype)

    def trailer(self) -> None:
        """Return when the decoder says that the clip was whole."""
        self._json(b"TAIL")

    def send_line(self, content: Any) -> None:
        self.send(json.dumps(content).encode() + b"\n")

    def send(self, *parts: bytes) -> None:
        """Write to the decoder. If it is gone, reading will tell why."""
        for part in parts:
            view = memoryview(part)
            while view:
                self._wait(self._in, select.POLLOUT)
                try:
                    view = view[os.write(self._in, view) :]
                except BlockingIOError:
                    continue
                except BrokenPipeError:
                    return

    def kill(self) -> None:
        self._process.kill()

    def clean_up(self) -> None:
        """Close the pipes and reap the process, once nobody reads any more."""
        with self._process:
            pass

    def _json(self, tag: bytes) -> dict[str, Any]:
        return self._object(self._expect(tag))

    def _expect(self, tag: bytes) -> int:
        """Length of the next message, which must be a `tag`."""
        head = bytearray(8)
        self._read(memoryview(head))
        found, length = struct.unpack(">4sI", head)
        if found == b"FAIL":
            report = self._object(length)
            raise self._too_large() if report.get("memory") else MediaError(printable(str(report.get("problem")), 600))
        if found != tag:
            raise _nonsense()
        return int(length)

    def _object(self, length: int) -> dict[str, Any]:
        if length > _LONGEST_MESSAGE:
            raise _nonsense()
        data = bytearray(length)
        self._read(memoryview(data))
        try:
            found = json.loads(data)
        except ValueError:
            raise _nonsense() from None
        if not isinstance(found, dict):
            raise _nonsense()
        return found

    def _read(self, view: memoryview) -> None:
        while view:
            self._wait(self._out, select.POLLIN)
            count = os.readv(self._out, [view])
            if not count:
                self._died()
            view = view[count:]

    def _wait(self, fd: int, event: int) -> None:
        poll = select.poll()
        poll.register(fd, event)
        start = time.monotonic()
        ready = poll.poll(max(self._patience, 0) * 1000)
        self._patience -= time.monotonic() - start
        if not ready:
            raise self._too_slow()

    def _died(self) -> NoReturn:
        """Say why the process is gone; its pipe has ended."""
        try:
            code = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            raise _nonsense() from None
        if code == -signal.SIGXCPU:
            raise self._too_slow()
        if code == -signal.SIGKILL:
            raise MediaError(
                "the decoder was killed, most likely because the machine ran out of memory; use fewer --workers, or "
                "leave this clip out"
            )
        if code < 0:
            raise MediaError(
                f"the decoder crashed ({_signal_name(-code)}): the file is damaged or malicious; re-encode it or "
                "leave it out"
            )
        raise MediaError(f"the decoder ended early (exit code {code}); run `revisit doctor` to check PyAV")

    def _too_slow(self) -> MediaError:
        return MediaError(
            f"decoding took longer than {self._limits.seconds} s; shorten the clip, or raise the limit with "
            f"--limits seconds={2 * self._limits.seconds}"
        )

    def _too_large(self) -> MediaError:
        allowed = resource.getrlimit(resource.RLIMIT_AS)[0]  # of this process, which the decoder inherits
        if allowed != resource.RLIM_INFINITY and allowed < self._limits.memory:
            return MediaError(
                f"decoding needs more than the {in_words(allowed)} of memory that this process may use (`ulimit -v`); "
                "raise that limit"
            )
        return MediaError(
            f"decoding needs more than {in_words(self._limits.memory)} of memory; if the clip is meant to be this "
            f"large, raise the limit with --limits memory={max(1, round(2 * self._limits.memory / GIB))}G"
        )


def _place_of(module: str) -> str:
    """The folder that a library is imported from."""
    found = importlib.util.find_spec(module)
    if found is None or found.origin is None:
        name = {"av": "PyAV", "cv2": "OpenCV"}.get(module, module)
        package = {"cv2": "opencv-python-headless"}.get(module, module)
        raise MissingPrerequisite(f"{name} is not installed; install it with `pip install {package}`")
    return str(Path(found.origin).parents[1])


def _folder_job(clip: Clip, found: FrameFiles) -> dict[str, Any]:
    fps = FRAME_RATE_OF_FOLDERS if clip.fps is None else float(clip.fps)
    if not 0 < fps < math.inf:
        raise UsageError(f"{printable(clip.path.name)}: {fps:g} is not a valid frame rate; give a number above zero")
    return {"names": [printable(path.name) for path in found.paths], "decoder": found.decoder, "fps": fps}


def _regular_file(path: Path) -> BinaryIO:
    """The file, open. Pipes and devices are refused: they would block or never end."""
    if not path.exists():
        raise MediaError("there is no such file or folder")
    if not path.is_file():
        raise MediaError("this is neither a regular file nor a folder")
    return path.open("rb", buffering=0)


def _check_size(size: int, limits: Limits) -> None:
    if size > limits.file_size:
        raise MediaError(
            f"it has {in_words(size)}, more than the {in_words(limits.file_size)} allowed; if this is intended, raise "
            f"the limit with --limits file_size={math.ceil(size / GIB)}G"
        )


def _stretch(clip: Clip, times: np.ndarray) -> np.ndarray:
    """Seconds of the frames that belong to the clip, from its own first frame."""
    if clip.start < 0 or (clip.count is not None and clip.count < 1):
        raise UsageError(
            f"{printable(clip.path.name)}: a clip starts at frame 0 or later and has at least one frame, "
            f"not {clip.count} from frame {clip.start}"
        )
    if clip.start >= len(times):
        raise MediaError(f"it should be read from frame {clip.start} on, but has only {len(times)} frames")
    kept = times[clip.start :][: clip.count]
    return kept - kept[0]


def _frame_numbers(wanted: Wanted, info: ClipInfo) -> np.ndarray:
    """Wanted frame numbers, sorted and without repeats."""
    if wanted is None:
        return np.arange(info.count)
    numbers = np.unique(np.asarray(wanted(info.count, info.fps) if callable(wanted) else wanted, dtype=np.int64))
    if len(numbers) and not 0 <= numbers[0] <= numbers[-1] < info.count:
        raise UsageError(
            f"frames {numbers[0]} to {numbers[-1]} were requested, but the clip has frames 0 to {info.count - 1}"
        )
    return numbers


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _nonsense() -> MediaError:
    return MediaError("the decoder sent something that is not a frame: the file may be malicious; leave it out")
