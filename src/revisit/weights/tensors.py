"""Tensors: reads a weight file without running any code in it.

A TorchScript archive is a zip file: a pickle of the module's attributes (`data.pkl`), one file for each storage, and
code. torch.load refuses it under `weights_only`, and torch.jit.load would accept its code. Here the pickle is read by
an unpickler that knows modules as bags of attributes, tensors, and nothing else; the code is never opened.
"""

from __future__ import annotations

import io
import math
import pickle
import warnings
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from revisit.core import MissingPrerequisite
from revisit.media.error_names import printable_line

if TYPE_CHECKING:
    from torch import Tensor

WRAPPERS = ("state_dict", "model_state_dict", "params_ema", "params", "model", "net")
INSTALL = "pip install 'revisit-bench[networks]'"
MOST_PICKLE = 64 << 20  # bytes of data.pkl; OpenAI's are below one megabyte
STORAGES = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
    "ByteStorage": "uint8", "BoolStorage": "bool",
}  # fmt: skip
LISTS = {"build_intlist", "build_doublelist", "build_boollist", "build_tensorlist"}
REFUSED = (pickle.UnpicklingError, zipfile.BadZipFile, EOFError, ValueError, KeyError, IndexError, TypeError,
           AttributeError, OverflowError, RuntimeError, NotImplementedError)  # fmt: skip


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


class Module:
    """A module of the archive: its attributes by name."""

    def __init__(self) -> None:
        self.attributes: dict[str, object] = {}

    def __setstate__(self, state: object) -> None:
        if isinstance(state, dict):
            self.attributes = state


def is_torchscript(path: Path) -> bool:
    """Whether a file is such an archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.endswith("/constants.pkl") for name in archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


def read_torchscript_tensors(path: Path) -> dict[str, Tensor]:
    """Parameters and buffers of the archived module, by their dotted names."""
    try:
        with zipfile.ZipFile(path) as archive:
            root = _Reader(archive).load()
    except REFUSED as error:
        cause = str(error) or type(error).__name__
        raise MissingPrerequisite(
            f"{path}: this is not a valid TorchScript archive of tensors ({cause}); none of its code was run. Remove "
            "it and fetch the published file with `revisit weights pull`"
        ) from error
    collected: dict[str, Tensor] = {}
    _collect_tensors(root, "", collected, 0)
    return collected


def _collect_tensors(module: object, prefix: str, collected: dict[str, Tensor], depth: int) -> None:
    import torch

    if not isinstance(module, Module) or depth > 50:  # deeper than any network, shallower than an endless one
        return
    for name, value in module.attributes.items():
        if isinstance(value, torch.Tensor):
            collected[f"{prefix}{name}"] = value
        else:
            _collect_tensors(value, f"{prefix}{name}.", collected, depth + 1)


# Python's own unpickler, not the one in C, which sets memory aside for as many places as a file asks for
class _Reader(pickle._Unpickler):
    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.archive = archive
        self.sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
        pickles = [name for name in self.sizes if name.count("/") == 1 and name.endswith("/data.pkl")]
        if len(pickles) != 1 or self.sizes[pickles[0]] > MOST_PICKLE:
            raise pickle.UnpicklingError("it has no data.pkl of reasonable size")
        self.folder = pickles[0].partition("/")[0]
        self.storages: dict[str, Tensor] = {}
        super().__init__(io.BytesIO(archive.read(pickles[0])))

    def find_class(self, module: str, name: str) -> Any:
        if module.startswith("__torch__"):
            return Module
        if module == "torch" and name in STORAGES:
            return STORAGES[name]
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuild_tensor
        if (module, name) == ("collections", "OrderedDict"):
            return dict
        if module == "torch.jit._pickle" and name in LISTS:
            return list
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")

    def persistent_load(self, pid: Any) -> Any:
        import torch

        kind, dtype, key, _, count = pid
        if kind != "storage" or dtype not in STORAGES.values():
            raise pickle.UnpicklingError("it refers to something that is no storage")
        if key not in self.storages:
            name, kind_of = f"{self.folder}/data/{key}", getattr(torch, dtype)
            size = int(count) * torch.empty(0, dtype=kind_of).element_size()
            if self.sizes.get(name) != size:
                raise pickle.UnpicklingError(f"storage {key} has {self.sizes.get(name)} bytes instead of {size}")
            data = bytearray(self.archive.read(name))
            self.storages[key] = torch.frombuffer(data, dtype=kind_of) if size else torch.empty(0, dtype=kind_of)
        return self.storages[key]


def _rebuild_tensor(storage: Any, offset: Any, shape: Any, stride: Any, *_: Any) -> Tensor:
    """A tensor in a storage; torch refuses one that reaches beyond it, and we one that repeats it."""
    if math.prod(shape) > storage.numel():
        raise pickle.UnpicklingError(f"a tensor of shape {tuple(shape)} lies in a storage of {storage.numel()} numbers")
    view: Tensor = storage.as_strided(tuple(shape), tuple(stride), offset)
    return view.clone()
