"""A short soak; `make soak` runs thousands of clips."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import PROJECT


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc to find the processes of a run")
def test_a_run_through_every_fault_ends_with_the_summary_of_one_without():
    pytest.importorskip("torch", reason="needs torch for the process that runs networks")
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak", "--clips", "120"],
        cwd=PROJECT, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 things are wrong" in done.stdout
