"""Verifying: compares installed weights with the digests from when they were pulled, and with the lock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from revisit.weights.directories import digest_of, look, root, why
from revisit.weights.lock import Entry, entries, entry


@dataclass(frozen=True)
class Verdict:
    """What was found of one entry."""

    id: str
    state: str  # ok, by hand, missing, damaged, outdated
    said: str


def on_this_machine() -> Sequence[str]:
    """Ids of which anything is here, whole or not."""
    return [id for id, one in entries().items() if (root() / id).is_dir() or not isinstance(look(one), str)]


def verify(id: str) -> Verdict:
    """Read all files of an entry."""
    wanted = entry(id)
    here = look(wanted, read=True)
    if isinstance(here, str):
        return Verdict(id, here.state, why(wanted, here))
    if here.receipt is None:
        return Verdict(id, "by hand", "; ".join(_compared(wanted, *one) for one in here.files.items()))
    return Verdict(id, "ok", f"{here.first} from {here.receipt.get('source')}")


def _compared(wanted: Entry, name: str, path: Path) -> str:
    """What a file that was put there by hand is, beside the one that was published."""
    digest = digest_of(path, read=True)
    file = next((file for file in wanted.files if file.becomes == name), wanted.files[0])
    if not file.sha256:
        found = "not checked: the lock has no digest"
    elif path.suffix != Path(file.name).suffix:  # another format, or what a conversion made of it
        found = f"not checked: the lock has only the digest of {file.name}"
    elif digest.startswith(file.sha256):
        found = "as published"
    else:
        found = f"which differs from the published {file.sha256}"
    return f"{path}: SHA-256 {digest}, {found}"
