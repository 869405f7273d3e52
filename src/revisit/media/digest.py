"""Digest: a hash of a clip's content, independent of where the file is; remembered while the file has not changed.

Thousands of clips are not read again for one more. A file counts as unchanged while its size, its number on the disk
and both its times are the same; the second of these cannot be set by hand. What was changed in the last two seconds is
not remembered, because a clock may be too coarse to tell a later change. Digests of before mirrored clips had one of
their own are taken over where a clip is not mirrored. Observers still compare the bytes that they have decoded with the
digest of the plan.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG

import msgspec
import numpy as np

from revisit.core import Clip, digest
from revisit.core.cases import FRAME_RATE_OF_FOLDERS
from revisit.core.concurrency import cores
from revisit.media.array_clip import is_npy_or_zip_file
from revisit.media.error_names import raise_media_errors_naming_file
from revisit.media.files import atomic_write_path, open_regular_file
from revisit.media.frame_folder import find_frame_files
from revisit.media.video_index import is_video_mirrored

MOST_THREADS = 8
SETTLED = 2 * 10**9  # nanoseconds
State = tuple[int, int, int, int]  # number on the disk, size, and when content and file changed
CachedDigest = tuple[State, str]


def clip_digest(clip: Clip) -> str:
    """SHA-256 in hex over the bytes of a video, or over the frame rate, names and bytes of a folder of frames.

    Frames in memory count by their digests, which several threads work out: a monitor waits for them at every clip.
    The stretch of a clip that is not the whole file is part of it, and so are a disturbance and a display matrix that
    mirrors: evidence of such clips from before the matrix was obeyed has another address.
    """
    sha256 = hashlib.sha256()
    if clip.start or clip.count is not None:
        sha256.update(f"frames from {clip.start} for {clip.count}\n".encode())
    if clip.disturbed:
        sha256.update(f"disturbed: {clip.disturbed}\n".encode())
    if clip.frames is not None:
        rgb = clip.frames.rgb
        sha256.update(f"digests of {rgb.shape} at {float(clip.fps or FRAME_RATE_OF_FOLDERS)!r}\n".encode())
        with ThreadPoolExecutor(min(MOST_THREADS, cores())) as pool:
            for frame_digest in pool.map(lambda frame: hashlib.sha256(frame).digest(), np.ascontiguousarray(rgb)):
                sha256.update(frame_digest)
        return sha256.hexdigest()
    with raise_media_errors_naming_file(clip.path):
        if is_video_mirrored(clip.path):
            sha256.update(b"mirrored, as its display matrix says\n")
        if clip.fps is not None and clip.path.is_file() and is_npy_or_zip_file(clip.path):
            sha256.update(f"array at {float(clip.fps)!r}\n".encode())
        for piece in _bytes_of_frame_folder(clip) if clip.path.is_dir() else _file_chunks(clip.path):
            sha256.update(piece)
    return sha256.hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 in hex of the bytes of a file."""
    sha256 = hashlib.sha256()
    with raise_media_errors_naming_file(path):
        for piece in _file_chunks(path):
            sha256.update(piece)
    return sha256.hexdigest()


def _bytes_of_frame_folder(clip: Clip) -> Iterator[bytes]:
    yield f"folder at {float(clip.fps or FRAME_RATE_OF_FOLDERS)!r}\n".encode()
    for path in find_frame_files(clip.path).paths:
        name = path.name.encode("utf-8", "surrogateescape")
        yield f"{len(name)} {path.stat().st_size}\n".encode()  # keeps a name from running into the bytes behind it
        yield name
        yield from _file_chunks(path)


def _file_chunks(path: Path) -> Iterator[bytes]:
    with open_regular_file(path) as file:
        while chunk := file.read(1 << 20):
            yield chunk


def digest_of_size_and_ends(path: Path) -> str:
    """SHA-256 in hex of a file's length and its first and last MiB: tells recordings apart without reading them all."""
    with raise_media_errors_naming_file(path), open_regular_file(path) as file:
        size = path.stat().st_size
        sha256 = hashlib.sha256(f"{size}\n".encode() + file.read(1 << 20))
        file.seek(max(0, size - (1 << 20)))
        sha256.update(file.read(1 << 20))
    return sha256.hexdigest()


class ClipDigests:
    """The digests of a dataset's clips, with those that were found before under a cache's folder."""

    def __init__(self, root: Path, source: Path) -> None:
        name = digest(str(source.resolve()), 16)
        self.path = root / "digests" / f"{name}-2.json"
        self.earlier = _read_cached_digests(self.path)
        self.unmarked = _read_cached_digests(root / "digests" / f"{name}.json")
        self.now: dict[str, CachedDigest] = {}

    def find_or_compute(self, clip: Clip) -> str:
        """The digest of a clip, read only where it is not known."""
        state = _regular_file_state(clip.path) if clip.frames is None else None
        if state is None:
            return clip_digest(clip)
        name = f"{clip.path} {clip.start} {clip.count} {clip.disturbed}"
        if is_npy_or_zip_file(clip.path):  # which has no clock of its own: its rate is part of its digest
            name += f" array {clip.fps}"
        cached = self.earlier.get(name)
        if cached is None and name in self.unmarked and not is_video_mirrored(clip.path):
            cached = self.unmarked[name]
        if cached is not None and cached[0] == state:
            self.now[name] = cached
            return cached[1]
        digest = clip_digest(clip)
        if _regular_file_state(clip.path) == state and time.time_ns() - max(state[-2:]) > SETTLED:
            self.now[name] = state, digest
        return digest

    def save(self) -> None:
        """Remember them for the next time; a cache that cannot be written to remembers nothing."""
        part = len(self.now) < len(self.earlier)  # a few of the clips, as --limit takes
        digests = {**self.earlier, **self.now} if part else self.now
        if digests != self.earlier:
            with suppress(OSError, ValueError), atomic_write_path(self.path) as temporary:
                temporary.write_bytes(msgspec.json.encode(digests))


def _read_cached_digests(path: Path) -> dict[str, CachedDigest]:
    """What was remembered; nothing where that cannot be read."""
    with suppress(OSError, ValueError):
        return msgspec.json.decode(path.read_bytes(), type=dict[str, CachedDigest])
    return {}


def _regular_file_state(path: Path) -> State | None:
    """Of a regular file; None for a folder of frames, or where there is nothing."""
    try:
        status = os.stat(path)  # noqa: PTH116 - asked of every clip
    except (OSError, ValueError):
        return None
    state = status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    return state if S_ISREG(status.st_mode) else None
