"""Weights of networks: files that the user puts into one folder, named by REVISIT_WEIGHTS.

Nothing is downloaded. A file is either safetensors or a state dict saved by torch, which is read with
`weights_only=True`: a file that holds code is refused.
"""

from __future__ import annotations

import hashlib
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from revisit.core import MissingPrerequisite

FOLDER = "REVISIT_WEIGHTS"
SUFFIXES = (".safetensors", ".pth")


def weights_file(name: str) -> Path:
    """The file with these weights; raises MissingPrerequisite with what to put where."""
    names = " or ".join(name + suffix for suffix in SUFFIXES)
    folder = os.environ.get(FOLDER, "")
    if not folder:
        raise MissingPrerequisite(
            f"weights are missing: set {FOLDER} to a folder that holds {names} (docs/fidelity.md)"
        )
    for suffix in SUFFIXES:
        path = Path(folder) / f"{name}{suffix}"
        if path.is_file():
            return path
    raise MissingPrerequisite(
        f"weights are missing: put {names} into {folder}, the folder of {FOLDER} (docs/fidelity.md)"
    )


def why_not_ready(*weights: str) -> str | None:
    """Why a network with these weights cannot run here, or None. Imports nothing heavy."""
    if find_spec("torch") is None:
        return "torch is not installed: pip install 'revisit-bench[torch]'"
    try:
        paths = [weights_file(name) for name in weights]
    except MissingPrerequisite as missing:
        return str(missing)
    if find_spec("safetensors") is None and any(path.suffix == ".safetensors" for path in paths):
        return "safetensors is not installed: pip install 'revisit-bench[torch]'"
    return None


def load_state(path: Path) -> dict[str, Any]:
    """Name → tensor, on the CPU."""
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return dict(load_file(path))
        import torch

        return dict(torch.load(path, map_location="cpu", weights_only=True))
    except Exception as error:  # damaged files, files that hold code and libraries that do not load differ in this
        cause = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise MissingPrerequisite(
            f"{path}: cannot be read as weights ({cause}); put a file of tensors there"
        ) from error


def short_digest(path: Path) -> str:
    """Start of the SHA-256 of a file."""
    with path.open("rb") as file:
        total = hashlib.sha256()
        while block := file.read(1 << 20):
            total.update(block)
    return total.hexdigest()[:16]
