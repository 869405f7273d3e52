"""What the index of a video says: how many frames it has, how large they are, and whether it asks to be shown mirrored.

Nothing is decoded here. The decoder obeys whatever display matrix a frame brings (`worker.py`); `is_video_mirrored`
tells the few clips apart whose matrix mirrors them, because evidence of these from before they were mirrored must not
be used again. A matrix may be in the track of an mp4 file, in the projection of a Matroska track, or in a message of an
H.264 or HEVC stream, with its first frame.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from revisit.media.container import EBML, iterate_mp4_boxes, parse_ebml_length

LARGEST_INDEX = 64 << 20  # bytes; the index of an hour of video has a few megabytes
_SEGMENT, _TRACKS, _CLUSTER = 0x18538067, 0x1654AE6B, 0x1F43B675
_TRACK, _TRACK_NUMBER, _TRACK_TYPE, _CODEC, _CODEC_SETUP, _VIDEO = 0xAE, 0xD7, 0x83, 0x86, 0x63A2, 0xE0
_PROJECTION, _PROJECTION_TYPE, _YAW = 0x7670, 0x7671, 0x7673
_BLOCK_GROUP, _BLOCKS = 0xA0, (0xA1, 0xA3)
_VIDEO_TRACK = 1
_DISPLAY_ORIENTATION = 47  # number of the message, in H.264 and HEVC
_FIRST_FRAME = 1 << 20  # bytes of it that are looked at: messages come before pictures
_MOST_ELEMENTS = 100_000


def is_video_mirrored(path: Path) -> bool:
    """Whether the display matrix of a video turns left into right; False for what is no video.

    Parameters
    ----------
    path
        A video file, or a folder of frames, which is never mirrored.

    Returns
    -------
    bool
        True for a reflection, also one that is turned as well; False for plain rotations.
    """
    if not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(8)
        return _is_matroska_mirrored(file) if start.startswith(EBML) else _is_mp4_mirrored(path, file)


# ISO base media


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


def _is_mp4_mirrored(path: Path, file: BinaryIO) -> bool:
    index = read_mp4_index(path) or b""
    movie = _display_matrix_determinant(boxes_by_kind(index).get(b"mvhd", b""), 36, 48)
    for track, media in video_tracks(index):
        if movie * _display_matrix_determinant(track.get(b"tkhd", b""), 40, 52) < 0:
            return True
        tables = sample_tables(media)
        codec, setup = _codec_and_decoder_setup(tables.get(b"stsd", b""))
        return bool(codec) and _has_mirroring_sei_message(_read_first_sample(file, tables), codec, setup)
    return False


def _display_matrix_determinant(header: bytes, short: int, long: int) -> int:
    """Of the matrix in a movie's or track's header, which lies further back where times have 64 bits."""
    at = long if header[:1] == b"\x01" else short
    if len(header) < at + 20:
        return 1
    a, b, _, c, d = struct.unpack_from(">5i", header, at)
    return int(a * d - b * c)


def _codec_and_decoder_setup(description: bytes) -> tuple[str, bytes]:
    """The codec of a track and the record that sets its decoder up, for those whose streams have messages."""
    for kind, codec in ((b"avcC", "h264"), (b"hvcC", "hevc")):
        if (at := description.find(kind)) > 0:
            return codec, description[at + 4 :]
    return "", b""


def _read_first_sample(file: BinaryIO, table: dict[bytes, bytes]) -> bytes:
    sizes = table.get(b"stsz", b"")
    size = int.from_bytes(sizes[4:8], "big") or int.from_bytes(sizes[12:16], "big")
    places, wide = table.get(b"stco", b""), table.get(b"co64", b"")
    at = int.from_bytes(places[8:12], "big") or int.from_bytes(wide[8:16], "big")
    if not at:  # in fragments: the first begins with the first sample
        boxes = iterate_mp4_boxes(file, _file_size(file))
        at, end = next(((start, end) for kind, start, end in boxes if kind == b"mdat"), (0, 0))
        size = max(0, end - at)
    file.seek(min(at, _file_size(file)))
    return file.read(min(size, _FIRST_FRAME))


# Matroska


def _is_matroska_mirrored(file: BinaryIO) -> bool:
    tracks: dict[int, tuple[str, bytes]] = {}
    for kind, start, end in _iterate_ebml_elements(file, 0, _file_size(file)):
        if kind != _SEGMENT:
            continue
        for part, first, last in _iterate_ebml_elements(file, start, end):
            if part == _TRACKS:
                for track, a, b in _iterate_ebml_elements(file, first, last):
                    if track != _TRACK:
                        continue
                    number, codec, setup, mirrored = _read_matroska_track(file, a, b)
                    if mirrored:
                        return True
                    if codec:
                        tracks[number] = codec, setup
            elif part == _CLUSTER and tracks:
                return _is_first_frame_of_cluster_mirrored(file, first, last, tracks)
    return False


def _read_matroska_track(file: BinaryIO, start: int, end: int) -> tuple[int, str, bytes, bool]:
    """Number, codec, its record and whether the projection mirrors; of a track that is no video only its number."""
    fields = {kind: (first, last) for kind, first, last in _iterate_ebml_elements(file, start, end)}
    number = _read_unsigned_element(file, fields.get(_TRACK_NUMBER))
    if _read_unsigned_element(file, fields.get(_TRACK_TYPE)) != _VIDEO_TRACK:
        return number, "", b"", False
    name = _read_element(file, fields.get(_CODEC))
    codec = {b"V_MPEG4/ISO/AVC": "h264", b"V_MPEGH/ISO/HEVC": "hevc"}.get(name.rstrip(b"\0"), "")
    mirrored = False
    for kind, first, last in _iterate_ebml_elements(file, *fields.get(_VIDEO, (0, 0))):
        if kind == _PROJECTION:
            pose = {name: (a, b) for name, a, b in _iterate_ebml_elements(file, first, last)}
            flat = not _read_unsigned_element(file, pose.get(_PROJECTION_TYPE))
            mirrored = flat and abs(_read_float_element(file, pose.get(_YAW))) == 180
    return number, codec, _read_element(file, fields.get(_CODEC_SETUP)), mirrored


def _is_first_frame_of_cluster_mirrored(
    file: BinaryIO, start: int, end: int, tracks: dict[int, tuple[str, bytes]]
) -> bool:
    """Whether the first frame of one of these tracks, in the first cluster, has a message that mirrors."""
    for kind, first, last in _iterate_ebml_elements(file, start, end):
        blocks = _iterate_ebml_elements(file, first, last) if kind == _BLOCK_GROUP else [(kind, first, last)]
        for block, a, b in blocks:
            if block not in _BLOCKS:
                continue
            data = _read_element(file, (a, b))
            number, at = parse_ebml_length(data, 0)
            if number in tracks:
                codec, setup = tracks[number]
                return _has_mirroring_sei_message(data[at + 3 :], codec, setup)  # behind the time and the flags
    return False


def _iterate_ebml_elements(file: BinaryIO, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Number of each element between two places, where its content starts, and where it ends."""
    at = start
    for _ in range(_MOST_ELEMENTS):
        file.seek(at)
        head = file.read(12) if at < end else b""
        width = 9 - head[0].bit_length() if head else 9
        if width > 4 or len(head) < width + 1:
            return
        length, content = parse_ebml_length(head, width)
        first = at + content
        last = end if length is None else min(first + length, end)  # of unknown length: as far as there is anything
        yield int.from_bytes(head[:width], "big"), first, last
        at = last


def _read_element(file: BinaryIO, place: tuple[int, int] | None) -> bytes:
    if place is None:
        return b""
    file.seek(place[0])
    return file.read(min(place[1] - place[0], _FIRST_FRAME))


def _read_unsigned_element(file: BinaryIO, place: tuple[int, int] | None) -> int:
    return int.from_bytes(_read_element(file, place)[:8], "big")


def _read_float_element(file: BinaryIO, place: tuple[int, int] | None) -> float:
    data = _read_element(file, place)
    return float(struct.unpack({4: ">f", 8: ">d"}[len(data)], data)[0]) if len(data) in (4, 8) else 0.0


# Messages in the stream


def _has_mirroring_sei_message(sample: bytes, codec: str, setup: bytes) -> bool:
    """Whether a display orientation message comes with this frame and flips it once."""
    at_size, prefix, header = (4, 6, 1) if codec == "h264" else (21, 39, 2)
    if len(setup) <= at_size:
        return False
    width = (setup[at_size] & 3) + 1
    stream = BytesIO(sample)
    while len(head := stream.read(width)) == width:
        unit = stream.read(int.from_bytes(head, "big"))
        kind = unit[0] & 31 if codec == "h264" and unit else unit[0] >> 1 & 63 if unit else -1
        if kind == prefix and _is_flipped_by_sei_messages(unit[header:].replace(b"\0\0\3", b"\0\0")):
            return True
    return False


def _is_flipped_by_sei_messages(messages: bytes) -> bool:
    """Whether the last display orientation among the messages of a unit flips one of the two directions."""
    stream, flips = BytesIO(messages), False
    while len(head := stream.read(2)) == 2 and head != b"\x80":
        stream.seek(-2, os.SEEK_CUR)
        kind, size = _read_sei_number(stream), _read_sei_number(stream)
        body = stream.read(size)
        if kind == _DISPLAY_ORIENTATION and body and not body[0] & 0x80:  # the first bit cancels
            flips = bool(body[0] & 0x40) != bool(body[0] & 0x20)
    return flips


def _read_sei_number(stream: BinaryIO) -> int:
    """A number that is written as bytes of 255 and one below."""
    total = 0
    while byte := stream.read(1):
        total += byte[0]
        if byte[0] < 255:
            break
    return total


def _file_size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size
