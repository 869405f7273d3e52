"""Archives: takes one member out of a wheel, a source archive or an npm package, by its exact name.

Nothing is unpacked under the name it has inside, nothing is imported, and no link is followed. An archive that holds a
name outside itself, or whose member is a link, a device, twice there or larger than expected, is refused.
"""

from __future__ import annotations

import hashlib
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

from revisit.core import RevisitError
from revisit.weights.lock import is_relative_inside_path

LARGEST_MEMBER = 16 << 30
MEMBERS = 200_000
EXPANSION = 64  # an archive may unpack to so many times its size: weights hardly shrink
SMALL = 1 << 28  # bytes that any archive may unpack to
PIECE = 1 << 20


def extract_and_hash_members(
    archive: Path, targets: Mapping[str, Path], sizes: Mapping[str, int | None]
) -> dict[str, str]:
    """SHA-256 of each wanted member, whose bytes are written to the file that `wanted` names for it."""
    name = archive.name
    digests: dict[str, str] = {}
    total = 0
    most = max(EXPANSION * archive.stat().st_size, SMALL)
    try:
        with _open_archive_members(archive) as members:
            for count, (member, size, regular, open_member) in enumerate(members, 1):
                total += size
                if count > MEMBERS or total > most:
                    raise RevisitError(f"{name}: it unpacks to far more than expected; nothing was extracted")
                if not is_relative_inside_path(member.removeprefix("./").rstrip("/")) and member.strip("./"):
                    raise RevisitError(
                        f"{name}: its member {member!r} has a path outside the archive; nothing was extracted"
                    )
                if member not in targets:
                    continue
                if member in digests:
                    raise RevisitError(f"{name}: {member} occurs twice; nothing was extracted")
                if not regular:
                    raise RevisitError(f"{name}: {member} is a link or not a regular file; nothing was extracted")
                limit = sizes.get(member)
                limit = LARGEST_MEMBER if limit is None else limit
                if size > limit:
                    raise RevisitError(f"{name}: {member} has {size} bytes, expected at most {limit}")
                source = open_member()
                assert source is not None  # it is a plain file
                with source:
                    digests[member] = _copy_and_hash(source, targets[member], limit, f"{name}: {member}")
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        cause = " ".join(str(error).split())[:200]
        raise RevisitError(f"{name}: this archive is damaged ({type(error).__name__}: {cause})") from error
    if missing := [member for member in targets if member not in digests]:
        raise RevisitError(f"{name}: it does not contain {missing[0]}")
    return digests


Member = tuple[str, int, bool, Callable[[], IO[bytes] | None]]


@contextmanager
def _open_archive_members(path: Path) -> Iterator[Iterator[Member]]:
    """Name, size, whether it is a plain file, and how to open it, for each member in turn."""
    if path.name.endswith((".whl", ".zip")):
        with zipfile.ZipFile(path) as packed:
            yield (
                (info.filename, info.file_size, _is_regular_zip_member(info), partial(packed.open, info))
                for info in packed.infolist()
            )
    else:
        with tarfile.open(path, mode="r|*") as tape:  # read once from front to back, so memory stays small
            yield ((member.name, member.size, member.isreg(), partial(tape.extractfile, member)) for member in tape)


def _is_regular_zip_member(info: zipfile.ZipInfo) -> bool:
    mode = info.external_attr >> 16
    return not info.is_dir() and (not stat.S_IFMT(mode) or stat.S_ISREG(mode))


def _copy_and_hash(source: IO[bytes], to: Path, limit: int, label: str) -> str:
    digest = hashlib.sha256()
    size = 0
    with to.open("wb") as file:
        while piece := source.read(PIECE):
            size += len(piece)
            if size > limit:
                raise RevisitError(f"{label} holds more than the {limit} bytes it should have")
            digest.update(piece)
            file.write(piece)
    return digest.hexdigest()
