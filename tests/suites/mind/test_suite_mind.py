"""The suite mind on a rendered dataset with known faults, and on trees as people really have them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from revisit.cli.main import app
from revisit.core import SUITES, Case, Record, Rejected, UsageError
from revisit.engine.cache import EvidenceCache
from revisit.engine.dependencies import ObserverSet
from revisit.engine.plan import make_plan
from revisit.engine.run import Progress, evaluate
from revisit.media import encode_mp4
from revisit.observers.sets import load_roles
from revisit.suites.mind.read import read
from revisit.suites.mind.world import TILT, TURN, WEAKER, render_mind
from tests.conftest import moving_frames

FUTURE, MIRROR = 6, 2
# Keys of a row of result.json as MIND's README lists them, whatever the clip is like.
ROW = {"path", "perspective", "test_type", "error"}
TIMES = {"mark_time", "total_time", "sample_frames"}
ACTION = {"count", "rpe_trans_mean", "rpe_trans_median", "rpe_rot_mean_deg", "rpe_rot_median_deg"}
ASKED = ("mind_lcm_mse", "mind_gsc_mse", "mind_action_translation", "mind_action_rotation")


def run_mind(source, gt, out, cache=None, **options):
    metrics = options.pop("metrics", ())
    protocol, progress = options.pop("protocol", None), options.pop("progress", None)
    plan = make_plan(
        SUITES["mind"], source, ObserverSet("lite", load_roles("lite")),
        protocol=protocol, metrics=metrics, options={"gt": str(gt), **options},
    )  # fmt: skip
    return evaluate(plan, out, workers=0, cache=cache, progress=progress)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mind")
    return render_mind(folder, size=(48, 84), context=4, future=FUTURE, clips=1, mirrors=("-wr",), mirror_half=MIRROR)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return EvidenceCache(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def run(dataset, cache, tmp_path_factory):
    truth, predictions = dataset
    return run_mind(predictions, truth, tmp_path_factory.mktemp("run"), cache)


def cells(run, model):
    return run.summary["models"][model]["scores"]


def test_each_of_several_models_has_a_file_and_nothing_else_is_left(run):
    made = sorted(path.name for path in run.path.glob("result*.json"))
    assert made == sorted(f"result_{model}.json" for model in run.results.models) and len(made) > 1


def test_a_copy_of_the_ground_truth_is_perfect(run):
    mine = cells(run, "copy")
    assert run.exit_code == 0
    assert mine["mind_lcm_mse"]["mean"] == 0 and mine["mind_lcm_psnr"]["mean"] == 99
    assert mine["mind_lcm_ssim"]["mean"] == pytest.approx(1, abs=1e-6)
    assert mine["mind_gsc_mse"]["mean"] == 0
    for id in ("mind_action_translation", "mind_action_rotation", "camera_ate"):
        assert mine[id]["mean"] == pytest.approx(0, abs=1e-9)
    assert mine["camera_direction"]["mean"] == pytest.approx(1)
    assert all(cell["n"] == cell["of"] == (2 if "gsc" in id else 4) for id, cell in mine.items())


def test_a_frozen_model_wins_nothing(run):
    models = run.summary["models"]
    frozen = models["frozen"]["scores"]
    for id, column in run.summary["metrics"].items():
        if column["higher_is_better"] is None or "mean" not in frozen[id]:
            continue
        for other in ("copy", "weak_turns"):
            better = models[other]["scores"][id]["mean"] - frozen[id]["mean"]
            assert (better if column["higher_is_better"] else -better) > 0, id
    assert frozen["mind_gsc_mse"]["unscored"] == {"at_rest": 2}
    assert frozen["camera_ate"]["unscored"] == {"at_rest": 4}


def test_turns_that_are_10_percent_weaker_show_in_rotation_errors_to_the_digit(run):
    groups = run.summary["actions"]["weak_turns"]
    off = 1 - WEAKER
    assert groups["act:look_left"]["rpe_rot_mean"] == pytest.approx(off * TURN, abs=1e-9)
    assert groups["act:look_right"]["rpe_rot_mean"] == pytest.approx(off * TURN, abs=1e-9)
    assert groups["act:look_up"]["rpe_rot_mean"] == pytest.approx(off * TILT, abs=1e-9)
    assert groups["mixed"]["rpe_rot_mean"] == pytest.approx(off * TURN, abs=1e-9)
    for still in ("no_op", "translation"):
        assert groups[still]["rpe_rot_mean"] == pytest.approx(0, abs=1e-9)
    turning = sum(groups[f"act:{name}"]["rpe_rot_count"] for name in ("look_left", "look_right", "forward+look_right"))
    tilting = sum(groups[f"act:{name}"]["rpe_rot_count"] for name in ("look_up", "look_down"))
    steps = groups["__overall__"]["rpe_rot_count"]
    assert steps == 4 * (FUTURE - 1)
    assert groups["__overall__"]["rpe_rot_mean"] == pytest.approx(
        off * (turning * TURN + tilting * TILT) / steps, abs=1e-9
    )


def test_what_needs_a_network_says_so(run):
    assert set(run.summary["not_asked"]) == {
        "mind_lcm_lpips", "mind_gsc_lpips", "mind_imaging", "mind_aesthetic", "mind_dino"
    }  # fmt: skip
    assert all("which no observer in the set 'lite' makes" in why for why in run.summary["not_asked"].values())


def test_the_table_is_there_by_perspective_and_test(run):
    parts = run.summary["parts"]
    assert [*parts] == [f"{p}_data {t}_test" for p in ("1st", "3rd") for t in ("mem", "action_space", "mirror")]
    assert set(parts["1st_data mirror_test"]["metrics"]) == {"mind_gsc_mse", "mind_gsc_psnr", "mind_gsc_ssim"}
    assert parts["3rd_data mem_test"]["models"]["copy"]["scores"]["mind_lcm_psnr"]["n"] == 1
    from revisit.report.write_html import write_report

    page = write_report(run).read_text(encoding="utf-8")
    assert "1st_data mirror_test" in page and 'id="scores-6"' in page


def test_each_clip_is_decoded_once(run):
    counters = run.facts["counters"]
    assert counters["most_decodes_of_one_clip"] == counters["most_runs_of_one_observer_on_one_clip"] == 1


def test_true_poses_come_from_both_kinds_of_files_and_agree(run):
    found = run.results.where(model="copy").scores("mind_action_rotation")
    assert sorted(record.facts["true_poses"] for record in found) == ["colmap", "colmap", "unreal", "unreal"]


def test_result_json_has_the_keys_of_the_public_evaluator(run):
    text = (run.path / "result_weak_turns.json").read_text()
    assert "Infinity" not in text and "NaN" not in text
    result = json.loads(text)
    assert result["schema_version"] == 2 and result["finished"] and result["video_max_time"] is None
    assert result["protocol"].startswith("corrected:")
    assert result["coverage"]["1st_data mem_test"] == {"expected": 1, "found": 1, "missing": 0, "refused": 0}
    rows = {(row["perspective"], row["test_type"]): row for row in result["data"]}
    assert len(rows) == 6
    main = rows["1st_data", "mem_test"]
    assert {"path", "error", "mark_time", "total_time", "sample_frames", "lcm", "action"} <= main.keys()
    assert main["error"] is None and main["mark_time"] == 4 and main["sample_frames"] == FUTURE
    assert main["lcm"]["length"] == main["n_frames_scored"] == len(main["lcm"]["mse"]) == FUTURE
    assert main["lcm"]["avg_mse"] == pytest.approx(np.mean(main["lcm"]["mse"]))
    assert main["lcm"]["avg_lpips"] is None and main["metric_status"]["lcm.lpips"]["status"] == "unscored"
    assert set(main["action"]["__overall__"]) == {
        "count", "rpe_trans_mean", "rpe_trans_median", "rpe_rot_mean_deg", "rpe_rot_median_deg"
    }  # fmt: skip
    mirror = rows["1st_data", "mirror_test"]
    assert mirror["videos"] == ["path-1.mp4"] and mirror["video_results"][0]["gsc"]["length"] == MIRROR
    assert mirror["video_results"][0]["motion_mse"] > 1e-3


def rows_of(path: Path) -> dict:
    rows = json.loads(path.read_text())["data"]
    return {(row["perspective"], row["test_type"], row["path"]): row for row in rows}


class Watching(Progress):
    """Looks at result.json whenever a clip is done."""

    def __init__(self, path: Path) -> None:
        self.path, self.seen = path, []  # type: ignore[var-annotated]

    def advance(self, what: str, failed: int) -> None:
        if self.path.is_file():
            content = json.loads(self.path.read_text())
            self.seen.append((content["finished"], len(content["data"])))


@pytest.mark.long
def test_result_json_grows_with_the_clips(dataset, tmp_path):
    gt, models = dataset
    watching = Watching(tmp_path / "run/result.json")
    run_mind(models / "weak_turns", gt, tmp_path / "run", metrics=("mind_lcm_mse",), progress=watching)
    assert watching.seen and watching.seen[0][0] is False
    counts = [rows for _, rows in watching.seen]
    assert counts == sorted(counts) and 0 < counts[0] < 4
    final = json.loads((tmp_path / "run/result.json").read_text())
    assert final["finished"] and sum(row["test_type"] != "mirror_test" for row in final["data"]) == 4


@pytest.mark.long
def test_missing_odd_and_resting_clips_keep_the_shapes(dataset, tmp_path):
    """Whatever a clip is like, a reader of upstream's rows finds its keys."""
    gt, models = dataset
    gt = shutil.copytree(gt, tmp_path / "gt")
    made = shutil.copytree(models / "copy", tmp_path / "mine")
    shutil.rmtree(made / "1st_data/mem_test/data-25")
    encode_mp4(made / "1st_data/mirror_test/data-25/path-1.mp4", moving_frames(9), fps=24)
    encode_mp4(made / "3rd_data/mirror_test/data-25/path-1.mp4", moving_frames(42), fps=24)
    resting = gt / "3rd_data/test/mem_test/data-25"
    first = resting.joinpath("images.txt").read_text().splitlines()
    poses = [line for line in first if line and not line.startswith("#")]
    rest = poses[0].split()
    lines = [" ".join([str(k + 1), *rest[1:9], f"images/frame_{k:06d}.jpg"]) + "\n\n" for k in range(120)]
    resting.joinpath("images.txt").write_text("".join(lines))
    for protocol in ("corrected", "upstream"):
        run_mind(made, gt, tmp_path / protocol, metrics=ASKED, protocol=protocol)
    for protocol in ("corrected", "upstream"):
        rows = rows_of(tmp_path / protocol / "result.json")
        missing = rows["1st_data", "mem_test", "data-25"]
        assert missing.keys() >= ROW | TIMES and missing["error"].startswith("missing: there is no")
        assert all(missing[name] is None for name in TIMES)
        still = rows["3rd_data", "mem_test", "data-25"]
        assert still["error"] is None
        if protocol == "corrected":
            assert still["action"]["__overall__"].keys() == ACTION
            assert still["action"]["__overall__"]["rpe_trans_mean"] is None  # no unit can be told
            assert still["action"]["__overall__"]["rpe_rot_mean_deg"] > 0
    odd, batch = (
        rows_of(tmp_path / "upstream/result.json")[perspective, "mirror_test", "data-25"]["video_results"][0]
        for perspective in ("1st_data", "3rd_data")
    )
    assert "an even number of frames; there are 9" in odd["error"] and "gsc" not in odd
    assert odd["sample_frames"] == 9 and odd["mark_time"] == 4
    assert batch["error"].startswith("upstream fails on 42 frames")
    corrected = rows_of(tmp_path / "corrected/result.json")["1st_data", "mirror_test", "data-25"]["video_results"][0]
    assert corrected["error"] is None and corrected["gsc"]["length"] == 4


def test_a_board_counts_the_clips_that_a_metric_applies_to(run, dataset, tmp_path):
    """Six clips per model: four to compare with a recording, two mirrors. Another recording is another dataset."""
    gt, models = dataset
    other = shutil.copytree(gt, tmp_path / "gt")
    recordings = other / "1st_data/test"
    shutil.copy(recordings / "action_space_test/data-0-1.0x-200/video.mp4", recordings / "mem_test/data-25/video.mp4")
    second = run_mind(models / "copy", other, tmp_path / "run", metrics=("mind_lcm_mse",))
    done = CliRunner().invoke(app, ["leaderboard", str(run.path), str(second.path), "--json"])
    boards = [board for board in json.loads(done.stdout) if board["title"] == "mind"]
    of = {
        key: (cell["n"], cell["of"])
        for key, cell in boards[0]["rows"][2]["cells"].items()
        if key in ("mind_lcm_mse", "mind_gsc_mse")
    }
    assert boards[0]["rows"][2]["model"] == "weak_turns" and of == {"mind_lcm_mse": (4, 4), "mind_gsc_mse": (2, 2)}
    assert [len(board["rows"]) for board in boards] == [3, 1]


@pytest.mark.long
def test_upstream_is_another_protocol(dataset, run, cache, tmp_path):
    truth, predictions = dataset
    done = run_mind(predictions / "copy", truth, tmp_path / "run", cache, protocol="upstream")
    assert done.summary["protocol"].startswith("upstream:")
    assert done.facts["counters"]["decodes"] > 0  # its pixels are PyAV's, and so its evidence is its own
    assert done.facts["protocol"]["decoded_by"].startswith("PyAV ")
    assert "decoded_by" not in run.facts["protocol"]
    (record, _) = done.results.where(condition="mem_test").records_for("mind_lcm_mse")
    assert record.reason.kind == "refused"
    result = json.loads((tmp_path / "run/result.json").read_text())
    assert result["model"] == "copy" and result["protocol"].startswith("upstream:")


def test_one_more_metric_computes_only_that_metric(dataset, tmp_path):
    truth, predictions = dataset
    source = predictions / "weak_turns"
    out = tmp_path / "run"
    first = run_mind(source, truth, out, metrics=("mind_action_rotation",))
    assert "lite.fidelity" not in first.facts["counters"]["observer_runs"]
    lines = (out / "records.jsonl").read_bytes()
    more = run_mind(source, truth, out, metrics=("mind_action_rotation", "mind_action_translation"))
    assert more.facts["counters"]["decodes"] == 0
    after = (out / "records.jsonl").read_bytes()
    added = [json.loads(line) for line in after[len(lines) :].splitlines()]
    assert after.startswith(lines) and {record["metric"] for record in added} == {"mind_action_translation"}


@pytest.mark.long
def test_resuming_after_a_torn_record_gives_the_same_bytes(dataset, cache, run, tmp_path):
    out = tmp_path / "run"
    shutil.copytree(run.path, out)
    expected = {name: (out / name).read_bytes() for name in ("summary.json", "result_copy.json")}
    records = (out / "records.jsonl").read_bytes()
    (out / "records.jsonl").write_bytes(records[: len(records) // 3])
    for name in expected:
        (out / name).unlink()
    truth, predictions = dataset
    run_mind(predictions, truth, out, cache)
    assert {name: (out / name).read_bytes() for name in expected} == expected


# ---- trees as people have them ------------------------------------------------------------------


def write_recording(folder: Path, video: Path, mark: int = 4, total: int = 10, **changes: object) -> None:
    folder.mkdir(parents=True)
    shutil.copy(video, folder / "video.mp4")
    rows = [{"time": k, "ws": 1, "ad": 0, "ud": 0, "lr": 0} for k in range(total)]
    (folder / "action.json").write_text(json.dumps({"mark_time": mark, "total_time": total, "data": rows, **changes}))


@pytest.fixture
def trees(make_clip, tmp_path):
    """Four recordings, and a tree with one prediction of them."""
    truth, made = tmp_path / "gt", tmp_path / "my.model"
    video = make_clip(tmp_path / "truth.mp4", count=10)
    for name in ("data-0-1.0x-200", "data-1", "data-2"):
        write_recording(truth / "1st_data/test/mem_test" / name, video)
    write_recording(truth / "3rd_data/test/mem_test/data-9", video)
    place = made / "1st_data/mem_test/data-0-1.0x-200"
    place.mkdir(parents=True)
    shutil.copy(video, place / "video.mp4")
    return truth, made


def entries(made, truth, **options):
    found = list(read(made, gt=str(truth), **options))
    cases = [entry for entry in found if isinstance(entry, Case)]
    return cases, {entry.id: entry for entry in found if isinstance(entry, Rejected)}


def test_partial_trees_are_read_and_what_is_missing_is_counted(trees):
    truth, made = trees
    (made / ".DS_Store").write_text("stray")
    (made / "1st_data/mem_test/notes.txt").write_text("stray")
    (made / "1st_data/mem_test/empty").mkdir()
    shutil.copytree(truth / "1st_data/test/mem_test/data-1", truth / "1st_data/train/data-1")  # not for evaluation
    cases, rejected = entries(made, truth)
    assert [case.sample for case in cases] == ["1st_data/mem_test/data-0-1.0x-200"]
    assert cases[0].model == "my.model" and cases[0].reference.start == 4
    assert sorted(rejected) == [
        "1st_data/mem_test/data-1@my.model", "1st_data/mem_test/data-2@my.model", "3rd_data/mem_test/data-9@my.model"
    ]  # fmt: skip
    assert all(entry.missing and "missing: there is no" in entry.reason for entry in rejected.values())
    video = made / "1st_data/mem_test/data-0-1.0x-200/video.mp4"
    video.rename(video.with_name("video.MP4"))
    assert [case.clip.path.name for case in entries(made, truth)[0]] == ["video.MP4"]


def test_missing_predictions_lower_coverage_and_are_no_failure(trees, tmp_path):
    truth, made = trees
    done = run_mind(made, truth, tmp_path / "run", metrics=("mind_lcm_mse",), model="vanish@0.5")
    assert done.exit_code == 0
    cell = cells(done, "vanish@0.5")["mind_lcm_mse"]
    assert (cell["n"], cell["of"], cell["unscored"]) == (1, 4, {"missing": 3})
    assert done.summary["coverage"]["vanish@0.5"]["1st_data mem_test"]["missing"] == 2
    told = [entry["reason"] for entry in done.summary["rejected"]]
    assert told == ["2 predictions are missing: data-1 and data-2", "1 prediction is missing: data-9"]
    rows = json.loads((tmp_path / "run/result.json").read_text())["data"]
    assert [row["metric_status"]["*"]["status"] for row in rows if "*" in row["metric_status"]] == ["missing"] * 3
    assert {row["path"] for row in rows} == {"data-0-1.0x-200", "data-1", "data-2", "data-9"}


def test_captions_and_the_best_file_of_true_poses(trees):
    from revisit.media import save_npz

    truth, made = trees
    folder = truth / "1st_data/test/mem_test/data-0-1.0x-200"

    def read_again():
        return entries(made, truth)[0][0]

    assert read_again().prompt == "" and "true_poses" not in read_again().artifacts
    (truth / "1st_data/description").mkdir()
    (truth / "1st_data/description/data-0-1.0x-200.txt").write_text("A room.\n")
    actions = {**json.loads((folder / "action.json").read_text()), "caption": ""}
    for row in actions["data"]:
        row |= {"actor_pos": {"x": 0, "y": 0, "z": 0}, "actor_rpy": {"x": 0, "y": 0, "z": 0}}
    (folder / "action.json").write_text(json.dumps(actions))
    case = read_again()
    assert case.prompt == "A room." and case.artifacts["true_poses"].name == "action.json"
    assert case.annotations["true_poses_from"] == 4
    save_npz(folder / "vipe.npz", {"data": np.tile(np.eye(4), (6, 1, 1)), "inds": np.arange(6)})
    case = read_again()
    assert case.artifacts["true_poses"].name == "vipe.npz" and case.annotations["true_poses_from"] == 0
    (folder / "images.txt").touch()
    assert read_again().artifacts["true_poses"].name == "images.txt"
    assert case.reference.count == 6  # the prediction has ten frames, the recording has six after the mark


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "action.json cannot be used: it is not JSON"),
        ("[]", "it is not an object with rows"),
        ('{"data": []}', "it has no 'mark_time'"),
        ('{"mark_time": 9, "total_time": 9, "data": []}', "mark_time is 9 and total_time 9"),
        ('{"mark_time": "4", "data": [{}]}', "mark_time is '4'"),
    ],
)
def test_an_action_file_that_cannot_be_used_is_one_sentence(content, said, trees):
    truth, made = trees
    (truth / "1st_data/test/mem_test/data-0-1.0x-200/action.json").write_text(content)
    cases, rejected = entries(made, truth)
    assert not cases
    entry = rejected["1st_data/mem_test/data-0-1.0x-200@my.model"]
    assert said in entry.reason and not entry.missing


def test_a_recording_without_its_files_and_a_prediction_without_a_recording(trees, make_clip):
    truth, made = trees
    for name in ("data-1", "data-2", "data-77"):
        make_clip(made / "1st_data/mem_test" / name / "video.mp4")
    (truth / "1st_data/test/mem_test/data-1/action.json").unlink()
    (truth / "1st_data/test/mem_test/data-2/video.mp4").unlink()
    cases, rejected = entries(made, truth)
    assert len(cases) == 1
    assert "has no action.json" in rejected["1st_data/mem_test/data-1@my.model"].reason
    assert "has no video.mp4" in rejected["1st_data/mem_test/data-2@my.model"].reason
    assert "the dataset has no 1st_data/test/mem_test/data-77" in rejected["1st_data/mem_test/data-77@my.model"].reason


def test_odd_lengths_one_frame_other_rates_and_broken_rows_are_told_and_the_rest_is_scored(trees, make_clip, tmp_path):
    from revisit.media import save_npz

    truth, made = trees
    encode_mp4(made / "1st_data/mem_test/data-1/video.mp4", moving_frames(1), fps=24)
    encode_mp4(made / "1st_data/mem_test/data-2/video.mp4", moving_frames(5), fps=24)
    (made / "3rd_data/mem_test/data-9").mkdir(parents=True)
    (made / "3rd_data/mem_test/data-9/video.mp4").write_text("not a video")
    for name, count in (("path-1.a", 7), ("path-2", 1)):
        make_clip(made / "1st_data/mirror_test/any" / f"{name}.mp4", count=count)
    actions = truth / "1st_data/test/mem_test/data-2/action.json"
    actions.write_text(
        actions.read_text().replace('"ws": 1', '"ws": 7', 1).replace('"time": 0', '"actor_pos": 1, "time": 0')
    )
    save_npz(made / "1st_data/mem_test/data-2/poses.npz", {"poses": np.tile(np.eye(4), (5, 1, 1))})
    (truth / "1st_data/test/mem_test/data-1/images.txt").write_text("no poses\n")
    (made / "1st_data/mem_test/data-1/poses.txt").write_text("1 2 3\n")
    done = run_mind(
        made, truth, tmp_path / "run", metrics=("mind_lcm_psnr", "mind_gsc_mse", "mind_action_rotation", "camera_ate")
    )
    assert done.exit_code == 1

    def found(metric: str) -> dict[str, Record]:
        return {record.case.id.removesuffix("@my.model"): record for record in done.results.records_for(metric)}

    lcm, gsc = found("mind_lcm_psnr"), found("mind_gsc_mse")
    assert lcm["1st_data/mem_test/data-0-1.0x-200"].facts["length"] == 6
    assert lcm["1st_data/mem_test/data-1"].facts["length"] == 1
    assert lcm["1st_data/mem_test/data-2"].facts["length"] == 5
    assert "this is text, not a video" in lcm["3rd_data/mem_test/data-9"].sentence
    assert gsc["1st_data/mirror_test/any/path-1.a"].facts["length"] == 3
    assert gsc["1st_data/mirror_test/any/path-2"].reason.kind == "too_short"
    action = found("mind_action_rotation")["1st_data/mem_test/data-2"]
    assert action.failed and action.sentence.startswith("action.json: row 0 has no actor_pos")
    camera = found("camera_ate")["1st_data/mem_test/data-1"]
    assert camera.sentence.startswith("poses.txt: its first data line has 3")
    notes = [note for said in done.facts["notes"].values() for note in said]
    assert "the clip has 24 frames per second and its reference 8; frames are compared by number" in notes


@pytest.mark.slow
@pytest.mark.long
def test_the_same_command_finishes_after_kills(trees, tmp_path):
    truth, made = trees
    for name in ("data-1", "data-2"):
        shutil.copytree(made / "1st_data/mem_test/data-0-1.0x-200", made / "1st_data/mem_test" / name)
    command = [sys.executable, "-m", "revisit", "eval", str(made), "--option", f"gt={truth}", "--no-report", "--quiet"]

    def start(run):
        env = {**os.environ, "REVISIT_CACHE": str(tmp_path / f"cache-{run}")}
        return subprocess.Popen(
            [*command, "--out", str(tmp_path / run)], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    started = time.monotonic()
    assert start("whole").wait(300) == 0
    duration = time.monotonic() - started
    for kill in range(5):
        process = start("killed")
        with suppress(subprocess.TimeoutExpired):
            process.wait(duration * (0.3 + 0.15 * kill))
        process.kill()
        process.wait()
    assert start("killed").wait(300) == 0
    for name in ("summary.json", "result.json"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_what_is_asked_wrongly(trees, tmp_path):
    truth, made = trees
    with pytest.raises(UsageError, match="add --option gt=DIR"):
        list(read(made))
    with pytest.raises(UsageError, match="no ground truth found"):
        list(read(made, gt=str(tmp_path)))
    with pytest.raises(UsageError, match="no predictions found"):
        list(read(truth, gt=str(truth)))
    shutil.copytree(made, tmp_path / "models/a")
    shutil.copytree(made, tmp_path / "models/b")
    with pytest.raises(UsageError, match="holds 2 models"):
        list(read(tmp_path / "models", gt=str(truth), model="x"))
    assert {case.model for case in read(tmp_path / "models", gt=str(truth))} == {"a", "b"}
    assert SUITES["mind"].recognises(made) and SUITES["mind"].recognises(tmp_path / "models")
    assert not SUITES["mind"].recognises(truth)


def test_mirror_clips_need_no_ground_truth_and_are_counted_with_it(make_clip, tmp_path):
    make_clip(tmp_path / "m/3rd_data/mirror_test/x/path-1.mp4")
    found = list(read(tmp_path / "m"))
    assert [case.align for case in found] == ["mirror"] and found[0].reference == found[0].clip
    mirror = tmp_path / "gt/3rd_data/test/mirror_test"
    mirror.mkdir(parents=True)
    for name in ("data-25.png", "-w.json", "-s.json", "-a.json"):
        (mirror / name).touch()
    counted = list(read(tmp_path / "m", gt=str(tmp_path / "gt")))
    assert len(counted) == 3 and sum(isinstance(entry, Rejected) and entry.missing for entry in counted) == 2


def test_the_command_and_its_card(trees, revisit, tmp_path):
    truth, made = trees
    done = revisit(
        "eval",
        made,
        "--option",
        f"gt={truth}",
        "--out",
        tmp_path / "run",
        "-m",
        "mind_lcm_psnr",
        "--quiet",
        "--no-report",
        "--all",
    )
    assert "1st_data mem_test" in done.stdout
    assert "2 predictions are missing: data-1 and data-2" in done.stderr
    again = revisit("eval", tmp_path / "run", "--rescore", "--all", "--no-report")
    assert "Memory: PSNR" in again.stdout
    card = revisit("show", "mind").stdout
    assert "gt: folder of the dataset" in card and "upstream" in card
    wrong = revisit("eval", made, "--option", "gt", check=2)
    assert "--option takes name=value" in wrong.stderr


def test_measures_without_a_score_stand_in_the_order_of_their_metrics() -> None:
    from types import SimpleNamespace

    from revisit.suites.mind.summary import _per_frame_fields

    scores = {"mse": True, "psnr": False, "ssim": False, "lpips": False}
    records: Any = {
        name: SimpleNamespace(scored=scored, case=None, question=name, value=1.0, facts={})
        for name, scored in scores.items()
    }
    results: Any = SimpleNamespace(series=lambda case, question: None)
    fields = _per_frame_fields(records, results)
    assert [name for name in fields if name.startswith("avg_")] == [f"avg_{name}" for name in scores]
