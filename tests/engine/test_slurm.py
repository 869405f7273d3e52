"""The recipe for Slurm arrays, by local processes: one run directory, and every clip observed once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from revisit.engine.cache import EvidenceCache
from revisit.engine.request import Request
from tests.conftest import PROJECT

FEW = ("flicker", "motion_amount")


def start(task: int, tmp_path: Path) -> subprocess.Popen[str]:
    """A task as Slurm starts it: a copy of the script, with the number of the task in its environment."""
    words = [str(tmp_path / "videos"), str(tmp_path / "runs/array"), *(word for id in FEW for word in ("-m", id))]
    program = tmp_path / "revisit"
    program.write_text(f'#!/bin/bash\nexec {sys.executable} -m revisit "$@"\n')
    program.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name != "REVISIT_CACHE"}
    environment |= {"SLURM_ARRAY_TASK_ID": str(task), "SLURM_ARRAY_JOB_ID": "7", "REVISIT": str(program)}
    return subprocess.Popen(
        ["bash", str(PROJECT / "examples/slurm_array.sh"), *words, "--workers", "0"], cwd=tmp_path, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


@pytest.mark.long
def test_tasks_of_an_array_share_a_run(make_clip, tmp_path: Path) -> None:
    for number in range(6):
        make_clip(tmp_path / f"videos/{'ab'[number % 2]}/{number // 2}.mp4", seed=number, size=(48, 64), count=8)
    tasks = [start(task, tmp_path) for task in range(2)]
    said = [task.communicate(timeout=300)[0] for task in tasks]
    assert [task.returncode for task in tasks] == [0, 0], said
    assert said[0].startswith("task 0 of job 7 on ") and said[1].startswith("task 1 of job 7 on ")
    run = tmp_path / "runs/array"
    lines = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
    asked = Counter((line["case"], line.get("metric")) for line in lines)
    assert len(asked) == 6 * len(FEW) and set(asked.values()) == {1}
    invocations = json.loads((run / "run.json").read_text())["invocations"]
    assert sum(one["counters"]["clips_decoded"] for one in invocations) == 6
    assert (tmp_path / "runs/cache/evidence").is_dir() and (run / "report/index.html").is_file()
    alone = Request.from_options(tmp_path / "videos", metrics=FEW).run(
        tmp_path / "alone", workers=0, cache=EvidenceCache(tmp_path / "other")
    )
    assert (run / "summary.json").read_bytes() == (alone.path / "summary.json").read_bytes()
