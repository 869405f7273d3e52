"""The generator's loop of examples/serve_generator.py: 200 jobs with three crashes and a hang, and nothing lost."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from revisit.control.generation import GeneratorChoice, generation_settings_for
from revisit.control.job_runner import read_provenance_or_none, run_jobs
from revisit.control.jobs import Job

EXAMPLES = Path(__file__).parents[2] / "examples"
FAULTY = """
import os, pathlib, sys, time
sys.path.insert(0, sys.argv[1])
import serve_generator as example
place = pathlib.Path(sys.argv[2])
load, frames_of = example.load, example.frames_of

def counted():
    with (place / "loads").open("a") as file: file.write(os.environ["REVISIT_WORKER"] + "\\n")
    return load()

def faulty(net, job):
    once = place / job["id"]
    if job["id"] in ("j002", "j009", "j015", "j012") and not once.exists():
        once.touch()
        if job["id"] == "j012": time.sleep(600)
        os._exit(7)
    return frames_of(net, job)

example.load, example.frames_of = counted, faulty
example.main()
"""


@pytest.mark.long
@pytest.mark.parametrize("count", [24, 200])
def test_many_jobs_three_crashes_and_a_hang(count: int, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the example's network is in torch: pip install 'revisit-bench[networks]'")
    (tmp_path / "faulty.py").write_text(FAULTY)
    jobs = [
        Job(f"j{k:03d}", tmp_path / f"out/j{k:03d}.mp4", 5, 16, (16, 16), "x", "tiny", f"j{k:03d}", seed=k)
        for k in range(count)
    ]
    by = GeneratorChoice(serve=f"'{sys.executable}' '{tmp_path / 'faulty.py'}' '{EXAMPLES}' '{tmp_path}'", workers=2)
    ended = list(
        run_jobs(jobs, by.make_backends(), tmp_path / "out", generation_settings_for(by, timeout=15, retries=1))
    )
    assert Counter(made.status for made in ended) == {"made": count}
    assert {made.id for made in ended if made.tries == 2} == {"j002", "j009", "j012", "j015"}
    loads = Counter((tmp_path / "loads").read_text().split())
    assert set(loads) == {"0", "1"} and sum(loads.values()) == 2 + 4  # once per worker, and once after each loss
    log = [json.loads(line) for line in (tmp_path / "out/generation.jsonl").read_text().splitlines()]
    assert len(log) == count and len(list((tmp_path / "out").glob("*.mp4"))) == count
    assert (
        len({read_provenance_or_none(job.out)["output"]["sha256"] for job in jobs}) == count
    )  # nobody got another's clip
    again = list(run_jobs(jobs, by.make_backends(), tmp_path / "out", generation_settings_for(by, timeout=15)))
    assert {made.status for made in again} == {"kept"}
    assert sum(Counter((tmp_path / "loads").read_text().split()).values()) == 6  # what is there needs no weights
