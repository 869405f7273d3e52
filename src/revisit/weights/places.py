"""Places: what lies on this machine, in one folder: $REVISIT_WEIGHTS, or `weights` in the user's cache.

<root>/<id>/<file>          pulled; receipt.json beside it says from where, and what its bytes were
<root>/<id>/<file>          put there by hand, without a receipt
<root>/<id>.safetensors     put there by hand (or .onnx, .pth, .pt); comes before what was pulled
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from revisit.media.files import replacing
from revisit.media.places import cache_root
from revisit.weights.http import sha256
from revisit.weights.lock import Entry

ROOT = "REVISIT_WEIGHTS"
RECEIPT = "receipt.json"
BY_HAND = (".safetensors", ".onnx", ".pth", ".pt", ".bin")


def root() -> Path:
    """The folder of all weights."""
    chosen = os.environ.get(ROOT)
    return Path(chosen).expanduser() if chosen else cache_root() / "weights"


@dataclass(frozen=True)
class Here:
    """What was found of an entry: its files by their names on this machine, the first one first."""

    files: Mapping[str, Path]
    receipt: Mapping[str, Any] | None  # None for files put there by hand

    @property
    def first(self) -> Path:
        return next(iter(self.files.values()))

    @property
    def by_hand(self) -> bool:
        return self.receipt is None


def look(entry: Entry) -> Here | str:
    """The files of an entry on this machine, or what is wrong: a path that is missing or other than it should be."""
    base = root()
    names = [file.becomes for file in entry.files]
    if len(names) == 1:
        for suffix in BY_HAND:
            if (single := base / f"{entry.id}{suffix}").is_file():
                return Here({single.name: single}, None)
    folder = base / entry.id
    receipt = receipt_of(folder)
    if receipt is None:
        found = _by_hand(folder, names)
        return Here(found, None) if found else f"{folder / names[0]} is missing"
    for file in entry.files:
        said, path = receipt.get("files", {}).get(file.becomes, {}), folder / file.becomes
        try:
            size = path.stat().st_size
        except OSError:
            return f"{path} is missing"
        if size != said.get("size"):
            return f"{path} has {size} bytes, and had {said.get('size')} when it was pulled"
        if not str(said.get("source_sha256", "")).startswith(file.sha256):
            return f"{path} is not what the lock names now (its source was {str(said.get('source_sha256'))[:12]}...)"
    return Here({name: folder / name for name in names}, receipt)


def _by_hand(folder: Path, names: list[str]) -> dict[str, Path] | None:
    """Files that a user put into the folder: under the names of the lock, or the only one of its kind."""
    if all((folder / name).is_file() for name in names):
        return {name: folder / name for name in names}
    if len(names) == 1 and folder.is_dir():
        fitting = [path for path in sorted(folder.iterdir()) if path.suffix in BY_HAND and path.is_file()]
        if len(fitting) == 1:
            return {fitting[0].name: fitting[0]}
    return None


def receipt_of(folder: Path) -> dict[str, Any] | None:
    """What the pull that filled a folder wrote down; None where no pull did."""
    path = folder / RECEIPT
    try:
        return _parsed(path, path.stat().st_mtime_ns)
    except OSError:
        return None


@lru_cache(maxsize=256)
def _parsed(path: Path, changed: int) -> dict[str, Any]:
    """A receipt; an unreadable one names no files, so that they are pulled again."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def source_digest(entry: Entry) -> str:
    """SHA-256 of what the network is made of, equal on every machine; nothing where it is unknown.

    Of several files it is the digest of their names and digests.
    """
    here = look(entry)
    if isinstance(here, str):
        found = {file.becomes: file.sha256 for file in entry.files}
    elif here.receipt is not None:
        found = {name: str(here.receipt["files"][name]["source_sha256"]) for name in here.files}
    else:
        found = {name: hand_digest(path) for name, path in here.files.items()}
    if not all(len(digest) == 64 for digest in found.values()):
        return ""
    if len(found) == 1:
        return next(iter(found.values()))
    lines = "".join(f"{name} {digest}\n" for name, digest in sorted(found.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def hand_digest(path: Path) -> str:
    """SHA-256 of a file that was put there by hand, computed once and remembered with its size and time."""
    state = path.stat()
    return _hand_digest(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=256)
def _hand_digest(path: Path, size: int, changed: int) -> str:
    note = root() / ".digests" / f"{hashlib.sha256(str(path).encode()).hexdigest()[:24]}.json"
    facts = [str(path), size, changed]
    try:
        known = json.loads(note.read_text(encoding="utf-8"))
        if known["of"] == facts and len(known["sha256"]) == 64:
            return str(known["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    digest = sha256(path)
    try:
        with replacing(note) as temporary:
            temporary.write_text(json.dumps({"of": facts, "sha256": digest}), encoding="utf-8")
    except OSError:
        pass  # a folder that cannot be written to costs the time of a new digest in each process
    return digest


def missing(entry: Entry, found: str) -> str:
    """Which file is missing and what to do about it."""
    if not entry.sources:
        single = f"{entry.id}{Path(entry.files[0].name).suffix} into {root()}"
        several = f"{', '.join(file.becomes for file in entry.files)} into {root() / entry.id}"
        by_hand = f"put {single if len(entry.files) == 1 else several} by hand"
        return f"weights of {entry.id} are missing: {by_hand}" + (f" ({entry.note})" if entry.note else "")
    gated = f" (gated: accept the licence at {entry.gated} first)" if entry.gated else ""
    return f"weights of {entry.id} are missing: revisit weights pull {entry.id}{gated}; {found}"
