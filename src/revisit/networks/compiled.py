"""Networks compiled for a GPU, by a thread, while they already work.

Between its large sums a network takes many small steps, which cost a GPU about as much time; torch.compile joins them.
Compiling takes up to half a minute the first time on a machine, a few seconds later on, and is worth it for many
frames only. So full batches of one size are compiled in the background: until that is done, and for all other batches,
a network runs as it is. Results differ as those of two batch sizes do, in the last bits of half precision.

Only the process that serves a GPU calls `allow`. `REVISIT_COMPILE=off` turns it off, and so does `--precision float32`.
"""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable
from typing import Any

from torch import Tensor

BACKEND = "inductor"
Step = Callable[..., Tensor]  # a method of a network: tensors in, a tensor with as many rows out


class Compiler:
    """Steps that were compiled, by network and shapes, and the thread that compiles them one after another."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.known: dict[Any, Step | None] = {}  # None: not yet, or it cannot be
        self.orders: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.thread: threading.Thread | None = None

    def run(self, step: Step, tensors: tuple[Tensor, ...]) -> Tensor:
        if len(tensors[0]) != self.rows:
            return step(*tensors)
        state = _state(tensors[0])
        shapes = tuple((tuple(one.shape), one.stride(), one.dtype) for one in tensors)
        key = (step.__qualname__, id(getattr(step, "__self__", step)), shapes, *state)
        if key not in self.known:
            self.known[key] = None
            self.orders.put((key, step, tensors, state))
            if self.thread is None:
                self.thread = threading.Thread(target=self._work, daemon=True)
                self.thread.start()
        return (self.known[key] or step)(*tensors)

    def _work(self) -> None:
        while True:
            key, step, tensors, state = self.orders.get()
            try:
                self.known[key] = _compiled(step, tensors, *state)
            except Exception as error:  # it works without; which compilers and drivers fail nobody can list
                why = str(error).strip().partition("\n")[0]
                sys.stderr.write(f"revisit: networks run uncompiled, which is slower ({why})\n")
                return


_compiler: Compiler | None = None


def allow(rows: int) -> None:
    """Compile networks for batches of so many rows from now on in this process."""
    global _compiler
    _compiler = Compiler(rows)


def run(step: Step, *tensors: Tensor) -> Tensor:
    """What a step makes of tensors, by its compiled form where that is ready."""
    return step(*tensors) if _compiler is None else _compiler.run(step, tensors)


def _state(tensor: Tensor) -> tuple[Any, int]:
    """What the compiled form is bound to beside shapes, and a new thread does not inherit."""
    import torch

    kind = tensor.device.type
    half = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
    return half, torch.get_num_threads()


def _compiled(step: Step, tensors: tuple[Tensor, ...], half: Any, threads: int) -> Step:
    """The step, compiled and tried."""
    import torch

    device = tensors[0].device
    torch.set_num_threads(threads)
    made: Step = torch.compile(step, dynamic=False, backend=BACKEND)
    with torch.inference_mode(), torch.autocast(device.type, dtype=half or torch.float16, enabled=half is not None):
        if device.type != "cuda":
            made(*tensors)
            return made
        with torch.cuda.device(device), torch.cuda.stream(torch.cuda.Stream(device)):
            made(*tensors)
            torch.cuda.current_stream().synchronize()
    return made
