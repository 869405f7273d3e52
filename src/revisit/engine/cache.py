"""The evidence cache: content-addressed, shared by all runs, safe to delete at any time.

Evidence is stored under the hash of everything that it depends on (clip bytes, observer, version, weights, parameters,
decoding rule), so it is never stale and never overwritten with something else. A seal tells damaged files, which are
dropped and made again. What cannot be read because of rights or the disk is left as it is, and what cannot be written
is kept for one run; `problems` says both.

Machines that share no folder may share evidence through a URL: of an object store, or whatever else fsspec knows. Every
machine keeps its own cache. What it makes goes to the URL, too; what it lacks comes from there.

What was not used for longest may go first. Only what is made again when needed can go: evidence, networks as this
machine runs them, copies of clips that browsers can show, clips taken out of the shards of a dataset. Answers of judges
and pictures of servers, which were paid for, and weights stay.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from revisit.core import MissingPrerequisite, UsageError, from_arrays, to_arrays
from revisit.core.text import format_error_on_one_line
from revisit.media import load_npz, save_npz, verify_seal_if_present
from revisit.media.cache_folders import EVIDENCE, INPUTS, NETWORKS, PREVIEWS, cache_root
from revisit.media.files import UNFINISHED, atomic_write_path, file_exists

T = TypeVar("T")
FILES = "*/[!.]*.npz"  # of evidence, in its folder
OF_DAMAGED_BYTES = (None, errno.EINVAL, errno.ENOENT)  # wrong offsets lead to these, and others who remove files
LEVEL = 1  # of zlib: packing would otherwise be most of what the engine takes
FEW = 512  # values: about as many as there are of 1/256 between -1 and 1
CODES, HIGH, VALUES = ":codes", ":high", ":values"  # of an array of which only the values that it has are kept whole
VARIABLE = "REVISIT_SHARED_CACHE"  # the URL
LISTED = 30.0  # seconds for which a list of what is there is good enough: who misses something makes it twice
LIMIT = "REVISIT_CACHE_LIMIT"  # the size that the cache should keep to
# What can go, and the files in it; a clip out of a shard is a folder.
FOLDERS = {EVIDENCE: FILES, NETWORKS: "[!.]*.made", PREVIEWS: "[!.]*.mp4", INPUTS: "[!.]*/[!.]*"}
ABANDONED = 3600.0  # seconds after which a file that did not grow is nobody's any more
__all__ = ["EvidenceCache", "MemoryCache", "cache_root"]


@dataclass(frozen=True)
class EvidenceCache:
    """Evidence records by key: in a folder, and where a URL is given also there, for machines that share no folder."""

    root: Path
    shared: str = field(default_factory=lambda: os.environ.get(VARIABLE, ""))
    spare: Path | None = None  # a folder of one run, made for the first evidence that the cache does not take
    problems: dict[str, str] = field(default_factory=dict, compare=False)  # kind -> a sentence on its first case

    def path(self, key: str) -> Path:
        return self.root / EVIDENCE / key[:2] / f"{key}.npz"

    def __contains__(self, key: str) -> bool:
        is_local = file_exists(f"{self.root}/{EVIDENCE}/{key[:2]}/{key}.npz")  # asked of every clip of a run
        return is_local or self._is_spare(key) or bool(self.shared and self._share(lambda shared: key in shared))

    def _is_spare(self, key: str) -> bool:
        return self.spare is not None and file_exists(self.spare / f"{key}.npz")

    def require_usable(self, *, writable: bool) -> None:
        """Refuse a folder that cannot be made, or where `writable` says that evidence will be written, not written."""
        folder = self.root / EVIDENCE
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            why = error.strerror or str(error)
        else:
            if not writable or os.access(folder, os.W_OK):
                return
            why = "it cannot be written"
        raise UsageError(
            f"the cache folder {self.root} cannot be used ({why}); set REVISIT_CACHE to a folder that can be written"
        )

    def save(self, key: str, record: Any) -> None:
        """Store a record; where the folder does not take it, in the spare one."""
        path, arrays = self.path(key), palette_encode_float16_arrays(to_arrays(record))
        try:
            save_npz(path, arrays, compress=True, level=LEVEL, seal=True)
        except OSError as error:
            if self.spare is None:
                raise
            self.spare.mkdir(mode=0o700, exist_ok=True)
            path = self.spare / f"{key}.npz"
            save_npz(path, arrays, compress=True, level=LEVEL, seal=True)
            self.problems.setdefault(
                "write",
                f"the cache folder {self.root} cannot be written ({_error_text(error)}): evidence that it did not take "
                "served this run only",
            )
        if self.shared and self.spare is None:  # as on a node, whose folder nobody else can read
            open_shared_evidence(self.shared).upload(key, path)
        elif self.shared:
            self._share(lambda shared: shared.upload(key, path))

    def _share(self, use: Callable[[SharedEvidence], T]) -> T | None:
        """What the shared cache answers; None where it fails, which costs time and no score."""
        shared = open_shared_evidence(self.shared)
        try:
            return use(shared)
        except Exception as error:  # every kind of storage has its own
            self.problems.setdefault(
                "share", f"{VARIABLE}={self.shared} cannot be used ({_error_text(error)}); the run goes on without it"
            )
            return None

    def load(self, kind: type, key: str) -> Any:
        """The record under `key`, or None where it is absent or damaged (it is then made again)."""

        def read_sealed_record(path: Path) -> Any:
            verify_seal_if_present(path)
            return from_arrays(kind, palette_decode_float16_arrays(load_npz(path)))

        return self._read_or_drop(key, read_sealed_record)

    def verify_or_drop(self, key: str) -> bool:
        """Whether the record under `key` is there and whole; a damaged one is dropped."""
        return bool(self._read_or_drop(key, lambda path: verify_seal_if_present(path) or load_npz(path)))

    def _read_or_drop(self, key: str, read: Callable[[Path], T]) -> T | None:
        path = self.spare / f"{key}.npz" if self.spare is not None and self._is_spare(key) else self.path(key)
        if not file_exists(path) and not (bool(self.shared) and self._share(lambda shared: shared.download(key, path))):
            return None
        try:
            content = read(path)
            with suppress(OSError):  # of a cache that others own
                os.utime(path)  # `revisit cache prune` keeps what was used last; many disks do not note who reads
            return content
        except MemoryError:
            raise
        except Exception as error:  # whatever damaged bytes lead to
            cause = error if isinstance(error, OSError) else error.__cause__
            if isinstance(cause, OSError) and cause.errno not in OF_DAMAGED_BYTES:
                self.problems.setdefault(
                    "read",
                    f"evidence in the cache folder {self.root} cannot be read, such as {path.name} "
                    f"({_error_text(cause)}): it counts as missing, and is not removed",
                )
                return None
            with suppress(OSError):  # as above
                path.unlink(missing_ok=True)
            if self.shared:
                self._share(lambda shared: shared.remove(key))
            return None

    def files(self) -> Iterator[Path]:
        return iter(sorted((self.root / EVIDENCE).glob(FILES)))


def _error_text(error: Exception) -> str:
    """Why something failed, in the words of the system where it has some."""
    return getattr(error, "strerror", None) or format_error_on_one_line(error)


def palette_encode_float16_arrays(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays as they are stored: half floats of few values as numbers of these, which takes half the time and room.

    Patch descriptors, most of what is stored, are rounded: most have about 260 values. The high bytes of their
    numbers, nearly all 0, lie apart. Values are told apart by their bits: nothing is lost.
    """
    packed = dict(arrays)
    for name, array in arrays.items():
        if array.dtype != np.float16:
            continue
        bits, there = array.view(np.uint16), np.zeros(1 << 16, bool)
        there[bits] = True
        values = np.flatnonzero(there)
        if len(values) <= FEW:
            numbers = np.zeros(1 << 16, np.uint16)
            numbers[values] = np.arange(len(values))
            codes = numbers[bits]
            del packed[name]
            packed |= {name + CODES: codes.astype(np.uint8), name + VALUES: values.astype(np.uint16).view(np.float16)}
            if len(values) > 256:
                packed[name + HIGH] = (codes >> 8).astype(np.uint8)
    return packed


def palette_decode_float16_arrays(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays that were coded so."""
    unpacked = {name: array for name, array in arrays.items() if not name.endswith((CODES, HIGH, VALUES))}
    for name in (name.removesuffix(CODES) for name in arrays if name.endswith(CODES)):
        codes = arrays[name + CODES]
        if name + HIGH in arrays:
            codes = codes + (arrays[name + HIGH].astype(np.uint16) << 8)
        unpacked[name] = arrays[name + VALUES][codes]
    return unpacked


class MemoryCache:
    """Evidence of clips that are scored in this process and leave nothing behind."""

    def __init__(self) -> None:
        self._records: dict[str, object] = {}
        self.problems: dict[str, str] = {}  # it has none

    def __contains__(self, key: str) -> bool:
        return key in self._records

    def save(self, key: str, record: Any) -> None:
        self._records[key] = record

    def load(self, kind: type, key: str) -> Any:
        return self._records.get(key)

    def keep_only(self, keys: Collection[str]) -> None:
        """Forget all others."""
        self._records = {key: record for key, record in self._records.items() if key in keys}


class SharedEvidence:
    """Files of evidence below a URL."""

    def __init__(self, url: str) -> None:
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise MissingPrerequisite(f"{VARIABLE} needs fsspec: pip install 'revisit-bench[ray]'") from None
        try:
            self.files, root = url_to_fs(url)
            self.root: str = root.rstrip("/")
            with suppress(PermissionError):  # it may be there to be read only
                self.files.makedirs(f"{self.root}/evidence", exist_ok=True)
        except Exception as error:  # every kind of storage has its own
            raise UsageError(f"{VARIABLE}={url}: cannot be opened ({type(error).__name__}: {error})") from error
        self._known: set[str] = set()
        self._listed = -LISTED

    def __contains__(self, key: str) -> bool:
        now = time.monotonic()
        if key not in self._known and now - self._listed >= LISTED:
            self._listed = now
            self.files.invalidate_cache()
            with suppress(FileNotFoundError):
                names = self.files.find(f"{self.root}/evidence")
                self._known |= {name.rpartition("/")[2].removesuffix(".npz") for name in names}
        return key in self._known

    def upload(self, key: str, path: Path) -> None:
        """Hand a file on, whole or not at all."""
        remote_path = self._remote_path(key)
        self.files.makedirs(remote_path.rpartition("/")[0], exist_ok=True)
        self.files.pipe_file(remote_path, path.read_bytes())
        self._known.add(key)

    def download(self, key: str, path: Path) -> bool:
        """Bring a file here; False where there is none."""
        try:
            content = self.files.cat_file(self._remote_path(key))
        except FileNotFoundError:
            return False
        with atomic_write_path(path) as temporary:
            temporary.write_bytes(content)
        return True

    def remove(self, key: str) -> None:
        """Take a damaged file away."""
        self._known.discard(key)
        with suppress(FileNotFoundError):
            self.files.rm_file(self._remote_path(key))

    def _remote_path(self, key: str) -> str:
        return f"{self.root}/evidence/{key[:2]}/{key}.npz"


@lru_cache(maxsize=4)
def open_shared_evidence(url: str) -> SharedEvidence:
    """The evidence below a URL, opened once in a process."""
    return SharedEvidence(url)


@dataclass(frozen=True)
class CacheFile:
    """A file of the cache, or the folder of one clip: its size, and when it was last made or read."""

    path: Path
    bytes: int
    used: float

    def remove(self) -> None:
        """Remove it; another process may have been faster."""
        if self.path.is_dir():
            shutil.rmtree(self.path, ignore_errors=True)
        else:
            self.path.unlink(missing_ok=True)


@dataclass(frozen=True)
class PruningPlan:
    """Pieces that go and pieces that stay, each with what was used last in front; torn files go, too."""

    old: Sequence[CacheFile]
    kept: Sequence[CacheFile]
    torn: Sequence[CacheFile]  # left unfinished by writers that were killed


def plan_pruning(root: Path, *, max_bytes: int | None = None, max_age_days: float | None = None) -> PruningPlan:
    """What must go for the cache to hold at most `max_bytes` bytes, and only what was used in the last `max_age_days`.

    Without either, everything goes.
    """
    files = [piece for folder in FOLDERS for piece in list_cache_files(root, folder)]
    since = -float("inf") if max_age_days is None else time.time() - max_age_days * 86400
    room = max_bytes if max_bytes is not None else 0 if max_age_days is None else float("inf")
    files.sort(key=lambda piece: (-piece.used, piece.path))
    totals = accumulate(piece.bytes for piece in files)
    stays = (piece.used > since and total <= room for piece, total in zip(files, totals, strict=True))
    first_to_go = next((number for number, stay in enumerate(stays) if not stay), len(files))
    unfinished = (
        _measure_cache_file(path) for folder in FOLDERS for path in sorted((root / folder).rglob(f"{UNFINISHED}*"))
    )
    kept, old = files[:first_to_go], files[first_to_go:]
    return PruningPlan(old, kept, [one for one in unfinished if one and one.used <= time.time() - ABANDONED])


def list_cache_files(root: Path, folder: str) -> list[CacheFile]:
    """What a folder of the cache holds."""
    return [piece for path in (root / folder).glob(FOLDERS[folder]) if (piece := _measure_cache_file(path))]


def _measure_cache_file(path: Path) -> CacheFile | None:
    try:
        states = [file.stat() for file in (path.iterdir() if path.is_dir() else [path])]
    except FileNotFoundError:  # another process was faster
        return None
    used = max((max(state.st_mtime, state.st_atime) for state in states), default=0.0)
    return CacheFile(path, sum(state.st_size for state in states), used)


def cache_limit_bytes_from_environment() -> int | None:
    """The bytes that the cache should keep to, where the user said so."""
    text = os.environ.get(LIMIT, "")
    try:
        return parse_byte_size(text) if text else None
    except UsageError as error:
        raise UsageError(f"{LIMIT}: {error}") from None


def cache_over_limit_warning(root: Path, limit: int) -> str:
    """What to tell of a cache that holds more than its limit."""
    total = sum(piece.bytes for folder in FOLDERS for piece in list_cache_files(root, folder))
    if total <= limit:
        return ""
    return (
        f"the cache holds {format_byte_size(total)}, more than the {format_byte_size(limit)} of {LIMIT}; "
        "'revisit cache prune' removes what was not used for longest"
    )


def parse_byte_size(text: str) -> int:
    """Bytes of a size such as 500MB, 1.5 GB or 2GiB."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", text.lower())
    if match is None:
        raise UsageError(f"{text!r} is not a size; write one such as 500MB or 10GB")
    return int(float(match[1]) * (1024 if match[3] else 1000) ** " kmgt".index(match[2] or " "))


def format_byte_size(bytes: int) -> str:
    """The size for people."""
    return f"{bytes / 1e9:.1f} GB" if bytes >= 1e9 else f"{bytes / 1e6:.1f} MB"
