"""What is made of weights for this machine, and kept in the cache: bytes by name, the oldest of too many go."""

from __future__ import annotations

import hashlib
from pathlib import Path

from revisit.media.cache_folders import NETWORKS, cache_root
from revisit.media.files import atomic_write_path

MOST = 48  # files; one of EfficientNet-Lite0 for one size of pictures has 14 MB
DIGEST = 16  # bytes at the end of a file: what was damaged is not given to a parser


def load_derived_bytes(name: str) -> bytes | None:
    """The bytes that were kept under this name, if they are there and whole."""
    path = _derived_file_path(name)
    try:
        data = path.read_bytes()
        path.touch()
    except OSError:
        return None
    return data[:-DIGEST] if _blake2_digest(data[:-DIGEST]) == data[-DIGEST:] else None


def store_derived_bytes(name: str, data: bytes) -> None:
    """Keep these bytes; where the disk is full or may not be written to, they are made again next time."""
    path = _derived_file_path(name)
    try:
        with atomic_write_path(path) as temporary:
            temporary.write_bytes(data + _blake2_digest(data))
        others = sorted(path.parent.glob(f"*{path.suffix}"), key=lambda file: file.stat().st_mtime, reverse=True)
        for old in others[MOST:]:
            old.unlink(missing_ok=True)
    except OSError:
        return


def _derived_file_path(name: str) -> Path:
    return cache_root() / NETWORKS / f"{name}.made"


def _blake2_digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=DIGEST).digest()
