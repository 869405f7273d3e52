"""Checks of the installation, each with what to do about it. Heavy libraries are tried in a child process."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec

from revisit.core.registry import ENTRY_POINT_GROUP
from revisit.engine.cache import cache_root

LIBRARIES = {
    "numpy": "import numpy; print(numpy.__version__)",
    "opencv": "import cv2; print(cv2.__version__)",
    "pyav": "import av; print(av.__version__, 'with libavcodec', *av.library_versions['libavcodec'])",
}
DECODERS = "import av; print(' '.join(n for n in ('h264', 'hevc', 'vp9', 'av1', 'ffv1') if n in av.codecs_available))"
MEMORY_WANTED, DISK_WANTED = 2e9, 5e9


@dataclass(frozen=True)
class Check:
    """One finding: `state` is ok, note (nothing is wrong) or bad (an evaluation would fail)."""

    name: str
    state: str
    finding: str


def checks() -> list[Check]:
    """Everything an evaluation needs, looked at."""
    found = [_python()]
    found += [_import(name, code) for name, code in LIBRARIES.items()]
    found += [_import("video decoders", DECODERS), _cache(), _disk(), _memory()]
    found += [
        Check("torch", "note", "installed" if find_spec("torch") else "not installed; the lite set does not need it")
    ]
    http = "installed" if find_spec("httpx") else "not installed; only a judge over HTTP needs it"
    found += [Check("httpx", "note", http)]
    found += [
        Check("plugin", "note", f"{point.name} ({point.value})") for point in entry_points(group=ENTRY_POINT_GROUP)
    ]
    return found


def _python() -> Check:
    good = sys.version_info >= (3, 10)
    return Check(
        "python",
        "ok" if good else "bad",
        f"{platform.python_version()} on {platform.platform()}, {os.cpu_count()} cores",
    )


def _import(name: str, code: str) -> Check:
    try:
        tried = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return Check(name, "bad", "does not import within a minute")
    if tried.returncode:
        last = (tried.stderr.strip().splitlines() or [f"exit code {tried.returncode}"])[-1]
        return Check(name, "bad", f"{last}; pip install --force-reinstall revisit-bench")
    return Check(name, "ok", tried.stdout.strip())


def _cache() -> Check:
    root = cache_root()
    try:
        root.mkdir(parents=True, exist_ok=True)
        probe = root / f".probe-{os.getpid()}"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        return Check("cache", "bad", f"{root}: {error.strerror}; set REVISIT_CACHE to a folder you can write to")
    return Check("cache", "ok", str(root))


def _disk() -> Check:
    free = shutil.disk_usage(cache_root()).free if cache_root().exists() else 0
    return Check("disk", "ok" if free > DISK_WANTED else "note", f"{free / 1e9:.0f} GB free for evidence")


def _memory() -> Check:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return Check("memory", "note", "unknown")
    return Check("memory", "ok" if total > MEMORY_WANTED else "note", f"{total / 1e9:.0f} GB")
