"""Checks of the installation, each with a remedy. Heavy libraries are tried in a child process."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, entry_points, version
from importlib.util import find_spec

from revisit.core import UsageError
from revisit.core.registry import ENTRY_POINT_GROUP
from revisit.engine.cache import cache_root
from revisit.media.decoder_process import GPU_DECODING, gpu_for_decoding
from revisit.networks import settings
from revisit.observers.sets import set_names
from revisit.weights.lock import entries
from revisit.weights.weights_folder import find_local, root

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


@dataclass(frozen=True)
class InstallationCheck:
    """One finding: `state` is ok, note (nothing is wrong) or bad (an evaluation would fail)."""

    name: str
    state: str
    finding: str


def checks() -> list[InstallationCheck]:
    """Everything an evaluation needs, looked at."""
    findings = [_python()]
    findings += [_import(name, code) for name, code in LIBRARIES.items()]
    findings += [_import("video decoders", DECODERS), _cache(), _disk(), _memory()]
    findings += [*_devices(), *_settings(), *(_extra(name, without) for name, without in NETWORKS.items()), *_weights()]
    findings += [
        InstallationCheck("plugin", "note", f"{point.name} ({point.value})")
        for point in entry_points(group=ENTRY_POINT_GROUP)
    ]
    return findings


def _devices() -> list[InstallationCheck]:
    """torch and the devices it finds; on a machine without it nothing is wrong."""
    if find_spec("torch") is None:
        return [InstallationCheck("torch", "note", EXTRA)]
    tried = _import("torch", DEVICES)
    if tried.state == "bad":
        return [tried]
    version, *devices = tried.finding.splitlines()
    cpu = f"cpu: {os.cpu_count()} cores" + ("" if devices else "; no GPU found")
    return [
        InstallationCheck("torch", "ok", version),
        *(InstallationCheck("device", "ok", line) for line in (*devices, cpu)),
    ]


def _settings() -> list[InstallationCheck]:
    """What was asked of networks by environment variables."""
    try:
        settings.check()
        gpu_for_decoding()
    except UsageError as error:
        return [InstallationCheck("settings", "bad", str(error))]
    variables = {name: os.environ[name] for name in (*settings.NAMES, GPU_DECODING) if os.environ.get(name)}
    return [InstallationCheck("settings", "note", f"{name}={value}") for name, value in variables.items()]


def _extra(name: str, without: str) -> InstallationCheck:
    try:
        return InstallationCheck(name, "note", version(name))
    except PackageNotFoundError:
        return InstallationCheck(name, "note", without)


def _weights() -> list[InstallationCheck]:
    """Where weights lie, and how many of each set are here."""
    try:
        folders = {id: find_local(entry) for id, entry in entries().items()}
        sets = {name: [id for id, entry in entries().items() if name in entry.sets] for name in set_names()}
    except UsageError as error:
        return [InstallationCheck("weights", "bad", str(error))]
    findings = [InstallationCheck("weights", "note", str(root()))]
    for name, ids in sets.items():
        if ids:
            installed = [id for id in ids if not isinstance(folders[id], str)]
            hint = "" if len(installed) == len(ids) else f"; revisit weights pull --set {name}"
            findings.append(
                InstallationCheck(f"weights of {name}", "note", f"{len(installed)} of {len(ids)} installed{hint}")
            )
    return findings


def _python() -> InstallationCheck:
    good = sys.version_info >= (3, 10)
    return InstallationCheck(
        "python",
        "ok" if good else "bad",
        f"{platform.python_version()} on {platform.platform()}, {os.cpu_count()} cores",
    )


def _import(name: str, code: str) -> InstallationCheck:
    try:
        tried = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return InstallationCheck(name, "bad", "importing it takes more than a minute")
    if tried.returncode:
        last = (tried.stderr.strip().splitlines() or [f"exit code {tried.returncode}"])[-1]
        return InstallationCheck(name, "bad", f"{last}; pip install --force-reinstall {PACKAGES.get(name, name)}")
    return InstallationCheck(name, "ok", tried.stdout.strip())


def _cache() -> InstallationCheck:
    root = cache_root()
    try:
        root.mkdir(parents=True, exist_ok=True)
        probe = root / f".probe-{os.getpid()}"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        return InstallationCheck(
            "cache", "bad", f"{root}: {error.strerror}; set REVISIT_CACHE to a folder you can write to"
        )
    return InstallationCheck("cache", "ok", str(root))


def _disk() -> InstallationCheck:
    free = shutil.disk_usage(cache_root()).free if cache_root().exists() else 0
    return InstallationCheck("disk", "ok" if free > DISK_WANTED else "note", f"{free / 1e9:.0f} GB free for evidence")


def _memory() -> InstallationCheck:
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        total = page * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return InstallationCheck("memory", "note", "unknown")
    try:
        free = f", {page * os.sysconf('SC_AVPHYS_PAGES') / 1e9:.0f} GB free"
    except (ValueError, OSError):
        free = ""
    return InstallationCheck("memory", "ok" if total > MEMORY_WANTED else "note", f"{total / 1e9:.0f} GB{free}")
