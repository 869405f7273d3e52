"""What a user asks of networks: environment variables, which all processes inherit, and options that set them.

REVISIT_DEVICE      --device      cpu, cuda, cuda:1, mps, or several GPUs: cuda:0,cuda:1
REVISIT_PRECISION   --precision   float32 (no half precision), or float16 or bfloat16 for what may run in half
REVISIT_BATCH       --batch       frames that a network on a GPU takes at once; what fits by default
REVISIT_THREADS                   threads of a network on a CPU; 1 by default, because the workers fill the cores
REVISIT_NETWORKS                  host (one process runs all networks), workers (each its own), or auto
REVISIT_COMPILE                   auto (after many frames), on (soon) or off: whether networks are compiled for a GPU
REVISIT_OPENVINO                  auto (where it is installed), on or off: whether OpenVINO runs networks on a CPU
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence

from revisit.core import UsageError

DEVICE, PRECISION, BATCH = "REVISIT_DEVICE", "REVISIT_PRECISION", "REVISIT_BATCH"
THREADS, NETWORKS = "REVISIT_THREADS", "REVISIT_NETWORKS"
COMPILE, OPENVINO = "REVISIT_COMPILE", "REVISIT_OPENVINO"
PRECISIONS = ("float32", "float16", "bfloat16")
NAMES = (DEVICE, PRECISION, BATCH, THREADS, NETWORKS, COMPILE, OPENVINO)
WHERE = ("auto", "host", "workers")
OPTIONS = {DEVICE: "--device", PRECISION: "--precision", BATCH: "--batch"}


def check_all_settings() -> None:
    """Raise UsageError for a setting that nothing can be made of, before any work is done."""
    requested_devices()
    requested_precision()
    requested_batch_size()
    cpu_threads()
    process_of_networks()
    compile_mode()
    openvino_mode()


def requested_devices() -> list[str]:
    """The devices that were asked for; none where the choice is ours."""
    value = os.environ.get(DEVICE, "")
    names = [name.strip() for name in value.split(",")] if value else []
    for name in names:
        if not re.fullmatch(r"cpu|mps|cuda(:\d+)?", name):
            raise UsageError(
                f"{_setting_as_given(DEVICE)}: choose cpu, cuda, cuda:1 or mps; several GPUs are written cuda:0,cuda:1"
            )
        if name == "mps" and sys.platform != "darwin":
            raise UsageError(f"{_setting_as_given(DEVICE)}: mps is the GPU of a Mac, and this machine has none")
    return names


def requested_precision() -> str:
    """The precision that was asked for, or nothing."""
    return _choice(PRECISION, PRECISIONS, f"one of {', '.join(PRECISIONS)}") or ""


def requested_batch_size() -> int | None:
    """How many frames a network may take at once, or None for what fits."""
    return _positive_number_or_none(BATCH)


def cpu_threads() -> int:
    """Threads of a network on a CPU."""
    return _positive_number_or_none(THREADS) or 1


def process_of_networks() -> str:
    """Which processes run the networks."""
    return _choice(NETWORKS, WHERE, "auto, host (one process) or workers (one copy each)") or "auto"


def compile_mode() -> str:
    """Whether networks may be compiled for a GPU: on, off or auto. Exact numbers are not."""
    return _setting_unless_exact(COMPILE)


def openvino_mode() -> str:
    """Whether OpenVINO may run networks on a CPU: on, off or auto. It adds up in another order than torch."""
    return _setting_unless_exact(OPENVINO)


def _setting_unless_exact(variable: str) -> str:
    """On, off or auto; off where exact numbers are asked for."""
    value = _choice(variable, ("on", "off", "auto"), "on, off or auto") or "auto"
    return "off" if requested_precision() == "float32" else value


def _choice(name: str, choices: Sequence[str], advice: str) -> str | None:
    """One of several words; nothing where none is given."""
    value = os.environ.get(name)
    if value and value not in choices:
        raise UsageError(f"{_setting_as_given(name)}: choose {advice}")
    return value


def _positive_number_or_none(name: str) -> int | None:
    value = os.environ.get(name, "")
    if value and not (value.isascii() and value.isdigit() and int(value)):
        raise UsageError(f"{_setting_as_given(name)}: expected a whole number of at least 1")
    return int(value) if value else None


def _setting_as_given(name: str) -> str:
    """A setting as the user may have given it."""
    option = OPTIONS.get(name)
    value = os.environ.get(name, "")
    return f"{option} {value} (or {name})" if option else f"{name}={value}"
