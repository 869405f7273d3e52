"""MemoBench's supplement: trajectories, strata, joint sweeps, wordings, the taxonomy, the radar, smoothed poses."""

from __future__ import annotations

import csv
import json
import math
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from revisit.audit.sweep import parse_parameter, sweep_parameter
from revisit.core import SUITES, Case, Clip, Reason, Record, UsageError
from revisit.engine.dependencies import ObserverSet
from revisit.engine.plan import make_plan
from revisit.engine.run import evaluate
from revisit.evidence.camera import ObservedCamera, TruePoseTrack
from revisit.geometry.rotations import angle_between_rotations, rotation_from_axis_angle, smooth_rotations
from revisit.observers.sets import load_roles
from revisit.results import Results
from revisit.results.diagnoses import summarise_diagnoses, taxonomy_table
from revisit.suites.memobench.clip_categories import (
    PROCESSES,
    camera_trajectory_in_prompt,
    categories_of_clip,
    ors_tables_by_size_and_angle,
    process_category_of_prompt,
    read_clip_categories,
    trajectory_tables,
)
from revisit.suites.memobench.evidence import Detections
from revisit.suites.memobench.exports import MIDDLE, RADIUS, radar_svg
from revisit.suites.memobench.metrics.camera import camera_controllability
from revisit.suites.memobench.metrics.reappearance import object_reappearance
from revisit.suites.memobench.metrics.true_turn import true_turn
from revisit.suites.memobench.names import parse_clip_name
from revisit.suites.memobench.observers.detections import STYLES, detector_prompt_in_style
from revisit.worlds.layouts.common import Model
from revisit.worlds.layouts.rendering import render_layouts
from tests.memo import case, frames, scored
from tests.suites.memobench.test_suite_memobench import generated, make_dataset

# ---- Table S2 -----------------------------------------------------------------------------------


def prompts(shared: Path, split: str) -> list[str]:
    with (shared / f"memobench/metadata/{split}_metadata.csv").open(newline="") as file:
        return [row["prompt"] for row in csv.DictReader(file)]


def test_trajectories_have_the_printed_counts_where_prompts_name_them(shared: Path) -> None:
    real = Counter(camera_trajectory_in_prompt(prompt, "Real") for prompt in prompts(shared, "real"))
    assert real == {"pan left": 56, "pan right": 51, "tilt up": 57}  # Table S2
    synthetic = Counter(camera_trajectory_in_prompt(prompt, "Synthetic") for prompt in prompts(shared, "synthetic"))
    assert synthetic["U-turn"] == 68 and sum(synthetic.values()) == 196  # Table S2
    # The others are told by words and are not the printed 58, 41 and 29; the page says so.
    assert synthetic == {"U-turn": 68, "head turn": 44, "forward": 43, "vertical": 41}
    assert camera_trajectory_in_prompt("", "Synthetic") == camera_trajectory_in_prompt("A cup.", "Real") == ""


def test_the_table_of_trajectories(shared: Path) -> None:
    def clip(name: str, model: str, kind: str, marks: list[int]) -> Case:
        notes = {"trajectory": kind, "gt_phases": marks}
        return Case(f"{name}@{model}", "memobench", model, name, Clip(Path("x")), subset="Real", annotations=notes)

    cases = [clip(f"{k:03d}", model, "pan left" if k < 2 else "tilt up", [10, 60 + 10 * k])
             for model in ("a", "b") for k in range(3)]  # fmt: skip
    records = [
        Record(one, "true_turn", False, "scored", 0.0, facts={"farthest": 70.0 + 2 * int(one.sample)}) for one in cases
    ]
    [table] = trajectory_tables(Results(cases, records))
    rows = {row["name"]: row["cells"] for row in table["rows"]}
    assert rows["Real, pan left"][0]["mean"] == 71 and rows["Real, pan left"][1]["mean"] == 55
    assert rows["Real, tilt up"][1] == {"n": 1, "of": 1, "failed": 0, "mean": 70, "interval": None}  # once


# ---- categories ---------------------------------------------------------------------------------


def test_a_process_is_told_only_where_one_category_is_named(shared: Path) -> None:
    assert process_category_of_prompt("A candle that burns down.") == "combustion and heat"
    assert process_category_of_prompt("Honey that drips into tea") == ""  # two categories have words in it
    assert process_category_of_prompt("A cup on a table.") == ""
    found = Counter(process_category_of_prompt(prompt) for prompt in prompts(shared, "real"))
    assert found[""] == 77 and set(found) == {"", *PROCESSES}


def test_a_file_of_ones_own_comes_first(tmp_path: Path) -> None:
    (tmp_path / "kinds.csv").write_text("clip,process,environment\n7,bubble and foam,\nZen_Garden,,garden\n")
    told = read_clip_categories(tmp_path / "kinds.csv")
    real, garden = parse_clip_name("007"), parse_clip_name("ZenGarden_003")
    assert real is not None and garden is not None
    assert categories_of_clip(real, "A candle. The camera tilts upward.", told) == {
        "trajectory": "tilt up", "process": "bubble and foam"
    }  # fmt: skip
    assert categories_of_clip(garden, "It performs a U-turn", told) == {"trajectory": "U-turn", "environment": "garden"}
    (tmp_path / "bad.csv").write_text("name,kind\n7,x\n")
    with pytest.raises(UsageError, match="expected clip and some of trajectory, process, environment"):
        read_clip_categories(tmp_path / "bad.csv")


def test_categories_are_there_to_group_by(tmp_path: Path) -> None:
    data = make_dataset(tmp_path)
    (tmp_path / "kinds.csv").write_text("clip,process\n007,dissolution\n")
    plan = make_plan(
        SUITES["memobench"], generated(tmp_path / "mine"), ObserverSet("lite", load_roles("lite")),
        metrics=["memo_psnr"], options={"gt": str(data), "categories": str(tmp_path / "kinds.csv")},
    )  # fmt: skip
    assert {case.sample: case.annotations.get("process") for case in plan.cases} == {
        "Barnyard_005": None, "007": "dissolution"
    }  # fmt: skip


# ---- Tables S3 and S4 ---------------------------------------------------------------------------


def test_parameters_that_move_together_are_swept_together() -> None:
    found = parse_parameter("memo_ors.smallest+memo_ors.largest=0.0001/0.3,0.0005/0.5,0.002/0.5")
    assert found.values == ((0.0001, 0.3), (0.0005, 0.5), (0.002, 0.5))
    assert found.overrides_for(found.values[0]) == {"memo_ors": {"smallest": 0.0001, "largest": 0.3}}
    with pytest.raises(UsageError, match="a value has 2 parts with a slash"):
        parse_parameter("memo_ors.smallest+memo_ors.largest=0.0001,0.3")


def test_table_s3_in_one_command(tmp_path: Path) -> None:
    """Masks of known sizes: which of them count follows from the pair, and so does the score."""
    data, source = make_dataset(tmp_path), generated(tmp_path / "mine")
    folder = tmp_path / "found"
    folder.mkdir()
    for name in ("Barnyard_005", "007"):
        masks = [{"frame": k, "masks": [{"coverage": 0.0002, "score": 0.9}, {"coverage": 0.2, "score": 0.6}]}
                 for k in range(12)]  # fmt: skip
        (folder / f"{name}.json").write_text(json.dumps({"prompt": "a pig", "frames": masks}))

    def plan_of(overrides=None):
        return make_plan(
            SUITES["memobench"], source, ObserverSet("lite", load_roles("lite")), metrics=["memo_ors"],
            options={"gt": str(data), "detections": str(folder)}, overrides=overrides,
        )  # fmt: skip

    parameter = parse_parameter("memo_ors.smallest+memo_ors.largest=0.0001/0.3,0.0005/0.5,0.0005/0.1")
    rows = sweep_parameter(plan_of, parameter, tmp_path / "sweep", workers=0)["rows"]
    means = {tuple(row["value"]): row["metrics"]["memo_ors"]["models"]["mine"]["mean"] for row in rows}
    # 0.1 leaves no mask of the usual size, so the larger one counts as a fallback
    assert means == pytest.approx({(0.0001, 0.3): 0.9, (0.0005, 0.5): 0.6, (0.0005, 0.1): 0.6})


@pytest.mark.parametrize(
    ("style", "words"),
    [
        ("original", "a red car"), ("the", "the a red car"), ("detect", "detect a red car in the scene"),
        ("photo", "a photo of a red car"), ("first", "a"),
    ],
)  # fmt: skip
def test_five_wordings_of_table_s4(style: str, words: str) -> None:
    notes = {"ors_prompts": {"corrected": "a red car", "paper": "car"}}
    assert detector_prompt_in_style(notes, None, "corrected", style) == words
    assert detector_prompt_in_style({}, None, "paper", style) == ""
    assert len(STYLES) == 5
    with pytest.raises(UsageError, match="unknown prompt style 'loud'"):
        detector_prompt_in_style(notes, None, "paper", "loud")


def test_ors_by_size_and_angle() -> None:
    cases = [Case(f"{k}@m", "memobench", "m", str(k), Clip(Path("x"))) for k in range(5)]
    sizes, angles, values = (0.01, 0.02, 0.09, 0.2, None), (10.0, 45.0, 119.0, 150.0, 150.0), (0.1, 0.2, 0.4, 0.8, 0.0)
    records = [
        record
        for one, size, angle, value in zip(cases, sizes, angles, values, strict=True)
        for record in (
            Record(one, "memo_ors", False, "scored", value, facts={"target_area": size}),
            Record(one, "true_turn", False, "scored", 0.0, facts={"at_return": angle}),
        )
    ]
    size, angle = ors_tables_by_size_and_angle(Results(cases, records))
    assert [(cell["n"], cell.get("mean")) for cell in size["rows"][0]["cells"]] == [
        (1, 0.1), (2, pytest.approx(0.3)), (1, 0.8)
    ]  # fmt: skip
    assert [(cell["n"], cell.get("mean")) for cell in angle["rows"][0]["cells"]] == [
        (1, 0.1), (1, 0.2), (1, 0.4), (2, 0.4)
    ]  # fmt: skip


def test_what_the_strata_rest_on() -> None:
    seen = Detections(
        np.arange(40), np.array([0, 0, 30]), np.array([0.3, 0.05, 0.1]), np.array([0.6, 0.9, 0.8]), "a cup", 0.0, "x"
    )
    assert (
        scored(object_reappearance(case(), frames(40), seen)).facts["target_area"] == 0.05
    )  # the best mask of frame 0
    path = np.tile(np.eye(4), (40, 1, 1))
    path[:, :3, :3] = [rotation_from_axis_angle((0, 1, 0), 2.0 * k) for k in range(40)]
    marked = case(gt_phases=[10, 30])
    made = scored(true_turn(marked, TruePoseTrack(np.arange(40), path, True, "x")))
    assert made.facts["at_return"] == pytest.approx(60) and made.facts["farthest"] == pytest.approx(78)


# ---- Table S10 ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.long
def test_the_taxonomy_is_asked_and_finds_what_was_injected(tmp_path: Path) -> None:
    models = [Model.parse(name) for name in ("perfect", "vanish", "camera_drift")]
    folder = render_layouts(tmp_path, ["memobench"], seeds=1, size=(96, 160), frames=33, models=models, workers=0)[
        "memobench"
    ]
    plan = make_plan(
        SUITES["memobench"], folder / "output", ObserverSet("lite", load_roles("lite")),
        options={"gt": str(folder / "data"), "targets": str(folder / "targets.json")},
    )  # fmt: skip
    run = evaluate(plan, tmp_path / "run", workers=0)
    table = run.summary["tables"][-1]
    assert table["title"] == "Failures by kind" and len(table["columns"]) == 6
    found = {row["name"]: {name: cell["n"] for name, cell in zip(table["columns"], row["cells"], strict=True)}
             for row in table["rows"]}  # fmt: skip
    for split in ("Synthetic", "Real"):
        assert found[f"vanish, {split}"]["object vanishes"] == 1
        assert found[f"camera_drift, {split}"]["camera drifts"] == 1
        assert not any(found[f"perfect, {split}"].values())
    # What only serves the taxonomy has no column of its own.
    assert "camera_scale" not in run.summary["metrics"] and "memo_psnr" in run.summary["metrics"]


def test_what_cannot_be_told_or_read_is_not_counted_as_sound() -> None:
    found = {
        "cases": {
            "a": {"findings": [{"kind": "vanish"}], "untold": {}},
            "b": {"findings": [], "untold": {"vanish": "no target"}},
            "c": {"findings": [], "untold": {}},
        }
    }
    groups = dict.fromkeys("abc", ("m", "Real"))
    [row] = taxonomy_table(found, {"gone": ["vanish"], "moved": ["teleport"]}, groups)["rows"]
    assert row["name"] == "m, Real"
    assert row["cells"] == [{"n": 1, "of": 2, "mean": 0.5}, {"n": 0, "of": 3, "mean": 0.0}]
    broken = Case("x", "memobench", "m", "x", Clip(Path("x.mp4")))
    failed = Record(broken, "camera_scale", False, "failed", reason=Reason("failed", "this is text, not a video"))
    assert (
        summarise_diagnoses(Results([broken], [failed])) == {}
    )  # an unreadable clip has no diagnosis, so none without failures


# ---- the radar ----------------------------------------------------------------------------------


def test_the_radar_puts_scores_where_they_belong() -> None:
    scores = {
        "a": {"memo_vqa_if": 100.0, "memo_vqa_ob": 50.0, "memo_vqa_cm": 25.0, "memo_vqa_pa": 0.0, "memo_ors": 0.4},
        "<b>": {"memo_vqa_if": 80.0, "memo_vqa_cm": 60.0},
    }
    text = radar_svg(scores)
    assert "Questions" in text and "Automated metrics" not in text  # one spoke is no radar
    assert "&lt;b&gt;" in text and "<b>" not in text
    path = re.search(r'data-model="a" d="([^"]+)"', text)
    assert path is not None
    corners = [tuple(map(float, spot.split(","))) for spot in re.findall(r"M([\d.]+,[\d.]+)", path[1])]
    away = [math.dist(corner, MIDDLE) / RADIUS for corner in corners]
    assert away == pytest.approx([1, 0.5, 0.25, 0], abs=1e-3)
    assert corners[0][0] == MIDDLE[0] and corners[0][1] < MIDDLE[1] and corners[1][0] > MIDDLE[0]  # up, then clockwise
    lonely = re.search(r'data-model="&lt;b&gt;" d="([^"]+)"', text)
    assert lonely is not None and "L" not in lonely[1] and lonely[1].count("h0.01") == 2  # gaps stay gaps
    assert radar_svg({"a": {"memo_psnr": 20.0}}) == ""


# ---- smoothed poses -----------------------------------------------------------------------------


def test_smoothing_is_the_weighted_mean_of_rotations() -> None:
    rotation = pytest.importorskip("scipy.spatial.transform").Rotation
    rng = np.random.default_rng(3)
    path = rotation.from_rotvec(np.cumsum(rng.normal(0, 0.05, (31, 3)), axis=0))
    made = smooth_rotations(path.as_matrix(), 2.0)
    for k in (8, 11, 15, 22):
        near = np.arange(k - 8, k + 9)
        wanted = path[near].mean(np.exp(-0.5 * ((near - k) / 2.0) ** 2)).as_matrix()
        assert angle_between_rotations(made[k], wanted) < 1e-4
    assert np.allclose(np.linalg.det(made), 1)
    raw = path.as_matrix()
    assert (
        smooth_rotations(raw, 0) is raw
        and smooth_rotations(raw[:1], 2.0).shape == (1, 3, 3)
        and len(smooth_rotations(raw[:3], 2.0)) == 3
    )


def test_smoothing_cleans_an_estimated_path_and_leaves_a_clean_one() -> None:
    rng = np.random.default_rng(0)
    true = np.array([rotation_from_axis_angle((0, 1, 0), 0.5 * k) for k in range(81)])
    noisy = np.array([one @ rotation_from_axis_angle(tuple(rng.normal(size=3)), rng.normal(0, 1.0)) for one in true])
    before, after = (
        np.sqrt(np.mean(angle_between_rotations(path, true) ** 2)) for path in (noisy, smooth_rotations(noisy, 2.0))
    )
    assert after < 0.55 * before  # a Gaussian of two frames leaves 1 / sqrt(2 sqrt(pi) 2) = 0.38 of white noise
    assert (
        angle_between_rotations(smooth_rotations(true, 2.0), true).max() < 1e-5
    )  # an even turn stays as it is, to its ends


def test_only_real_clips_are_smoothed_and_the_facts_say_how_far() -> None:
    rng = np.random.default_rng(1)
    path = np.tile(np.eye(4), (41, 1, 1))
    path[:, :3, :3] = [
        rotation_from_axis_angle((0, 1, 0), k) @ rotation_from_axis_angle((1, 0, 0), rng.normal(0, 1.0))
        for k in range(41)
    ]
    truth = TruePoseTrack(np.arange(41), path, True, "npz")
    clean = ObservedCamera(
        np.arange(41), np.array([rotation_from_axis_angle((0, 1, 0), k) for k in range(41)]), None, "x"
    )
    made = {
        split: scored(
            camera_controllability(replace(case(), subset=split), frames(41), truth, clean, rule="paper", smooth=2.0)
        )
        for split in ("Real", "Synthetic")
    }
    told = made["Real"].facts["true_poses_smoothed"]
    assert told["frames"] == 2.0 and 0.3 < told["moved_deg"] < told["most_deg"] < 5
    assert made["Real"].facts["ate_deg"] < made["Synthetic"].facts["ate_deg"]
    assert "true_poses_smoothed" not in made["Synthetic"].facts
    assert SUITES["memobench"].protocols["paper"]["memo_camera"]["smooth"] == 2.0
    assert "smooth" not in SUITES["memobench"].protocols["upstream"]["memo_camera"]
