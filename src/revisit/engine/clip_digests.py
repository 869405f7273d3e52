"""Digests of videos that have not changed since they were read: thousands of clips are not read again for one more.

A file counts as unchanged while its size, its number on the disk and both its times are the same; the second of these
cannot be set by hand. What was changed in the last two seconds is not remembered, because a clock may be too coarse to
tell a later change. Digests of before mirrored clips had one of their own are taken over where a clip is not mirrored.
Observers still compare the bytes that they have decoded with the digest of the plan.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG

import msgspec

from revisit.core import Clip, digest
from revisit.media import clip_digest
from revisit.media.array_clip import is_npy_or_zip_file
from revisit.media.files import atomic_write_path
from revisit.media.orientation import is_video_mirrored

SETTLED = 2 * 10**9  # nanoseconds
State = tuple[int, int, int, int]  # number on the disk, size, and when content and file changed
CachedDigest = tuple[State, str]


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
