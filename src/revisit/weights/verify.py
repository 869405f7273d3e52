"""Verifying: compares installed weights with the digests from when they were pulled, and with the lock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from revisit.weights.lock import LockedWeights, read_lock_entries, require_lock_entry
from revisit.weights.weights_folder import cached_sha256, find_local_weights, weights_problem_text, weights_root


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
    local = find_local_weights(locked, read=True)
    if isinstance(local, str):
        return WeightsCheck(id, local.state, weights_problem_text(locked, local))
    if local.receipt is None:
        comparisons = (_digest_comparison_text(locked, *one) for one in local.files.items())
        return WeightsCheck(id, "by hand", "; ".join(comparisons))
    return WeightsCheck(id, "ok", f"{local.first_file} from {local.receipt.source}")


def _digest_comparison_text(locked: LockedWeights, name: str, path: Path) -> str:
    """What a file that was put there by hand is, beside the one that was published."""
    digest = cached_sha256(path, read=True)
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
