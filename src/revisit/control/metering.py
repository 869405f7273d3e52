"""Metering: what making a clip costs: seconds, memory of the generator's processes, memory on GPUs.

Processes are told by the session that a generator is started in, with all that it starts itself. Linux keeps the peak
of each process, so that a peak between two looks is not missed; without /proc memory is not measured. (What the system
says of a process that has ended will not do: its peak begins with that of who started it.) Memory on GPUs is what
`nvidia-smi` says, about once a second, where it answers.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

PROC = Path("/proc")
FAMILY_PAUSE = 0.5  # seconds between two searches for processes of the session, which takes a while
GPU_PAUSE = 1.0  # seconds between two questions to nvidia-smi
GPU_TIMEOUT = 10.0
GB = 1e9
ModelCost = dict[str, float | str]  # as the card of a model has it


@dataclass(frozen=True)
class Cost:
    """What one clip cost. None where it was not measured."""

    seconds: float
    loading: float | None = 0.0  # seconds until the process was ready; None: they are in `seconds`
    memory: int | None = None  # bytes at the peak, of all processes of the generator
    gpu_memory: int | None = None  # bytes at the peak, on all its GPUs
    gpus: int | None = None  # that it sees

    def as_json(self) -> dict[str, float | None]:
        """As records of clips have it."""
        return {**asdict(self), "seconds": round(self.seconds, 3)}


class Meter:
    """Looks at the processes of a session while they work, and keeps the peaks.

    It is made before they are started, so that it knows what the GPUs held without them.
    """

    def __init__(self, env: Mapping[str, str] | None = None, session: int = -1) -> None:
        self.env, self.session = env or {}, session  # of the processes, which may see some GPUs only
        self.memory = 0
        self._by_process = 0  # peak on GPUs of processes that nvidia-smi names
        self._by_device: int | None = None  # peak of what the GPUs hold more than before; None before the first look
        self._members: list[int] = []
        self._last_search, self._last_query = -FAMILY_PAUSE, -GPU_PAUSE
        self._before = gpu_bytes_in_use(self.env)

    def measure(self, *, last: bool = False) -> None:
        """Look once; cheap enough to be called many times a second."""
        if last or time.monotonic() - self._last_search >= FAMILY_PAUSE:
            self._last_search = time.monotonic()
            self._members = pids_of_session(self.session)
        usage = [memory_now_and_peak(pid) for pid in self._members]
        now, peaks = sum(now for now, _ in usage), [peak for _, peak in usage]
        self.memory = max(self.memory, now, *peaks, 0)
        if self._before is not None and (last or time.monotonic() - self._last_query >= GPU_PAUSE):
            self._last_query = time.monotonic()
            self._update_gpu_peaks()

    @property
    def peak_gpu_bytes(self) -> int | None:
        """Bytes at the peak: those of its processes, if nvidia-smi ever named one, else what the devices held more.

        In a container the numbers of processes may be those of the machine, so that none is ever named.
        """
        return self._by_process or self._by_device

    def _update_gpu_peaks(self) -> None:
        mine = set(self._members)
        used = [used_bytes for pid, used_bytes in gpu_bytes_of_processes() if pid in mine]
        self._by_process = max(self._by_process, sum(used))
        before, now = self._before or {}, gpu_bytes_in_use(self.env) or {}
        more = sum(max(0, used_bytes - before.get(name, 0)) for name, used_bytes in now.items())
        self._by_device = max(self._by_device or 0, more)

    def clip_cost(self, seconds: float, loading_seconds: float | None) -> Cost:
        """The cost of a clip that took so many seconds."""
        gpus = None if self._before is None else len(self._before)
        return Cost(seconds, loading_seconds, self.memory or None, self.peak_gpu_bytes, gpus)


def pids_of_session(session: int) -> list[int]:
    """Numbers of the processes of a session; none where the system does not tell."""
    if not PROC.is_dir():
        return []
    pids = []
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_bytes()
                # The name of a process may hold anything, brackets too: what counts stands behind the last one.
                if int(stat[stat.rindex(b")") + 2 :].split()[3]) == session:
                    pids.append(int(entry.name))
            except (OSError, ValueError, IndexError):  # it has just ended
                continue
    return pids


def memory_now_and_peak(pid: int) -> tuple[int, int]:
    """Bytes that a process holds now, and at its peak; 0 where it has ended."""
    try:
        text = (PROC / str(pid) / "status").read_text(errors="replace")
    except OSError:
        return 0, 0
    kilobytes = dict(re.findall(r"^(VmRSS|VmHWM):\s+(\d+)", text, re.MULTILINE))
    return int(kilobytes.get("VmRSS", 0)) * 1024, int(kilobytes.get("VmHWM", 0)) * 1024


def gpu_bytes_of_processes() -> list[tuple[int, int]]:
    """Process and bytes that it holds on a GPU, for all that nvidia-smi knows."""
    rows = _query_nvidia_smi("--query-compute-apps=pid,used_memory") or []
    return [(int(pid), int(mib) << 20) for pid, mib in rows if pid.isdigit() and mib.isdigit()]


def gpu_bytes_in_use(env: Mapping[str, str] | None = None) -> dict[str, int] | None:
    """GPU -> bytes in use, of those that an environment sees; None where nvidia-smi does not answer."""
    rows = _query_nvidia_smi("--query-gpu=index,uuid,memory.used")
    if rows is None:
        return None
    visible_names = {**os.environ, **(env or {})}.get("CUDA_VISIBLE_DEVICES")
    names = None if visible_names is None else [name.strip() for name in visible_names.split(",") if name.strip()]
    memory = {}
    for index, uuid, mib in rows:
        visible = names is None or index in names or any(uuid.startswith(name) for name in names)
        if visible and mib.isdigit():
            memory[index] = int(mib) << 20
    return memory


@cache
def machine_description() -> str:
    """What clips are made on: the GPUs where there are some, else the processor."""
    rows = _query_nvidia_smi("--query-gpu=name")
    if rows:
        return rows[0][0] if len(rows) == 1 else f"{len(rows)} x {rows[0][0]}"
    return f"{platform.machine()}, {os.cpu_count()} cores, no GPU"


def _query_nvidia_smi(question: str) -> list[list[str]] | None:
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    words = [program, question, "--format=csv,noheader,nounits"]
    try:
        output = subprocess.run(words, capture_output=True, text=True, timeout=GPU_TIMEOUT, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return [[cell.strip() for cell in line.split(",")] for line in output.split("\n") if line.strip()]


def model_cost(
    costs_and_video_seconds: Iterable[tuple[Mapping[str, Any], float]],
    price_per_clip: float | None = None,
    currency: str = "USD",
) -> ModelCost:
    """The cost of a model, from the costs of clips and their lengths in seconds, as its card has it.

    Parameters
    ----------
    costs_and_video_seconds
        `cost` of each clip's record, and the seconds of video that it has.
    price_per_clip
        Price of a clip, where somebody said it.

    Returns
    -------
    dict
        Empty where no clip has a cost. Seconds are means over clips; those per second of video are sums over sums, so
        that a long clip counts as much as it lasts. Memory is the greatest peak.
    """
    measured = [
        (cost, length) for cost, length in costs_and_video_seconds if isinstance(cost.get("seconds"), int | float)
    ]
    if not measured:
        return {}
    seconds = [float(cost["seconds"]) for cost, _ in measured]
    video = sum(length for _, length in measured)
    summary: ModelCost = {
        "clips": len(measured),
        "seconds_per_clip": _round_to_four_significant_digits(sum(seconds) / len(seconds)),
    }
    if video > 0:
        summary["seconds_per_video_second"] = _round_to_four_significant_digits(sum(seconds) / video)
        gpus = [int(cost.get("gpus") or 0) for cost, _ in measured]
        if all(gpus):
            spent = sum(second * count for second, count in zip(seconds, gpus, strict=True))
            summary |= {
                "gpus": max(gpus),
                "gpu_seconds_per_video_second": _round_to_four_significant_digits(spent / video),
            }
    loads = [float(cost["loading"]) for cost, _ in measured if cost.get("loading")]
    if loads:
        summary["loading_seconds"] = _round_to_four_significant_digits(sum(loads) / len(loads))
    if any(cost.get("loading", 0.0) is None for cost, _ in measured):
        summary["with_loading"] = True
    for name, key in (("peak_memory_gb", "memory"), ("peak_gpu_memory_gb", "gpu_memory")):
        peaks = [cost[key] for cost, _ in measured if cost.get(key)]
        if peaks:
            summary[name] = _round_to_four_significant_digits(max(peaks) / GB)
    if price_per_clip is not None:
        summary |= {"price_per_clip": price_per_clip, "currency": currency}
    return {**summary, "machine": machine_description()}


def _round_to_four_significant_digits(value: float) -> float:
    return float(f"{value:.4g}")
