"""Checks of the installation, each with a remedy. Heavy libraries are tried in a child process."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from importlib.util import find_spec

from revisit.core import UsageError
from revisit.core.registry import ENTRY_POINT_GROUP
from revisit.engine.cache import EvidenceCache, cache_root
from revisit.engine.costs import free_memory_bytes, system_memory_bytes
from revisit.engine.provenance import installed_version_or_empty
from revisit.media.decoder_process import GPU_DECODING, gpu_number_for_decoding
from revisit.networks import settings
from revisit.observers.sets import set_names
from revisit.weights.lock import read_lock_entries
from revisit.weights.weights_folder import find_local_weights, weights_root

LIBRARIES = {
    "numpy": "import numpy; print(numpy.__version__)",
    "opencv": "import cv2; print(cv2.__version__)",
    "pyav": "import av; print(av.__version__, 'with libavcodec', *av.library_versions['libavcodec'])",
}
PACKAGES = {"opencv": "opencv-python-headless", "pyav": "av", "video decoders": "av"}  # where they come from
DECODERS = "import av; print(' '.join(n for n in ('h264', 'hevc', 'vp9', 'av1', 'ffv1') if n in av.codecs_available))"
# One line for each device that networks can run on, and one for the version; imported away from here, because it takes
# seconds and a broken driver may take the process with it.
DEVICES = """
import torch
print(torch.__version__)
for k in range(torch.cuda.device_count()):
    facts = torch.cuda.get_device_properties(k)
    free, total = torch.cuda.mem_get_info(k)
    print(f"cuda:{k}: {facts.name}, {total / 1e9:.0f} GB, {free / 1e9:.0f} GB free")
if getattr(torch.backends, "mps", None) and torch.backends.mps.is_available():
    print("mps: Apple GPU, shares the memory of the machine")
"""
EXTRA = "not installed; the sets small and paper need it: pip install 'revisit-bench[networks]'"
FASTER = "not installed; with it the small set takes less time without a GPU: pip install 'revisit-bench[cpu]'"
NETWORKS = {
    "transformers": EXTRA, "safetensors": EXTRA, "onnxruntime": EXTRA, "tokenizers": EXTRA, "openvino": FASTER
}  # fmt: skip
MEMORY_WANTED, DISK_WANTED = 2e9, 5e9
Row = tuple[str, str, str]  # name, state and finding; the state is ok, note (nothing is wrong) or bad (none can run)


def check_installation() -> list[Row]:
    """Everything an evaluation needs, looked at: a row of name, state and finding each."""
    return [
        ("python", "ok", f"{platform.python_version()} on {platform.platform()}, {os.cpu_count()} cores"),
        *(_check_import(name, code) for name, code in LIBRARIES.items()),
        _check_import("video decoders", DECODERS),
        _check_cache_folder(),
        *_check_disk_and_memory(),
        *_check_torch_devices(),
        *_check_network_settings(),
        *((name, "note", installed_version_or_empty(name) or without) for name, without in NETWORKS.items()),
        *_check_weights(),
        *(("plugin", "note", f"{point.name} ({point.value})") for point in entry_points(group=ENTRY_POINT_GROUP)),
    ]


def _check_torch_devices() -> list[Row]:
    """torch and the devices it finds; on a machine without it nothing is wrong."""
    if find_spec("torch") is None:
        return [("torch", "note", EXTRA)]
    tried = _check_import("torch", DEVICES)
    if tried[1] == "bad":
        return [tried]
    version, *devices = tried[2].splitlines()
    cpu = f"cpu: {os.cpu_count()} cores" + ("" if devices else "; no GPU found")
    return [("torch", "ok", version), *(("device", "ok", line) for line in (*devices, cpu))]


def _check_network_settings() -> list[Row]:
    """What was asked of networks by environment variables."""
    try:
        settings.check_all_settings()
        gpu_number_for_decoding()
    except UsageError as error:
        return [("settings", "bad", str(error))]
    names = [name for name in (*settings.NAMES, GPU_DECODING) if os.environ.get(name)]
    return [("settings", "note", f"{name}={os.environ[name]}") for name in names]


def _check_weights() -> list[Row]:
    """Where weights lie, and how many of each set are here."""
    try:
        installed = {id: not isinstance(find_local_weights(entry), str) for id, entry in read_lock_entries().items()}
        sets = {
            name: [installed[id] for id, entry in read_lock_entries().items() if name in entry.sets]
            for name in set_names()
        }
    except UsageError as error:
        return [("weights", "bad", str(error))]
    rows = [("weights", "note", str(weights_root()))]
    for name, here in sets.items():
        if here:
            hint = "" if all(here) else f"; revisit weights pull --set {name}"
            rows.append((f"weights of {name}", "note", f"{sum(here)} of {len(here)} installed{hint}"))
    return rows


def _check_import(name: str, code: str) -> Row:
    try:
        tried = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return name, "bad", "importing it takes more than a minute"
    if tried.returncode:
        last = (tried.stderr.strip().splitlines() or [f"exit code {tried.returncode}"])[-1]
        return name, "bad", f"{last}; pip install --force-reinstall {PACKAGES.get(name, name)}"
    return name, "ok", tried.stdout.strip()


def _check_cache_folder() -> Row:
    try:
        EvidenceCache(cache_root()).require_usable(writable=True)
    except UsageError as error:
        return "cache", "bad", str(error)
    return "cache", "ok", str(cache_root())


def _check_disk_and_memory() -> list[Row]:
    disk = shutil.disk_usage(cache_root()).free if cache_root().exists() else 0
    rows = [("disk", "ok" if disk > DISK_WANTED else "note", f"{disk / 1e9:.0f} GB free for evidence")]
    total, free = system_memory_bytes(), free_memory_bytes()
    if total is None:
        return [*rows, ("memory", "note", "unknown")]
    left = "" if free is None else f", {free / 1e9:.0f} GB free"
    return [*rows, ("memory", "ok" if total > MEMORY_WANTED else "note", f"{total / 1e9:.0f} GB{left}")]
