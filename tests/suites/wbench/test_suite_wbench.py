"""The suite wbench: its reader on folders as people have them, its tables, and the published board."""

from __future__ import annotations

import json
import os
import shutil
from typing import Any

import cv2
import numpy as np
import pytest

from revisit.core import METRICS, SUITES, Case, Rejected, Remark, Target, UsageError
from revisit.engine.dependencies import ObserverSet
from revisit.engine.plan import make_plan
from revisit.engine.run import evaluate
from revisit.evidence.target import ObjectFeatures, ObjectMasks
from revisit.media import encode_mp4
from revisit.observers.sets import load_roles
from revisit.results.leaderboards import RunFacts, join_comparable_boards
from revisit.suites.wbench import read as wbench_read
from revisit.suites.wbench.evidence import Reprojections
from revisit.suites.wbench.imports import read_dreamsim_distances, read_evaluator_results
from revisit.suites.wbench.metrics import DIMENSIONS
from revisit.suites.wbench.read import read, read_turn_frames
from revisit.suites.wbench.summary import (
    board_of_report_files,
    dimension_means,
    published_wbench_boards,
    wbench_run_boards,
)
from revisit.worlds.layouts.rendering import render_layouts
from tests.conftest import moving_frames

BOARD = "../shared/data/wbench/board.json"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """One place, three cases, three models."""
    folder = tmp_path_factory.mktemp("wbench")
    from revisit.worlds.layouts.common import Model

    models = [Model(kind) for kind in ("perfect", "frozen_camera", "opposite_camera")]
    return render_layouts(folder, ["wbench"], seeds=1, size=(64, 96), frames=9, models=models, workers=0)["wbench"]


def entries(source, **options):
    return list(read(source, **options))


def test_the_rendered_cases_score_as_their_models_went(world, tmp_path):
    plan = make_plan(
        SUITES["wbench"], world / "work_dirs", ObserverSet("lite", load_roles("lite")),
        metrics=["navigation", "loops", "wb_geometric", "wb_photometric", "wb_flicker"],
        options={"data": str(world / "data")},
    )  # fmt: skip
    run = evaluate(plan, tmp_path / "run", workers=0)
    means: dict[str, dict[str, Any]] = {
        model: {metric: part.cell(metric).mean for metric in part.metrics}
        for model, part in run.results.groups("model").items()
    }
    assert means["perfect"]["wb_navigation_accuracy"] > 0.95 and means["perfect"]["wb_navigation"] > 0.95
    assert means["frozen_camera"]["wb_navigation_accuracy"] == means["opposite_camera"]["wb_navigation_accuracy"] == 0
    assert means["frozen_camera"]["wb_spatial"] is None, "a camera that never left cannot come back"
    assert means["perfect"]["wb_geometric"] > 0.98 and means["perfect"]["wb_photometric"] > 0.8
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    rows = {row["name"]: row["cells"] for row in summary["headline"][0]["rows"]}
    assert rows["perfect"][2] == f"{100 * means['perfect']['wb_navigation']:.1f}" and rows["perfect"][5] == "–"
    facts, written = (json.loads((tmp_path / f"run/{name}.json").read_text()) for name in ("run", "plan"))
    boards = wbench_run_boards(RunFacts("run", facts, written, run.results, summary))
    assert [board.title for board in boards][-1] == "wbench, dimensions"
    other = json.loads(json.dumps(facts))
    for metric, tag in other["protocol"]["metrics"].items():
        other["protocol"]["metrics"][metric] = f"{tag}0"
    for second, count in ((facts, 1), (other, 2)):  # dimensions of two protocols share no table
        dimensions = [
            wbench_run_boards(RunFacts("run", one, written, run.results, summary))[-1] for one in (facts, second)
        ]
        assert len(join_comparable_boards(dimensions)) == count


def test_folders_as_people_have_them(world, tmp_path):
    data = world / "data"
    perfect = world / "work_dirs/perfect"
    assert {case.model for case in entries(perfect) if isinstance(case, Case)} == {"perfect"}, "data is found nearby"
    cases = [case for case in entries(perfect / "videos", data=str(data)) if isinstance(case, Case)]
    assert {case.model for case in cases} == {"perfect"} and all("poses" in case.artifacts for case in cases)
    assert cases[0].target is not None and cases[0].annotations["turn_frames"] == [0, 5, 9]
    shutil.copytree(perfect / "videos", tmp_path / "mine")
    (tmp_path / "mine/case_0b_combined.mp4").rename(tmp_path / "mine/case_9_combined.mp4")
    told = {entry.id: entry for entry in entries(tmp_path / "mine", data=str(data), model="new")}
    assert told["0b@new"].missing and not told["9@new"].missing and "cases/case_9.json" in told["9@new"].reason
    assert isinstance(told["0a@new"], Case) and "turn_frames" not in told["0a@new"].annotations
    with pytest.raises(UsageError, match="--option data=DIR"):
        entries(tmp_path / "mine")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="no videos found"):
        entries(tmp_path / "empty")
    with pytest.raises(UsageError, match="choose navigation or full"):
        entries(perfect, split="navi")
    with pytest.raises(UsageError, match="poses=nowhere: there is no such folder"):
        entries(perfect, poses="nowhere")
    with pytest.raises(UsageError, match="holds 3 models"):
        entries(world / "work_dirs", model="one")
    assert SUITES["wbench"].recognises(world / "work_dirs") and not SUITES["wbench"].recognises(data)


def test_cases_of_the_other_split_and_broken_files(tmp_path):
    cases = tmp_path / "data/cases"
    cases.mkdir(parents=True)
    turn = {"turn": 1, "type": "event_edit", "action": "it rains", "prompt": "Rain begins."}
    navigation = {"turn": 2, "type": "navigation", "action": "W", "prompt": "Go on."}
    content = {
        "e_5": {"id": "e_5", "settings": {"perspective": "third_person"}, "interactions": [turn],
                "causal_fidelity": ["The ground gets wet."]},
        "ps_3": {"id": "ps_3", "settings": {}, "interactions": [turn, navigation]},
        "7": {"id": 7, "interactions": []},
    }  # fmt: skip
    for name, one in content.items():
        (cases / f"case_{name}.json").write_text(json.dumps(one))
    (cases / "case_8.json").write_text("no JSON")
    for name in ("e_5", "ps_3"):
        encode_mp4(tmp_path / f"m/videos/case_{name}_combined.mp4", moving_frames(4), 8)
    told = entries(tmp_path / "m")
    made = {entry.sample: entry for entry in told if isinstance(entry, Case)}
    assert made.keys() == {"e_5", "ps_3"} and made["e_5"].subset == "third_person"
    assert made["e_5"].annotations["judged"] == {
        "event_edit_adherence": "Rain begins.", "causal_fidelity": "The ground gets wet.",
    }  # fmt: skip
    assert not made["e_5"].annotations["navigation"] and made["ps_3"].annotations["navigation"]
    assert {entry.id for entry in told if isinstance(entry, Rejected)} == {"case_7.json", "case_8.json"}
    suite = SUITES["wbench"]
    assert suite.asks("wb_event_edit", made["e_5"]) and not suite.asks("wb_navigation", made["e_5"])
    navi = entries(tmp_path / "m", split="navigation")
    assert {entry.sample for entry in navi if isinstance(entry, Case)} == {"ps_3"}


def test_masks_are_read_for_clips_that_are_there_and_under_any_name(tmp_path, monkeypatch):
    data = tmp_path / os.fsdecode(b"data\xff")
    (data / "cases").mkdir(parents=True)
    (data / "masks").mkdir()
    mask = np.zeros((10, 20), np.uint8)
    mask[2:6, 5:15] = 255
    for name in ("one", "two", "none"):
        content = {"settings": {"subject": {"desc": "a cat"}}, "interactions": [{"action": "W", "type": "navigation"}]}
        (data / f"cases/case_{name}.json").write_text(json.dumps(content))
        (data / f"masks/case_{name}_mask.png").write_bytes(b"" if name == "none" else cv2.imencode(".png", mask)[1])
    for name in ("one", "none"):
        encode_mp4(tmp_path / f"m/videos/case_{name}_combined.mp4", moving_frames(4), 8)
    read_masks, subject_target = [], wbench_read._subject_target

    def noted_subject_target(path, name):
        read_masks.append(path.name)
        return subject_target(path, name)

    monkeypatch.setattr(wbench_read, "_subject_target", noted_subject_target)
    cases = {one.sample: one for one in entries(tmp_path / "m", data=str(data)) if isinstance(one, Case)}
    assert sorted(read_masks) == ["case_none_mask.png", "case_one_mask.png"]
    assert cases["one"].target == Target("a cat", (0.25, 0.2, 0.75, 0.6)) and cases["none"].target is None
    assert not cases["one"].artifacts and not cases["one"].target_name


def test_turns_json_is_read_or_refused_with_a_sentence(tmp_path, world):
    folder = tmp_path / "m"
    folder.mkdir()
    assert read_turn_frames(folder) == ({}, "")
    (folder / "turns.json").write_text(
        '{"fps": 24, "cases": {"1": {"turn_frames": [0, 9]}, "2": {"turn_frames": [5, 2]}}}'
    )
    turns, trouble = read_turn_frames(folder)
    assert turns == {"1": [0, 9]} and "of 2" in trouble
    (folder / "turns.json").write_text("[]")
    assert "turns are taken for equally long" in read_turn_frames(folder)[1]
    shutil.copytree(world / "work_dirs/perfect/videos", folder / "videos")
    (folder / "turns.json").write_text('{"cases": {"0a": {"turn_frames": [0, 9]}}}')
    told = {getattr(entry, "id", ""): entry for entry in entries(folder, data=str(world / "data"))}
    assert "2 marks and the case 2 turns" in told["0a@m"].reason
    (folder / "turns.json").write_text('{"cases": {}}')
    assert any(isinstance(entry, Remark) for entry in entries(folder, data=str(world / "data")))


def test_the_published_board_follows_from_its_columns(request):
    summary, detail = published_wbench_boards(True)
    columns = {row.model: {key: (cell.mean or 0) / 100 for key, cell in row.cells.items()} for row in detail.rows}
    assert len(summary.rows) == 31 and all(len(row) == 19 for row in columns.values())
    for row in summary.rows:
        made = dimension_means(columns[row.model])
        for column in summary.columns:
            assert made[column.title] == pytest.approx(row.cell(column).mean, abs=0.06), (row.model, column.title)
    path = request.config.rootpath / BOARD
    if path.is_file():
        board = json.loads(path.read_text())
        assert {row.model: [row.cell(column).mean for column in summary.columns] for row in summary.rows} == board[
            "summary"
        ]
        assert {model: [round(100 * v, 1) for v in row.values()] for model, row in columns.items()} == board["detail"]


def test_dimensions_lack_what_a_column_lacks():
    columns = {metric: 0.5 for ids in DIMENSIONS.values() for metric in ids}
    assert dimension_means(columns)["Average"] == 50
    del columns["wb_hpsv3"]
    assert dimension_means(columns).keys() == {"Setting", "Interaction", "Consistency", "Physical"}


def test_result_files_of_the_evaluator(tmp_path):
    place = tmp_path / "m/evaluation"
    files = {
        "hpsv3_quality": {"summary": {"hpsv3_quality": 0.61}}, "visual_plausibility": {"score": 0.7},
        "spatial_consistency": {"score": 0.5, "ret_sim": 0.8}, "navigation_trajectory": {"NavScore": 0.9},
        "reconstruction_consistency": {"details": {"geometric_consistency": 0.9, "photometric_psnr": 20.0}},
    }  # fmt: skip
    for name, content in files.items():
        (place / name).mkdir(parents=True)
        (place / name / "case_1.json").write_text(json.dumps(content))
    made = read_evaluator_results.fn(place / "hpsv3_quality/case_1.json")
    scores = dict(zip(made.name, made.value.tolist(), strict=True))
    assert scores == pytest.approx({
        "hpsv3_quality": 0.61, "visual_plausibility": 0.7, "gated_spatial_consistency": 0.5, "spatial_consistency": 0.8,
        "navigation_trajectory": 0.9, "geometric_consistency": 0.9, "photometric_consistency": 0.9,
    })  # fmt: skip
    assert METRICS["wb_hpsv3"](made).value == 0.61
    report = {"model": "m", "n_cases": 1, "n_navi": 1, "full": {}, "navi": {
        METRICS[metric].upstream: {"mean": 0.5, "n": 1} for ids in DIMENSIONS.values() for metric in ids}}  # fmt: skip
    assert board_of_report_files(tmp_path) is None
    (place / "report.json").write_text(json.dumps(report))
    board = board_of_report_files(tmp_path)
    assert board.rows[0].model == "m" and board.rows[0].cells["average"].mean == 50
    report["navi"]["hpsv3_quality"] = {"mean": None, "n": 0}  # a metric that nobody ran
    (place / "report.json").write_text(json.dumps(report))
    cells = board_of_report_files(tmp_path).rows[0].cells
    assert (cells["quality"].mean, cells["average"].mean, cells["physical"].mean) == (None, None, 50)
    assert "wb_hpsv3" not in cells and cells["wb_imaging"].mean == 50
    (tmp_path / "d.csv").write_text("frame,distance\n0,0\n4,0.2\n")
    assert read_dreamsim_distances.fn(tmp_path / "d.csv").distance.tolist() == [0, 0.2]


def test_closed_forms_of_consistency():
    """Numbers that follow from the formulas alone."""
    pairs = Reprojections(
        np.arange(2), np.arange(2) + 1, np.full(2, 0.01), np.array([0.25, 0.25]), np.full(2, 9), "", "d"
    )
    assert METRICS["wb_photometric"](pairs).value == pytest.approx(0.9)  # 20 dB
    assert METRICS["wb_geometric"](pairs).value == pytest.approx(0.8)
    masks = np.zeros((4, 10, 10), bool)
    masks[:3, 4:6, 2:4] = True
    assert METRICS["wb_perspective"](ObjectMasks(np.arange(4), masks, "m")).value == pytest.approx(0.75)
    masks[1], masks[1, 4:6, 8:10] = False, True
    spread = np.std([0.3, 0.9, 0.3])
    assert METRICS["wb_perspective"](ObjectMasks(np.arange(4), masks, "m")).value == pytest.approx(
        max(0, 1 - spread / 0.3) * 0.75
    )
    vectors = np.array([[1.0, 0], [0, 1], [0, 1]])
    looks = ObjectFeatures(np.arange(3), np.arange(3), vectors, "m")
    assert METRICS["wb_subject"](looks).value == pytest.approx((0 + 0.5) / 2)
