"""Length: the number of frames of a video, read from its index only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

LARGEST_INDEX = 64 << 20  # bytes; the index of an hour of video has a few megabytes


def announced_frames(path: Path) -> int | None:
    """Frames of the video track in the index of an mp4, m4v or mov file; None where the index does not say.

    Nothing is decoded and nothing is promised: the decoder checks the number when the clip is read. A fragmented
    file, or one of another kind, is None.
    """
    index = index_of(path)
    return None if index is None else _video_samples(index)


def index_of(path: Path) -> bytes | None:
    """The index (moov box) of an mp4, m4v or mov file, or None."""
    with path.open("rb") as file:
        size, at = path.stat().st_size, 0
        while at + 8 <= size:
            file.seek(at)
            head = file.read(16)
            length = int.from_bytes(head[:4], "big")
            if length == 1:
                length = int.from_bytes(head[8:16], "big")
            if head[4:8] == b"moov" and 8 <= length <= LARGEST_INDEX:
                file.seek(at + 8)
                return file.read(length - 8)
            if length < 8:
                return None
            at += length
    return None


def _video_samples(index: bytes) -> int | None:
    for kind, track in _boxes(index):
        media = b"".join(body for name, body in _boxes(track) if name == b"mdia") if kind == b"trak" else b""
        parts = dict(_boxes(media))
        if parts.get(b"hdlr", b"")[8:12] != b"vide":
            continue
        table = dict(_boxes(dict(_boxes(parts.get(b"minf", b""))).get(b"stbl", b"")))
        sizes = table.get(b"stsz", b"")
        return int.from_bytes(sizes[8:12], "big") or None if len(sizes) >= 12 else None
    return None


def _boxes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 0
    while at + 8 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        if length < 8:
            return
        yield data[at + 4 : at + 8], data[at + 8 : at + length]
        at += length
