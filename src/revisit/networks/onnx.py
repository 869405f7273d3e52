"""ONNX networks: one session per file and process, on one thread, or on a GPU where onnxruntime has been built for it.

`REVISIT_DEVICE` says where, as for torch. On a GPU sums are float32 without TF32, by one fixed algorithm.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import MissingPrerequisite
from revisit.networks import settings

QUIET = 3  # errors only: some files make onnxruntime print a warning for every tensor


@cache
def load_session(path: Path) -> Any:
    """The network in a file, ready to run."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = QUIET
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # the workers fill the cores; sums keep their order
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=execution_providers())
    except Exception as error:
        first = str(error).strip().partition("\n")[0][:200]
        raise MissingPrerequisite(f"{path}: onnxruntime cannot read this file: {first}; fetch it again") from None


def execution_providers() -> list[Any]:
    """Where sessions run: the GPU that is asked for, or the first one, or the CPU."""
    import onnxruntime

    requested = next(iter(settings.requested_devices()), "")
    if requested.startswith(("cpu", "mps")) or "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        return ["CPUExecutionProvider"]
    number = int(requested.partition(":")[2] or 0)
    exact = {"device_id": number, "cudnn_conv_algo_search": "DEFAULT", "use_tf32": 0}
    return [("CUDAExecutionProvider", exact), "CPUExecutionProvider"]


def run(path: Path, numbers: np.ndarray) -> list[np.ndarray]:
    """All outputs of a network with one input of float32, in the order of the file."""
    network = load_session(path)
    outputs = network.run(None, {network.get_inputs()[0].name: np.ascontiguousarray(numbers, dtype=np.float32)})
    return [np.asarray(output) for output in outputs]


def require_shapes(path: Path, inputs: tuple[int | None, ...], outputs: tuple[tuple[int | None, ...], ...]) -> None:
    """Raise MissingPrerequisite unless the file has one input and these outputs; None stands for any length."""
    network = load_session(path)
    shapes = [tuple(one.shape) for one in (*network.get_inputs(), *network.get_outputs())]
    expected = [inputs, *outputs]
    if len(network.get_inputs()) != 1 or len(shapes) != len(expected) or not all(map(_shape_matches, shapes, expected)):
        raise MissingPrerequisite(
            f"{path}: this is a different network: its inputs and outputs are {shapes[0]} and {shapes[1:]}; expected "
            f"{inputs} and {list(outputs)}"
        )


def _shape_matches(shape: tuple[Any, ...], expected: tuple[int | None, ...]) -> bool:
    """Whether a shape can be the one that is wanted; lengths that the file leaves open fit any."""
    if len(shape) != len(expected):
        return False
    return all(not isinstance(a, int) or b is None or a == b for a, b in zip(shape, expected, strict=True))
