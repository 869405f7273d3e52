"""MemoBench's CSV files from the records of a run."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from revisit.core import Case, Clip, Reason, Record, Score, Unscored
from revisit.engine.score import to_json_value
from revisit.evidence.judged import NO, YES, BankQuestion, judge_answers_from_entries
from revisit.results import Results
from revisit.suites.memobench.exports import (
    EVAL_COLUMNS,
    FOLDER,
    LEADERBOARD,
    ORS_COLUMNS,
    export,
    path_safe_name,
    unique_folder_name_by_model,
)
from revisit.suites.memobench.imports import vqa_answers
from revisit.suites.memobench.leaderboard import board_of_files
from revisit.suites.memobench.metrics.answers import DIMENSIONS, score_pass_rate
from revisit.suites.memobench.question_bank import Bank, Judgement, questions_as_dicts, write_bank
from revisit.suites.memobench.summary import pass_rate_tables

QUESTIONS = [
    BankQuestion(position, name, position % 2 == 1, f"Question {position}?")
    for position, name in enumerate([name for name in DIMENSIONS.values() for _ in range(2)], 1)
]
FACTS = {"protocol": "upstream:1234abcd", "suite": "memobench"}
PUBLIC_HEAD = (
    "id scene data_type num_frames h_start r_start gt_frames TemporalScore AestheticScore ImageQuality ObjIdentityMean "
    "ObjIdentityMin GeoConsistencyMean GeoConsistencyMin ImageRewardScore GTRevisitSim GT_O_PSNR GT_O_SSIM GT_O_LPIPS "
    "GT_H_PSNR GT_H_SSIM GT_H_LPIPS GT_R_PSNR GT_R_SSIM GT_R_LPIPS GT_ALL_PSNR GT_ALL_SSIM GT_ALL_LPIPS "
    "CameraControllability ATE_RotDeg TotalGT_RotDeg MeanRotErrorDeg fx fy TemporalScore_pct AestheticScore_pct "
    "ImageQuality_pct GeoConsistencyMean_pct GeoConsistencyMin_pct ImageRewardScore_pct GTRevisitSim_pct "
    "ObjIdentityMean_pct ObjIdentityMin_pct CameraControllability_pct MotionSmoothness VisualQuality Geo3DConsistency "
    "ObjIdentityConsistency"
)
PUBLIC_COLUMNS = PUBLIC_HEAD.split()


def case(sample: str, model: str = "A model") -> Case:
    real = sample.isdigit()
    return Case(
        id=f"{sample}@{model}",
        suite="memobench",
        model=model,
        sample=sample,
        clip=Clip(Path("clip.mp4")),
        subset="Real" if real else "Synthetic",
        phases=(24, 55),
        annotations={
            "frames": 81,
            "gt_frames": 300,
            "fx": 1108.512,
            "fy": 1108.512,
            **({} if real else {"questions": questions_as_dicts(QUESTIONS)}),
        },
    )


def scored(case: Case, metric: str, score: float, **facts: Any) -> Record:
    return Record(case, metric, False, "scored", score, facts=facts)


def failed(case: Case, metric: str) -> Record:
    return Record(case, metric, False, "failed", reason=Reason("failed", "clip.mp4: it cannot be read"))


def vqa_records(case: Case, *entries: dict[str, Any]) -> list[Record]:
    found = judge_answers_from_entries(QUESTIONS, entries, judge="a judge")
    made = []
    for short, name in DIMENSIONS.items():
        answer = score_pass_rate(found, name, "upstream")
        if isinstance(answer, Score):
            made.append(scored(case, f"memo_vqa_{short}", answer.value, **to_json_value(answer.facts)))
        else:
            assert isinstance(answer, Unscored)
            facts = to_json_value(answer.facts)
            made.append(Record(case, f"memo_vqa_{short}", False, "unscored", reason=answer.reason, facts=facts))
    return made


def measured(one: Case) -> list[Record]:
    phases = {"visible": 18.5, "hidden": 12.25, "returned": 14.123456, "all": 15.5}
    return [
        scored(one, "memo_motion_smoothness", 57.6, temporal_score=0.5764),
        scored(one, "memo_aesthetic", 4.5, percent=45.0),
        scored(one, "memo_identity", 59.13, mean=0.6432, minimum=0.4701),
        scored(one, "memo_psnr", 15.5, mean=phases),
        scored(one, "memo_camera", 37.4, ate_deg=20.714, true_rotation_deg=90.0, step_error_deg=1.2),
        scored(
            one, "memo_ors", 0.3429, ors=0.3429, detection_rate=0.5714, mean_confidence=0.6, detected=4,
            returned_frames=7,
        ),
        Record(one, "memo_lpips", False, "unscored", reason=Reason("not_in_set", "needs a network")),
    ]  # fmt: skip


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def files(*cases: Case, records: list[Record]) -> dict[str, str]:
    made = export(Path("run"), FACTS, Results(cases, records))
    return {name.removeprefix(f"{FOLDER}/"): text for name, text in made.items()}


def test_the_eval_file_has_the_48_public_columns() -> None:
    assert list(EVAL_COLUMNS) == PUBLIC_COLUMNS
    assert len(EVAL_COLUMNS) == 48


def test_cells_come_from_records_and_missing_ones_are_empty() -> None:
    one, two = case("Barnyard_001"), case("007")
    made = files(one, two, records=[*measured(one), *measured(two)])
    assert set(made) == {
        "outputs/A_model/eval_both_upstream-1234abcd.csv",
        "ors_results/A_model/ors_scores.csv",
        "leaderboard.csv",
        "radar.svg",
    }
    first, second = rows(made["outputs/A_model/eval_both_upstream-1234abcd.csv"])
    assert list(first) == PUBLIC_COLUMNS
    assert [first[name] for name in PUBLIC_COLUMNS[:8]] == [
        "Barnyard_001", "Barnyard", "synthetic", "81", "24", "55", "300", "0.5764",
    ]  # fmt: skip
    assert (second["id"], second["scene"], second["data_type"]) == ("007", "real", "real")
    expected = {
        "TemporalScore_pct": "57.6", "MotionSmoothness": "57.6", "AestheticScore": "4.5", "AestheticScore_pct": "45.0",
        "ObjIdentityMin": "0.4701", "ObjIdentityMin_pct": "47.0", "GT_R_PSNR": "14.1235", "GT_ALL_PSNR": "15.5",
        "CameraControllability": "37.4", "ATE_RotDeg": "20.714", "fx": "1108.51",
    }  # fmt: skip
    assert {name: first[name] for name in expected} == expected
    for name in ("GTRevisitSim", "GT_ALL_LPIPS", "ImageQuality", "VisualQuality", "ImageRewardScore_pct"):
        assert first[name] == ""
    assert "\r" not in made["outputs/A_model/eval_both_upstream-1234abcd.csv"]


def test_a_clip_that_failed_has_its_sentence_and_no_numbers() -> None:
    one, two = case("Barnyard_001"), case("Barnyard_002")
    text = files(one, two, records=[*measured(one), failed(two, "memo_psnr"), failed(two, "memo_ors")])
    good, bad = rows(text["outputs/A_model/eval_synthetic_upstream-1234abcd.csv"])
    assert (good["error"], bad["error"]) == ("", "clip.mp4: it cannot be read")
    assert bad["id"] == "Barnyard_002"
    assert {bad[name] for name in PUBLIC_COLUMNS[3:]} == {""}


def test_the_file_of_reappearance_scores() -> None:
    one = case("Barnyard_001")
    text = files(one, records=measured(one))["ors_results/A_model/ors_scores.csv"]
    assert text == ",".join(ORS_COLUMNS) + "\r\nBarnyard_001,synthetic,Barnyard,81,55,0.3429,0.5714,0.6,7,4\r\n"


def test_answers_are_written_as_they_are_read_back(tmp_path: Path) -> None:
    one = case("ZenGarden_003")
    entries = [
        {"ID": q.id, "Dimension": q.dimension, "Answer": "Yes" if q.id in (1, 2, 3) else "No"} for q in QUESTIONS[:-1]
    ]
    made = files(one, records=vqa_records(one, *entries))
    (row,) = rows(made["vqa_results/A_model/Zen_Garden-3.csv"])
    assert (row["scene"], row["video_id"], row["folder"]) == ("Zen_Garden", "3", "ZenGarden_003")
    assert json.loads(row["score"]) == {
        "Instruction Following": 0.5, "Object and Background": 1.0, "Continuity of Memory": 0.5,
        "Physics Adherence": 0.0,
    }  # fmt: skip
    path = tmp_path / "Zen_Garden-3.csv"
    path.write_bytes(made["vqa_results/A_model/Zen_Garden-3.csv"].encode())
    again = vqa_answers.fn(path, one.annotations)
    assert again.answer.tolist() == [1, 1, 1, 0, 0, 0, 0, -1]
    (overall,) = rows(made["vqa_results/A_model/overall.csv"])
    assert overall["Physics Adherence"] == "0.0"


def test_questions_left_open_are_counted_and_bound_the_mean() -> None:
    one, two = case("ZenGarden_003"), case("Barnyard_001")
    physics = [q for q in QUESTIONS if q.dimension == "Physics Adherence"]
    records = [
        *vqa_records(one, {"ID": physics[0].id, "Answer": "Yes", "Dimension": physics[0].dimension}),
        *vqa_records(two),
    ]
    (table,) = pass_rate_tables(Results([one, two], records))
    assert table["columns"] == list(DIMENSIONS.values())
    (row,) = table["rows"]
    assert row["cells"][3] == {"n": 1, "of": 4, "failed": 0, "mean": 100.0, "interval": [25.0, 100.0]}
    assert row["cells"][0] == {"n": 0, "of": 4, "failed": 0}
    assert pass_rate_tables(Results([one], measured(one))) == []


def test_the_leaderboard_has_the_public_columns_and_no_zero_for_what_is_missing() -> None:
    one, two = case("Barnyard_001"), case("Barnyard_001", "B")
    (first, second) = rows(files(one, two, records=measured(one))["leaderboard.csv"])
    assert list(first) == ["Model", *LEADERBOARD]
    assert (first["ORS"], first["GT_ALL_PSNR"], first["GT_ALL_LPIPS"]) == ("34.2900", "15.5000", "")
    assert second["Model"] == "B"
    assert set(list(second.values())[1:]) == {""}


def test_files_are_read_back_as_a_board(tmp_path: Path) -> None:
    one, two = case("Barnyard_001"), case("007")
    records = [
        *measured(one),
        *measured(two),
        *vqa_records(one, {"ID": 1, "Answer": "Yes", "Dimension": QUESTIONS[0].dimension}),
    ]
    for name, text in export(Path("run"), FACTS, Results([one, two], records)).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    board = board_of_files(tmp_path)
    (row,) = board.rows
    assert row.model == "A_model"
    assert row.cells["memo_psnr"].mean == pytest.approx(15.5)
    assert (row.cells["memo_psnr"].n, row.cells["memo_psnr"].of) == (2, 2)
    assert row.cells["memo_ors"].mean == pytest.approx(0.3429)
    assert row.cells["memo_vqa_if"].mean == 100.0
    assert row.cells["memo_lpips"].mean is None
    assert board_of_files(tmp_path, "real").rows[0].cells["memo_psnr"].n == 1


def test_names_of_models_stay_in_their_folder() -> None:
    assert path_safe_name("../../etc") == "__.._etc"
    assert not path_safe_name("..").startswith(".")
    assert path_safe_name("") == "_"
    assert unique_folder_name_by_model(["a b", "a/b"]) == {"a b": "a_b", "a/b": "a_b_"}


def test_a_run_writes_them_and_the_leaderboard_reads_the_run(
    revisit: Callable[..., Any], make_clip: Callable[..., Path], tmp_path: Path
) -> None:
    for name in ("Barnyard_001_gt", "Barnyard_001_a"):
        make_clip(tmp_path / f"clips/{name}.mp4")
    truth = tuple(Judgement(q, YES if q.positive else NO, True) for q in QUESTIONS)
    bank = Bank("Barnyard", 1, tuple(QUESTIONS), truth, truth, truth, tuple(QUESTIONS))
    (tmp_path / "bank").mkdir()
    (tmp_path / "bank/Barnyard-1-questions.csv").write_bytes(write_bank(bank).encode())
    said = [{"ID": str(q.id), "Answer": "Yes." if q.positive else "No."} for q in QUESTIONS]
    (tmp_path / "answers/a").mkdir(parents=True)
    (tmp_path / "answers/a/Barnyard-1.json").write_text(json.dumps({"judge": "a judge", "answers": said[1:]}))
    metrics = [part for id in ("memo_psnr", "memo_vqa_if", "memo_vqa_cm") for part in ("-m", id)]
    command = (
        "eval", "clips", "--suite", "memobench", "--out", "run", "--workers", 0, "--no-report", "--quiet", *metrics,
        "--option", "questions=bank", "--option", "vqa=answers",
    )  # fmt: skip
    revisit(*command)
    stale = tmp_path / f"run/{FOLDER}/outputs/a/eval_synthetic_other.csv"
    stale.write_text("id\n")
    revisit(*command)
    (row,) = rows((tmp_path / f"run/{FOLDER}/vqa_results/a/Barnyard-1.csv").read_bytes().decode())
    assert json.loads(row["score"]) == {"Instruction Following": 1.0, "Continuity of Memory": 1.0}
    evals = list((tmp_path / f"run/{FOLDER}/outputs/a").iterdir())
    assert [path.name.startswith("eval_synthetic_corrected-") for path in evals] == [True]
    shown = revisit("leaderboard", "run").stdout
    assert "protocol: corrected:" in shown
    assert "100 (1/1)" in shown
    assert "questions answered in run: a 3 of 4" in shown
