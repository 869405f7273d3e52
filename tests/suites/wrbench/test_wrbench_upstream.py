"""What WRBench's own tools wrote is found, read as they wrote it, and evaluated."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revisit.core import Case, Rejected
from revisit.geometry.rotations import angle_between_rotations, rotation_from_axis_angle, scale_turns_from_first
from revisit.suites.wrbench.read import is_wrbench_source, read
from revisit.suites.wrbench.records import condition_and_input_of_model, normalize_record_id

FAMILY = "bedroom_adult_bed_sit"
FRAMES = 81


@pytest.fixture
def example(shared: Path) -> Path:
    return shared / "golden/wrbench_payloads/example_output"


def intended(camera: str, frames: int = FRAMES) -> np.ndarray:
    """The asked path in closed form: both legs hold their ends, so 81 frames turn at frame 39 and begin back at 40."""
    half = FRAMES // 2
    share = np.r_[np.linspace(0, 1, half), np.linspace(1, 0, FRAMES - half)]
    c2w = np.tile(np.eye(4), (FRAMES, 1, 1))
    if camera == "yaw_LR":
        angle = np.radians(-60 * share)
        c2w[:, 0, 0] = c2w[:, 2, 2] = np.cos(angle)
        c2w[:, 0, 2], c2w[:, 2, 0] = np.sin(angle), -np.sin(angle)
    if camera == "pan_LR":
        c2w[:, 0, 3] = -0.5 * share
    return c2w[:: (FRAMES - 1) // (frames - 1)]


@pytest.mark.parametrize("below", ["", "run", "run/hunyuan-worldplay", "run/hunyuan-worldplay/manifest.shard00.jsonl"])
def test_every_way_into_a_run_folder(example: Path, below: str) -> None:
    assert is_wrbench_source(example / below)
    cases = {case.condition: case for case in read(example / below) if isinstance(case, Case)}
    assert list(cases) == ["static", "yaw_LR", "pan_LR"]
    case = cases["yaw_LR"]
    # The published id says `none` for the camera in the prompt; records made here do not.
    assert case.id == f"{FAMILY}__T0__yaw_LR@hunyuan-worldplay"
    assert case.annotations["video_id"] == f"{FAMILY}__T0__none__yaw_LR"
    assert case.camera == "yaw:left:60@40,yaw:right:60@41" and case.subset == "none"
    assert case.annotations["viewpoint_condition"] == "model_inferred" and case.annotations["interface"] == "path"
    assert case.annotations["asked_frames"] == FRAMES and case.annotations["control_samples"] == 21
    assert case.annotations["turn_gain"] == 3 and case.annotations["asked_size"] == [832, 480]
    assert case.annotations["payload"] == "hunyuan_worldplay_pose_dict"
    assert case.annotations["expected"] == "An adult person stands on the bedroom floor, facing the bed."
    assert case.prompt.startswith("Realistic photography") and case.prompt not in case.annotations["event"]
    assert np.load(case.artifacts["true_poses"]).shape == (21, 4, 4)


def test_videos_without_their_manifest_are_read_by_what_lies_beside_them(example: Path, tmp_path: Path) -> None:
    folder = copied(example, tmp_path)
    for path in [*folder.glob("*.json*")]:
        path.unlink()
    assert is_wrbench_source(folder) and is_wrbench_source(folder / "videos")
    for source in (folder, folder / "videos"):
        cases = {case.condition: case for case in read(source) if isinstance(case, Case)}
        assert set(cases) == {"static", "yaw_LR", "pan_LR"}
        case = cases["yaw_LR"]
        assert case.id == f"{FAMILY}__T0__yaw_LR@hunyuan-worldplay" and case.subset == "none"
        assert case.camera == "yaw:left:60@40,yaw:right:60@41" and "true_poses" in case.artifacts
        assert case.annotations["viewpoint_condition"] == "model_inferred"


def evaluated(
    source: Path, poses: Path, out: Path, protocol: str = "corrected", *options: str
) -> dict[tuple[str, str], Any]:
    from revisit.engine.cache import EvidenceCache
    from revisit.engine.request import Request
    from revisit.engine.run import evaluate

    metrics = ("wr_camera_precision", "wr_camera_alignment", "wr_static_hold")
    request = Request(str(source), metrics=metrics, options=(f"poses={poses}", *options), protocol=protocol)
    run = evaluate(request.plan(), out, request=request.as_json(), workers=0, cache=EvidenceCache(out / "cache"))
    results = run.results
    assert run.facts["suite"] == "wrbench" and not results.failures
    return {(record.case.condition, record.question): record for record in results.records if not record.is_gate}


@pytest.mark.parametrize("count", [81, 21, 41])
def test_clips_whose_poses_are_the_intended_ones_get_one(example: Path, tmp_path: Path, count: int) -> None:
    """The target beside the clips has 21 poses and the model's gain of 3; the clips have 81 frames."""
    (tmp_path / "poses").mkdir()
    for camera in ("static", "yaw_LR", "pan_LR"):
        np.save(tmp_path / f"poses/{FAMILY}__T0__none__{camera}.npy", intended(camera, count))
    records = evaluated(example, tmp_path / "poses", tmp_path / "run")
    for camera in ("static", "yaw_LR", "pan_LR"):
        assert records[camera, "wr_camera_precision"].value == pytest.approx(1, abs=0.01)
    assert records["yaw_LR", "wr_camera_alignment"].value == pytest.approx(1, abs=0.01)
    assert records["yaw_LR", "wr_camera_alignment"].facts["requested_deg"] == pytest.approx(-60, abs=0.01)
    assert records["static", "wr_static_hold"].value == 1
    assert records["pan_LR", "wr_camera_alignment"].reason.kind == "does_not_apply"


def test_upstreams_rule_takes_the_target_as_it_was_written(example: Path, tmp_path: Path) -> None:
    """Amplified to 180 degrees, and of as many poses as the estimate: other lengths are a mismatch there."""
    (tmp_path / "poses").mkdir()
    video = f"{FAMILY}__T0__none__yaw_LR"
    written = np.load(next(example.rglob(f"{video}.mp4.target_c2w.npy")))
    np.save(tmp_path / f"poses/{video}.npy", written)
    any_target = ("upstream", "profile=certified_opencv")
    record = evaluated(example, tmp_path / "poses", tmp_path / "a", *any_target)["yaw_LR", "wr_camera_precision"]
    assert record.value == pytest.approx(1, abs=0.01) and abs(record.facts["requested_yaw_deg"]) > 179
    # By default the gain is no part of the request: three times the turn is not precise, and the facts say why.
    facts = evaluated(example, tmp_path / "poses", tmp_path / "c")["yaw_LR", "wr_camera_precision"]
    assert facts.value < 0.3 and facts.facts["against_the_target_as_written"] == pytest.approx(1, abs=0.01)
    np.save(tmp_path / f"poses/{video}.npy", intended("yaw_LR"))
    record = evaluated(example, tmp_path / "poses", tmp_path / "b", *any_target)["yaw_LR", "wr_camera_precision"]
    assert record.reason.kind == "mismatch" and "frames" in record.sentence
    # Its main profile takes 60 degrees, and the file says 180.
    record = evaluated(example, tmp_path / "poses", tmp_path / "d", "upstream")["yaw_LR", "wr_camera_precision"]
    assert record.reason.kind == "mismatch" and "diagnostic_180deg" in record.sentence


def test_a_gain_is_taken_back_beyond_half_a_turn() -> None:
    angles = np.r_[np.linspace(0, -100, 60), np.linspace(-100, 0, 60)]
    asked = np.stack([rotation_from_axis_angle((0.1, 1, 0), angle) if angle else np.eye(3) for angle in angles])
    amplified = np.stack([rotation_from_axis_angle((0.1, 1, 0), 3 * angle) if angle else np.eye(3) for angle in angles])
    assert angle_between_rotations(scale_turns_from_first(amplified, 1 / 3), asked).max() < 1e-6


def test_both_files_of_the_intended_path_say_the_same(example: Path, tmp_path: Path) -> None:
    from revisit.observers.poses import read_poses

    video = next(example.rglob("*yaw_LR.mp4"))
    arrays, document = (video.with_name(video.name + end) for end in (".target_c2w.npy", ".camera_trajectory.json"))
    assert np.allclose(read_poses(document).c2w, read_poses(arrays).c2w, atol=1e-7)
    folder = copied(example, tmp_path)
    for path in folder.rglob("*.npy"):
        path.unlink()
    assert {Path(case.artifacts["true_poses"]).suffix for case in read(tmp_path) if isinstance(case, Case)} == {".json"}


def copied(example: Path, tmp_path: Path) -> Path:
    shutil.copytree(example / "run", tmp_path / "run")
    for path in tmp_path.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return tmp_path / "run/hunyuan-worldplay"


def test_what_failed_is_missing_and_broken_files_are_told(example: Path, tmp_path: Path) -> None:
    folder = copied(example, tmp_path)
    manifest = folder / "manifest.shard00.jsonl"
    rows = [json.loads(line) for line in manifest.read_text().splitlines()]
    rows[0] |= {"status": "failed", "error": "out of memory"}
    video = folder / "videos" / Path(rows[1]["path"]).name
    video.with_name(f"{video.name}.camera.json").write_text("{")
    manifest.write_text("".join(json.dumps(row) + "\n" for row in rows) + "not json\n")
    found = list(read(tmp_path))
    assert [type(entry).__name__ for entry in found] == ["Rejected", "Rejected", "Case", "Rejected"]
    failed, broken, _, odd = found
    assert isinstance(failed, Rejected) and failed.missing and "out of memory" in failed.reason
    assert isinstance(broken, Rejected) and "camera.json: this is not a JSON document" in broken.reason
    assert isinstance(odd, Rejected) and odd.id.endswith("line 4") and "video_id" in odd.reason
    video.with_name(f"{video.name}.camera.json").unlink()
    video.unlink()
    gone = list(read(tmp_path))[1]
    assert isinstance(gone, Rejected) and gone.missing


def test_conditions_and_interfaces_are_those_of_each_model(example: Path, tmp_path: Path) -> None:
    """One folder of camera-conditioned, word-conditioned and API models; cards and the published table know them."""
    folder = copied(example, tmp_path)
    for model in ("kling_v2_6", "hydra", "somebodys-model"):
        other = folder.parent / model
        shutil.copytree(folder, other)
        manifest = other / "manifest.shard00.jsonl"
        rows = [{**json.loads(line), "model": model} for line in manifest.read_text().splitlines()]
        if model == "hydra":
            rows = [{**row, "condition_frame_count": 4} for row in rows]
        manifest.write_text("".join(json.dumps(row) + "\n" for row in rows))
    cases = [case for case in read(tmp_path) if isinstance(case, Case)]
    told = {case.model: (case.annotations["viewpoint_condition"], case.annotations["interface"]) for case in cases}
    assert told == {
        "hunyuan-worldplay": ("model_inferred", "path"), "hydra": ("source_video", "path"),
        "kling_v2_6": ("prompt_only", "words"), "somebodys-model": ("", "path"),
    }  # fmt: skip
    assert len(cases) == 12
    assert {case.clip.start for case in cases if case.model == "hydra"} == {4}  # after the source it was given
    assert (
        condition_and_input_of_model("HappyHorse 1.0 I2V")[0] == "prompt_only"
        and condition_and_input_of_model("Gen3C")[0] == "geometry_cache"
    )


def test_models_that_were_told_in_words_share_the_table_without_precision(example: Path, tmp_path: Path) -> None:
    from revisit.engine.cache import EvidenceCache
    from revisit.engine.request import Request
    from revisit.engine.run import evaluate

    folder = copied(example, tmp_path)
    other = folder.parent / "kling_v2_6"
    shutil.copytree(folder, other)
    manifest = other / "manifest.shard00.jsonl"
    rows = [{**json.loads(line), "model": "kling_v2_6"} for line in manifest.read_text().splitlines()]
    manifest.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "poses").mkdir()
    for camera in ("static", "yaw_LR", "pan_LR"):
        np.save(tmp_path / f"poses/{FAMILY}__T0__none__{camera}.npy", intended(camera))
    metrics = ("wr_camera_precision", "wr_camera_alignment", "wr_static_hold")
    request = Request(str(tmp_path / "run"), metrics=metrics, options=(f"poses={tmp_path / 'poses'}",))
    run = evaluate(request.plan(), tmp_path / "out", workers=0, cache=EvidenceCache(tmp_path / "cache"))
    path, words = (row["cells"] for row in run.summary["headline"][0]["rows"][:2])
    assert path[0] == "model inferred" and words[0] == "prompt only"
    assert float(path[2]) == pytest.approx(1, abs=0.01) and words[2] == "–"
    assert path[3:5] == words[3:5] == ["1.000 (1)", "1.000 (1)"]
    reasons = {record.sentence for record in run.results.records_for("wr_camera_precision") if not record.scored}
    assert len(reasons) == 1 and "as text" in reasons.pop()


def test_published_ids_match_records_made_here(tmp_path: Path) -> None:
    records = [
        {"id": f"{FAMILY}__T2_div_a__yaw_LR", "prompt": "p", "camera": "yaw:left:60@40,yaw:right:60@40"},
        {"id": "café/1", "prompt": "p", "camera": "hold@80"},
        {"id": "cafe/1", "prompt": "p", "camera": "hold@80"},
        {"id": "cafe_1", "prompt": "p\u2028q", "camera": "hold@80"},
    ]
    (tmp_path / "records.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in records))
    names = (f"{FAMILY}__T2_div_a__none__yaw_LR", "café/1", "cafe/1", "cafe_1")
    for name in names:
        path = tmp_path / f"mine/{name}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    found = {case.id: case.clip.path for case in read(tmp_path) if isinstance(case, Case)}
    assert found == {
        f"{normalize_record_id(name)}@mine": tmp_path / f"mine/{name}.mp4" for name in names
    }  # fmt: skip


def test_odd_ids_keep_their_own_clips_and_stop_nothing(tmp_path: Path) -> None:
    """What `revisit generate` may write: ids that differ in a slash or an accent, long ones, texts of any kind."""
    notes = {"task": "t", "factor": "none", "camera": "static"}
    ids = ["a/b", "a_b", "ä_b", "a?b", "x" * 300, "lone\ud800", "nul\x00", "x" * 301]
    rows = [
        {
            "id": id, "model": "m", "video": f"{k}.mp4", "prompt": "a\u2028b\x85c", "camera": "hold@80",
            "annotations": notes,
        }
        for k, id in enumerate(ids)
    ]  # fmt: skip
    (tmp_path / "clips").mkdir()
    (tmp_path / "clips/manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for k in range(len(ids)):
        (tmp_path / f"clips/{k}.mp4").write_bytes(b"")
    (tmp_path / "poses").mkdir()
    found = list(read(tmp_path / "clips", poses=str(tmp_path / "poses"), reference=str(tmp_path / "poses")))
    cases = {case.id.removesuffix("@m"): case.clip.path.name for case in found if isinstance(case, Case)}
    ids[5] = "lone\ufffd"  # half a character, which no file can hold
    assert cases == {id: f"{k}.mp4" for k, id in enumerate(ids[:6])}
    odd = [entry.id for entry in found if isinstance(entry, Rejected)]
    assert odd == ["manifest.jsonl line 7", "manifest.jsonl line 8"]


def test_any_text_in_a_record_is_evaluated(tmp_path: Path) -> None:
    """Halves of characters, zero bytes, line ends inside texts, and a script of a billion frames."""
    from revisit.media import encode_mp4

    frames = np.random.default_rng(0).integers(0, 255, (9, 48, 64, 3), dtype=np.uint8)
    text = "lone \ud800, a zero \x00 and an end\u2028"
    rows = []
    for k, script in enumerate(("hold@8", "yaw:left:60@1000000000", "spin")):
        encode_mp4(tmp_path / f"clips/{k}.mp4", frames, 8)
        notes = {"task": text, "factor": "none", "camera": "yaw60_LR", "event": text, "family": text}
        row = {"id": f"r{k}", "model": "m", "video": f"{k}.mp4", "prompt": text, "camera": script, "annotations": notes}
        rows.append(json.dumps(row) + "\n")
    (tmp_path / "clips/manifest.jsonl").write_text("".join(rows))
    records = evaluated(tmp_path / "clips", tmp_path, tmp_path / "run")
    assert len(records) == 3
    run = json.loads((tmp_path / "run/summary.json").read_text())
    assert run["cases"] == 3 and not run["rejected"] and not run["failed"]
