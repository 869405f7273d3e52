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

import math
import os
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import numpy as np

from revisit.core import Clip, ClipInfo, Frame, MediaError, UsageError
from revisit.core.cases import FRAME_RATE_OF_FOLDERS, InMemory
from revisit.core.concurrency import require_room_for_thread
from revisit.media.array_clip import is_npy_or_zip_file, read_array_clip
from revisit.media.container import ANIMATION, detect_demuxer
from revisit.media.decoder_process import DecoderProcess
from revisit.media.error_names import printable_line, raise_media_errors_naming_file
from revisit.media.files import open_regular_file
from revisit.media.frame_folder import find_frame_files
from revisit.media.limits import GIB, Limits, format_size
from revisit.media.perturb import perturb_frame

FrameSelection = np.ndarray | Callable[[int, float], np.ndarray] | None


def open_clip(clip: Clip, limits: Limits = Limits(), wanted: FrameSelection = None) -> ClipStream | FramesInMemory:
    """A stream of the clip's frames, to be used in a `with` block.

    `wanted` are the frame numbers to deliver, or a function of (count, fps) that names them;
    the other frames are decoded, because later ones build on them, but never leave the decoder.
    """
    if clip.frames is not None:
        return FramesInMemory(clip, wanted)
    if clip.path.is_file() and is_npy_or_zip_file(clip.path):
        return _open_array_clip(clip, limits, wanted)
    return ClipStream(clip, limits, wanted)


def read_clip_info(clip: Clip, limits: Limits = Limits()) -> ClipInfo:
    """Size, rate and length of a clip, of which no frame is decoded."""
    with open_clip(clip, limits, wanted=np.zeros(0, dtype=int)) as stream:
        return stream.info


def _open_array_clip(clip: Clip, limits: Limits, wanted: FrameSelection) -> FramesInMemory:
    """The frames of a npy or npz file, which needs no decoder."""
    with raise_media_errors_naming_file(clip.path):
        _require_size_within_limit(clip.path.stat().st_size, limits)
    rgb, fps, note = read_array_clip(clip.path, limits)
    with raise_media_errors_naming_file(clip.path):
        fps = fps if clip.fps is None else _frame_rate_or_default(clip)
        stream = FramesInMemory(replace(clip, frames=InMemory(rgb), fps=fps), wanted)
    stream.notes = (note,)
    return stream


class FramesInMemory(AbstractContextManager["FramesInMemory"]):
    """A stream of frames that need no decoding."""

    def __init__(self, clip: Clip, wanted: FrameSelection) -> None:
        assert clip.frames is not None
        self._clip, self._rgb = clip, clip.frames.rgb
        count, height, width = self._rgb.shape[:3]
        fps = float(clip.fps or FRAME_RATE_OF_FOLDERS)
        times = _times_within_clip(clip, np.arange(count) / fps)
        self.info = ClipInfo(width, height, len(times), fps, times)
        self.notes: tuple[str, ...] = ()
        self.passed = 0
        self._wanted = _wanted_frame_numbers(wanted, self.info)

    def __iter__(self) -> Iterator[Frame]:
        for number in self._wanted.tolist():
            rgb = np.ascontiguousarray(self._rgb[self._clip.start + number])
            if self._clip.disturbed:
                rgb = perturb_frame(rgb, self._clip.disturbed, number)
            yield Frame(number, float(self.info.times[number]), rgb)
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

    def __init__(self, clip: Clip, limits: Limits, wanted: FrameSelection) -> None:
        self._path, self._limits, self._disturbed = clip.path, limits, clip.disturbed
        self._worker: DecoderProcess | None = None
        self._reader: ThreadPoolExecutor | None = None
        with raise_media_errors_naming_file(clip.path):
            try:
                self._start_decoder(clip, wanted)
            except BaseException:
                self.close()
                raise

    def _start_decoder(self, clip: Clip, wanted: FrameSelection) -> None:
        self._images: tuple[Path, ...] = ()
        self._fed = 0
        if clip.path.is_dir():
            files = find_frame_files(clip.path)
            _require_size_within_limit(sum(path.stat().st_size for path in files.paths), self._limits)
            self._worker = DecoderProcess(self._limits, decoding=clip.decoding)
            names = [printable_line(path.name) for path in files.paths]
            self._worker.send_job({"names": names, "decoder": files.decoder, "fps": _frame_rate_or_default(clip)})
            self._images = files.paths
            self._send_images_up_to(0)
            notes = files.notes
        else:
            with open_regular_file(clip.path) as file:
                _require_size_within_limit(os.fstat(file.fileno()).st_size, self._limits)
                demuxer = detect_demuxer(file)
                # FFmpeg does not know animated WebP; OpenCV's libwebp does.
                decoding = ANIMATION if demuxer == ANIMATION else clip.decoding
                self._worker = DecoderProcess(self._limits, file.fileno(), decoding)
                self._worker.send_job({"demuxer": demuxer, "default_fps": FRAME_RATE_OF_FOLDERS})
            ignored = "the video has its own timestamps; the given {:g} frames per second were ignored"
            notes = (ignored.format(clip.fps),) if clip.fps else ()
        head = self._worker.read_header()
        self._size = head["height"], head["width"]
        self._turns, self._mirrored = head["rotation"] // 90, head["mirrored"]
        height, width = self._size[::-1] if self._turns % 2 else self._size
        self._has_end = clip.count is not None
        self._first, times = clip.start, _times_within_clip(clip, np.asarray(head["times"], dtype=np.float64))
        self.info = ClipInfo(width, height, len(times), head["fps"], times)
        turned = f"rotated by {head['rotation']} degrees counterclockwise" if self._turns else ""
        changes = " and ".join(filter(None, ["mirrored left to right" if self._mirrored else "", turned]))
        if changes:
            notes += (f"{changes}, as its display matrix says",)
        self.notes = notes + tuple(printable_line(str(note)) for note in head["notes"])
        self._wanted = _wanted_frame_numbers(wanted, self.info)
        self._total = head["count"]
        self._worker.send_json_line(None if len(self._wanted) == self._total else (self._wanted + self._first).tolist())

    def __iter__(self) -> Iterator[Frame]:
        with raise_media_errors_naming_file(self._path):
            try:
                yield from self._iterate_frames()
            finally:
                self.close()

    def _iterate_frames(self) -> Iterator[Frame]:
        worker = self._worker
        if worker is None:
            raise MediaError("the frames were already read; open the clip again")
        require_room_for_thread()  # for the thread
        self._reader = ThreadPoolExecutor(1)
        numbers = self._wanted.tolist()
        coming = [self._reader.submit(self._read_frame, number, worker) for number in numbers[:1]]
        for k, number in enumerate(numbers):
            rgb = coming.pop().result()
            coming = [self._reader.submit(self._read_frame, following, worker) for following in numbers[k + 1 : k + 2]]
            if self._disturbed:
                rgb = perturb_frame(rgb, self._disturbed, number)
            self.passed = self._first + number + 1
            yield Frame(number, float(self.info.times[number]), rgb)
        if self._has_end:
            return
        self._send_images_up_to(len(self._images))
        worker.require_trailer()
        self.passed = self._total

    def _read_frame(self, number: int, worker: DecoderProcess) -> np.ndarray:
        self._send_images_up_to(self._first + number)
        rgb = worker.read_frame(*self._size)
        self._send_images_up_to(self._first + number + 1)  # is decoded while this one is looked at
        if self._mirrored:
            rgb = rgb[:, ::-1]
        return np.ascontiguousarray(np.rot90(rgb, self._turns))

    def _send_images_up_to(self, last: int) -> None:
        """Hand the images of a folder up to number `last` to the decoder; a video it reads by itself."""
        while self._fed <= last and self._fed < len(self._images):
            path = self._images[self._fed]
            with raise_media_errors_naming_file(path), open_regular_file(path) as file:
                data = file.read()
            assert self._worker is not None
            self._worker.send_bytes(struct.pack(">Q", len(data)), data)
            self._fed += 1

    def close(self) -> None:
        """End the decoder, wherever it stands."""
        if self._worker is not None:
            self._worker.kill()
            if self._reader is not None:
                self._reader.shutdown()  # soon: what it reads from is gone
            self._worker.close_pipes_and_wait()
            self._worker = None

    def __exit__(self, *ending: object) -> None:
        self.close()


def _frame_rate_or_default(clip: Clip) -> float:
    fps = FRAME_RATE_OF_FOLDERS if clip.fps is None else float(clip.fps)
    if not 0 < fps < math.inf:
        raise UsageError(
            f"{printable_line(clip.path.name)}: {fps:g} is not a valid frame rate; give a number above zero"
        )
    return fps


def _require_size_within_limit(size: int, limits: Limits) -> None:
    if size > limits.file_size:
        raise MediaError(
            f"it has {format_size(size)}, more than the {format_size(limits.file_size)} allowed; if this is intended, "
            f"raise the limit with --limits file_size={math.ceil(size / GIB)}G"
        )


def _times_within_clip(clip: Clip, times: np.ndarray) -> np.ndarray:
    """Seconds of the frames that belong to the clip, from its own first frame."""
    if clip.start < 0 or (clip.count is not None and clip.count < 1):
        raise UsageError(
            f"{printable_line(clip.path.name)}: a clip starts at frame 0 or later and has at least one frame, "
            f"not {clip.count} from frame {clip.start}"
        )
    if clip.start >= len(times):
        raise MediaError(f"it should be read from frame {clip.start} on, but has only {len(times)} frames")
    frame_times = times[clip.start :][: clip.count]
    return frame_times - frame_times[0]


def _wanted_frame_numbers(wanted: FrameSelection, info: ClipInfo) -> np.ndarray:
    """Wanted frame numbers, sorted and without repeats."""
    if wanted is None:
        return np.arange(info.count)
    numbers = np.unique(np.asarray(wanted(info.count, info.fps) if callable(wanted) else wanted, dtype=np.int64))
    if len(numbers) and not 0 <= numbers[0] <= numbers[-1] < info.count:
        raise UsageError(
            f"frames {numbers[0]} to {numbers[-1]} were requested, but the clip has frames 0 to {info.count - 1}"
        )
    return numbers
