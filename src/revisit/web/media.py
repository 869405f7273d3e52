"""Media: files of a fixed list, by name, with ranges; and a copy that any browser plays where the clip is none.

A browser seeks by time. A clip can be shown as it is when frame k of the file is on screen from k / rate to
(k + 1) / rate seconds: an mp4 or webm file of a codec that browsers have, at a constant rate. Everything else (folders
of frames, stretches of a file, odd codecs, variable rates, mirrored pictures) is encoded once, frame by frame, into a
folder of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import Clip, MediaError
from revisit.core.frames import ClipInfo
from revisit.media import clip_digest, encode_mp4, open_clip, read_clip_info
from revisit.media.video_index import is_video_mirrored, read_mp4_index

PROFILES = (b"\x42", b"\x4d", b"\x58", b"\x64")  # of H.264: baseline, main, extended, high
TYPES = {".mp4": "video/mp4", ".m4v": "video/mp4", ".mov": "video/mp4", ".webm": "video/webm"}
UNEVEN = 0.25  # of a frame: how far a frame may be from where a constant rate has it


@dataclass(frozen=True)
class PlayableFile:
    """A file that browsers play frame by frame, and what is known of the clip."""

    path: Path
    info: ClipInfo


def playable_file(clip: Clip, copies: Path) -> PlayableFile:
    """The clip as a browser can show it: itself where possible, else a copy in the folder `copies`."""
    info = read_clip_info(clip)
    whole = not clip.start and clip.count is None
    late = info.times * info.fps - np.arange(len(info.times))  # how far each frame is from where a constant rate has it
    if whole and _has_browser_codec(clip.path) and len(late) and np.abs(late).max() <= UNEVEN:
        return PlayableFile(clip.path, info)
    path = copies / f"{clip_digest(clip)[:32]}.mp4"
    if path.is_file():
        with suppress(OSError):  # of a cache that others own
            path.touch()  # `revisit cache prune` keeps what was used last
    else:
        copies.mkdir(parents=True, exist_ok=True)
        with open_clip(clip) as stream:
            encode_mp4(path, (_pad_to_even_size(frame.rgb) for frame in stream), info.fps, crf=14)
    return PlayableFile(path, info)


def _has_browser_codec(path: Path) -> bool:
    """Whether browsers have the codec, in 4:2:0 with 8 bits. Told from bytes of the index: no decoder is started."""
    kind = path.suffix.lower()
    if path.is_dir() or kind not in TYPES or is_video_mirrored(path):  # not every browser mirrors
        return False
    if kind == ".webm":
        with path.open("rb") as file:
            start = file.read(1 << 16)
        return any(codec in start for codec in (b"V_VP8", b"V_VP9", b"V_AV1"))
    index = read_mp4_index(path) or b""
    at = index.find(b"avcC")
    return at > 0 and index[at + 5 : at + 6] in PROFILES


def _pad_to_even_size(rgb: np.ndarray) -> np.ndarray:
    """The frame with its last row or column repeated where its size is odd."""
    return np.pad(rgb, ((0, rgb.shape[0] % 2), (0, rgb.shape[1] % 2), (0, 0)), mode="edge")


def media_response(files: Mapping[str, Path], name: str) -> Any:
    """The file of this name, or the part of it that the browser asks for; nothing else can be reached."""
    from starlette.exceptions import HTTPException
    from starlette.responses import FileResponse

    path = files.get(name)
    if path is None or not path.is_file():
        raise HTTPException(404, "There is no such file.")
    kind = TYPES.get(path.suffix.lower())
    if kind is None:
        raise MediaError(f"{path.name} is not a video that a browser plays")
    headers = {"cache-control": "private, max-age=3600", "content-disposition": "inline"}
    return FileResponse(path, media_type=kind, headers=headers)
