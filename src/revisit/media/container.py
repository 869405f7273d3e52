"""Container: recognises the kind of a video file by its first bytes and its outermost structure.

ISO base media (mp4, m4v, mov), Matroska (mkv, webm), AVI, GIF and animated WebP are opened. The file
name plays no part. The same walk finds out whether the file is whole: all announce
how long their parts are, so a file that was cut off is refused before decoding.
A Matroska file written live does not announce its length; there only the frames can tell.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import BinaryIO

from revisit.core import MediaError
from revisit.media.limits import format_size

READS = "videos are mp4, m4v, mov, mkv, webm, avi, gif or animated webp, arrays npy or npz"
ANIMATION = "webp"  # in the place of a demuxer's name: libwebp reads it, by OpenCV
_ANIMATED = 0x02  # flag of an extended WebP file
_BOXES = (b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot", b"uuid", b"styp", b"sidx", b"moof")
_NEEDED_BOXES = (b"moov", b"mdat", b"moof")
EBML, _SEGMENT = b"\x1a\x45\xdf\xa3", b"\x18\x53\x80\x67"
_OTHERS = (
    (b"version https://git-lfs", "a Git LFS pointer, not the video itself; fetch it with `git lfs pull`"),
    (b"#EXTM3U", "a playlist, not a video; give the video itself"),
    (b"\x89PNG", "a PNG image, not a video; for a folder of frames, give the folder"),
    (b"\xff\xd8\xff", "a JPEG image, not a video; for a folder of frames, give the folder"),
    (b"PK\x03\x04", "a zip archive, not a video; unpack it first"),
    (b"\x1f\x8b", "a gzip archive, not a video; unpack it first"),
    (b"RIFF", "a RIFF file, but no AVI and no WebP animation; convert it to mp4"),
    (b"OggS", "an Ogg file; convert it to mp4"),
    (b"FLV\x01", "a Flash video; convert it to mp4"),
    (b"ID3", "a sound file, not a video"),
    (b"\x00\x00\x01\xba", "an MPEG program stream; convert it to mp4"),
)


def detect_demuxer(file: BinaryIO) -> str:
    """Name of the one demuxer that may open this file, or `webp`. Raises MediaError for anything else."""
    size = os.fstat(file.fileno()).st_size
    start = file.read(4096)
    if not start:
        raise MediaError("the file is empty (0 bytes); generate or download it again")
    if start[4:8] in _BOXES:
        _require_complete_mp4(file, size)
        return "mov"
    if start.startswith(EBML):
        _require_complete_matroska(start, size)
        return "matroska"
    if start.startswith(b"RIFF") and start[8:12] in (b"AVI ", b"WEBP"):
        _require_complete_riff(file, size)
        if start[8:12] == b"AVI ":
            return "avi"
        if is_animated_webp(start):
            return ANIMATION
        raise MediaError("this is a WebP picture, not an animation; for a folder of frames, give the folder")
    if start.startswith(b"GIF8"):
        _require_complete_gif(file, size)
        return "gif"
    kind = next((what for magic, what in _OTHERS if start.startswith(magic)), None)
    if kind is None:
        kind = "text, not a video" if _is_utf8_text(start) else "not a known video format"
    raise MediaError(f"this is {kind} ({READS})")


def is_animated_webp(start: bytes) -> bool:
    """Whether the first bytes are those of an animated WebP file."""
    return start.startswith(b"RIFF") and start[8:16] == b"WEBPVP8X" and len(start) > 20 and bool(start[20] & _ANIMATED)


def _is_utf8_text(start: bytes) -> bool:
    try:
        # The last character may be cut in the middle of its bytes.
        text = start.decode("utf-8", errors="strict" if len(start) < 4096 else "ignore")
    except UnicodeDecodeError:
        return False
    return all(c.isprintable() or c in "\t\n\r\f" for c in text.removeprefix("\ufeff"))


def _require_complete_mp4(file: BinaryIO, size: int) -> None:
    """Check that an ISO base media file has its index and is not cut off."""
    kinds = set()
    for kind, _, end in iterate_mp4_boxes(file, size):
        kinds.add(kind)
        if end > size and kind in _NEEDED_BOXES:
            raise _truncated_file_error(size, end)
    if b"moov" not in kinds:
        raise MediaError(
            "the index of the video (its moov box) is missing: the file was cut off or never finished; "
            "generate or download it again"
        )


def iterate_mp4_boxes(file: BinaryIO, size: int) -> Iterator[tuple[bytes, int, int]]:
    """Kind of each box at the outermost level of so many bytes, where its content starts, and where it ends."""
    at = 0
    for _ in range(100_000):  # fragmented files have one or two boxes a fragment
        file.seek(at)
        head = file.read(16)
        if len(head) < 8:
            return
        length, start = int.from_bytes(head[:4], "big"), at + 8
        if length == 1:
            length, start = int.from_bytes(head[8:16], "big"), at + 16
        elif length == 0:  # until the end of the file
            length = size - at
        yield head[4:8], start, at + length
        if length < 8:
            return
        at += length


def _require_complete_riff(file: BinaryIO, size: int) -> None:
    """Check that a RIFF file is as long as its outermost chunks announce; a long AVI file has several of them."""
    at = 0
    while at + 12 <= size:
        file.seek(at)
        head = file.read(8)
        if head[:4] != b"RIFF":
            return  # padding behind the last one
        length = int.from_bytes(head[4:], "little")
        if at + 8 + length > size:
            raise _truncated_file_error(size, at + 8 + length)
        if length < 4:
            raise MediaError("its length was never written: the file was not finished; generate or download it again")
        at += 8 + length + length % 2


def _require_complete_gif(file: BinaryIO, size: int) -> None:
    """Check that a GIF file goes on to the mark of its end."""
    file.seek(0)
    head = file.read(13)
    at = 13 + (3 << (head[10] & 7) + 1 if len(head) == 13 and head[10] & 0x80 else 0)  # behind the table of colours
    while at < size:
        file.seek(at)
        kind = file.read(1)
        if kind == b";":
            return
        if kind == b"!":
            at += 2
        elif kind == b",":
            flags = file.read(9)[8:9] or b"\0"
            at += 11 + (3 << (flags[0] & 7) + 1 if flags[0] & 0x80 else 0)
        else:
            raise MediaError("it is no whole GIF file: a block in it is unknown; generate or download it again")
        at = _position_after_gif_blocks(file, at)
    raise MediaError(f"the file is truncated: its {format_size(size)} have no end; generate or download it again")


def _position_after_gif_blocks(file: BinaryIO, at: int) -> int:
    """The position behind a row of data blocks, each of which begins with its length."""
    while True:
        file.seek(at)
        length = file.read(1)
        if length in (b"", b"\0"):
            return at + 1
        at += 1 + length[0]


def _require_complete_matroska(start: bytes, size: int) -> None:
    """Check that a Matroska file is as long as its segment announces."""
    length, at = parse_ebml_length(start, 4)
    at += length or 0
    if start[at : at + 4] != _SEGMENT:
        return  # padding before the segment is allowed; the demuxer will find it
    length, at = parse_ebml_length(start, at + 4)
    if length is not None and at + length > size:
        raise _truncated_file_error(size, at + length)


def parse_ebml_length(data: bytes, at: int) -> tuple[int | None, int]:
    """An EBML length at a position, None if it is written as unknown, and the position behind it."""
    first = data[at] if at < len(data) else 0
    width = 9 - first.bit_length()
    value = int.from_bytes(data[at : at + width], "big") & ((1 << 7 * width) - 1)
    return (None if value == (1 << 7 * width) - 1 else value), at + width


def _truncated_file_error(size: int, announced: int) -> MediaError:
    return MediaError(
        f"the file is truncated: it has {format_size(size)} of the {format_size(announced)} in its header; generate or "
        "download it again"
    )
