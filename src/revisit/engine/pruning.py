"""Which cached evidence may go: what was not used for longest goes first."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from revisit.core import UsageError
from revisit.engine.cache import EvidenceCache

ABANDONED = 3600.0  # seconds after which nobody writes to a file any more: evidence is written in a moment
UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}


@dataclass(frozen=True)
class Piece:
    """A file of evidence, its size, and when it was last made or read."""

    path: Path
    bytes: int
    used: float


@dataclass(frozen=True)
class Sorted:
    """Evidence that goes and evidence that stays, each with what was used last in front; torn files go, too."""

    old: Sequence[Piece]
    kept: Sequence[Piece]
    torn: Sequence[Piece]  # left unfinished by writers that were killed


def unused(cache: EvidenceCache, *, to: int | None = None, days: float | None = None) -> Sorted:
    """What must go for the cache to hold at most `to` bytes, and only what was used in the last `days`.

    Without either, everything goes.
    """
    pieces = sorted(filter(None, map(_piece, cache.files())), key=lambda piece: (-piece.used, piece.path))
    since = -float("inf") if days is None else time.time() - days * 86400
    room = to if to is not None else 0 if days is None else float("inf")
    old, kept = [], []
    full = False
    for piece in pieces:
        full = full or piece.used <= since or piece.bytes > room
        if full:
            old.append(piece)
        else:
            kept.append(piece)
            room -= piece.bytes
    unfinished = filter(None, map(_piece, cache.unfinished()))
    return Sorted(old, kept, [piece for piece in unfinished if piece.used <= time.time() - ABANDONED])


def _piece(path: Path) -> Piece | None:
    try:
        facts = path.stat()
    except FileNotFoundError:  # another process was faster
        return None
    return Piece(path, facts.st_size, max(facts.st_mtime, facts.st_atime))


def size_of(text: str) -> int:
    """Bytes of a size such as 500MB or 1.5 GB."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?b?)\s*", text.lower())
    unit = found.group(2).replace("i", "") if found else ""
    unit = unit if unit.endswith("b") or not unit else unit + "b"
    if found is None or unit not in UNITS:
        raise UsageError(f"{text!r} is not a size; write one such as 500MB or 10GB")
    return int(float(found.group(1)) * UNITS[unit])
