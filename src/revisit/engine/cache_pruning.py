"""What of the cache may go: what was not used for longest goes first.

Only what is made again when needed can go: evidence, networks as this machine runs them, copies of clips that browsers
can show, clips taken out of the shards of a dataset. Answers of judges and pictures of servers, which were paid for,
and weights stay.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from revisit.core import UsageError
from revisit.engine.cache import FILES
from revisit.media.cache_folders import EVIDENCE, INPUTS, NETWORKS, PREVIEWS
from revisit.media.files import UNFINISHED

LIMIT = "REVISIT_CACHE_LIMIT"  # the size that the cache should keep to
# and the files in them; a clip out of a shard is a folder
FOLDERS = {EVIDENCE: FILES, NETWORKS: "[!.]*.made", PREVIEWS: "[!.]*.mp4", INPUTS: "[!.]*/[!.]*"}
ABANDONED = 3600.0  # seconds after which a file that did not grow is nobody's any more


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
