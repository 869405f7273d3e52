"""Length: the number of frames of a video, read from its index only."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from revisit.media.container import iterate_mp4_boxes

LARGEST_INDEX = 64 << 20  # bytes; the index of an hour of video has a few megabytes


def frame_count_in_mp4_index(path: Path) -> int | None:
    """Frames of the video track in the index of an mp4, m4v or mov file; None where the index does not say.

    Nothing is decoded and nothing is promised: the decoder checks the number when the clip is read. A fragmented
    file, or one of another kind, is None.
    """
    index = read_mp4_index(path)
    return None if index is None else _sample_count_of_video_track(index)


def read_mp4_index(path: Path) -> bytes | None:
    """The index (moov box) of an mp4, m4v or mov file, or None."""
    with path.open("rb") as file:
        for kind, start, end in iterate_mp4_boxes(file, path.stat().st_size):
            if kind == b"moov" and 0 <= end - start <= LARGEST_INDEX:
                file.seek(start)
                return file.read(end - start)
    return None


def frame_size_in_mp4_index(path: Path) -> tuple[int, int] | None:
    """Width and height of the video track by the index of an mp4, m4v or mov file; None where it does not say."""
    index = read_mp4_index(path)
    for kind, track in iterate_box_contents(index or b""):
        parts = dict(iterate_box_contents(track)) if kind == b"trak" else {}
        head, media = parts.get(b"tkhd", b""), dict(iterate_box_contents(parts.get(b"mdia", b"")))
        if media.get(b"hdlr", b"")[8:12] == b"vide" and len(head) >= 8:
            width, height = (int.from_bytes(part, "big") >> 16 for part in (head[-8:-4], head[-4:]))  # 16.16
            return (width, height) if width and height else None
    return None


def _sample_count_of_video_track(index: bytes) -> int | None:
    for kind, track in iterate_box_contents(index):
        media = (
            b"".join(body for name, body in iterate_box_contents(track) if name == b"mdia") if kind == b"trak" else b""
        )
        parts = dict(iterate_box_contents(media))
        if parts.get(b"hdlr", b"")[8:12] != b"vide":
            continue
        table = dict(iterate_box_contents(dict(iterate_box_contents(parts.get(b"minf", b""))).get(b"stbl", b"")))
        sizes = table.get(b"stsz", b"")
        return int.from_bytes(sizes[8:12], "big") or None if len(sizes) >= 12 else None
    return None


def iterate_box_contents(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Kind and content of each box at the outermost level of these bytes."""
    return ((kind, data[start:end]) for kind, start, end in iterate_mp4_boxes(BytesIO(data), len(data)))
