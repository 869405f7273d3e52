"""A score by another than the published maker never stands in a published column, whichever benchmark it is of."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from revisit.core import METRICS, SUITES, Case, Clip, Record, import_registering_modules
from revisit.results import Results

import_registering_modules()
FACTS = {"set": "lite", "protocol": "upstream:00000000", "made_by": {}, "parameters": {}, "finished": True}


def results_of(suite: str, scores: dict[str, list[tuple[str, float, dict[str, Any]]]], **facts: Any) -> Results:
    """Results of a suite: clip -> metric, score and facts of it."""
    cases, records = [], []
    for sample, answers in scores.items():
        case = Case(f"{sample}@m#0", suite, "m", sample, Clip(Path(f"{sample}.mp4")), **facts)
        cases.append(case)
        records += [Record(case, id, False, "scored", value, facts=told) for id, value, told in answers]
    return Results(cases, records)


def exported(results: Results, suite: str, folder: Path) -> dict[str, Any]:
    """The files of a suite, as the engine has them made."""
    from revisit.results.stand_ins import separate_stand_ins

    made = SUITES[suite].export
    assert made is not None
    return made(folder, {**FACTS, "models": ["m"]}, separate_stand_ins(results))


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_every_column_that_a_network_fills_says_which(tmp_path: Path) -> None:
    """Who is named in the facts of a score has to be told apart somewhere."""
    named = {"flow", "described_by", "depth_by", "detector", "rated_by", "poses_from"}
    for id in (
        "memo_motion_smoothness", "memo_identity", "memo_geo3d", "memo_ors", "memo_aesthetic", "memo_image_quality",
        "memo_image_reward", "memo_camera", "wr_integrity", "wr_camera_precision", "wr_camera_alignment",
        "wr_static_hold", "mind_dino", "mind_action_translation", "mind_action_rotation", "mb_object_texture",
        "mb_human_identity", "mb_rendering_style", "mb_prompt_interaction",
    ):  # fmt: skip
        assert {one.fact for one in METRICS[id].published_by} & named, id


def test_memobench_files_hold_only_published_makers(tmp_path: Path) -> None:
    flow, tokens = "memo_motion_smoothness", "memo_identity"
    results = results_of(
        "memobench",
        {
            "Barnyard_001": [
                (flow, 17.5, {"flow": "DIS", "temporal_score": 0.175}),
                (tokens, 53.0, {"described_by": "gradients and colour", "mean": 0.6, "minimum": 0.4}),
                ("memo_psnr", 20.0, {"mean": {"all": 20.0}}),
                ("memo_camera", 90.0, {"poses_from": "odometry"}),
            ],
            "Barnyard_002": [
                (flow, 40.0, {"flow": "raft-large on values from 0 to 1", "temporal_score": 0.4}),
                (tokens, 61.0, {"described_by": "dinov2-base", "mean": 0.7, "minimum": 0.5}),
                ("memo_psnr", 22.0, {"mean": {"all": 22.0}}),
                ("memo_camera", 80.0, {"poses_from": "mapanything"}),
            ],
        },
        subset="Synthetic",
    )
    files = exported(results, "memobench", tmp_path)
    first, second = rows(next(text for name, text in files.items() if "/eval_" in name))
    published = (
        "TemporalScore", "MotionSmoothness", "TemporalScore_pct", "ObjIdentityMean", "ObjIdentityMin",
        "ObjIdentityMean_pct", "ObjIdentityConsistency", "CameraControllability", "CameraControllability_pct",
    )  # fmt: skip
    assert {first[name] for name in published} == {""} and first["GT_ALL_PSNR"] == "20.0"
    assert "" not in {second[name] for name in published}
    (board,) = rows(files["memobench_csv/leaderboard.csv"])
    assert (board["MotionSmoothness"], board["ObjIdentityConsistency"]) == ("40.0000", "61.0000")  # of one clip alone
    assert board["CameraControllability"] == "80.0000" and board["GT_ALL_PSNR"] == "21.0000"


def test_a_list_of_stand_ins_has_names_of_its_own() -> None:
    from revisit.results.stand_ins import list_stand_ins, separate_stand_ins, stand_in_scores_csv, stand_ins_sentence

    told = [("memo_identity", 53.0, {"described_by": "efficientnet-lite0"})]
    results = results_of("memobench", {"Barnyard_001": told})
    (row,) = rows(stand_in_scores_csv(results))
    assert (row["metric"], row["made_by"], row["score"]) == ("memo_identity.stand_in", "efficientnet-lite0", "53.0")
    assert "Object identity consistency by efficientnet-lite0 (published: DINOv2-B)" in stand_ins_sentence(
        list_stand_ins(results), "MemoBench"
    )
    assert separate_stand_ins(separate_stand_ins(results)).score("Barnyard_001@m#0", "memo_identity.stand_in") == 53.0


def test_the_patch_error_of_another_network_is_not_in_the_result_file_of_mind(tmp_path: Path) -> None:
    notes = {"mark_time": 3, "total_time": 9}
    told = [("mind_dino", 0.5, {"described_by": "efficientnet-lite0"}), ("mind_lcm_mse", 0.1, {})]
    sample = "1st_data/mem_test/a"
    results = results_of("mind", {sample: told}, subset="1st_data", condition="mem_test", annotations=notes)
    (row,) = exported(results, "mind", tmp_path)["result.json"]["data"]
    assert row.get("dino", {}).get("avg_dino_mse") is None and row["lcm"]["avg_mse"] == 0.1
    assert "efficientnet-lite0" in row["metric_status"]["dino.dino_mse"]["reason"]


def test_descriptors_of_another_network_are_not_in_the_scores_of_mbench(tmp_path: Path) -> None:
    notes = {"setting": "A", "item_id": "object:a:left", "action": "left_then_right", "motion": None}
    told = [("mb_object_texture", 0.9, {"described_by": "efficientnet-lite0"})]
    results = results_of("mbench", {"a": told}, subset="object", annotations=notes)
    files = exported(results, "mbench", tmp_path)
    name = "metrics/mbencha.entity.object_texture_consistency"
    (item,) = map(json.loads, files[f"{name}/items.jsonl"].splitlines())
    assert not item["valid"] and "score" not in item["scores"] and "efficientnet-lite0" in item["reason"]
    assert "score" not in files[f"{name}/summary.json"]["groups"]["m"]


@pytest.mark.long
@pytest.mark.slow
def test_a_run_with_lite_observers_leaves_the_published_columns_empty(tmp_path: Path, revisit: Any) -> None:
    """As a user sees it: rendered clips, the protocol of the public evaluator, no network."""
    revisit(
        "world", "render", "--suite", "memobench", "--seeds", 1, "--size", "96x160", "--frames", 33,
        "--failures", "perfect", "--workers", 0, "--out", "worlds",
    )  # fmt: skip
    done = revisit(
        "eval", "worlds/memobench/output", "--suite", "memobench", "--option", "gt=worlds/memobench/data",
        "--protocol", "upstream", "-m", "memo_motion_smoothness,memo_identity,memo_psnr", "--workers", 0,
        "--no-report", "--quiet", "--out", "run",
    )  # fmt: skip
    (board,) = rows((tmp_path / "run/memobench_csv/leaderboard.csv").read_text())
    assert board["MotionSmoothness"] == board["ObjIdentityConsistency"] == "" and board["GT_ALL_PSNR"]
    (line,) = [line for line in done.stderr.splitlines() if "stand-ins" in line]
    assert "Motion smoothness by DIS (published: RAFT-large)" in line and "stand_ins.csv" in line
    listed = rows((tmp_path / "run/stand_ins.csv").read_text())
    assert {row["metric"] for row in listed} == {"memo_motion_smoothness.stand_in", "memo_identity.stand_in"}
    (shown,) = json.loads(revisit("leaderboard", "run", "--json").stdout)
    cells = next(row for row in shown["rows"] if row["model"] == "perfect")["cells"]
    assert cells["memo_identity"]["mean"] is None and cells["memo_identity.stand_in"]["mean"] is not None
    titles = {column["key"]: column["title"] for column in shown["columns"]}
    assert titles["memo_motion_smoothness.stand_in"] == "MotSmooth by DIS (stand-in)"


@pytest.mark.parametrize(
    ("of_model", "of_truth", "counts"), [("c2w", "odometry", False), ("odometry", "odometry", True),
        ("mapanything", "w2c", True), ("odometry", "mapanything", False)],
)  # fmt: skip
def test_the_truth_is_no_ceiling_where_another_maker_measured_it(of_model: str, of_truth: str, counts: bool) -> None:
    """As a run is read back, on every surface: `Run.results`, the summary and its notes."""
    from revisit.engine.run_summary import summarise_results
    from revisit.results.run import assemble_results

    model = Case("a@m#0", "memobench", "m", "a", Clip(Path("a.mp4")), Clip(Path("gt.mp4")))
    truth = Case("a@truth", "memobench", "truth", "a", Clip(Path("gt.mp4")), truth=True)
    records = {
        case.id: {"memo_camera": Record(case, "memo_camera", False, "scored", value, facts={"poses_from": maker})}
        for case, value, maker in ((model, 100.0, of_model), (truth, 97.3, of_truth))
    }
    plan: Any = {"suite": "memobench", "rejected": [], "remarks": []}
    results = assemble_results(plan, [model, truth], records)
    assert results.cell("memo_camera").mean == 100
    assert results.truth.cell("memo_camera").mean == (97.3 if counts else None)
    summary = summarise_results(results, SUITES["memobench"], plan).content
    assert ("mean" in summary["truth"]["scores"]["memo_camera"]) == counts
    notes = [note for note in summary["notes"] if "the truth has no score of camera controllability" in note]
    assert len(notes) == (not counts)


def test_a_stand_in_has_the_range_of_its_metric() -> None:
    from revisit.results.cells import range_limits_of_metric

    for id in ("memo_identity", "memo_identity.held", "memo_identity.stand_in", "memo_identity.stand_in.held"):
        assert range_limits_of_metric(id) == METRICS["memo_identity"].range == (0, 100)
