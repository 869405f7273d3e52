"""The folder of weights on this machine: what lies there, and whether it is right (docs/weights.md).

<root>/<id>/<file>          pulled; receipt.json beside it says from where, and what its bytes were
<root>/<id>/<file>          put there by hand, without a receipt
<root>/<id>.safetensors     put there by hand (or .onnx, .pth, .pt); comes before what was pulled
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

import msgspec

from revisit.core import MediaError, MissingPrerequisite
from revisit.core.text import parse_json
from revisit.media.cache_folders import cache_root, user_cache
from revisit.media.digest import file_digest
from revisit.media.files import atomic_write_path
from revisit.weights.lock import LockedFile, LockedWeights, lock_entry_or_default, read_lock_entries, require_lock_entry
from revisit.weights.tensors import INSTALL

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
    def state(self) -> str:
        return "by hand" if self.receipt is None else "here"


class WeightsProblem(str):
    """Why the files of an entry are not used: the path that is missing, or what is wrong with a file, in words."""

    state: str  # missing, damaged, or outdated where the lock names something else now
    again: bool  # whether only the bytes tell it, which a plain pull need not read

    def __new__(cls, sentence: object, state: str = MISSING, again: bool = False) -> WeightsProblem:
        trouble = super().__new__(cls, sentence)
        trouble.state, trouble.again = state, again
        return trouble


def find_local_weights(entry: LockedWeights, *, read_bytes: bool = False) -> LocalWeights | WeightsProblem:
    """The files of an entry on this machine, or what is wrong with them.

    Bytes of a pulled file are read where its time is not that of the pull, once, or where `read_bytes` asks for it.
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
        if trouble := _pulled_file_problem(folder / file.becomes, file, receipt.files.get(file.becomes), read_bytes):
            return trouble
    return LocalWeights({name: folder / name for name in names}, receipt)


def _pulled_file_problem(
    path: Path, file: LockedFile, record: FileRecord | None, read_bytes: bool
) -> WeightsProblem | None:
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
    if not read_bytes and is_of_pull and not _remembered_digest(_path_size_and_time(path, state)):
        return None  # as the pull left it, and nobody has read anything else since
    try:
        digest = cached_sha256(path, read_bytes=read_bytes)
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


def cached_sha256(path: Path, *, read_bytes: bool = False) -> str:
    """SHA-256 of a file, computed once for each size and time it has, or anew with `read_bytes`."""
    facts = _path_size_and_time(path, path.stat())
    if not read_bytes and (cached := _remembered_digest(facts)):
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


def file(id: str) -> Path:
    """The file of these weights; raises MissingPrerequisite with the command that brings or mends it."""
    locked = lock_entry_or_default(id)
    local = find_local_weights(locked)
    if isinstance(local, str):
        raise MissingPrerequisite(weights_problem_text(locked, local))
    return local.first_file


def folder(id: str) -> Path:
    """The folder of a checkpoint of several files (config.json, model.safetensors, tokenizer)."""
    return file(id).parent


def why_missing(ids: Sequence[str]) -> str | None:
    """Why networks with these weights cannot run here, with what to do; None where they can.

    A library is not installed, or a file is missing, damaged or outdated.
    """
    for id in ids:
        locked = lock_entry_or_default(id)
        for library in locked.needs:
            if not is_library_installed(library):
                return f"{library} is not installed: {INSTALL}"
        local = find_local_weights(locked)
        if isinstance(local, str):
            return weights_problem_text(locked, local)
    return None


def digests(ids: Sequence[str]) -> list[str]:
    """`id=SHA-256` of each, as the lock pins it or as the file on this machine has it; nothing behind the sign where
    that is unknown."""
    return [f"{id}={source_digest(lock_entry_or_default(id))}" for id in ids]


def required_libraries(ids: Sequence[str]) -> set[str]:
    """Libraries that networks with these weights run on, such as torch and onnxruntime."""
    return {library for id in ids for library in lock_entry_or_default(id).needs}


@cache
def is_library_installed(library: str) -> bool:
    """Whether a library can be imported here."""
    return find_spec(library) is not None


@dataclass(frozen=True)
class WeightsCheck:
    """What was found of one entry."""

    id: str
    state: str  # ok, by hand, missing, damaged, outdated
    said: str


def ids_with_local_files() -> Sequence[str]:
    """Ids of which anything is here, whole or not."""
    root, entries = weights_root(), read_lock_entries().items()
    return [id for id, one in entries if (root / id).is_dir() or not isinstance(find_local_weights(one), str)]


def check_local_weights(id: str) -> WeightsCheck:
    """Read all files of an entry."""
    locked = require_lock_entry(id)
    local = find_local_weights(locked, read_bytes=True)
    if isinstance(local, str):
        return WeightsCheck(id, local.state, weights_problem_text(locked, local))
    if local.receipt is None:
        comparisons = (_digest_comparison_text(locked, *one) for one in local.files.items())
        return WeightsCheck(id, "by hand", "; ".join(comparisons))
    return WeightsCheck(id, "ok", f"{local.first_file} from {local.receipt.source}")


def _digest_comparison_text(locked: LockedWeights, name: str, path: Path) -> str:
    """What a file that was put there by hand is, beside the one that was published."""
    digest = cached_sha256(path, read_bytes=True)
    file = next((file for file in locked.files if file.becomes == name), locked.files[0])
    if not file.sha256:
        comparison = "not checked: the lock has no digest"
    elif path.suffix != Path(file.name).suffix:  # another format, or what a conversion made of it
        comparison = f"not checked: the lock has only the digest of {file.name}"
    elif digest.startswith(file.sha256):
        comparison = "as published"
    else:
        comparison = f"which differs from the published {file.sha256}"
    return f"{path}: SHA-256 {digest}, {comparison}"
