"""SIGKILL at random moments: the same command finishes, and the summary is the same to the byte."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("kills", [1, 3])
def test_the_same_command_finishes_after_being_killed(make_clip, tmp_path, kills):
    for i in range(4):
        make_clip(tmp_path / f"videos/{'ab'[i % 2]}/clip{i}.mp4", seed=i, size=(96, 128), count=10)
    (tmp_path / "videos/a/broken.mp4").write_text("not a video")
    # Cheap metrics, a gate among them: what is tried is the bookkeeping, many times over.
    few = [word for id in ("flicker", "lighting_consistency", "camera_moved", "frozen_camera") for word in ("-m", id)]
    command = [
        sys.executable,
        "-m",
        "revisit",
        "eval",
        "videos",
        "--workers",
        str(min(kills, 2)),
        "--no-report",
        "--quiet",
        *few,
    ]

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
    for kill in range(kills):
        run, cache = f"killed-{kill}", f"cache-{kill}"
        moment = chance.uniform(0.05, duration)
        while not killed_after(moment, start(run, cache)):
            # It was faster than the first time and had finished: the moment comes earlier, in a fresh run.
            shutil.rmtree(tmp_path / run)
            shutil.rmtree(tmp_path / cache)
            moment *= 0.6
        assert start(run, cache).wait(300) == 1
        assert (tmp_path / run / "summary.json").read_bytes() == expected


def killed_after(seconds, process):
    """Kill a process after so many seconds; False if it had ended by then."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return True
    return False


def test_ctrl_c_ends_with_130_and_says_that_the_run_can_go_on(make_clip, tmp_path):
    for i in range(6):
        make_clip(tmp_path / f"videos/m/{i}.mp4", seed=i, size=(192, 256), count=40)
    command = [sys.executable, "-m", "revisit", "eval", "videos", "--workers", "2", "--no-report"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell in the background has it ignored
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not (tmp_path / "runs/videos/run.json").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; run the same command to continue" in said and "Traceback" not in said


@pytest.mark.slow
@pytest.mark.parametrize("death", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_run_leaves_no_temporary_folder(make_clip, tmp_path, death):
    """Every killed run left an empty one for evidence that the cache does not take, which it nearly always takes."""
    for i in range(6):
        make_clip(tmp_path / f"videos/m/{i}.mp4", seed=i, size=(192, 256), count=40)
    (tmp_path / "temporary").mkdir()
    command = [sys.executable, "-m", "revisit", "eval", "videos", "--workers", "0", "--no-report", "-m", "flicker"]
    env = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    with subprocess.Popen(
        command, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        deadline = time.monotonic() + 60
        while not (tmp_path / "runs/videos/run.json").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(death)
    assert process.returncode == -death
    assert not list((tmp_path / "temporary").iterdir())
