"""`revisit mind`: upstream's command as its README has it, the file it writes, action spaces, and the board."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from revisit.cli.main import app
from revisit.core import SUITES, Case, MissingPrerequisite, UsageError
from revisit.engine.dependencies import ObserverSet
from revisit.engine.plan import make_plan
from revisit.engine.run import evaluate
from revisit.observers.poses import read_poses
from revisit.observers.sets import load_roles
from revisit.results.leaderboards import RunFacts, join_comparable_boards
from revisit.results.run import Run
from revisit.runs.group_by import score_tables_by_group
from revisit.suites.mind.read import parse_action_space, read
from revisit.suites.mind.suite import mind_run_boards
from revisit.suites.mind.world import render_mind
from revisit.weights.weights_folder import folder_variable_of
from tests.painted_datasets import mind as painted_mind
from tests.painted_datasets import mind_copies
from tests.registry import sha256, write_lock
from tests.suites.mind.test_suite_mind import ACTION, ROW, TIMES, rows_of

PER_FRAME = {"mse", "avg_mse", "lpips", "avg_lpips", "ssim", "avg_ssim", "psnr", "avg_psnr"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A rendered dataset with two varied action spaces, and the predictions of three models."""
    return render_mind(
        tmp_path_factory.mktemp("mind"), size=(64, 112), context=4, future=12, clips=2, mirrors=("-wr",),
        mirror_half=4, spaces=((1.0, 200.0), (2.0, 100.0)),
    )  # fmt: skip


@pytest.fixture(scope="module")
def little(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The least that is a dataset: one perspective with a recording of each test."""
    gt = painted_mind(tmp_path_factory.mktemp("little"), ["data-25"], ["1st_data"])
    return gt, mind_copies(gt)


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command tells its workers by variables where weights lie; they end with the test."""
    monkeypatch.setenv(folder_variable_of("dinov3-base"), "")


def mind(*arguments: object, code: int | None = 0) -> str:
    done = CliRunner().invoke(app, ["mind", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert code is None or done.exit_code == code, done.output
    return done.output


def evaluated(source: Path, gt: Path, out: Path, metrics: tuple[str, ...] = (), **options: Any) -> Run:
    protocol, overrides = options.pop("protocol", None), options.pop("overrides", None)
    plan = make_plan(
        SUITES["mind"], source, ObserverSet("lite", load_roles("lite")), protocol=protocol, metrics=metrics,
        options={"gt": str(gt)}, overrides=overrides,
    )  # fmt: skip
    return evaluate(plan, out, workers=0, **options)


@pytest.mark.long
def test_the_command_of_the_readme_runs_as_it_is_written(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    gt, models = data
    flags = ("--gt_root", gt, "--test_root", models / "weak_turns", "--num_gpus", 8, "--metrics", "lcm,visual,action")
    with pytest.raises(MissingPrerequisite, match=r"revisit weights pull .*lpips_alex"):  # the set paper has none here
        mind(*flags)
    said = mind(*flags, "--set", "lite", "--workers", 0)
    assert "Memory: PSNR" in said
    [made] = tmp_path.glob("result_weak_turns_*.json")
    result = json.loads(made.read_text())
    assert result["video_max_time"] is None and result["finished"] and result["model"] == "weak_turns"
    row = rows_of(made)["1st_data", "mem_test", "data-25"]
    assert ROW | TIMES | {"lcm", "action"} <= row.keys() and row["lcm"].keys() >= PER_FRAME
    assert all(entry.keys() == ACTION for entry in row["action"].values())
    assert "dino" not in row and "dino.dino_mse" not in row["metric_status"]  # nobody asked
    assert (tmp_path / "runs/weak_turns/run.json").is_file()


@pytest.mark.long
def test_all_flags_at_once(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    gt, models = data
    weights = tmp_path / "dino"
    weights.mkdir()
    out = tmp_path / "out/mine.json"
    mind(
        "--gt_root", gt, "--test_root", models / "copy", "--dino_path", weights, "--num_gpus", 1, "--video_max_time", 5,
        "--output", out, "--metrics", "lcm,gsc", "--set", "lite", "--run", tmp_path / "run", "--workers", 0, "--quiet",
    )  # fmt: skip
    result = json.loads(out.read_text())
    assert result["video_max_time"] == 5
    rows = rows_of(out)
    main = rows["3rd_data", "mem_test", "data-26"]
    assert main["lcm"]["length"] == len(main["lcm"]["mse"]) == 5 and main["sample_frames"] == 12
    # The limit is one of predictions that are compared with a recording; a mirror clip is always taken whole.
    assert rows["1st_data", "mirror_test", "data-25"]["video_results"][0]["gsc"]["length"] == 4


def test_what_is_wrong_is_said_before_any_work(little, tmp_path):
    gt, models = little
    with pytest.raises(UsageError, match=r"--dino_path .*no such folder; it holds model\.safetensors"):
        mind("--gt_root", gt, "--test_root", models / "copy", "--dino_path", tmp_path / "none")
    with pytest.raises(UsageError, match=r"--test_root .*no such folder"):
        mind("--gt_root", gt, "--test_root", tmp_path / "none")
    with pytest.raises(UsageError, match="or group of metrics called 'lcn'; did you mean lcm"):
        mind("--gt_root", gt, "--test_root", models / "copy", "--metrics", "lcn")


def test_the_folder_of_dino_is_taken_where_it_lies(tmp_path, monkeypatch):
    from revisit import weights

    for name in ("model.safetensors", "config.json"):
        (tmp_path / name).write_bytes(b"{}")
    assert weights.why_missing(["dinov3-base"])
    monkeypatch.setenv(folder_variable_of("dinov3-base"), str(tmp_path))
    assert weights.file("dinov3-base") == tmp_path / "model.safetensors"


def test_weights_that_the_public_evaluator_fetched_are_used(tmp_path, monkeypatch):
    """Files as they lie below its cache; the digests of a lock of one's own, because the real files are large."""
    from revisit import weights
    from revisit.suites.mind.commands import CACHED_FILES

    monkeypatch.setenv("MIND_CACHE_DIR", str(tmp_path / "mind"))
    monkeypatch.setenv("REVISIT_WEIGHTS", str(tmp_path / "weights"))
    monkeypatch.setenv("REVISIT_WEIGHTS_LOCK", str(tmp_path / "mine.yaml"))
    locked = {}
    for id, place in CACHED_FILES.items():
        path = tmp_path / "mind" / place
        path.parent.mkdir(parents=True)
        path.write_bytes(id.encode())
        body = b"published" if id == "musiq-spaq" else id.encode()  # one of them is not what was published
        locked[id] = {"files": [{"name": path.name, "sha256": sha256(body), "size": len(body)}], "sources": []}
    write_lock(tmp_path / "mine.yaml", **locked)
    with pytest.raises(UsageError, match="there is no such folder"):
        mind("--gt_root", tmp_path / "nowhere", "--test_root", tmp_path)
    assert weights.file("laion-aesthetic-v1").read_bytes() == b"laion-aesthetic-v1"
    assert weights.file("clip-vit-l-14-openai").name == "ViT-L-14.pt"
    assert weights.why_missing(["musiq-spaq"])


# ---- action spaces ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("data-0-1.0x-200", {"scene": "data-0", "speed": 1.0, "angle": 200.0}),
        ("data-12-0.5x-62.5", {"scene": "data-12", "speed": 0.5, "angle": 62.5}),
        ("data-25", {"scene": "data-25"}),
        ("data-0.5-1.5x-30", {"scene": "data-0.5", "speed": 1.5, "angle": 30.0}),
        ("old-town-3-2x-90", {"scene": "old-town-3", "scene_kind": "old-town", "speed": 2.0, "angle": 90.0}),
        ("data-1.0x", {"scene": "data-1.0x", "scene_kind": "data-1.0x"}),
    ],
)
def test_a_name_tells_its_action_space(name: str, told: dict[str, Any]) -> None:
    assert parse_action_space(name, "action_space_test") == {"action_space": "varied", **told}
    assert parse_action_space(name, "mem_test")["action_space"] == "shared"


@pytest.mark.slow
@pytest.mark.long
def test_scores_by_action_space_and_the_gap(data, tmp_path):
    gt, models = data
    run = evaluated(models, gt, tmp_path / "run", ("mind_lcm_psnr", "mind_action_rotation"))
    spaces, gap = run.summary["tables"]
    names = [row["name"] for row in spaces["rows"] if row["name"].startswith("weak_turns")]
    assert names == ["weak_turns, shared", "weak_turns, varied 1x, angle 200", "weak_turns, varied 2x, angle 100"]
    turn = {row["name"]: row["cells"][1] for row in spaces["rows"]}
    # Turns that are a tenth too short are off by half as much where the angle is half as large.
    assert turn["weak_turns, varied 2x, angle 100"]["mean"] == pytest.approx(
        turn["weak_turns, varied 1x, angle 200"]["mean"] / 2, rel=1e-6
    )
    assert turn["weak_turns, shared"]["n"] == 4 and turn["weak_turns, varied 1x, angle 200"]["n"] == 2
    mine = run.results.where(model="weak_turns")
    scores = {
        test: [record.value for record in mine.where(condition=test).scores("mind_lcm_psnr")]
        for test in ("mem_test", "action_space_test")
    }
    cell = next(row for row in gap["rows"] if row["name"] == "weak_turns")["cells"][0]
    assert cell["mean"] == pytest.approx(np.mean(scores["action_space_test"]) - np.mean(scores["mem_test"]))
    stats = pytest.importorskip("scipy.stats")
    theirs = stats.ttest_ind(
        scores["action_space_test"], scores["mem_test"], equal_var=False
    ).confidence_interval()  # fmt: skip
    low, high = cell["interval"]
    assert low <= theirs.low + 1e-9 and high >= theirs.high - 1e-9  # freedom is rounded down
    assert cell["interval"][1] - cell["interval"][0] < 1.6 * (theirs.high - theirs.low)
    groups = score_tables_by_group(run, "action_space,angle")
    assert [name.partition(" (")[0] for name in groups] == [
        "action_space: shared, angle: not known", "action_space: varied, angle: 100.0",
        "action_space: varied, angle: 200.0",
    ]  # fmt: skip
    assert any("speed: 2.0" in name for name in score_tables_by_group(run, "speed"))


# ---- the board ----------------------------------------------------------------------------------


def facts_of(run: Run, name: str) -> RunFacts:
    return RunFacts(name, run.facts, run.plan, run.results, run.summary)


@pytest.mark.long
def test_a_board_counts_the_clips_of_the_tests_that_apply(data, tmp_path):
    gt, models = data
    run = evaluated(models, gt, tmp_path / "run", ("mind_lcm_mse", "mind_gsc_mse"))
    whole, *parts = mind_run_boards(facts_of(run, "a"))
    cells = next(row for row in whole.rows if row.model == "weak_turns").cells
    assert (cells["mind_lcm_mse"].n, cells["mind_lcm_mse"].of) == (8, 8)
    assert (cells["mind_gsc_mse"].n, cells["mind_gsc_mse"].of) == (2, 2)
    assert [board.title for board in parts] == [
        "mind, mem_test", "mind, action_space_test", "mind, mirror_test", "mind, first person, as printed",
        "mind, third person, as printed",
    ]  # fmt: skip
    assert [[column.key for column in board.columns] for board in parts[:3]] == [
        ["mind_lcm_mse"], ["mind_lcm_mse"], ["mind_gsc_mse"]
    ]  # fmt: skip
    value = cells["mind_lcm_mse"].mean
    assert value is not None and 0 < value < 0.1
    shown = cells["mind_lcm_mse"].to_text(whole.columns[1].decimals).split()[0]
    assert float(shown) == pytest.approx(value, rel=5e-2)  # two digits that mean something, not 0.01
    [first] = mind_run_boards(facts_of(run, "a"), "1st_data")
    assert next(row for row in first.rows if row.model == "copy").cells["mind_lcm_mse"].of == 4


@pytest.mark.slow
@pytest.mark.long
def test_two_datasets_never_share_a_board(data, tmp_path):
    gt, models = data
    other = shutil.copytree(gt, tmp_path / "gt")
    shutil.copy(
        other / "1st_data/test/mem_test/data-25/video.mp4", other / "1st_data/test/mem_test/data-26/video.mp4"
    )  # the names are the same, one recording is not
    runs = [
        evaluated(models / "copy", gt, tmp_path / "a", ("mind_lcm_mse",)),
        evaluated(models / "weak_turns", gt, tmp_path / "b", ("mind_lcm_mse",)),
        evaluated(models / "copy", other, tmp_path / "c", ("mind_lcm_mse",)),
    ]
    boards = join_comparable_boards(
        [mind_run_boards(facts_of(run, name))[0] for run, name in zip(runs, "abc", strict=True)]
    )
    assert [[(row.model, row.source) for row in board.rows] for board in boards] == [
        [("copy", "a"), ("weak_turns", "b")], [("copy", "c")]
    ]  # fmt: skip
    assert all("dataset " in board.protocol for board in boards)


@pytest.mark.long
def test_the_leaderboard_has_no_tables_of_another_benchmark(data, tmp_path):
    gt, models = data
    evaluated(models / "copy", gt, tmp_path / "run", ("mind_lcm_mse",))
    done = CliRunner().invoke(app, ["leaderboard", str(tmp_path / "run"), "--published"])
    assert done.exit_code == 0 and "LingBot" not in done.output
    assert "Published: MIND, third person" in done.output and "0.1404" in done.output
    assert "mind, mem_test" in done.output


# ---- what is asked, and what is not -------------------------------------------------------------


@pytest.mark.long
def test_a_run_that_asks_nothing_of_memory_says_nothing_of_it(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    gt, models = data
    said = mind("--gt_root", gt, "--test_root", models / "copy", "--metrics", "action", "--set", "lite", "--workers", 0)
    assert "testable clips" not in said
    run = Run(tmp_path / "runs/copy")
    assert [stage["stage"] for stage in run.summary["funnel"]] == ["expected clips", "all clips", "readable"]
    assert run.summary["funnel"][1]["n"] == 8  # clips of which something was asked
    # Nobody asks anything of a mirror clip then, so it is not decoded.
    assert run.facts["counters"]["clips_decoded"] == 8
    again = mind("--gt_root", gt, "--test_root", models / "copy", "--metrics", "lcm", "--set", "lite", "--workers", 0)
    assert "testable clips" in again and "8/8" in again


def test_poses_of_the_first_frames(little, tmp_path):
    gt, models = little
    out = tmp_path / "poses"
    script = tmp_path / "mine.py"
    script.write_text(
        "import sys, av, numpy as np\n"
        "with av.open(sys.argv[1]) as video: n = sum(1 for _ in video.decode(video=0))\n"
        "print('frames', n)\n"
        "poses = np.tile(np.eye(4), (n, 1, 1)); poses[:, 0, 3] = np.arange(n)\n"
        "lens = np.array([[25.0, 0, 28], [0, 25, 16], [0, 0, 1]])\n"
        "np.savez(sys.argv[2], cam_c2w=poses, intrinsics=lens, depth_z=np.ones((n, 32, 56)))\n"
    )
    given = [
        "camera",
        "poses",
        str(models / "copy"),
        "--suite",
        "mind",
        "--option",
        f"gt={gt}",
        "--out",
        str(out),
        "--quiet",
    ]
    done = CliRunner().invoke(app, [*given, "--with", f"{sys.executable} {script} {{video}} {{npz}}", "--first", "7"])
    assert done.exit_code == 0, done.output
    found = read_poses(out / "copy/1st_data/mem_test/data-25.npz")
    assert found.times.tolist() == list(range(7))
    assert "frames 7" in (out / "copy/1st_data/mem_test/data-25.log").read_text()
    cases = [entry for entry in read(models / "copy", gt=str(gt), poses=str(out)) if isinstance(entry, Case)]
    assert cases[0].artifacts["poses"].is_relative_to(out)
    assert not list(out.rglob("mirror_test")), "nobody asks for the camera of a mirror clip"
