"""How networks run: on one device, each loaded once in a process, in a precision that is stated.

The device is `REVISIT_DEVICE` (cpu, cuda, cuda:1, mps), or the first GPU where there is one. Sums are exact float32 by
default: TF32 is off, algorithms are deterministic, denormal numbers are flushed on a CPU. A network whose card says
that half precision moves no score beyond its tolerance runs so on a GPU; `REVISIT_PRECISION=float32` forbids it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from revisit import weights
from revisit.core import MissingPrerequisite, UsageError
from revisit.networks import settings
from revisit.networks.settings import DEVICE

T = TypeVar("T")


@cache
def device() -> str:
    """Where networks run in this process."""
    import torch

    requested = next(iter(settings.requested_devices()), "cuda" if torch.cuda.is_available() else "cpu")
    if requested.startswith("cuda") and int(requested.partition(":")[2] or 0) >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        available = "no GPU" if not count else f"{count} of them, cuda:0 to cuda:{count - 1}"
        raise UsageError(
            f"torch finds {available}, but {requested} was requested (--device or {DEVICE}): choose another device, or "
            "install torch with CUDA"
        )
    _make_sums_exact_and_repeatable(requested)
    return requested


def describe_device() -> str:
    """The device in words, with what computes or the precision that a network may use there."""
    import torch

    where = device()
    if not where.startswith("cuda"):
        return f"{where}, by OpenVINO" if uses_openvino() else where
    half = "float32 only" if allowed_precision("float16") == "float32" else "half precision where a network allows it"
    return f"{where} ({torch.cuda.get_device_name(where)}, {half})"


def uses_openvino() -> bool:
    """Whether OpenVINO runs the networks of this process that it can run: on a CPU, where it is installed."""
    requested = settings.openvino_mode()
    if requested == "off" or device() != "cpu":
        return False
    if find_spec("openvino") is None:
        if requested == "on":
            raise MissingPrerequisite(
                f"{settings.OPENVINO}=on, but it is not installed: pip install 'revisit-bench[cpu]'"
            )
        return False
    return True


@contextmanager
def exact_sums_restoring_torch_switches() -> Iterator[None]:
    """Exact sums within a process that trains: torch's own switches are as they were afterwards."""
    torch = sys.modules.get("torch")
    if torch is None:  # nothing of the user's to keep
        yield
        return
    places = [(torch.backends.cuda.matmul, "allow_tf32"), (torch.backends.cudnn, "allow_tf32"),
              (torch.backends.cudnn, "benchmark"), (torch.backends.cudnn, "deterministic")]  # fmt: skip
    before = [getattr(*place) for place in places]
    threads = torch.get_num_threads()
    try:
        _make_sums_exact_and_repeatable(device())
        yield
    finally:
        for (home, name), value in zip(places, before, strict=True):
            setattr(home, name, value)
        torch.set_num_threads(threads)
        torch.set_flush_denormal(False)  # torch's default; what it was before nobody can ask


def _make_sums_exact_and_repeatable(device_name: str) -> None:
    """Exact and repeatable sums."""
    import torch

    torch.set_flush_denormal(True)  # denormals slow a CPU down tenfold and carry nothing
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    if device_name == "cpu":
        # As with OpenCV: the workers fill the cores, and sums keep their order. For few clips on many cores, say more.
        torch.set_num_threads(settings.cpu_threads())


_loaded: dict[tuple[str, str, str], Any] = {}  # weights, what is built of them, device


def network(id: str, build: Callable[[Path], T]) -> T:
    """The network of these weights, on the device and ready; `build` makes it from the file, once per process."""
    where = device()
    key = id, f"{build.__module__}.{getattr(build, '__qualname__', repr(build))}", where
    if key not in _loaded:
        net: Any = build(weights.file(id))
        if hasattr(net, "requires_grad_"):
            net = net.requires_grad_(False).eval().to(where)
        _loaded[key] = net
    return _loaded[key]


def forget_cached_networks() -> None:
    """Drop all networks that this process holds."""
    _loaded.clear()
    device.cache_clear()


def channels_first_on_device(pictures: Any) -> Any:
    """RGB pictures of one size, (B, 3, H, W) uint8 on the device; those that are there already are not copied."""
    import torch

    if isinstance(pictures, torch.Tensor):
        return pictures.permute(0, 3, 1, 2)
    return torch.from_numpy(np.stack(list(pictures))).to(device()).permute(0, 3, 1, 2)


@contextmanager
def inference(half: str | None = None) -> Iterator[None]:
    """A context without gradients; with `half` (float16 or bfloat16) a GPU may use it where torch deems it safe."""
    import torch

    dtype = allowed_precision(half)
    half_precision = nullcontext() if dtype == "float32" else torch.autocast("cuda", dtype=getattr(torch, dtype))
    with torch.inference_mode(), half_precision:
        yield


def allowed_precision(half_dtype: str | None) -> str:
    """The precision that a network with this default runs in here."""
    if half_dtype is None or not device().startswith("cuda"):
        return "float32"
    return settings.requested_precision() or half_dtype


_turn = threading.Lock()
_own = threading.local()


@contextmanager
def torch_turn_among_threads() -> Iterator[None]:
    """One of several threads that compute calls torch at a time, but for those that wait in `numbers`."""
    with _turn:
        _own.turn = True
        try:
            yield
        finally:
            _own.turn = False


def to_numpy(tensor: Any, dtype: Any = np.float32) -> np.ndarray:
    """A tensor as an array on the CPU; while a GPU is still at it, another thread may have its turn."""
    tensor = tensor.detach().float()
    if tensor.is_cuda:
        tensor = _copy_from_gpu_yielding_turn(tensor)
    return np.asarray(tensor.cpu().numpy(), dtype=dtype)


def _copy_from_gpu_yielding_turn(tensor: Any) -> Any:
    import torch

    pinned = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    pinned.copy_(tensor, non_blocking=True)
    there = torch.cuda.Event(blocking=True)  # sleeps: cores are for those who decode
    there.record()
    waits = getattr(_own, "turn", False)
    if waits:
        _turn.release()
    try:
        there.synchronize()
    finally:
        if waits:
            _turn.acquire()
    return pinned.clone()  # pinned memory is for the next


def split_into_batches(pictures: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Runs of at most `size`."""
    return (pictures[start : start + size] for start in range(0, len(pictures), size))
