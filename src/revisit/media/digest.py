"""Digest: a hash of a clip's content, independent of where the file is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from revisit.core import Clip
from revisit.core.cases import FRAME_RATE_OF_FOLDERS
from revisit.core.processes import cores
from revisit.media.array_clip import is_npy_or_zip_file
from revisit.media.error_names import raise_media_errors_naming_file
from revisit.media.files import open_regular_file
from revisit.media.frame_folder import find_frame_files
from revisit.media.orientation import is_video_mirrored

MOST_THREADS = 8


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
