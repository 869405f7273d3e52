"""What generating costs: peaks against what a generator is known to take, sums by hand, card, tables and report."""

from __future__ import annotations

import ctypes.util
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from revisit.cli.generate import _generation_cost_line
from revisit.control.generation import GeneratorChoice, batch_cost, generate_batch, generation_settings_for
from revisit.control.job_runner import read_provenance_or_none, run_jobs
from revisit.control.jobs import Job, JobBatch
from revisit.control.metering import (
    gpu_bytes_in_use,
    machine_description,
    memory_now_and_peak,
    model_cost,
    pids_of_session,
)
from revisit.core import UsageError
from revisit.media import encode_mp4
from revisit.results.model_facts import cost_table, published_model_facts

# A generator that takes memory, alone or with a child beside it.
GENERATOR = """
import shutil, subprocess, sys, time
clip, out, mine, child = sys.argv[1:5]
held = b"x" * (int(mine) << 20)
if int(child):
    code = "import sys, time; held = b'x' * (%d << 20); print(1, flush=True); time.sleep(60)" % int(child)
    beside = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    beside.stdout.readline()
    time.sleep(2.0)
    beside.kill()
time.sleep(0.3)
shutil.copy(clip, out)
"""
PYTHON = 60 << 20  # bytes that Python itself takes, at most
SERVER = """
import json, shutil, sys, time
time.sleep(0.4)
if sys.argv[2] == "tells": print(json.dumps({"ready": True}), flush=True)
held = b"x" * (64 << 20)
for line in sys.stdin:
    job = json.loads(line)
    time.sleep(0.2)
    shutil.copy(sys.argv[1], job["out"])
    print(json.dumps({"id": job["id"], "status": "done"}), flush=True)
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    frames = np.random.default_rng(0).integers(0, 255, (9, 16, 16, 3), dtype=np.uint8)
    encode_mp4(tmp_path / "clip.mp4", frames, 16)
    (tmp_path / "generator.py").write_text(GENERATOR)
    (tmp_path / "server.py").write_text(SERVER)
    return tmp_path


def jobs_in(place: Path, count: int = 1) -> list[Job]:
    return [
        Job(f"j{k}", place / "out/m" / f"j{k}.mp4", 9, 16, (16, 16), "x", "m", f"j{k}", prompt="p")
        for k in range(count)
    ]


def command_of(place: Path, mine: int, child: int = 0) -> str:
    return f"'{sys.executable}' '{place}/generator.py' '{place}/clip.mp4' {{out}} {mine} {child}"


def costs(place: Path, by: GeneratorChoice, jobs: list[Job]) -> list[dict[str, Any]]:
    made = list(run_jobs(jobs, by.make_backends(), place / "out/m", generation_settings_for(by, timeout=600)))
    assert [one.status for one in made] == ["made"] * len(jobs), made
    assert all(one.cost == read_provenance_or_none(job.out)["cost"] for one, job in zip(made, jobs, strict=True))
    return [one.cost for one in made if one.cost is not None]


needs_proc = pytest.mark.skipif(not Path("/proc").is_dir(), reason="memory is measured where there is /proc")


@pytest.mark.slow
@needs_proc
def test_the_peak_of_a_command_is_what_it_takes(place):
    mine = b"y" * (400 << 20)  # what this process holds is no part of it
    (cost,) = costs(place, GeneratorChoice(command=command_of(place, 120)), jobs_in(place))
    assert 120 << 20 <= cost["memory"] <= (120 << 20) + PYTHON
    assert cost["loading"] is None and cost["seconds"] >= 0.3 and len(mine)


@pytest.mark.slow
@needs_proc
def test_what_a_command_starts_counts_with_it(place):
    (cost,) = costs(place, GeneratorChoice(command=command_of(place, 60, 90)), jobs_in(place))
    assert 150 << 20 <= cost["memory"] <= (150 << 20) + 2 * PYTHON


@pytest.mark.slow
def test_loading_is_told_apart_where_a_process_says_when_it_is_ready(place):
    command = f"'{sys.executable}' '{place}/server.py' '{place}/clip.mp4'"
    first, second = costs(place, GeneratorChoice(serve=f"{command} tells"), jobs_in(place, 2))
    assert first["loading"] >= 0.4 and second["loading"] == 0.0
    assert first["seconds"] >= 0.2 and second["seconds"] >= 0.2
    if Path("/proc").is_dir():
        assert second["memory"] > 64 << 20
    (place / "out/m/j0.mp4").unlink()
    (silent,) = costs(place, GeneratorChoice(serve=f"{command} silent"), jobs_in(place))
    assert silent["loading"] is None and silent["seconds"] >= 0.6


def test_a_function_costs_seconds(place):
    def mine(job):
        time.sleep(0.05)
        shutil.copy(place / "clip.mp4", job["out"])

    (cost,) = costs(place, GeneratorChoice(function=mine), jobs_in(place))
    assert cost["seconds"] >= 0.05 and cost["memory"] is None and cost["loading"] == 0.0


def test_memory_is_that_of_psutil():
    psutil = pytest.importorskip("psutil")
    if not Path("/proc").is_dir():
        pytest.skip("needs /proc")
    now, peak = memory_now_and_peak(os.getpid())
    assert now == pytest.approx(psutil.Process().memory_info().rss, rel=0.05) and peak >= now
    assert os.getpid() in pids_of_session(os.getsid(0))
    assert memory_now_and_peak(2**22 + 1) == (0, 0)


def test_a_model_costs_what_its_clips_cost():
    """By hand: 10, 20 and 60 s for clips of 5, 5 and 20 s; sums over sums, means over clips, the greatest peak."""
    clips = [
        ({"seconds": 10, "loading": 90.0, "memory": 2_000_000_000, "gpu_memory": None, "gpus": 2}, 5.0),
        ({"seconds": 20, "loading": 0.0, "memory": 3_500_000_000, "gpu_memory": 7_000_000_000, "gpus": 2}, 5.0),
        ({"seconds": 60, "loading": 0.0, "memory": None, "gpu_memory": 6_000_000_000, "gpus": 1}, 20.0),
        ({}, 4.0),  # a clip of which nothing is known
    ]
    found = model_cost(clips, price_per_clip=0.4, currency="EUR")
    assert found.pop("machine") == machine_description()
    assert found == {
        "clips": 3, "seconds_per_clip": 30.0, "seconds_per_video_second": 3.0, "gpus": 2,
        "gpu_seconds_per_video_second": 4.0, "loading_seconds": 90.0, "peak_memory_gb": 3.5,
        "peak_gpu_memory_gb": 7.0, "price_per_clip": 0.4, "currency": "EUR",
    }  # fmt: skip
    assert model_cost([({"seconds": 4, "loading": None, "gpus": 0}, 2.0)])["with_loading"] is True
    assert "gpus" not in model_cost([({"seconds": 4, "gpus": 0}, 2.0)]) and model_cost([]) == {}


# --- GPUs ------------------------------------------------------------------------------------------------------------

SMI = """#!{python}
import pathlib, sys
here = pathlib.Path({place!r})
question = sys.argv[1]
pid = (here / "pid").read_text() if (here / "pid").exists() else "1"
if "compute-apps" in question:
    if {knows}: print(f"{{pid}}, 3000\\n99999999, 5000")
elif "index,uuid" in question:
    used = 4100 if (here / "pid").exists() else 100
    print(f"0, GPU-aaa, {{used}}\\n1, GPU-bbb, 700")
else:
    print("NVIDIA Something\\nNVIDIA Something")
"""
PID = """
import os, pathlib, shutil, sys, time
(pathlib.Path(sys.argv[3]) / "pid").write_text(str(os.getpid()))
time.sleep(1.5)
shutil.copy(sys.argv[1], sys.argv[2])
"""


@pytest.mark.slow
@pytest.mark.parametrize(("knows", "mib"), [(True, 3000), (False, 4000)])
def test_what_nvidia_smi_says_counts_by_process_or_else_by_device(place, monkeypatch, knows, mib):
    program = place / "bin/nvidia-smi"
    program.parent.mkdir()
    program.write_text(SMI.format(python=sys.executable, place=str(place), knows=knows))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    (place / "pid.py").write_text(PID)
    command = f"'{sys.executable}' '{place}/pid.py' '{place}/clip.mp4' {{out}} '{place}'"
    (cost,) = costs(place, GeneratorChoice(command=command, gpus=["0"]), jobs_in(place))
    assert cost["gpu_memory"] == mib << 20 and cost["gpus"] == 1
    assert gpu_bytes_in_use({"CUDA_VISIBLE_DEVICES": "GPU-b"}) == {"1": 700 << 20}
    assert len(gpu_bytes_in_use({"CUDA_VISIBLE_DEVICES": "0,1"})) == 2
    machine_description.cache_clear()
    assert machine_description() == "2 x NVIDIA Something"
    machine_description.cache_clear()


def test_a_process_that_was_named_once_counts_by_itself(monkeypatch):
    """Before the process is listed only the device is known, and others may work on it."""
    from revisit.control import metering

    listed = [[], [(7, 3000 << 20)], []]
    devices = iter([{"0": 0}, {"0": 4000 << 20}, {"0": 7000 << 20}, {"0": 4000 << 20}])
    monkeypatch.setattr(metering, "gpu_bytes_of_processes", lambda: listed.pop(0))
    monkeypatch.setattr(metering, "gpu_bytes_in_use", lambda env=None: next(devices))
    monkeypatch.setattr(metering, "pids_of_session", lambda session: [7])
    meter = metering.Meter(session=7)
    meter.measure(last=True)
    assert meter.peak_gpu_bytes == 4000 << 20  # all that can be said so far
    meter.measure(last=True)
    meter.measure(last=True)
    assert meter.peak_gpu_bytes == 3000 << 20


CUDA = """
import ctypes, shutil, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
device, context, pointer = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
assert cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(2 << 30)) == 0
time.sleep(4)
shutil.copy(sys.argv[1], sys.argv[2])
"""


@pytest.mark.slow
@pytest.mark.skipif(
    gpu_bytes_in_use() in (None, {}) or ctypes.util.find_library("cuda") is None, reason="needs an NVIDIA GPU"
)
def test_memory_on_a_real_gpu(place):
    """A program that takes 2 GiB through the driver itself; a context takes some hundred MiB besides."""
    (place / "cuda.py").write_text(CUDA)
    command = f"'{sys.executable}' '{place}/cuda.py' '{place}/clip.mp4' {{out}}"
    (cost,) = costs(place, GeneratorChoice(command=command), jobs_in(place))
    assert 2 << 30 <= cost["gpu_memory"] <= 3 << 30
    assert cost["gpus"] >= 1


# --- the card, the tables, the report ----------------------------------------------------------------------


def test_the_line_of_the_cost_counts_its_clips():
    cost = {"seconds_per_clip": 2.5, "clips": 1, "machine": "4 cores"}
    assert _generation_cost_line(cost) == "cost: 2.5 s per clip over 1 clip (4 cores)"


@pytest.mark.slow
def test_the_card_has_the_cost_of_all_clips_and_keeps_what_is_on_it(place):
    root = place / "out"
    root.mkdir()
    (root / "models.yaml").write_text("models: {m: {category: I2V, parameters: 5}}\n")
    batch = JobBatch(jobs_in(place, 2), root / "m", [str(root)])
    by = GeneratorChoice(command=command_of(place, 1))
    how = generation_settings_for(by, timeout=600, price=0.25)
    assert all(made.is_clip_there for made in generate_batch(batch, by, how))
    card = yaml.safe_load((root / "models.yaml").read_text())["models"]["m"]
    assert card["category"] == "I2V" and card["parameters"] == 5
    assert card["cost"] == batch_cost(batch, how) and card["cost"]["clips"] == 2 and card["cost"]["with_loading"]
    assert card["cost"]["price_per_clip"] == 0.25 and card["cost"]["currency"] == "USD"
    before = (root / "models.yaml").read_bytes()
    assert [made.status for made in generate_batch(batch, by, how)] == ["kept", "kept"]
    assert (root / "models.yaml").read_bytes() == before
    assert published_model_facts().merge_file(root / "models.yaml").cost_number("m", "price_per_clip") == 0.25


@pytest.mark.parametrize(
    ("cost", "says"),
    [
        ("{seconds_per_clip: -1}", "expected a number of 0 or more"),
        ("{seconds_per_clip: fast}", "expected a number of 0 or more"),
        ("{second_per_clip: 3}", "cost has 'second_per_clip'"),
        ("12", "cost is a mapping"),
    ],
)
def test_a_cost_that_is_none_says_why(tmp_path, cost, says):
    (tmp_path / "models.yaml").write_text(f"models: {{m: {{cost: {cost}}}}}\n")
    with pytest.raises(UsageError, match=says):
        published_model_facts().merge_file(tmp_path / "models.yaml")


def test_the_table_of_costs():
    facts = {
        "a": {"cost": {"seconds_per_clip": 12.34567, "machine": "one", "with_loading": True}},
        "b": {"cost": {"seconds_per_clip": 2, "price_per_clip": 0.5, "currency": "EUR", "machine": "two"}},
        "c": {},
    }
    from revisit.results.model_facts import ModelFacts

    made = cost_table(ModelFacts(facts), ["a", "b", "c"])
    assert made is not None and made["columns"] == ["Seconds per clip", "Price per clip", "Machine"]
    assert [row["cells"] for row in made["rows"]] == [["12.35 s", "–", "one"], ["2 s", "0.5 EUR", "two"]]
    assert "with the loading of weights: a" in made["note"] and "different machines" in made["note"]
    assert cost_table(ModelFacts({"c": {}}), ["c"]) is None


@pytest.mark.slow
def test_the_report_the_table_and_the_list_of_models_show_the_cost(tmp_path, revisit, make_clip):
    for model in ("slow", "quick"):
        for k in range(2):
            make_clip(tmp_path / "videos" / model / f"s{k}.mp4", seed=k)
    facts = {"slow": {"cost": {"seconds_per_clip": 40, "peak_memory_gb": 9.5, "machine": "a box"}},
             "quick": {"cost": {"seconds_per_clip": 4, "price_per_clip": 0.02, "currency": "USD"}}}  # fmt: skip
    (tmp_path / "videos/models.yaml").write_text(yaml.safe_dump({"models": facts}))
    revisit("eval", tmp_path / "videos", "--out", tmp_path / "run", "-m", "long_drift", "--quiet", "--workers", 0)
    page = revisit("report", tmp_path / "run")
    assert page.returncode == 0
    html = (tmp_path / "run/report/index.html").read_text()
    assert "Cost of generating" in html and "9.5 GB" in html and "0.02 USD" in html
    table = revisit("table", tmp_path / "run", "-m", "long_drift", "--cost", "--measured").stdout
    assert "Seconds per clip, s ↓" in table and "| 4.00 |" in table, table
    listed = json.loads(revisit("show", tmp_path / "run", "--models", "--json").stdout)
    assert listed["slow"]["cost"]["peak_memory_gb"] == 9.5
    assert "40 s per clip, 9.5 GB" in " ".join(revisit("show", tmp_path / "run", "--models").stdout.split())
    (tmp_path / "videos/models.yaml").unlink()
    said = revisit("table", tmp_path / "run", "-m", "long_drift", "--cost", check=2)
    assert "nobody says what generating costs" in said.stderr
