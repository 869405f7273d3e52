"""Files of a model hub: over HTTPS, or from its caches on this machine."""

from __future__ import annotations

import os
import urllib.parse
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from revisit.http_client import Unavailable
from revisit.weights.lock import LockedFile, LockedWeights, Source
from revisit.weights.registries import RemoteFile

ENDPOINT = "https://huggingface.co"
DENIED = (401, 403)


def hub_download_address(source: Source, path: str) -> RemoteFile:
    """Where a file of a repository lies."""
    endpoint = (os.environ.get("HF_ENDPOINT") or ENDPOINT).rstrip("/")
    token = os.environ.get("HF_TOKEN") or os.environ.get("HUGGING_FACE_HUB_TOKEN") or _stored_hub_token()
    where = "/".join(urllib.parse.quote(part, safe="/") for part in (source.location, "resolve", source.revision, path))
    return RemoteFile(f"{endpoint}/{where}", {"Authorization": f"Bearer {token}"} if token else {})


def access_denied_text(entry: LockedWeights, error: Unavailable) -> str:
    """What to do about weights that are not given to everybody."""
    if not entry.gated:
        return f"{error}; if it asks for a licence, accept it there, then HF_TOKEN=... revisit weights pull {entry.id}"
    return f"gated: accept the licence at {entry.gated}, then HF_TOKEN=... revisit weights pull {entry.id}"


def _hugging_face_home() -> Path:
    return Path(os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface")


def _stored_hub_token() -> str:
    """The token that the hub's own command has stored."""
    path = Path(os.environ.get("HF_TOKEN_PATH") or _hugging_face_home() / "token").expanduser()
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def find_cached_files(source: Source, file: LockedFile) -> Iterator[Path]:
    """Files in the hub's and torch's caches that may be this one."""
    path = source.path_in_source(file)
    if source.kind == "hub":
        root = Path(os.environ.get("HF_HUB_CACHE") or _hugging_face_home() / "hub").expanduser()
        repository = root / f"models--{source.location.replace('/', '--')}"
        revision = source.revision
        with suppress(OSError, UnicodeDecodeError):  # it is a commit already, or nothing is there
            revision = (repository / "refs" / revision).read_text(encoding="ascii").strip()
        candidates = [repository / "snapshots" / revision / path]
    elif source.kind == "url":
        home = os.environ.get("TORCH_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "torch"
        candidates = [Path(home).expanduser() / "hub/checkpoints" / file.name]
    else:
        candidates = []
    return (candidate for candidate in candidates if candidate.is_file())
