"""Tensors: reads a weight file without running any code in it."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from revisit.core import MissingPrerequisite
from revisit.media.error_names import printable_line
from revisit.weights.torchscript import is_torchscript, read_torchscript_tensors

if TYPE_CHECKING:
    from torch import Tensor

WRAPPERS = ("state_dict", "model_state_dict", "params_ema", "params", "model", "net")
INSTALL = "pip install 'revisit-bench[networks]'"


def tensors(path: Path) -> dict[str, Tensor]:
    """Name → tensor on the CPU, from safetensors, a TorchScript archive or a state dict saved by torch.

    A tensor that was saved alone is called "tensor".
    """
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return dict(load_file(path))
        import torch

        if is_torchscript(path):
            return read_torchscript_tensors(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of torch about pickles it may not understand; it then refuses them
            content = torch.load(path, map_location="cpu", weights_only=True)
        if isinstance(content, torch.Tensor):
            return {"tensor": content.detach()}
        content = content if isinstance(content, dict) else {}
        while wrapped := [content[name] for name in WRAPPERS if isinstance(content.get(name), dict)]:
            content = wrapped[0]
        state = {str(name): one for name, one in content.items() if isinstance(one, torch.Tensor)}
    except MissingPrerequisite:
        raise
    except ImportError as error:
        raise MissingPrerequisite(f"{error.name or 'torch'} is not installed: {INSTALL}") from error
    except Exception as error:  # damaged files, files that hold code and files of other kinds differ in this
        raise unreadable_weights_error(path, error) from error
    if not state:
        raise MissingPrerequisite(f"{path}: it has no named tensors; expected a state dict or safetensors")
    return state


def unreadable_weights_error(path: Path, error: Exception) -> MissingPrerequisite:
    """A sentence about a file that is damaged or holds something else than numbers."""
    cause = printable_line(" ".join(f"{type(error).__name__}: {error}".split()), 240)
    return MissingPrerequisite(f"{path}: cannot be read as weights ({cause}); nothing in it was run")


class NumbersOnly(pickle.Unpickler):
    """Reads a pickle of numpy arrays: three names of numpy are known to it, and no other."""

    def find_class(self, module: str, name: str) -> Any:
        if name == "_reconstruct" and module in ("numpy.core.multiarray", "numpy._core.multiarray"):
            return _empty_array
        if module == "numpy" and name in ("ndarray", "dtype"):
            return getattr(np, name)
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def _empty_array(kind: type, shape: tuple[int, ...], code: bytes) -> np.ndarray:
    """An empty array, which the pickle then fills."""
    if kind is not np.ndarray:
        raise pickle.UnpicklingError("it asks for an array of another kind")
    return np.ndarray.__new__(np.ndarray, shape, np.dtype(code.decode() if isinstance(code, bytes) else code))
