"""The folder of weights on this machine (docs/weights.md).

<root>/<id>/<file>          pulled; receipt.json beside it says from where, and what its bytes were
<root>/<id>/<file>          put there by hand, without a receipt
<root>/<id>.safetensors     put there by hand (or .onnx, .pth, .pt); comes before what was pulled
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import msgspec

from revisit.core import MediaError
from revisit.core.text import parse_json
from revisit.media.cache_folders import cache_root, user_cache
from revisit.media.digest import file_digest
from revisit.media.files import atomic_write_path
from revisit.weights.lock import LockedFile, LockedWeights

ROOT = "REVISIT_WEIGHTS"
RECEIPT = "receipt.json"
MISSING, DAMAGED, OUTDATED = "missing", "damaged", "outdated"
BY_HAND = (".safetensors", ".onnx", ".pth", ".pt", ".bin")


def weights_root() -> Path:
    """The folder of all weights. Another cache of evidence takes them away only where it has weights of its own."""
    variable = os.environ.get(ROOT)
    if variable:
        return Path(variable).expanduser()
    in_cache = cache_root() / "weights"
    return in_cache if in_cache.is_dir() else user_cache() / "weights"


def folder_variable_of(id: str) -> str:
    """The environment variable that names the folder of an entry."""
    return f"{ROOT}_{re.sub('[-.]', '_', id.upper())}"  # shells take no other names


class FileRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a receipt says of one file."""

    source: str = ""  # its name at the source
    source_sha256: str
    sha256: str  # after a conversion
    size: int
    mtime_ns: int = 0  # a file with another time is read before it is used
    convert: str = ""
    converter: int = 0


class Receipt(msgspec.Struct, frozen=True):
    """What a pull wrote down about a folder."""

    id: str = ""
    source: str = ""
    archive: dict[str, str] | None = None
    licence: str = ""
    files: dict[str, FileRecord] = {}


@dataclass(frozen=True)
class LocalWeights:
    """What was found of an entry: its files by their names on this machine, the first one first."""

    files: Mapping[str, Path]
    receipt: Receipt | None  # None for files put there by hand

    @property
    def first_file(self) -> Path:
        return next(iter(self.files.values()))

    @property
    def is_put_by_hand(self) -> bool:
        return self.receipt is None

    @property
    def state(self) -> str:
        return "by hand" if self.is_put_by_hand else "here"


class WeightsProblem(str):
    """Why the files of an entry are not used: the path that is missing, or what is wrong with a file, in words."""

    state: str  # missing, damaged, or outdated where the lock names something else now
    again: bool  # whether only the bytes tell it, which a plain pull need not read

    def __new__(cls, sentence: object, state: str = MISSING, again: bool = False) -> WeightsProblem:
        trouble = super().__new__(cls, sentence)
        trouble.state, trouble.again = state, again
        return trouble


def find_local_weights(entry: LockedWeights, *, read: bool = False) -> LocalWeights | WeightsProblem:
    """The files of an entry on this machine, or what is wrong with them.

    Bytes of a pulled file are read where its time is not that of the pull, once, or where the caller wants them `read`.
    """
    base = weights_root()
    names = [file.becomes for file in entry.files]
    variable = os.environ.get(folder_variable_of(entry.id))
    if len(names) == 1 and not variable:
        for suffix in BY_HAND:
            if (single := base / f"{entry.id}{suffix}").is_file():
                return LocalWeights({single.name: single}, None)
    folder = Path(variable).expanduser() if variable else base / entry.id
    receipt = read_receipt(folder)
    if receipt is None:
        files = _find_files_put_by_hand(folder, names)
        absent = next((name for name in names if not (folder / name).is_file()), names[0])
        return LocalWeights(files, None) if files else WeightsProblem(folder / absent)
    for file in entry.files:
        if trouble := _pulled_file_problem(folder / file.becomes, file, receipt.files.get(file.becomes), read):
            return trouble
    return LocalWeights({name: folder / name for name in names}, receipt)


def _pulled_file_problem(path: Path, file: LockedFile, record: FileRecord | None, read: bool) -> WeightsProblem | None:
    """What is wrong with a pulled file, after what its receipt says of it."""
    name = file.becomes
    try:
        state = path.stat()
    except OSError:
        return WeightsProblem(path)
    if record is None:
        return WeightsProblem(f"{RECEIPT} has no entry for {name}", DAMAGED)
    if state.st_size != record.size:
        return WeightsProblem(f"{name} has {state.st_size} bytes instead of {record.size}", DAMAGED)
    if not record.source_sha256.startswith(file.sha256):
        made_from = f"{name} was made from {record.source_sha256[:12]}..."
        return WeightsProblem(f"{made_from}, but the lock now names {file.sha256[:12]}...", OUTDATED)
    is_of_pull = state.st_mtime_ns == record.mtime_ns
    if not read and is_of_pull and not _remembered_digest(_path_size_and_time(path, state)):
        return None  # as the pull left it, and nobody has read anything else since
    try:
        digest = cached_sha256(path, read=read)
    except MediaError as error:
        return WeightsProblem(error, DAMAGED)
    if digest != record.sha256:
        wrong = f"{name} has the SHA-256 {digest[:12]}... instead of {record.sha256[:12]}..."
        return WeightsProblem(wrong, DAMAGED, again=True)
    return None


def _find_files_put_by_hand(folder: Path, names: list[str]) -> dict[str, Path] | None:
    """Files that a user put into the folder: under the names of the lock, or the only one of its kind."""
    if all((folder / name).is_file() for name in names):
        return {name: folder / name for name in names}
    if len(names) == 1 and folder.is_dir():
        fitting = [path for path in sorted(folder.iterdir()) if path.suffix in BY_HAND and path.is_file()]
        if len(fitting) == 1:
            return {fitting[0].name: fitting[0]}
    return None


def read_receipt(folder: Path) -> Receipt | None:
    """What the pull that filled a folder wrote down; None where no pull did."""
    path = folder / RECEIPT
    try:
        return _parse_receipt(path, path.stat().st_mtime_ns)
    except OSError:
        return None


@lru_cache(maxsize=256)
def _parse_receipt(path: Path, changed: int) -> Receipt:
    """A receipt; an unreadable one names no files, so that they are pulled again."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Receipt)
    except ValueError:
        return Receipt()


# Files that change what a network is, or how it reads captions, and that may lie beside its weights.
READ_BESIDE = ("config.json", "open_clip_config.json", "tokenizer.json", "vocab.json", "merges.txt", "spiece.model")


def source_digest(entry: LockedWeights) -> str:
    """SHA-256 of what the network is made of, equal on every machine; nothing where it is unknown.

    Of several files it is the digest of their names and digests.
    """
    local = find_local_weights(entry)
    if isinstance(local, str):
        digests = {file.becomes: file.sha256 for file in entry.files}
    elif local.receipt is not None:
        digests = {name: local.receipt.files[name].source_sha256 for name in local.files}
    else:
        digests = {name: cached_sha256(path) for name, path in local.files.items()}
    if not isinstance(local, str) and local.first_file.parent.name == entry.id:
        side_files = {name: local.first_file.with_name(name) for name in READ_BESIDE if name not in digests}
        digests |= {name: cached_sha256(path) for name, path in side_files.items() if path.is_file()}
    if not all(len(digest) == 64 for digest in digests.values()):
        return ""
    if len(digests) == 1:
        return next(iter(digests.values()))
    lines = "".join(f"{name} {digest}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


Facts = tuple[str, int, int]  # path, size and time of a file: what a digest is remembered with
_known: dict[Facts, str] = {}  # digests that this process has read or found; nothing where there was none to find


def cached_sha256(path: Path, *, read: bool = False) -> str:
    """SHA-256 of a file, computed once for each size and time it has, or anew where its bytes must be `read`."""
    facts = _path_size_and_time(path, path.stat())
    if not read and (cached := _remembered_digest(facts)):
        return cached
    _known[facts] = digest = file_digest(path)
    for note in _digest_note_paths(facts):
        try:
            with atomic_write_path(note) as temporary:
                temporary.write_text(json.dumps({"of": facts, "sha256": digest}), encoding="utf-8")
            break
        except OSError:
            continue  # where neither folder can be written to, each process computes it once
    return digest


def _path_size_and_time(path: Path, state: os.stat_result) -> Facts:
    return str(path), state.st_size, state.st_mtime_ns


def _remembered_digest(facts: Facts) -> str:
    """The digest that was read of a file in this state, by this process or an earlier one; nothing where none was."""
    if facts not in _known:
        _known[facts] = next(filter(None, (_read_digest_note(note, facts) for note in _digest_note_paths(facts))), "")
    return _known[facts]


def _digest_note_paths(facts: Facts) -> Iterator[Path]:
    """Where a digest is written down: beside the weights, or in the user's cache where those are of somebody else."""
    name = f"{hashlib.sha256(facts[0].encode()).hexdigest()[:24]}.json"
    yield weights_root() / ".digests" / name
    yield cache_root() / "digests" / name


def _read_digest_note(note: Path, facts: Facts) -> str:
    try:
        content = parse_json(note.read_text(encoding="utf-8"))
        return str(content["sha256"]) if content["of"] == list(facts) and len(content["sha256"]) == 64 else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def weights_problem_text(entry: LockedWeights, trouble: WeightsProblem) -> str:
    """What is wrong with the weights of an entry and what to do about it, with the command last."""
    if not entry.sources:
        single = f"{entry.id}{Path(entry.files[0].name).suffix} into {weights_root()}"
        several = f"{', '.join(file.becomes for file in entry.files)} into {weights_root() / entry.id}"
        remedy = f"put {single if len(entry.files) == 1 else several} by hand"
        remedy += f" ({entry.note})" if entry.note else ""
    else:
        remedy = f"revisit weights pull {'--again ' if trouble.again else ''}{entry.id}"
    if trouble.state != MISSING:
        return f"{entry.id} is {trouble.state}: {trouble}; {remedy}"
    if not entry.sources:
        return f"weights of {entry.id} are missing: {remedy}"
    gated = f"accept the licence at {entry.gated}, then " if entry.gated else ""
    return f"weights of {entry.id} are missing: {trouble} is not there; {gated}{remedy}"
