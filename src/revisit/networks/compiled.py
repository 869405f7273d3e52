"""Networks compiled for a GPU (torch.compile and CUDA graphs), once they have worked for a while.

Between its matrix products a network launches many small kernels, which cost a GPU about as much time; torch.compile
fuses them, and the rest is captured as a CUDA graph and replayed, since launching a kernel takes longer than it runs.
That takes up to half a minute for a network the first time on a machine, a few seconds later on, and pays for many
frames only. So a network runs as it is until it has worked for about as long on full batches of one size, and is then
compiled for that size; batches that are nearly full are filled up, and smaller ones go on as before. Results differ as
those of two batch sizes do, in the last bits of half precision.

Only the process that serves a GPU calls `enable_compilation`. `REVISIT_COMPILE=on` compiles as soon as the first clips
are done, off never; `--precision float32` turns it off, too. It cannot be done beside the work: while torch traces a
network, no other thread may call one.
"""

from __future__ import annotations

import copy
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

AFTER = {"auto": 300, "on": 40}  # full batches of one size that run as they are
LEAST = 0.7  # of a full batch that is worth filling up: a compiled network takes about so much of the time
BACKEND = "inductor"
MATRICES = (torch.nn.Linear, torch.nn.Conv2d, torch.nn.ConvTranspose2d)
Step = Callable[..., Tensor]  # a method of a network: tensors in, a tensor with as many rows out


class Compiler:
    """Steps of networks, compiled for full batches."""

    def __init__(self, rows: int, after: int) -> None:
        self.rows, self.after = rows, after
        self.seen: Counter[Any] = Counter()  # full batches of each network and shape
        self.made: dict[Any, Step] = {}

    def run(self, step: Step, tensors: tuple[Tensor, ...]) -> Tensor:
        rows = len(tensors[0])
        shapes = tuple((tuple(one.shape[1:]), one.dtype) for one in tensors)
        key = (id(getattr(step, "__self__", step)), step.__qualname__, shapes)
        if rows == self.rows:
            self.seen[key] += 1
            if self.seen[key] == self.after + 1:
                self.made[key] = _compile_or_return_uncompiled(step, tensors)
            return self.made.get(key, step)(*tensors)
        if key in self.made and LEAST * self.rows <= rows < self.rows:
            return self.made[key](*(_repeat_last_row_until(one, self.rows) for one in tensors))[:rows]
        return step(*tensors)


_compiler: Compiler | None = None


def enable_compilation(full_batch_rows: int, full_batches_before: int) -> None:
    """Compile networks for batches of so many rows from now on in this process, once so many have come."""
    global _compiler
    _compiler = Compiler(full_batch_rows, full_batches_before)


def is_compilation_enabled() -> bool:
    """Whether anything may be compiled in this process."""
    return _compiler is not None


def run(step: Step, *tensors: Tensor) -> Tensor:
    """What a step makes of tensors, by its compiled form where there is one."""
    return step(*tensors) if _compiler is None else _compiler.run(step, tensors)


def _repeat_last_row_until(tensor: Tensor, rows: int) -> Tensor:
    """A batch with copies of its last row at the end."""
    return torch.cat([tensor, tensor[-1:].expand(rows - len(tensor), *tensor.shape[1:])])


def _compile_or_return_uncompiled(step: Step, tensors: tuple[Tensor, ...]) -> Step:
    """The step, compiled and tried; itself where that fails."""
    try:
        lean = _with_weights_in_autocast_dtype(step, tensors[0].device.type)
        compiled: Step = torch.compile(lean, dynamic=False, backend=BACKEND)
        inputs = tuple(one.clone() for one in tensors)
        compiled(*inputs)
        return _capture_cuda_graph(compiled, inputs) if inputs[0].is_cuda else compiled
    except Exception as error:  # it works without; which compilers and drivers fail nobody can list
        why = str(error).strip().partition("\n")[0]
        sys.stderr.write(f"revisit: a network runs uncompiled, which is slower ({why})\n")
        return step


def _with_weights_in_autocast_dtype(step: Step, device_type: str) -> Step:
    """The step of a copy of its network whose matrices are stored in the precision that torch would convert them to.

    Torch converts them anew for each batch. The network itself stays: others may use it in full precision.
    """
    network = getattr(step, "__self__", None)
    if not isinstance(network, torch.nn.Module) or not torch.is_autocast_enabled(device_type):
        return step
    network = copy.deepcopy(network)
    for layer in network.modules():
        if isinstance(layer, MATRICES):
            layer.to(torch.get_autocast_dtype(device_type))
    method: Step = getattr(network, step.__name__)
    return method


def _capture_cuda_graph(compiled: Step, inputs: tuple[Tensor, ...]) -> Step:
    """The step as one CUDA graph, which reads from the tensors it was compiled for; not for two threads at a time."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # other threads go on copying frames to the GPU
        output = compiled(*inputs)

    def replay_on(*tensors: Tensor) -> Tensor:
        for mine, tensor in zip(inputs, tensors, strict=True):
            mine.copy_(tensor)
        graph.replay()
        return output.clone()

    replay_on.step = compiled  # type: ignore[attr-defined]  # the graph reads its weights, and does not keep them
    return replay_on
