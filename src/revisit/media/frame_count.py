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
    for _, media in video_tracks(read_mp4_index(path) or b""):
        return int.from_bytes(sample_tables(media).get(b"stsz", b"")[8:12], "big") or None
    return None


def frame_size_in_mp4_index(path: Path) -> tuple[int, int] | None:
    """Width and height of the video track by the index of an mp4, m4v or mov file; None where it does not say."""
    for track, _ in video_tracks(read_mp4_index(path) or b""):
        head = track.get(b"tkhd", b"")
        width, height = (int.from_bytes(part, "big") >> 16 for part in (head[-8:-4], head[-4:]))  # 16.16
        return (width, height) if width and height else None
    return None


def read_mp4_index(path: Path) -> bytes | None:
    """The index (moov box) of an mp4, m4v or mov file, or None."""
    with path.open("rb") as file:
        for kind, start, end in iterate_mp4_boxes(file, path.stat().st_size):
            if kind == b"moov" and 0 <= end - start <= LARGEST_INDEX:
                file.seek(start)
                return file.read(end - start)
    return None


def video_tracks(index: bytes) -> Iterator[tuple[dict[bytes, bytes], dict[bytes, bytes]]]:
    """The boxes of each video track in an index, and those of its media."""
    for kind, track in _iterate_boxes(index):
        boxes = boxes_by_kind(track) if kind == b"trak" else {}
        media = boxes_by_kind(boxes.get(b"mdia", b""))
        if media.get(b"hdlr", b"")[8:12] == b"vide":
            yield boxes, media


def sample_tables(media: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """The tables of sizes, places and kinds of the samples of a track, from the boxes of its media."""
    return boxes_by_kind(boxes_by_kind(media.get(b"minf", b"")).get(b"stbl", b""))


def boxes_by_kind(data: bytes) -> dict[bytes, bytes]:
    """Boxes at the outermost level of these bytes; of several of a kind the first."""
    boxes: dict[bytes, bytes] = {}
    for kind, body in _iterate_boxes(data):
        boxes.setdefault(kind, body)
    return boxes


def _iterate_boxes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    return ((kind, data[start:end]) for kind, start, end in iterate_mp4_boxes(BytesIO(data), len(data)))
