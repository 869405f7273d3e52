"""`revisit generate`: jobs of every suite, carried out by commands, live processes, functions and stand-ins."""

from __future__ import annotations

import fnmatch
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import revisit as package
from revisit.control.generation import (
    GeneratorChoice,
    batch_cost,
    batch_request_per_size,
    generate_batch,
    generation_settings_for,
    load_batch,
    update_model_facts_file,
)
from revisit.control.generator_backends import ProcessBackend
from revisit.control.generators import find_generator
from revisit.control.job_runner import LOG, provenance_path, read_provenance_or_none
from revisit.control.jobs import (
    BatchRequest,
    Job,
    JobBatch,
    file_name_for_id,
    require_distinct_jobs,
    resample_relative_path,
    split_frames,
)
from revisit.core import SUITES, Remark, UsageError
from revisit.geometry.camera_script import camera_path, camera_path_of_length, parse_script, script_of_path
from revisit.geometry.rotations import yaw_pitch_of_rotation
from revisit.media import encode_mp4
from tests.painted_datasets import DATASETS


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A dataset of every suite, by its name."""
    return {suite: make(tmp_path_factory.mktemp(suite)) for suite, make in DATASETS.items()}


def batch(worlds: dict[str, Path], suite: str, out: Path | None = None, **facts: Any) -> JobBatch:
    (wanted,) = batch_request_per_size("mine", ["112x64"], True, **facts)
    return load_batch(suite.partition("-")[0], worlds[suite], out, wanted)


# -- jobs -------------------------------------------------------------------------------------------------------------


def test_every_suite_brings_jobs_that_lie_where_its_reader_looks(worlds: dict[str, Path], tmp_path: Path) -> None:
    for suite in ("mind", "memobench", "mbench", "mbench-t", "wrbench", "folder"):
        made = batch(worlds, suite, tmp_path / suite)
        assert made.jobs and not made.left_out, suite
        for job in made.jobs:  # a file where each clip must lie is all that a reader needs
            job.out.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(worlds["folder"] / "truth/c0.mp4", job.out)
        if made.index is not None:
            made.index(made.jobs)
        source, options = Path(made.evaluate[0]), made.evaluate[3:]
        asked = dict(
            text.split("=", 1) for word, text in zip(options[::2], options[1::2], strict=True) if word == "--option"
        )
        roots = [Path(text) for word, text in zip(options[::2], options[1::2], strict=True) if word == "--root"]
        entries = SUITES[suite.partition("-")[0]].read(source, roots, **asked)
        cases = [entry for entry in entries if not isinstance(entry, Remark)]
        refused = [case for case in cases if not hasattr(case, "clip")]
        assert not refused, (suite, refused[:2])
        assert {case.clip.path.resolve() for case in cases} == {job.out.resolve() for job in made.jobs}, suite


def test_jobs_of_mind_hold_keys_context_and_path(worlds: dict[str, Path], tmp_path: Path) -> None:
    made = {job.id: job for job in batch(worlds, "mind", tmp_path).jobs}
    job = made["1st_data/mem_test/data-25"]
    rows = json.loads((worlds["mind"] / "1st_data/test/mem_test/data-25/action.json").read_text())
    mark = rows["mark_time"]
    assert job.context is not None and (job.context.start, job.context.count) == (0, mark)
    assert job.frames == rows["total_time"] - mark == len(job.actions) == len(job.path)
    assert [row["lr"] for row in job.actions] == [row["lr"] for row in rows["data"][mark:]]
    yaw = [row["actor_rpy"]["z"] for row in rows["data"][mark:]]  # the engine's own angles
    assert np.allclose(yaw_pitch_of_rotation(job.path[:, :3, :3])[0], np.array(yaw) - yaw[0], atol=1e-6)
    assert job.camera == "yaw:right:24@8,yaw:left:24@8"
    mirrors = [id for id in made if id.startswith("3rd_data/mirror_test/")]
    assert [made[id].annotations["trajectory"] for id in mirrors] == ["-a", "-wr"]
    assert len({job.out for job in made.values()}) == len(made)


def test_jobs_of_memobench_follow_the_marks_and_poses(worlds: dict[str, Path], tmp_path: Path) -> None:
    for job in batch(worlds, "memobench", tmp_path, frames=9).jobs:
        assert job.frames == len(job.path) == 9 and job.prompt and job.image is not None
        assert np.allclose(job.path[0], np.eye(4))
        hidden, back = job.annotations["phases"]
        assert 0 < hidden < back < 9
        turned = np.abs(np.array(yaw_pitch_of_rotation(job.path[:, :3, :3]))).max()
        assert turned > 19 and np.abs(job.path[:, :3, 3]).max() < 1  # a synthetic clip's centimetres became metres


def test_jobs_of_mbench_are_exit_wait_reenter_and_five_segments(worlds: dict[str, Path], tmp_path: Path) -> None:
    job = batch(worlds, "mbench", tmp_path).jobs[0]
    assert job.frames == 49 and job.fps == 16  # three seconds at 16 and the first frame
    yaw = yaw_pitch_of_rotation(job.path[:, :3, :3])[0]
    assert abs(yaw[0]) < 1e-9 and abs(yaw[-1]) < 1e-6 and abs(np.abs(yaw).max() - 60) < 1e-6
    told = batch(worlds, "mbench-t", tmp_path).jobs[0]
    assert len(told.segments) == 5 and told.frames == 401
    assert [part.first for part in told.segments] == [0, 80, 160, 241, 321]
    assert sum(part.frames for part in told.segments) == 401 and told.path is None


def test_declared_waits_and_degrees_reach_the_script(worlds: dict[str, Path], tmp_path: Path) -> None:
    data = DATASETS["mbench"](tmp_path)
    row = json.loads((data / "assignments.jsonl").read_text().splitlines()[0])
    names = ["left_then_wait_then_right_10s", "right_360_10s", "leave_10s"]
    rows = [{**row, "condition_id": name} for name in names]
    (data / "assignments.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with (data / "dataset.yaml").open("a") as card:
        card.write("actions:\n  leave: [{left: 4}, {wait: 2}, {right: 4}]\n")
    scripts = [job.camera for job in load_batch("mbench", data, None, BatchRequest("mine")).jobs]
    assert scripts == [
        "yaw:left:60@64,hold@32,yaw:right:60@64", "yaw:right:360@160", "yaw:left:60@64,hold@32,yaw:right:60@64"
    ]  # fmt: skip


def test_limits_are_spread_and_names_choose(worlds: dict[str, Path], tmp_path: Path) -> None:
    few = batch(worlds, "mind", tmp_path, limit=6).jobs
    assert {(job.subset, job.condition) for job in few} == {
        (subset, test)
        for subset in ("1st_data", "3rd_data")
        for test in ("mem_test", "action_space_test", "mirror_test")
    }
    assert {job.sample for job in batch(worlds, "mind", tmp_path, only=("data-26",)).jobs} == {"data-26"}
    with pytest.raises(UsageError, match="no sample, subset or condition"):
        batch(worlds, "mind", tmp_path, only=("data-99",))


def test_a_path_becomes_a_script_that_follows_it() -> None:
    for script in (
        "yaw:left:60@40,hold@9,yaw:right:60@31",
        "tilt:up:20+dolly:forward:1@20,truck:left:0.5@20",
        "hold@8",
    ):
        path = camera_path(parse_script(script))
        told = camera_path_of_length(parse_script(script_of_path(path)), len(path))
        assert np.abs(told - path).max() < 0.02, (script, script_of_path(path))
    assert script_of_path(camera_path(parse_script("yaw:left:60@4,yaw:right:60@4"))) == "yaw:left:60@4,yaw:right:60@4"
    assert split_frames(10, [1, 1, 1]) == [3, 4, 3] and sum(split_frames(7, [0.4, 0.2, 0.4])) == 7
    assert resample_relative_path(path, 5).shape == (5, 4, 4)


def test_two_ids_never_share_a_file() -> None:
    ids = ["a/b", "a_b", "a b", "猫", "犬", "x" * 300, "x" * 301]
    assert len({file_name_for_id(id) for id in ids}) == len(ids)
    one = Job("a", Path("clips/a.mp4"), 9)
    with pytest.raises(UsageError, match="two jobs are called"):
        require_distinct_jobs([one, Job("a", Path("clips/b.mp4"), 9)])
    with pytest.raises(UsageError, match="would both be written"):
        require_distinct_jobs([one, Job("b", Path("clips/a.mp4"), 9)])


def test_a_generator_is_told_in_its_own_dialect(worlds: dict[str, Path], tmp_path: Path) -> None:
    (wanted,) = batch_request_per_size("wan", [], True, to=find_generator("lingbot-world"), frames=17, limit=1)
    made = load_batch("memobench", worlds["memobench"], tmp_path, wanted)
    seen: list[dict[str, Any]] = []

    def mine(job: dict[str, Any]) -> list[np.ndarray]:
        seen.append(job)
        return [np.zeros((16, 16, 3), np.uint8)] * 17

    by = GeneratorChoice(function=mine)
    (ended,) = generate_batch(made, by, generation_settings_for(by, to=wanted.to))
    assert ended.is_clip_there and any("16x16" in remark and "832x480" in remark for remark in ended.remarks)
    control = seen[0]["control"]
    assert control["dialect"] == "latent_folder" or np.load(Path(control["payload"]) / "poses.npy").shape[1:] == (4, 4)
    assert np.load(control["path"]).shape == (17, 4, 4)
    assert read_provenance_or_none(made.jobs[0].out)["delivered"]["family"] == control["dialect"]


# -- carrying out -----------------------------------------------------------------------------------------------------

SERVER = """
import json, os, pathlib, shutil, sys, time
place, clip, short = map(pathlib.Path, sys.argv[1:4])
mine = os.environ["REVISIT_WORKER"] + " " + os.environ.get("CUDA_VISIBLE_DEVICES", "")
with (place / "loads.txt").open("a") as file: file.write(mine + "\\n")
print("loading weights", flush=True)
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    job = json.loads(line)
    said = job["inputs"]["prompt"]
    once = place / ("once-" + job["id"])
    first = not once.exists()
    once.touch()
    if "crash" in said and first: sys.exit("out of memory")
    if "hang" in said and first: time.sleep(60)
    if "refuse" in said:
        print(json.dumps({"id": job["id"], "error": "no such scene"}), flush=True)
        continue
    if "nothing" not in said: shutil.copy(short if "short" in said else clip, job["out"])
    print("made", job["id"], flush=True)
    print(json.dumps({"id": job["id"], "status": "done"}), flush=True)
"""


@pytest.fixture
def serving(tmp_path: Path) -> Callable[[list[str]], tuple[list[Job], str]]:
    frames = np.random.default_rng(0).integers(0, 255, (9, 16, 16, 3), dtype=np.uint8)
    encode_mp4(tmp_path / "clip.mp4", frames, 16)
    encode_mp4(tmp_path / "short.mp4", frames[:5], 16)
    (tmp_path / "serve.py").write_text(SERVER)
    command = f"'{sys.executable}' '{tmp_path}/serve.py' '{tmp_path}' '{tmp_path}/clip.mp4' '{tmp_path}/short.mp4'"

    def make(prompts: list[str]) -> tuple[list[Job], str]:
        jobs = [
            Job(f"j{k}", tmp_path / "out" / f"j{k}.mp4", 9, 16, (16, 16), "x", "m", f"j{k}", prompt=prompt)
            for k, prompt in enumerate(prompts)
        ]
        return jobs, command

    return make


def run(jobs: list[Job], by: GeneratorChoice, home: Path, **facts: object):
    from revisit.control.job_runner import run_jobs

    return {made.id: made for made in run_jobs(jobs, by.make_backends(), home, generation_settings_for(by, **facts))}


def test_a_live_process_serves_many_jobs_and_is_started_again_when_it_dies(serving, tmp_path: Path) -> None:
    jobs, command = serving(["fine", "crash", "fine", "hang", "refuse", "nothing", "short", "fine"])
    ended = run(jobs, GeneratorChoice(serve=command, gpus=["3"]), tmp_path / "out", timeout=3, retries=1)
    assert [ended[job.id].status for job in jobs] == [
        "made", "made", "made", "made", "failed", "wrote nothing", "wrong length", "made"
    ]  # fmt: skip
    assert (ended["j1"].tries, ended["j3"].tries, ended["j4"].tries) == (2, 2, 2)
    assert "no such scene" in ended["j4"].reason and "5 frames" in ended["j6"].reason
    loads = (tmp_path / "loads.txt").read_text().splitlines()
    assert loads == ["0 3"] * 3  # at the start, and after the crash and the hang
    assert [json.loads(line)["id"] for line in (tmp_path / "out/generation.jsonl").read_text().splitlines()] == [
        job.id for job in jobs
    ]
    again = run(jobs, GeneratorChoice(serve=command), tmp_path / "out", timeout=3)
    assert {made.status for made in again.values()} == {"kept", "failed", "wrote nothing", "wrong length"}


def test_a_process_that_cannot_start_or_says_nothing(tmp_path: Path, serving) -> None:
    jobs, _ = serving(["fine"])
    assert (
        "cannot be started" in run(jobs, GeneratorChoice(serve="no-such-program-here"), tmp_path / "out")["j0"].reason
    )
    ended = run(jobs, GeneratorChoice(serve=f"'{sys.executable}' -c 'raise SystemExit(3)'"), tmp_path / "out")["j0"]
    assert ended.status == "crashed" and ended.reason == "the command failed with exit code 3, and printed nothing"
    with pytest.raises(UsageError, match="needs a command"):
        ProcessBackend("", {})


def test_a_baseline_that_has_nothing_to_go_on_refuses_and_is_not_tried_again(tmp_path: Path, serving) -> None:
    jobs, _ = serving(["fine"])
    ended = run(jobs, GeneratorChoice(baseline="repeat"), tmp_path / "out", retries=1)["j0"]
    assert (ended.status, ended.tries) == ("refused", 1) and ended.reason.startswith("this job has neither")


def test_nothing_is_overwritten_in_silence(serving, tmp_path: Path) -> None:
    (job,), command = serving(["fine"])
    assert run([job], GeneratorChoice(serve=command), tmp_path / "out")["j0"].status == "made"
    before = job.out.read_bytes()
    (other,), _ = serving(["another wish"])
    ended = run([other], GeneratorChoice(serve=command), tmp_path / "out")["j0"]
    assert ended.status == "refused" and "made with other inputs;" in ended.reason and job.out.read_bytes() == before
    assert run([other], GeneratorChoice(serve=command), tmp_path / "out", replace="any")["j0"].status == "made"
    provenance_path(job.out).unlink()
    assert "no record of how it was made" in run([other], GeneratorChoice(serve=command), tmp_path / "out")["j0"].reason
    job.out.write_bytes(b"spoilt")
    assert run([other], GeneratorChoice(serve=command), tmp_path / "out")["j0"].status == "refused"
    assert json.loads(job.out.with_suffix(".job.json").read_text())["inputs"]["prompt"] == "another wish"


def test_one_run_at_a_time(serving, tmp_path: Path) -> None:
    jobs, command = serving(["fine", "fine"])
    from revisit.control.job_runner import run_jobs

    by = GeneratorChoice(serve=command)
    first = run_jobs(jobs, by.make_backends(), tmp_path / "out", generation_settings_for(by))
    next(first)
    with pytest.raises(UsageError, match="another run"):
        list(run_jobs(jobs, by.make_backends(), tmp_path / "out", generation_settings_for(by)))
    assert next(first).is_clip_there


def test_a_function_may_write_or_return_frames_or_fail(worlds: dict[str, Path], tmp_path: Path) -> None:
    def mine(job: dict) -> object:
        if job["sample"] == "data-26":
            raise RuntimeError("no idea")
        frames = np.full((job["frames"], 64, 112, 3), 90, np.uint8)
        if job["condition"] == "mirror_test":
            encode_mp4(Path(job["out"]), frames, job["fps"])
            return None
        return frames

    made = package.generate("mind", mine, data=worlds["mind"], model="mine", out=tmp_path, size=(112, 64), workers=2)
    assert made.counts == {"crashed": 2, "made": 8} and made.source == tmp_path and not made.good
    assert "RuntimeError: no idea" in next(end.reason for end in made.ended if not end.is_clip_there)


# -- the command, end to end ------------------------------------------------------------------------------------------


LIMIT = 2  # clips of each suite


@pytest.mark.slow
@pytest.mark.parametrize(
    "suite",
    [
        "mbench",
        *(
            pytest.param(name, marks=pytest.mark.long)
            for name in ("mind", "memobench", "mbench-t", "wrbench", "folder")
        ),
    ],
)
def test_two_commands_end_in_a_table(suite: str, worlds: dict[str, Path], tmp_path: Path, revisit) -> None:
    name = suite.partition("-")[0]
    data = DATASETS[suite](tmp_path)
    words = [
        "generate",
        name,
        "--data",
        data,
        "--baseline",
        "pan",
        "--size",
        "112x64",
        "--frames",
        17,
        "--limit",
        LIMIT,
    ]
    out = [] if name == "mbench" else ["--out", tmp_path / "clips"]
    done = revisit(*words, *out, "--json")
    told = json.loads(done.stdout)
    count = 2 * LIMIT if name == "wrbench" else LIMIT  # with a rendered ceiling where nobody filmed the truth
    assert told["counts"] == {"made": count}
    clips = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*.mp4"))}
    again = json.loads(revisit(*words, *out, "--json").stdout)
    assert again["counts"] == {"kept": count} and clips == {
        path: path.read_bytes() for path in sorted(tmp_path.rglob("*.mp4"))
    }
    made = [path for path in clips if read_provenance_or_none(path)]
    roles = {"pan": "floor"} | ({"rendered": "ceiling"} if name == "wrbench" else {})
    assert sorted(read_provenance_or_none(path)["category"] for path in made) == sorted([*roles.values()] * LIMIT)
    assert [yaml.safe_load(path.read_text()) for path in tmp_path.rglob("models.yaml")] == [
        {"models": {model: {"category": role} for model, role in roles.items()}}
    ]
    assert "no faults found" in revisit("check", tmp_path / "clips" if out else data).stdout
    (command,) = told["evaluate"]
    import shlex

    words = [*shlex.split(command)[1:], "--out", tmp_path / "run", "--workers", 0]
    scored = revisit(*words, check=None)
    assert scored.returncode == 0, scored.stderr
    board = revisit("leaderboard", tmp_path / "run").stdout
    for said in (scored.stdout, board):
        assert "pan (floor)" in said and f"{'rendered' if name == 'wrbench' else 'truth'} (ceiling)" in said
    again = revisit(*words).stdout  # nothing is observed or scored anew, and the tables are the same
    assert again.splitlines()[-10:] == scored.stdout.splitlines()[-10:]


@pytest.mark.long
def test_a_rendered_place_is_the_ceiling_where_nobody_filmed_the_truth(worlds: dict[str, Path], tmp_path: Path) -> None:
    """One under each camera and event: a truth of its own in the plan, missing from no list, and gone without truth."""
    from revisit.engine.request import Request

    made = package.generate(
        "wrbench",
        "pan",
        data=worlds["wrbench"],
        out=tmp_path,
        size=(48, 32),
        frames=5,
        limit=2,
        options={"cameras": "static"},
    )
    assert made.counts == {"made": 4}
    plan = Request.from_options(tmp_path, "wrbench").plan()
    assert not plan.rejected and {case.model: case.truth for case in plan.cases} == {"pan": False, "rendered": True}
    assert [case.model for case in Request.from_options(tmp_path, "wrbench", limit=1).plan().cases] == [
        "pan",
        "rendered",
    ]
    assert {case.model for case in Request.from_options(tmp_path, "wrbench", truth=False).plan().cases} == {"pan"}
    (tmp_path / "truth").mkdir()
    for path in (tmp_path / "rendered").glob("*.mp4"):
        shutil.copy(path, tmp_path / "truth")
    options = [f"reference={tmp_path / 'truth'}"]
    assert {case.model for case in Request.from_options(tmp_path, "wrbench", options=options).plan().cases} == {
        "pan",
        "truth",
    }


def test_generated_clips_are_evaluated_without_further_options(
    worlds: dict[str, Path], tmp_path: Path, revisit
) -> None:
    """The truth of a dataset that lies elsewhere comes along, once."""
    from revisit.engine.request import Request

    words = (
        "generate",
        "folder",
        "--data",
        worlds["folder"],
        "--size",
        "112x64",
        "--limit",
        1,
        "--out",
        tmp_path / "gen",
    )
    for baseline in ("hold", "pan", "pan"):
        said = revisit(*words, "--baseline", baseline).stdout
    assert said.splitlines()[-1].split()[2:5] == [str(tmp_path / "gen"), "--suite", "folder"]
    assert len(list((tmp_path / "gen/references").iterdir())) == 1
    plan = Request.from_options(tmp_path / "gen").plan()
    assert not plan.rejected and {case.model for case in plan.cases} == {"hold", "pan", "truth"}
    assert all(case.reference and case.reference.path.is_file() for case in plan.cases if not case.truth)
    assert "no suite called 'foldr'; did you mean folder?" in revisit("generate", "foldr", check=2).stderr


def test_a_dry_run_makes_nothing(worlds: dict[str, Path], tmp_path: Path, revisit) -> None:
    words = ("generate", "mind", "--data", worlds["mind"], "--model", "m", "--out", tmp_path / "clips")
    said = revisit(*words, "--dry-run").stdout
    assert "10 clips, 0 already made" in said and "GB free" in said and "mirror_test" in said
    assert not (tmp_path / "clips").exists()
    plan = json.loads(revisit(*words, "--dry-run", "--json", "--size", "64x48").stdout)
    assert plan["bytes"] == int(sum(row["bytes"] for row in plan["plan"])) > 0
    assert "exactly one of them" in revisit(*words, check=2).stderr
    assert "cannot be a model" in revisit(*words[:5], "a/b", "--baseline", "pan", check=2).stderr


def test_conditions_are_rows_of_their_own(worlds: dict[str, Path], tmp_path: Path, revisit) -> None:
    revisit(
        "generate", "memobench", "--data", worlds["memobench"], "--baseline", "hold", "--frames", 9, "--limit", 1,
        "--size", "112x64,96x48", "--no-first-frame", "--out", tmp_path / "clips",
    )  # fmt: skip
    assert sorted(path.name for path in (tmp_path / "clips").iterdir() if path.is_dir()) == [
        "hold@no-first-frame@112x64", "hold@no-first-frame@96x48"
    ]  # fmt: skip


SUITES_BY_LAYOUT = ("mind", "memobench", "mbench", "mbench-t", "wrbench", "folder")


@pytest.mark.long
@pytest.mark.parametrize("suite", SUITES_BY_LAYOUT)
def test_killing_and_repeating_changes_nothing(suite: str, tmp_path: Path) -> None:
    """Both commands are killed several times, with clips and answers half made; repeated, they end with the same."""
    name = suite.partition("-")[0]

    def commands(place: Path) -> tuple[list[str], list[str]]:
        data = DATASETS[suite](place / "data")
        made = data if name == "mbench" else place / "clips"
        make = ["generate", name, "--data", str(data), "--baseline", "pan", "--size", "112x64", "--frames", "17"]
        (wanted,) = batch_request_per_size("pan", ["112x64"], True, frames=17, limit=6)
        score = ["eval", *load_batch(name, data, None if name == "mbench" else made, wanted).evaluate]
        out = [] if name == "mbench" else ["--out", str(made)]
        return [*make, "--limit", "6", *out], [*score, "--workers", "1", "--quiet", "--out", str(place / "run")]

    def start(words: list[str], place: Path) -> subprocess.Popen[bytes]:
        env = {**os.environ, "REVISIT_CACHE": str(place / "cache")}
        return subprocess.Popen(
            [sys.executable, "-m", "revisit", *words],
            cwd=place,
            env=env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def ended(words: list[str], place: Path) -> None:
        process = start(words, place)
        _, said = process.communicate(timeout=600)
        assert process.returncode == 0, said.decode()

    def files_there(place: Path, pattern: str) -> int:
        """How many, also while folders vanish that are looked into."""
        return sum(len(fnmatch.filter(names, pattern)) for _, _, names in os.walk(place))

    def killed(words: list[str], place: Path, pattern: str, count: int) -> bool:
        process = start(words, place)
        while process.poll() is None and files_there(place, pattern) < count:
            time.sleep(0.005)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
        return process.wait() == -signal.SIGKILL

    def found(place: Path, *patterns: str) -> dict[Path, bytes]:
        paths = [path for pattern in patterns for path in place.rglob(pattern) if "cache" not in path.parts]
        return {path.relative_to(place): path.read_bytes() for path in paths}

    whole, torn = tmp_path / "whole", tmp_path / "torn"
    for place in (whole, torn):
        place.mkdir()
        make, score = commands(place)
        there = len(found(place, "*.mp4"))
        kills = 0
        if place is torn:
            kills += sum(killed(make, place, "*.mp4", there + count) for count in (1, 3))
        ended(make, place)
        if place is torn:
            kills += sum(killed(score, place, "*.npz", count) for count in (3, 20, 60))
            assert kills >= 3  # a machine may be faster than the kill once, not always
        ended(score, place)
    assert found(torn, "*.mp4") == found(whole, "*.mp4")
    assert len(found(whole, "*.mp4")) > there
    summed = found(whole, "summary.json", "diagnosis.json", "run/*.csv")
    assert found(torn, "summary.json", "diagnosis.json", "run/*.csv") == summed and summed
    assert found(torn, "scenes/*").keys() == found(whole, "scenes/*").keys()
    assert not found(torn, ".making-*", ".writing-*")  # the cache, which may be dropped at any time, is not looked at


def test_refused_clips_leave_lists_and_ceiling_as_they_are(tmp_path: Path, revisit) -> None:
    """A second run with another length and seed refuses every clip: no file of the first run changes."""

    def contents() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.name != LOG}

    words = ("generate", "wrbench", "--baseline", "pan", "--size", "48x32", "--limit", 1, "--out", tmp_path)
    assert revisit(*words, "--frames", 5).stdout.splitlines() == ["2 made", f"revisit eval {tmp_path} --suite wrbench"]
    before = contents()
    done = revisit(*words, "--frames", 7, "--seed", 3, check=1)
    assert done.stdout.startswith("1 refused\nthere is no clip to score") and "revisit eval" not in done.stdout
    assert json.loads(revisit(*words, "--frames", 7, "--json", check=1).stdout)["evaluate"] == []
    assert contents() == before
    made = package.generate("wrbench", "pan", out=tmp_path, size=(48, 32), frames=7, limit=1)
    assert made.counts == {"refused": 1} and contents() == before
    assert "2 kept\nnothing was left to make" in revisit(*words, "--frames", 5).stdout
    assert contents() == before


def test_no_model_is_called_as_the_ceiling(tmp_path: Path) -> None:
    """Its clips would be overwritten by rendered ones."""
    with pytest.raises(UsageError, match="choose another --model"):
        package.generate("wrbench", "pan", model="rendered", out=tmp_path, size=(48, 32), frames=5, limit=1)


def test_cost_of_a_clip_goes_by_its_own_length(tmp_path: Path) -> None:
    job = Job("a", tmp_path / "a.mp4", frames=81, fps=16.0)
    job.out.write_bytes(b"clip")
    cost = {"seconds": 6.0, "machine": "m"}
    facts = {"cost": cost, "output": {"frames": 32, "fps": 16.0}}
    provenance_path(job.out).write_text(json.dumps(facts))
    batch = JobBatch([job], tmp_path, [str(tmp_path)])
    assert batch_cost(batch, generation_settings_for(GeneratorChoice("x")))["seconds_per_video_second"] == 3.0


@pytest.mark.parametrize("text", [b"models: {a: [\n  b: {", b"\0\1\xff", b"models: 5\n", b"models: {pan: 5}"])
def test_a_damaged_card_of_models_is_named_in_one_sentence(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    path.write_bytes(text)
    with pytest.raises(UsageError) as refused:
        update_model_facts_file(tmp_path, "pan", {"category": "floor"})
    sentence = str(refused.value)
    assert sentence.startswith(f"{path}: ") and "\n" not in sentence and "object" not in sentence
    assert path.read_bytes() == text


def test_an_empty_file_of_a_path_stops_nothing(tmp_path: Path, revisit) -> None:
    """numpy raises EOFError at an empty file, which ended the whole command with Aborted!"""
    words = ("generate", "wrbench", "--baseline", "pan", "--size", "48x32", "--limit", 1, "--out", tmp_path)
    revisit(*words, "--frames", 5)
    path = next(path for path in (tmp_path / "pan").glob("*.target_c2w.npy") if ".mp4." not in path.name)
    path.write_bytes(b"")
    done = revisit("check", tmp_path, check=None)
    assert f"{path.name}: this is not an npz or npy file" in done.stdout + done.stderr
    assert "2 kept" in revisit(*words, "--frames", 5).stdout
