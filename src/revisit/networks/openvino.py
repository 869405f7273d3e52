"""Inference by OpenVINO, where it is installed and networks run on a CPU: the same sums in less time.

Sums stay float32, but are added up in another order, and convolutions of 3 x 3 take fewer multiplications (Winograd):
results differ as those of two processors do. Of torch's time on an ARM core LPIPS takes 0.45, EfficientNet-Lite0 0.7
and TransNetV2 0.55. A step is traced and converted once for each shape, which takes one to four seconds; the result is
kept in the cache of this machine. `REVISIT_OPENVINO=off` and `--precision float32` leave everything to torch.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
import warnings
from collections.abc import Callable
from functools import cache
from io import BytesIO
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from revisit.networks import runtime, settings
from revisit.weights import derived_files

MOST = 8  # shapes of one network that are kept ready in memory
Step = Callable[[Tensor], tuple[Tensor, ...]]  # a method of a network
# Converted steps by network, name and shape; None where that failed.
_ready: WeakKeyDictionary[nn.Module, dict[Any, Step | None]] = WeakKeyDictionary()


def run(step: Step, x: Tensor) -> tuple[Tensor, ...]:
    """What a step of a network makes of a tensor; its results are the caller's own."""
    if not runtime.uses_openvino():
        return step(x)
    network: nn.Module = step.__self__  # type: ignore[attr-defined]
    ready = _ready.setdefault(network, {})
    key = step.__name__, tuple(x.shape), x.dtype
    if key not in ready:
        while len(ready) >= MOST:
            ready.pop(next(iter(ready)))
        ready[key] = _convert_or_none(step, x)
    return (ready[key] or step)(x)


def _convert_or_none(step: Step, x: Tensor) -> Step | None:
    """The step for tensors of this shape; nothing where that fails."""
    try:
        model = _compiled(step, x)
    except Exception as error:  # it works without; which operations a version cannot convert nobody can list
        why = str(error).strip().partition("\n")[0]
        sys.stderr.write(f"revisit: a network runs without OpenVINO, which is slower ({why})\n")
        return None
    request = model.create_infer_request()

    def run_request(x: Tensor) -> tuple[Tensor, ...]:
        request.infer([x.contiguous().numpy()], share_inputs=True)
        count = len(model.outputs)
        return tuple(torch.from_numpy(request.get_output_tensor(k).data.copy()) for k in range(count))

    return run_request


def _compiled(step: Step, x: Tensor) -> Any:
    import openvino
    from openvino.frontend import FrontEndManager
    from openvino.frontend.pytorch.ts_decoder import TorchScriptPythonDecoder

    # A pinned thread would share one core with those of all other workers.
    config = {
        "INFERENCE_NUM_THREADS": settings.cpu_threads(), "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32",
        "ENABLE_CPU_PINNING": False,
    }  # fmt: skip
    core = _core()
    machine = core.get_property("CPU", "FULL_DEVICE_NAME")
    name = _cache_name(step, x, [openvino.__version__, torch.__version__, config, machine])
    cached = derived_files.load_derived_bytes(name)
    if cached is not None:
        return core.import_model(BytesIO(cached), "CPU", config)
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")  # what depends on the shape becomes a constant, as it should
        traced = torch.jit.trace(_Traced(step), x, check_trace=False, strict=False)
    frontend = FrontEndManager().load_by_framework("pytorch")
    decoder = TorchScriptPythonDecoder(traced)  # must live until all is converted
    model = frontend.convert(frontend.load(decoder))
    model.reshape({model.inputs[0]: list(x.shape)})
    compiled = core.compile_model(model, "CPU", config)
    stream = BytesIO()
    compiled.export_model(stream)
    derived_files.store_derived_bytes(name, stream.getvalue())
    return compiled


@cache
def _core() -> Any:
    import openvino

    return openvino.Core()


class _Traced(nn.Module):
    """A step as a module, which is what can be traced."""

    def __init__(self, step: Step) -> None:
        super().__init__()
        self.network, self.name = step.__self__, step.__name__  # type: ignore[attr-defined]

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return getattr(self.network, self.name)(x)


def _cache_name(step: Step, x: Tensor, environment: list[Any]) -> str:
    """Tells all that a converted step depends on: its code, its weights, the shape, libraries and processor."""
    network: nn.Module = step.__self__  # type: ignore[attr-defined]
    code = inspect.getsource(sys.modules[type(network).__module__])
    facts = code, step.__qualname__, tuple(x.shape), x.dtype, environment
    parts = hashlib.blake2b(repr(facts).encode(), digest_size=16)
    for name, tensor in network.state_dict().items():
        parts.update(name.encode())
        parts.update(tensor.contiguous().numpy().data)
    return parts.hexdigest()
