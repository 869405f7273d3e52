"""Verifying: every byte of what is here against the digest it had when it was pulled, and against the lock."""

from __future__ import annotations

from dataclasses import dataclass

from revisit.weights.http import sha256
from revisit.weights.lock import entry
from revisit.weights.places import look, missing


@dataclass(frozen=True)
class Verdict:
    """What was found of one entry."""

    id: str
    state: str  # ok, by hand, missing, bad
    said: str


def verify(id: str) -> Verdict:
    """Read all files of an entry."""
    wanted = entry(id)
    here = look(wanted)
    if isinstance(here, str):
        return Verdict(id, "missing" if here.endswith("is missing") else "bad", missing(wanted, here))
    if here.receipt is None:
        known = {file.becomes: file for file in wanted.files}
        said = []
        for name, path in here.files.items():
            digest = sha256(path)
            pin = known[name].sha256 if name in known and not known[name].convert else ""
            if pin and not digest.startswith(pin):
                said.append(f"{path}: SHA-256 {digest}, which is not the lock's {pin}")
            else:
                said.append(f"{path}: SHA-256 {digest}")
        return Verdict(id, "by hand", "; ".join(said))
    for name, path in here.files.items():
        expected = str(here.receipt["files"][name]["sha256"])
        digest = sha256(path)
        if digest != expected:
            changed = f"{path}: its SHA-256 is {digest}, and was {expected} when it was pulled"
            return Verdict(id, "bad", f"{changed}; revisit weights pull {id} --again")
    return Verdict(id, "ok", f"{here.first} from {here.receipt.get('source')}")
