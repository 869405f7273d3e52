"""Memory is bounded by a batch, not by the clip: 300 frames of 1080p, every metric on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from revisit.media import encode_mp4

GIGABYTE = 1e9


def resident(pid: int) -> int:
    """Bytes in use by a process and all its children, shared pages counted once per process."""
    total = 0
    for process in [pid, *_children(pid)]:
        try:
            pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
        except (OSError, IndexError):
            continue
        total += pages * os.sysconf("SC_PAGE_SIZE")
    return total


def _children(pid: int) -> list[int]:
    try:
        found = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return found + [grandchild for child in found for grandchild in _children(child)]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc to read the memory in use")
def test_a_long_1080p_clip_stays_under_one_and_a_half_gigabytes(tmp_path):
    rng = np.random.default_rng(0)
    wall = np.kron(rng.integers(0, 255, (68, 180, 3), dtype=np.uint8), np.ones((16, 16, 1), np.uint8))
    offsets = np.r_[np.arange(150), np.arange(150)[::-1]] * 5
    frames = (np.ascontiguousarray(wall[:1080, x : x + 1920]) for x in offsets)
    encode_mp4(tmp_path / "v/long.mp4", frames, fps=30, crf=28)
    (tmp_path / "v/truth.mp4").write_bytes((tmp_path / "v/long.mp4").read_bytes() + bytes(8))
    entry = {"id": "long", "video": "long.mp4", "reference": "truth.mp4", "target": {"box": [0.4, 0.4, 0.6, 0.6]}}
    (tmp_path / "v/manifest.jsonl").write_text(json.dumps(entry))
    command = [sys.executable, "-m", "revisit", "eval", "v", "--workers", "1", "--no-report", "--quiet"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    peak = 0
    while process.poll() is None:
        peak = max(peak, resident(process.pid))
        time.sleep(0.05)
    assert process.returncode == 0, process.stderr.read().decode() if process.stderr else ""
    assert 0.1 * GIGABYTE < peak < 1.5 * GIGABYTE
    counters = json.loads((tmp_path / "runs/v/run.json").read_text())["counters"]
    assert counters["most_decodes_of_one_clip"] == counters["most_runs_of_one_observer_on_one_clip"] == 1
