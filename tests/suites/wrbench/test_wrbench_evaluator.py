"""What goes to WRBench's own tools and what comes from them, held to their published schemas.

The rules below are written from the description of the public code; the data are neither its example nor ours.
"""

from __future__ import annotations

import csv
import json
import shlex
import shutil
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from typer.testing import CliRunner

from revisit.cli.main import app
from revisit.core import Case, Rejected, UsageError
from revisit.media import encode_mp4
from revisit.suites.wrbench.evidence import Judgeability
from revisit.suites.wrbench.metrics.reobservation import reobservation_gate
from revisit.suites.wrbench.prompts import read_natural25_tasks
from revisit.suites.wrbench.read import read
from tests.suites.wrbench.test_wrbench_upstream import evaluated

FAMILY = "harbour_seal_crate"
FRAMES, FPS, SIZE = 25, 20, (96, 64)
SCRIPTS = {
    "static": "hold@24", "yaw60_LR": "yaw:left:60@12,yaw:right:60@12", "yaw30_RL": "yaw:right:30@12,yaw:left:30@12",
    "pan_RL": "truck:right:0.5@12,truck:left:0.5@12",
    "arc_LR": "yaw:left:60+dolly:forward:1@12,yaw:right:60+dolly:back:1@12",
}  # fmt: skip
PROFILES = {  # label -> (camera type, control family, control profile, farthest yaw)
    "static": ("static", "static", "canonical_static", 0), "yaw60_LR": ("yaw_LR", "rotation", "canonical_60deg", 60),
    "yaw30_RL": ("yaw_RL", "rotation", "diagnostic_30deg", 30), "pan_RL": ("pan_RL", "translation", "canonical_pan", 0),
    "arc_LR": ("arc_LR", "unknown", "unknown", 60),
}  # fmt: skip


def invoke(*words: object) -> tuple[int, str]:
    made = CliRunner().invoke(app, [str(word) for word in words])
    return made.exit_code, f"{made.output}{made.exception or ''}"


def write_records(path: Path) -> None:
    rows = [
        {
            "id": f"{FAMILY}__moves__{camera}", "prompt": "A seal pushes a crate.", "camera": script, "seed": 3,
            "annotations": {
                "family": FAMILY, "task": f"{FAMILY}__moves", "factor": "spatial", "camera": camera,
                "interface": "path", "event": "The seal pushes the crate to the wall.", "expected": "It is there.",
            },
        }
        for camera, script in SCRIPTS.items()
    ]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def clips(tmp_path: Path) -> Path:
    """Clips of two models, one of them told in words, with the records beside them."""
    frames = np.random.default_rng(4).integers(0, 255, (FRAMES, SIZE[1], SIZE[0], 3), dtype=np.uint8)
    for model in ("tidal", "kling"):
        for camera in SCRIPTS:
            if (model, camera) != ("kling", "arc_LR"):  # nobody made that one
                encode_mp4(tmp_path / f"clips/{model}/{FAMILY}__moves__{camera}.mp4", frames, FPS)
    write_records(tmp_path / "clips/records.jsonl")
    return tmp_path / "clips"


def export(clips: Path) -> dict[str, Any]:
    """What `revisit wrbench export` says it wrote."""
    code, said = invoke("wrbench", "export", clips, "--out", clips.parent / "rows.json", "--json")
    assert code == 0, said
    return json.loads(said)


def facts_of(clip: Path) -> dict[str, Any]:
    return json.loads(clip.with_name(f"{clip.name}.camera.json").read_text())


def gate(row: dict[str, Any], profile: str) -> str:
    """The status of a row before any pose is compared, by the rules of the public evaluator."""
    if row["camera_type"] not in ("static", "yaw_LR", "yaw_RL", "pan_LR", "pan_RL"):
        return "unsupported_camera_type"
    sidecar = Path(f"{row['path']}.camera.json")
    if not sidecar.is_file():
        return "missing_target_pose"
    facts = json.loads(sidecar.read_text())
    if facts["target_coordinate_convention"] != "opencv_c2w":
        return "coordinate_mismatch"
    if not Path(facts["target_pose_path"]).is_file() or not Path(facts["camera_trajectory_path"]).is_file():
        return "missing_gt"
    if profile == "main":
        assert facts["target_role"] == "benchmark_intended_control" and facts["evidence_level"] == "benchmark_intent"
        assert all(facts[name] not in (None, "") for name in ("num_frames", "fps", "image_size", "fov"))
        assert facts["trajectory_sampling_rule"]
        families = {"yaw": "rotation", "pan": "translation", "sta": "static"}
        assert facts["control_family"] == families[facts["control_direction"][:3]]
        turned = facts["control_family"] == "rotation"
        if turned and (facts["control_profile"] != "canonical_60deg" or abs(facts["yaw_peak_deg"] - 60) > 1e-6):
            return "profile_mismatch"
    return "ok"


@pytest.mark.slow
def test_sidecars_have_the_schema_of_the_public_tools(clips: Path, shared: Path) -> None:
    made = export(clips)
    example = next((shared / "golden/wrbench_payloads/example_output").rglob("*yaw_LR.mp4.camera.json"))
    theirs = json.loads(example.read_text())
    assert (made["sidecars"], made["missing"], made["rows"]) == (5, 1, 9)
    for camera, (camera_type, family, profile, yaw) in PROFILES.items():
        clip = clips / f"tidal/{FAMILY}__moves__{camera}.mp4"
        facts = facts_of(clip)
        assert set(theirs) - {"target_yaw_peak_deg"} <= set(facts) <= set(theirs)
        for name in ("fps", "fov", "image_size", "yaw_peak_deg", "num_frames", "rotation_gain", "frame_mapping"):
            assert type(facts[name]) is type(theirs[name]), name
        assert (facts["camera_type"], facts["control_family"], facts["control_profile"]) == (
            camera_type,
            family,
            profile,
        )
        assert facts["yaw_peak_deg"] == pytest.approx(yaw, abs=1e-6) and facts["yaw_peak_deg"] >= 0
        assert facts["num_frames"] == facts["requested_frame_count"] == FRAMES and facts["fps"] == FPS
        assert facts["image_size"] == list(SIZE) and 0 < facts["fov"] < 180
        assert facts["rotation_gain"] == facts["translation_gain"] == 1  # the target is what was asked
        poses = np.load(facts["target_pose_path"])
        assert poses.shape == (FRAMES, 4, 4) and poses.dtype == np.float32
        np.testing.assert_allclose(poses[0], np.eye(4), atol=1e-7)
        path = json.loads(Path(facts["camera_trajectory_path"]).read_text())
        keys = {"coordinate_convention", "camera_type", "fps", "source", "conversion_mode", "frame_count", "c2w"}
        assert set(path) == {*keys, "intrinsics"} and path["frame_count"] == FRAMES
        np.testing.assert_allclose(path["c2w"], poses, atol=1e-7)
        lens = np.array(path["intrinsics"])
        assert lens.shape == (FRAMES, 3, 3)
        assert 2 * np.degrees(np.arctan(SIZE[0] / (2 * lens[0, 0, 0]))) == pytest.approx(facts["fov"], abs=1e-3)
        # The yaw that the public code reads: negative is left first.
        relative = np.linalg.inv(poses[0]) @ poses
        seen = np.degrees(np.arctan2(relative[:, 0, 2], relative[:, 0, 0]))
        signed = float(seen[np.argmax(np.abs(seen))])
        assert signed == pytest.approx(-yaw if camera_type.endswith("LR") else yaw, abs=1e-4)
        assert facts["megasam_precision_inputs"]["rotation_peak_signed_deg"] == pytest.approx(signed, abs=1e-4)
    across = facts_of(clips / f"tidal/{FAMILY}__moves__pan_RL.mp4")["megasam_precision_inputs"]
    assert across["translation_axis"] == "x" and across["translation_peak_signed"] == pytest.approx(0.5)


@pytest.mark.slow
def test_the_evaluators_gates_take_them(clips: Path, tmp_path: Path) -> None:
    code, said = invoke("wrbench", "export", clips, "--out", tmp_path / "videos.json")
    assert code == 0 and "9 rows" in said and "5 clips have sidecars" in said and "1 clips are missing" in said
    assert "certified_opencv" in said and "put into words" in said
    rows = json.loads((tmp_path / "videos.json").read_text())
    assert isinstance(rows, list) and len({row["video_id"] for row in rows}) == 9
    needed = {"video_id", "path", "model", "camera_type", "world_state_prompt", "expected_state", "event_delta"}
    for row in rows:
        assert needed <= set(row) and Path(row["path"]).is_absolute() and Path(row["path"]).is_file()
        assert row["oov_gap"] != "none" and row["event_delta"] == "spatial" and row["family_id"] == FAMILY
        assert row["video_id"] == "".join(c if c.isalnum() or c in "_.-" else "_" for c in row["video_id"])
    mine = {row["camera"]: row for row in rows if row["model"] == "tidal"}
    assert {camera: gate(row, "certified_opencv") for camera, row in mine.items()} == {
        **dict.fromkeys(SCRIPTS, "ok"), "arc_LR": "unsupported_camera_type",
    }  # fmt: skip
    assert {camera: gate(row, "main") for camera, row in mine.items()} == {
        **dict.fromkeys(SCRIPTS, "ok"), "arc_LR": "unsupported_camera_type", "yaw30_RL": "profile_mismatch",
    }  # fmt: skip
    assert {gate(row, "main") for row in rows if row["model"] == "kling" and row["camera"] != "arc_LR"} == {
        "missing_target_pose"
    }
    code, _ = invoke("wrbench", "export", clips, "--out", tmp_path / "videos.jsonl")
    assert code == 0 and [json.loads(line) for line in (tmp_path / "videos.jsonl").read_text().splitlines()] == rows
    code, said = invoke("wrbench", "export", clips, "--out", tmp_path / "videos.csv")
    assert code and ".json" in said


@pytest.mark.long
@pytest.mark.slow
def test_generating_writes_them_too(tmp_path: Path) -> None:
    write_records(tmp_path / "records.jsonl")
    encode_mp4(tmp_path / "clip.mp4", np.zeros((FRAMES, SIZE[1], SIZE[0], 3), np.uint8), FPS)
    (tmp_path / "copy.py").write_text("import shutil, sys; shutil.copy(*sys.argv[1:])")
    (tmp_path / "mine.yaml").write_text("generators: {mine: {payload: w2c_arrays, takes: nothing, gain: [3, 1, 0.6]}}")
    command = f"{shlex.quote(sys.executable)} {tmp_path / 'copy.py'} {tmp_path / 'clip.mp4'} {{out}}"
    words = ["generate", tmp_path / "records.jsonl", "--generator", "mine", "--generators", tmp_path / "mine.yaml"]
    code, said = invoke(*words, "--out", tmp_path / "run", "--command", command)
    assert code == 0 and "5 clips got the sidecars" in said
    facts = facts_of(tmp_path / f"run/{FAMILY}__moves__yaw60_LR.mp4")
    # The generator was told three times the turn; the target is the turn that was asked for.
    assert facts["yaw_peak_deg"] == 60 and facts["model_payload_summary"]["gain"] == [3, 1, 0.6]
    words = ["generate", "wrbench", "--data", tmp_path / "records.jsonl", "--model", "mine", "--size", "96x64"]
    code, said = invoke(*words, "--out", tmp_path / "made", "--frames", FRAMES, "--command", command)
    assert code == 0, said
    assert "5 of 5 records without a first frame; --option first_frames" in said and "left out" not in said
    found = {path.name for path in (tmp_path / "made/mine").glob("*.mp4.camera.json")}
    assert found == {f"{FAMILY}__moves__{camera}.mp4.camera.json" for camera in SCRIPTS}


@pytest.mark.long
@pytest.mark.slow
def test_sidecars_change_no_score_and_those_of_others_are_left_alone(clips: Path, tmp_path: Path) -> None:
    shutil.rmtree(clips / "kling")
    (clips / f"tidal/{FAMILY}__moves__arc_LR.mp4").unlink()
    (tmp_path / "poses").mkdir()
    for camera, degrees in (("static", 0), ("yaw60_LR", -45), ("yaw30_RL", 30), ("pan_RL", 0)):
        share = np.r_[np.linspace(0, 1, 13), np.linspace(1, 0, 13)[1:]]
        c2w = np.tile(np.eye(4), (FRAMES, 1, 1))
        c2w[:, :3, :3] = Rotation.from_euler("Y", degrees * share[:, None], degrees=True).as_matrix()
        c2w[:, 0, 3] = 0.3 * share if camera == "pan_RL" else 0
        np.save(tmp_path / f"poses/{FAMILY}__moves__{camera}.npy", c2w)
    before = evaluated(clips, tmp_path / "poses", tmp_path / "before")
    export(clips)
    after = evaluated(clips, tmp_path / "poses", tmp_path / "after")
    assert set(before) == set(after)
    for key, record in before.items():
        assert after[key].value == (None if record.value is None else pytest.approx(record.value, abs=1e-6)), key
    assert 0.5 < before["yaw60_LR", "wr_camera_precision"].value < 0.95
    # Under the public protocol 30 degrees are outside its main profile, unless any target is asked for.
    strict = evaluated(clips, tmp_path / "poses", tmp_path / "strict", "upstream")
    assert strict["yaw60_LR", "wr_camera_precision"].value is not None
    assert strict["yaw30_RL", "wr_camera_precision"].reason.kind == "mismatch"
    assert "30" in strict["yaw30_RL", "wr_camera_precision"].sentence
    assert strict["yaw30_RL", "wr_camera_alignment"].value is not None
    free = evaluated(clips, tmp_path / "poses", tmp_path / "free", "upstream", "profile=certified_opencv")
    assert free["yaw30_RL", "wr_camera_precision"].value == pytest.approx(1, abs=1e-3)

    clip = clips / f"tidal/{FAMILY}__moves__static.mp4"
    clip.with_name(f"{clip.name}.camera.json").write_text(json.dumps({**facts_of(clip), "adapter": "wan_fun"}))
    kept = clip.with_name(f"{clip.name}.camera.json").read_bytes()
    assert export(clips)["without"] == {"they have sidecars of another tool": 1}
    assert clip.with_name(f"{clip.name}.camera.json").read_bytes() == kept


@pytest.mark.slow
def test_the_main_profile_names_what_is_wrong(clips: Path) -> None:
    from revisit.suites.wrbench.read import wrbench_parameters_from_options
    from revisit.suites.wrbench.sidecars import to_wrbench_script, why_not_main_profile

    export(clips)
    good = facts_of(clips / f"tidal/{FAMILY}__moves__yaw60_LR.mp4")
    assert why_not_main_profile(good) == ""
    for change, words in (
        ({"target_role": "something"}, "target_role"), ({"control_profile": "diagnostic_45deg"}, "diagnostic_45deg"),
        ({"yaw_peak_deg": 59.99}, "59.99"), ({"control_family": "static"}, "static"), ({"fov": None}, "fov"),
        ({"evidence_level": "guess"}, "guess"), ({"control_direction": "orbit"}, "orbit"),
    ):  # fmt: skip
        assert words in why_not_main_profile({**good, **change})
    assert to_wrbench_script("truck:left:0.5@12,tilt:up:3+dolly:back:1@4,hold@3") == (
        "pan:left:0.5@12,pitch:up:3+dolly:back:1@4,static@3"
    )
    with pytest.raises(UsageError, match="profile"):
        wrbench_parameters_from_options(profile="loose")


# What the public tools write, on a family of our own: a gain of 2, a pose for every second frame, and a row that was
# skipped because its clip was there.


def public_run(folder: Path) -> Path:
    run = folder / "run/mariner"
    frames = np.random.default_rng(1).integers(0, 255, (41, 48, 64, 3), dtype=np.uint8)
    share = np.r_[np.linspace(0, 1, 20), np.linspace(1, 0, 21)]
    rows = []
    for number, (camera, status) in enumerate((("yaw_RL", "ok"), ("static", "skipped_existing"), ("pan_LR", "failed"))):
        name = f"{FAMILY}__T2_div_b__none__{camera}"
        video = run / f"videos/{name}.mp4"
        encode_mp4(video, frames, 10)
        c2w = np.tile(np.eye(4, dtype=np.float32), (41, 1, 1))
        if camera == "yaw_RL":
            c2w[:, :3, :3] = Rotation.from_euler("Y", 2 * 40 * share[:, None], degrees=True).as_matrix()
        np.save(video.with_name(f"{name}.mp4.target_c2w.npy"), c2w[::2])
        facts = {
            "camera_script": "yaw:right:40@20,yaw:left:40@21" if camera == "yaw_RL" else "static@41",
            "camera_type": camera, "canonical_model_key": "mariner", "rotation_gain": 2.0, "translation_gain": 1.0,
            "requested_frame_count": 41, "fps": 10.0, "image_size": [64, 48], "fov": 60.0, "yaw_peak_deg": 80.0,
            "target_role": "benchmark_intended_control", "control_direction": camera, "control_family": "rotation",
            "control_profile": "diagnostic_80deg", "evidence_level": "benchmark_intent", "num_frames": 21,
        }  # fmt: skip
        video.with_name(f"{name}.mp4.camera.json").write_text(json.dumps(facts))
        rows.append(
            {
                "schema_version": 1, "model": "mariner", "video_id": name, "family_id": FAMILY, "reasoning_tier": "T2",
                "divergence_id": "div_b", "event_delta": "full", "oov_gap": "none", "camera": camera,
                "camera_type": camera, "path": f"elsewhere/run/mariner/videos/{name}.mp4", "status": status,
                "world_state_prompt": "The seal is on the crate.", "expected_state": "The seal is on the crate.",
                "ti2v_prompt": "A harbour.", "prompt": "A harbour.", "model_input": "TI2V", "ordinal": number,
            }
        )  # fmt: skip
    (run / "manifest.shard00.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.mark.slow
def test_a_run_of_the_public_tools_is_read_by_its_schema(tmp_path: Path) -> None:
    source = public_run(tmp_path / "theirs")
    found = list(read(source))
    cases = {case.condition: case for case in found if isinstance(case, Case)}
    assert set(cases) == {"yaw_RL", "static"}
    assert [entry.missing for entry in found if isinstance(entry, Rejected)] == [True]
    case = cases["yaw_RL"]
    assert case.id == f"{FAMILY}__T2_div_b__yaw_RL@mariner" and case.subset == "full"
    assert case.annotations["turn_gain"] == 2 and case.annotations["asked_frames"] == 41
    assert "diagnostic_80deg" in case.annotations["outside_main_profile"]
    # A clip that turned as the script says scores 1: the gain of the target is taken back, and its poses spread.
    share = np.r_[np.linspace(0, 1, 20), np.linspace(1, 0, 21)]
    c2w = np.tile(np.eye(4), (41, 1, 1))
    c2w[:, :3, :3] = Rotation.from_euler("Y", 40 * share[:, None], degrees=True).as_matrix()
    (tmp_path / "poses").mkdir()
    np.save(tmp_path / f"poses/{FAMILY}__T2_div_b__none__yaw_RL.npy", c2w)
    records = evaluated(source, tmp_path / "poses", tmp_path / "out")
    assert records["yaw_RL", "wr_camera_precision"].value == pytest.approx(1, abs=0.03)
    assert records["yaw_RL", "wr_camera_alignment"].facts["requested_deg"] == pytest.approx(40, abs=2)


def test_the_table_has_the_published_columns_and_groups(shared: Path) -> None:
    from revisit.suites.wrbench.exports import published_table_csv
    from revisit.suites.wrbench.tables import ALL

    results = shared / "wrbench/results/wrbench_23model_results.csv"
    with results.open(encoding="utf-8", newline="") as file:
        theirs = list(csv.DictReader(file))
    row: dict[str, Any] = {
        "model": "tidal", "input": "TI2V", "condition": "model_inferred", "outputs": 7, "sparse": True, "average": None,
        "support": {"judged": {"share": 3 / 7}}, "average_with_stand_ins": None,
    }  # fmt: skip
    row |= {name: {"value": 0.25, "n": 3} for name in ALL}
    ours = list(csv.DictReader(published_table_csv([row, {**row, "model": "gen3c"}], "test").splitlines()))
    assert list(ours[0])[: len(theirs[0])] == list(theirs[0])
    assert ours[0]["paper_group"] == "NA" and ours[1]["paper_group"] == "V2V"
    assert ours[0]["source_group"] == "local_deployed" and ours[0]["low_n_flag"] == "true"
    rows = [{**row, "model": line["model_id"], "condition": line["viewpoint_condition_type"]} for line in theirs]
    rows = [{**line, "condition": line["condition"].replace("-", "_")} for line in rows]
    rows.append({**row, "model": "some-service", "condition": "prompt_only"})
    groups = [
        (line["paper_group"], line["source_group"])
        for line in csv.DictReader(published_table_csv(rows, "test").splitlines())
    ]
    assert groups[:-1] == [(line["paper_group"], line["source_group"]) for line in theirs] and len(groups) == 24
    assert groups[-1] == ("API prompt-camera", "api_prompt_camera")


@pytest.mark.slow
def test_the_addendum_for_text_to_video(shared: Path) -> None:
    theirs = json.loads((shared / "wrbench/results/wrbench_t2v_results.json").read_text())["models"][0]
    smoke = theirs["static_yaw_smoke"]
    code, said = invoke("wrbench", "published", "--t2v", "--json")
    assert code == 0, said
    mine = {row["camera"]: row for row in json.loads(said)["rows"]}
    for seen, turned in zip(smoke["semantic_scores_by_camera"], smoke["camera_scores_by_camera"], strict=True):
        row = mine[seen["camera"]]
        assert (row["n"], row["visible_spatial"], row["visible_state"]) == (
            seen["n"], seen["D3_spatial_in"], seen["D4_state_in"],
        )  # fmt: skip
        assert row["alignment"] == turned["D1_CamAlign"]
    total = mine["all"]
    assert total["n"] == smoke["sample_count"] and total["alignment"] == smoke["camera_scores_overall"]["D1_CamAlign"]
    assert total["visible_spatial"] == smoke["semantic_scores_overall"]["D3_spatial_in"]
    assert total["visible_state"] == smoke["semantic_scores_overall"]["D4_state_in"]
    code, said = invoke("wrbench", "published", "--t2v")
    assert code == 0 and "0.667" in said and "yaw_RL" in said
    code, said = invoke("leaderboard", "--published", "--supplement")
    assert code == 0 and "minWM Wan Action2V" in said


# Prompts for text alone, and commands in brackets: the fields are the data's, the words between them the copy's.


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of somebody's WRBench, in words that nobody else uses; running it would fail."""
    package = tmp_path / "copy/src/wrbench"
    (package / "prompts").mkdir(parents=True)
    (package / "datasets.py").write_text(
        "raise SystemExit\n"
        "def other(scene, tail):\n    return f'{scene} {tail}'\n"
        "def build(scene, subject, interactor, open_surface, anchor_text, tail):\n"
        "    return (\n        f'Where: {scene}. Who: {subject} / {interactor}. '\n"
        "        f'Free {{ground}}: {open_surface}; {anchor_text}! {tail}'\n    )\n"
    )
    (package / "prompts/camera_text.py").write_text(
        "import nothing_like_this\n"
        "_HAILUO_FIRST_FRAME_PRESERVATION = ('Keep ' 'all.')\n"
        "_HAILUO_RETURN_CLAUSES = {'yaw_LR': 'and [Pan right] home.'}\n"
        "OTHER = nothing_like_this.table\n"
    )
    return tmp_path / "copy"


def test_prompts_for_text_alone_are_joined_by_the_words_of_the_users_copy(shared: Path, copy: Path) -> None:
    data = shared / "wrbench/natural25"
    anchors = {
        row["family_id"]: row for row in map(json.loads, (data / "t2v_layout_anchors.jsonl").read_text().splitlines())
    }
    tails = {
        row["variant_id"]: row["t2v_event_tail"]
        for row in map(json.loads, (data / "t2v_event_tails.jsonl").read_text().splitlines())
    }
    told, plain = read_natural25_tasks(data, copy), read_natural25_tasks(data)
    compared = 0
    for task, other in zip(told, plain, strict=True):
        row = anchors[task.family]
        scene, subject, interactor, surface = (
            row[name].rstrip(".") for name in ("scene", "subject", "interactor", "open_surface")
        )
        both = " and ".join(row["anchors"][:2])
        for camera in ("none", "static", "yaw_LR", "yaw_RL"):
            asked = "" if camera == "none" else camera
            tail = tails[f"{task.id}__{camera}"]
            assert task.prompt_without_first_frame(asked) == (
                f"Where: {scene}. Who: {subject} / {interactor}. Free {{ground}}: {surface}; "
                f"{both[0].upper()}{both[1:]}! {tail}"
            )
            # Without a copy the same parts stand in the same order, each once.
            ours = other.prompt_without_first_frame(asked)
            places = [ours.index(part) for part in (scene, subject, interactor, surface, row["anchors"][1], tail)]
            assert places == sorted(places)
            compared += 1
    assert compared == 400
    assert told[0].wording.source == copy / "src/wrbench" and plain[0].wording.source is None
    with pytest.raises(UsageError, match="no copy of WRBench"):
        read_natural25_tasks(data, copy / "elsewhere")
    # Data that lie in a copy need no option.
    inside = copy / "src/wrbench/data/natural25"
    shutil.copytree(data, inside, ignore=shutil.ignore_patterns("first_frames"))
    assert read_natural25_tasks(inside)[7].from_nothing == told[7].from_nothing


@pytest.mark.slow
def test_hailuo_is_told_in_commands(shared: Path, copy: Path, tmp_path: Path) -> None:
    data, out = shared / "wrbench/natural25", tmp_path / "records.jsonl"
    code, said = invoke("wrbench", "records", "--model", "hailuo", "--data", data, "--wrbench", copy, "--out", out)
    assert code == 0 and "Revisit" not in said
    prompts = {row["id"]: row["prompt"] for row in map(json.loads, out.read_text().splitlines())}
    variants = {
        row["variant_id"]: row["ti2v_prompt"]
        for row in map(json.loads, (data / "variants.jsonl").read_text().splitlines())
    }
    assert len(prompts) == 300
    for task in read_natural25_tasks(data):
        base = variants[f"{task.id}__none"]
        sentences = base.split(". ")
        event = sentences[-1]
        scene = base.removesuffix(f" {event}")
        closing = variants[f"{task.id}__yaw_LR"].split(". ")[-1]
        assert prompts[f"{task.id}__static"] == f"{base}\nKeep all.\n[Static shot]"
        assert prompts[f"{task.id}__yaw_LR"] == (
            f"{scene}\nKeep all.\n[Pan left]\n{event}\nand [Pan right] home.\n{closing}"
        )
        assert prompts[f"{task.id}__yaw_RL"] == f"{scene}\nKeep all.\n[Pan right]\n{event}\n[Pan left]\n{closing}"
    code, said = invoke("wrbench", "records", "--model", "hailuo", "--data", data, "--out", out)
    assert code == 0 and "--wrbench" in said and "Keep all" not in out.read_text()


@pytest.mark.slow
def test_records_say_at_once_what_a_generator_will_refuse(tmp_path: Path) -> None:
    out = tmp_path / "records.jsonl"
    code, said = invoke("wrbench", "records", "--model", "voyager", "--out", out)
    assert code == 0 and "voyager will refuse 400 records (yaw30_LR, yaw30_RL, yaw60_LR, yaw60_RL)" in said
    words = [
        "generate",
        "wrbench",
        "--model",
        "mine",
        "--generator",
        "voyager",
        "--out",
        tmp_path / "made",
        "--dry-run",
    ]
    code, said = invoke(*words, "--option", "interface=moving_path")
    assert code == 0 and "voyager refuses yaw60_LR: the generator takes one of six moves" in said
    code, said = invoke("wrbench", "records", "--model", "minwm-wan", "--out", out, "--json")
    told = json.loads(said)
    assert code == 0 and told["refused"] == {} and told["records"] == 500 and told["starts_from"] == "nothing"
    code, said = invoke("wrbench", "records", "--model", "inspatio-world", "--camera", "pan_LR", "--out", out, "--json")
    (reason,) = json.loads(said)["refused"]
    assert "sideways" in reason and json.loads(said)["refused"][reason] == ["pan_LR"]


@pytest.mark.slow
def test_every_pattern_of_seconds_has_the_reason_of_the_public_gate() -> None:
    """A no must follow a yes to hide the subject; where none does, it was not judgeable at first."""
    patterns, late = 0, 0
    for length in range(1, 11):
        for seconds in product((0, 1), repeat=length):
            first = seconds.index(1) if 1 in seconds else length
            gap = next((k for k in range(first, length) if not seconds[k]), None)
            returned = gap is not None and 1 in seconds[gap:]
            if returned:
                reason = None
            elif gap is not None:
                reason = "no_return"
            else:
                reason = "no_initial_judgeable" if 0 in seconds else "no_oov"
            empty = np.zeros(0, np.int8)
            seen = reobservation_gate(Judgeability(np.array(seconds, np.int8), "it", empty, -1, -1, judge="judge"))
            assert seen.facts.get("upstream_reason") == reason, seconds
            patterns += 1
            late += seen.label == "not seen at first"
    assert patterns == 2046 and late == 45
