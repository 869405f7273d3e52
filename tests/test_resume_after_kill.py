"""SIGKILL at random moments: the same command finishes, and the summary is the same to the byte."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import pytest

KILLS = 20


@pytest.mark.slow
def test_the_same_command_finishes_after_twenty_kills(make_clip, tmp_path):
    for i in range(4):
        make_clip(tmp_path / f"videos/{'ab'[i % 2]}/clip{i}.mp4", seed=i, size=(96, 128), count=10)
    (tmp_path / "videos/a/broken.mp4").write_text("not a video")
    command = [sys.executable, "-m", "revisit", "eval", "videos", "--workers", "2", "--no-report", "--quiet"]

    def start(run, cache):
        env = {**os.environ, "REVISIT_CACHE": str(tmp_path / cache)}
        return subprocess.Popen(
            [*command, "--out", run], cwd=tmp_path, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    started = time.monotonic()
    assert start("whole", "cache-whole").wait(300) == 1  # one clip is broken
    duration = time.monotonic() - started
    expected = (tmp_path / "whole/summary.json").read_bytes()

    chance = random.Random(7)
    killed = 0
    for kill in range(KILLS):
        run, cache = f"killed-{kill}", f"cache-{kill}"
        process = start(run, cache)
        try:
            process.wait(chance.uniform(0.05, duration))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed += 1
        assert start(run, cache).wait(300) == 1
        assert (tmp_path / run / "summary.json").read_bytes() == expected
    assert killed > KILLS // 2  # the others had finished before their moment came
