"""Arrays in untrusted npz and npy files, read safely.

Pickled objects are never loaded: they run code. The directory of the zip file is checked before
anything is unpacked, the header of each array before its data, and no more bytes are taken than
both announce. Files are written in one piece and with fixed times, so equal arrays give equal bytes.
A sealed file ends with the SHA-256 of all its other bytes, in the place of the zip's comment: the checksums of a zip
say nothing of its directory, nor of the shapes of its arrays.
"""

from __future__ import annotations

import hashlib
import io
import math
import struct
import zipfile
import zlib
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, NamedTuple, TypeVar

import numpy as np

from revisit.core import MediaError
from revisit.media.error_names import printable_line, raise_media_errors_naming_file
from revisit.media.files import atomic_write_path
from revisit.media.limits import GIB, format_size

Part = TypeVar("Part")

MOST_MEMBERS = 4096
DAMAGED = (
    zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, zlib.error, struct.error, ValueError,
    OverflowError,
)  # what a zip file that is none leads to  # fmt: skip
LONGEST_HEADER = 10_000  # characters that numpy parses of an array that nobody vouches for
SAMPLE = 1 << 14  # bytes that tell whether an array can be packed
SEAL = 64  # characters of a SHA-256 in hex
_END = b"PK\5\6" + bytes(16)  # how the last record of a zip begins, and how long it is without its comment's length
_KINDS = "biufcSU"  # booleans, numbers, fixed-length text
_NEVER = "it holds pickled Python objects, which are never loaded because they can run code; save plain numeric arrays"


def load_npz(path: Path, max_bytes: int = 2 * GIB, members: Collection[str] | None = None) -> dict[str, np.ndarray]:
    """Arrays of an npz file by name; a npy file gives one array named after the file.

    `max_bytes` bounds all arrays together, unpacked. `members` names the arrays to read (all of them
    must exist).
    """
    with raise_media_errors_naming_file(path):
        with path.open("rb") as file:
            start = file.read(6)
            file.seek(0)
            if start.startswith(b"\x93NUMPY"):
                arrays = {path.stem: _read_array(file, path.stem, path.stat().st_size, max_bytes)}
            elif start.startswith(b"PK"):
                arrays = _read_npz_members(file, max_bytes, members, partial(_read_whole_array, max_bytes=max_bytes))
            elif start.startswith(b"\x80"):
                raise MediaError(_NEVER)
            else:
                raise MediaError("this is not an npz or npy file; write one with numpy.savez or numpy.save")
        for name in members or ():
            if name not in arrays:
                raise MediaError(f"it holds no array {name!r}; it has {', '.join(sorted(arrays)) or 'none'}")
    return arrays


def load_npy(path: Path) -> np.ndarray:
    """The array of a npy file, or the only one of an npz file."""
    arrays = load_npz(path)
    if len(arrays) != 1:
        raise MediaError(f"{printable_line(path.name)}: expected one array, found {len(arrays)}")
    return next(iter(arrays.values()))


class ArrayHeader(NamedTuple):
    """Shape, order and type of an array, before its data is read."""

    shape: tuple[int, ...]
    is_fortran: bool
    dtype: np.dtype


def read_array_headers(path: Path) -> dict[str, ArrayHeader]:
    """Shapes and types of the arrays of an npz or npy file by name, from their headers: the data is not read."""
    with raise_media_errors_naming_file(path), path.open("rb") as file:
        if file.read(6).startswith(b"\x93NUMPY"):
            file.seek(0)
            return {path.stem: _read_npy_header(file, path.stem)}
        return _read_npz_members(file, 1 << 62, None, lambda stream, name, size: _read_npy_header(stream, name))


def array_shapes_in_npz(path: Path) -> dict[str, tuple[int, ...]]:
    """Shapes of the arrays of an npz file by name, from their headers: the data is not read."""
    return {name: header.shape for name, header in read_array_headers(path).items()}


def save_npz(
    path: Path, arrays: Mapping[str, np.ndarray], compress: bool = False, seal: bool = False, level: int = 6
) -> None:
    """Write arrays as an npz file: whole or not at all, the same bytes for the same arrays."""
    with atomic_write_path(path) as temporary:
        with zipfile.ZipFile(temporary, "w") as archive:
            archive.comment = bytes(SEAL) if seal else b""
            for name in sorted(arrays):
                array = np.asarray(arrays[name])
                if array.dtype.hasobject:
                    raise MediaError(
                        f"{path.name}: the array {name!r} holds Python objects; only numbers and text are saved"
                    )
                member = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
                member.create_system, member.external_attr = 3, 0o644 << 16
                if compress:  # in one go: zipfile takes no level for a member that is written piece by piece
                    buffer = io.BytesIO()
                    np.lib.format.write_array(buffer, array, allow_pickle=False)
                    packed = _is_worth_compressing(buffer.getbuffer())
                    compression = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
                    archive.writestr(member, buffer.getbuffer(), compression, level)
                    continue
                with archive.open(member, "w", force_zip64=array.nbytes > GIB) as file:
                    np.lib.format.write_array(file, array, allow_pickle=False)
        if seal:
            with temporary.open("r+b") as file:
                checksum = _sha256_without_seal(file)
                file.write(checksum)


def _is_worth_compressing(data: memoryview) -> bool:
    """Whether packing is worth its time: by an eighth at least, which pictures are not."""
    piece = data[len(data) // 2 :][:SAMPLE]
    return len(zlib.compress(piece, 1)) < 0.875 * len(piece)


def verify_seal_if_present(path: Path) -> bool:
    """Whether a file was sealed, as files of earlier versions were not; MediaError where its bytes have changed."""
    with raise_media_errors_naming_file(path), path.open("rb") as file:
        file.seek(-min(len(_END) + 2, path.stat().st_size), 2)
        end = file.read()
        if end[:4] == _END[:4] and end[-2:] == bytes(2):  # a zip without a comment
            return False
        if _sha256_without_seal(file) != file.read():
            raise MediaError("its bytes are not those that were written; the file is damaged")
    return True


def _sha256_without_seal(file: IO[bytes]) -> bytes:
    """The seal that a file should have, which is then the next to be read or written."""
    checksum, remaining = hashlib.sha256(), file.seek(0, 2) - SEAL
    file.seek(0)
    while remaining > 0 and (piece := file.read(min(remaining, 1 << 20))):
        checksum.update(piece)
        remaining -= len(piece)
    return checksum.hexdigest().encode()


def _read_npz_members(
    file: IO[bytes], max_bytes: int, members: Collection[str] | None, read: Callable[[IO[bytes], str, int], Part]
) -> dict[str, Part]:
    """What `read` makes of the stream, the name and the size of each member."""
    try:
        with zipfile.ZipFile(file) as archive:
            parts = {}
            for name, member in _select_npz_members(archive, max_bytes, members).items():
                with archive.open(member) as stream:
                    parts[name] = read(stream, name, member.file_size)
            return parts
    except DAMAGED as error:
        raise MediaError("the archive is damaged; write it again") from error


def _select_npz_members(
    archive: zipfile.ZipFile, max_bytes: int, members: Collection[str] | None
) -> dict[str, zipfile.ZipInfo]:
    """Members to read by array name, after checking what the directory announces."""
    entries = archive.infolist()
    if len(entries) > MOST_MEMBERS:
        raise MediaError(f"it holds {len(entries)} arrays, more than the {MOST_MEMBERS} allowed")
    chosen: dict[str, zipfile.ZipInfo] = {}
    for entry in entries:
        label, name = printable_line(entry.filename), entry.filename.removesuffix(".npy")
        if name == entry.filename or not name.isprintable():
            raise MediaError(f"the member {label!r} is not an array; an npz file holds only .npy members")
        if name in chosen:
            raise MediaError(f"the member {label!r} occurs twice; write the file again")
        if entry.flag_bits & 1:
            raise MediaError(f"the member {label!r} is encrypted; write the file without a password")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise MediaError(f"the member {label!r} is packed in an unusual way; write the file with numpy.savez")
        if members is None or name in members:
            chosen[name] = entry
    total = sum(entry.file_size for entry in chosen.values())
    if total > max_bytes:
        raise _arrays_too_large_error(total, max_bytes)
    return chosen


def _read_whole_array(stream: IO[bytes], name: str, size: int, max_bytes: int) -> np.ndarray:
    array = _read_array(stream, name, size, max_bytes)
    if stream.read(1):  # reading to the end also compares the checksum
        raise MediaError(f"the array {printable_line(name)!r} has more data than its shape; write it again")
    return array


def _read_array(stream: IO[bytes], name: str, size: int, max_bytes: int) -> np.ndarray:
    """One array, whose header and data together are `size` bytes."""
    label = printable_line(name)
    shape, is_fortran, dtype = _read_npy_header(stream, name)
    if dtype.hasobject:
        raise MediaError(f"the array {label!r}: {_NEVER}")
    if dtype.kind not in _KINDS:
        raise MediaError(
            f"the array {label!r} has the type {printable_line(str(dtype), 60)}; save plain numbers or text"
        )
    if any(length < 0 for length in shape):
        raise MediaError(f"the array {label!r} has the shape {shape}; write the file again")
    count = math.prod(shape) * dtype.itemsize
    if count > max_bytes:
        raise _arrays_too_large_error(count, max_bytes)
    if count > size:
        raise MediaError(
            f"the array {label!r} should have {format_size(count)} but has {format_size(size)}; the file is truncated"
        )
    data = np.empty(count, dtype=np.uint8)
    view = data.data
    while view:
        taken = stream.readinto(view)  # type: ignore[attr-defined]
        if not taken:
            raise MediaError(f"the array {label!r} ends {format_size(len(view))} early; the file is truncated")
        view = view[taken:]
    return data.view(dtype).reshape(shape, order="F" if is_fortran else "C")


def _read_npy_header(stream: IO[bytes], name: str) -> ArrayHeader:
    """The header of an array, from the head of its file."""
    try:
        version = np.lib.format.read_magic(stream)
        size = stream.read({(1, 0): 2, (2, 0): 4}[version])
        header = stream.read(min(int.from_bytes(size, "little"), LONGEST_HEADER))
        shape, fortran, dtype = _parse_npy_header(version, size + header)
    except (zipfile.BadZipFile, zlib.error, OSError, MemoryError):
        raise
    except Exception as error:  # numpy parses it as Python, which fails in many ways
        raise MediaError(
            f"the array {printable_line(name)!r} has no readable header; write the file with numpy.save or savez"
        ) from error
    return ArrayHeader(tuple(shape), bool(fortran), dtype)


@lru_cache(maxsize=256)
def _parse_npy_header(version: tuple[int, int], header: bytes) -> tuple[tuple[int, ...], bool, np.dtype]:
    """What a header says. Most are alike, and each that numpy parses leaves it functions to clear away."""
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return read_header(io.BytesIO(header))


def _arrays_too_large_error(size: int, max_bytes: int) -> MediaError:
    return MediaError(f"its arrays are {format_size(size)} unpacked, more than the {format_size(max_bytes)} allowed")
