"""MIND's printed table, kinds of scenes, and captions by a judge."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import pytest
import yaml

from revisit.core import Case, UsageError
from revisit.results.leaderboards import (
    RunFacts,
    join_comparable_boards,
    mark_best_and_second_rows,
    sort_rows_best_first,
)
from revisit.results.run import Run
from revisit.runs.group_by import score_tables_by_group
from revisit.suites.mind.read import KIND, read, read_scene_kinds
from revisit.suites.mind.summary import COLUMNS, paper_boards_by_perspective, published_mind_boards
from revisit.suites.mind.world import render_mind
from tests.judging import MODEL, completion, serving
from tests.painted_datasets import mind, mind_copies
from tests.suites.mind.test_mind_command import evaluated

MEASURED = ("mind_lcm_mse", "mind_gsc_mse")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A small rendered dataset: two recordings a perspective with the shared action space, one with another."""
    return render_mind(
        tmp_path_factory.mktemp("mind"), size=(48, 84), context=2, future=8, clips=2, mirrors=("-wr",), mirror_half=2,
        spaces=((2.0, 100.0),),
    )  # fmt: skip


@pytest.fixture(scope="module")
def run(data, tmp_path_factory: pytest.TempPathFactory) -> Run:
    gt, models = data
    (models / "weak_turns/3rd_data/mem_test/data-26/video.mp4").unlink(missing_ok=True)  # a clip that nobody made
    only_errors = {"lite.fidelity": {"families": ""}}  # SSIM of large pictures would take most of the time
    return evaluated(models, gt, tmp_path_factory.mktemp("run"), MEASURED, overrides=only_errors)


def rows(run: Run, model: str) -> list[dict[str, Any]]:
    return json.loads((run.path / f"result_{model}.json").read_text())["data"]


def mean_of(found: list[dict[str, Any]], perspective: str, test: str) -> float | None:
    """As users reduce the public evaluator's file: the mean over its rows."""
    mine = [row for row in found if row["perspective"] == perspective and row["test_type"] == test]
    if test == "mirror_test":
        values = [video["gsc"]["avg_mse"] for row in mine for video in row["video_results"] if "gsc" in video]
        return statistics.mean(values) if values else None  # a clip that never moves has no score
    return statistics.mean(row["lcm"]["avg_mse"] for row in mine if "lcm" in row)


@pytest.mark.long
def test_the_printed_table_is_what_the_result_file_reduces_to(run):
    first, third = run.summary["headline"]
    assert first["title"] == "As the paper prints it, first person"
    assert first["columns"] == ["Long Context Mem. ↓", "Generated Scene Consis. ↓", "Action Space Generalization ↓"]
    for table, perspective in ((first, "1st_data"), (third, "3rd_data")):
        for row in table["rows"]:
            found = rows(run, row["name"])
            tests = ("mem_test", "mirror_test", "action_space_test")
            for cell, test in zip(row["cells"], tests, strict=True):
                expected = mean_of(found, perspective, test)
                same = None if expected is None else pytest.approx(expected, rel=1e-6)
                assert cell.get("mean") == same, (row["name"], test)
    missing = next(row for row in third["rows"] if row["name"] == "weak_turns")["cells"][0]
    assert (missing["n"], missing["of"]) == (1, 2)  # what nobody made is counted


@pytest.mark.long
def test_boards_of_the_paper_stand_beside_the_printed_ones(run):
    boards = paper_boards_by_perspective(RunFacts("mine", run.facts, run.plan, run.results, run.summary))
    assert [board.title for board in boards] == ["mind, first person, as printed", "mind, third person, as printed"]
    shown = boards[0].rows[0].cell(boards[0].columns[0]).to_text(4)
    assert len(shown.split()[0].partition(".")[2]) == 4  # digits as the paper has them
    assert all(column.protocol for column in boards[0].columns)
    keys = [column.key for column in COLUMNS]
    assert [[column.key for column in board.columns] for board in published_mind_boards()] == [keys, keys]


@pytest.mark.slow
def test_two_datasets_share_no_board_as_printed(tmp_path):
    gt = mind(tmp_path, ("data-25",), ("1st_data",))
    run = evaluated(
        mind_copies(gt), gt, tmp_path / "run", ("mind_lcm_mse",), overrides={"lite.fidelity": {"families": ""}}
    )
    other = {**run.plan, "cases": [{**case, "reference_digest": "another recording"} for case in run.plan["cases"]]}
    boards = [
        paper_boards_by_perspective(RunFacts(name, run.facts, plan, run.results, run.summary))[0]
        for name, plan in (("a", run.plan), ("b", run.plan), ("c", other))
    ]
    joined = join_comparable_boards(boards)
    assert [list(dict.fromkeys(row.source for row in board.rows)) for board in joined] == [["a", "b"], ["c"]]


def test_printed_numbers_say_what_the_paper_says_of_them():
    """Its sentences: memory helps the memory error in both tables and hurts action spaces; third person is Matrix-
    Game's weakness in every column; in the first person it is ahead in scene consistency, spaces and translation."""
    tables = []
    for board in published_mind_boards():
        tables.append({row.model: [float(row.cell(c).mean or 0) for c in board.columns] for row in board.rows})
        with_, without = tables[-1]["MIND-World with context memory"], tables[-1]["MIND-World"]
        assert with_[0] < without[0] and with_[1] < without[1] and with_[2] > without[2]
        assert with_[3] > without[3] and with_[4] > without[4]
        assert with_[5] > without[5] and with_[6] > without[6]  # actions get worse
    better = [-1, -1, -1, 1, 1, -1, -1]
    ahead = [
        [sign * a > sign * b for sign, a, b in zip(better, table["MIND-World"], table["Matrix-Game 2.0"], strict=True)]
        for table in tables
    ]
    assert ahead == [[True, False, False, True, True, False, True], [True] * 7]
    gains = [1 - table["MIND-World with context memory"][0] / table["MIND-World"][0] for table in tables]
    assert max(gains) > 0.04  # "by more than 4 %", which holds in the first person


def test_models_compete_with_those_that_see_as_much():
    board = published_mind_boards()[0]
    found = sort_rows_best_first(board)
    best = [
        {found[k].model: mark for k, mark in mark_best_and_second_rows(board, found, column).items()}
        for column in board.columns
    ]
    assert best[0] == {"MIND-World": "best", "Matrix-Game 2.0": "second"}  # not the one that sees the context


@pytest.mark.long
@pytest.mark.slow
def test_one_column_alone_is_no_table(data, tmp_path):
    gt, models = data
    run = evaluated(models / "copy", gt, tmp_path / "run", ("mind_gsc_mse",))
    assert run.summary["headline"] == []


# ---- kinds of scenes ----------------------------------------------------------------------------


def told(cases: list[Any]) -> dict[str, str]:
    return {case.sample: case.annotations.get(KIND, "") for case in cases if isinstance(case, Case)}


@pytest.mark.slow
def test_the_kind_of_a_scene_comes_from_the_table_the_action_file_or_the_name(tmp_path):
    gt = mind(tmp_path)
    source = mind_copies(gt) / "copy"
    assert set(told(list(read(source, gt=str(gt)))).values()) == {""}
    file = gt / "1st_data/test/mem_test/data-25/action.json"
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "scene_type": "Aquatic"}))
    found = told(list(read(source, gt=str(gt))))
    assert found["1st_data/mem_test/data-25"] == "Aquatic" and found["3rd_data/mem_test/data-25"] == ""
    assert found["1st_data/mirror_test/data-25"] == "Aquatic"  # its first frame is that recording's
    (gt / "scenes.csv").write_text("name,kind,perspective\ndata-25,Urban,\ndata-26,Interior,3rd_data\n")
    found = told(list(read(source, gt=str(gt))))
    assert found["1st_data/mem_test/data-25"] == found["3rd_data/mem_test/data-25"] == "Urban"
    assert found["3rd_data/mem_test/data-26"] == "Interior" and found["1st_data/mem_test/data-26"] == ""
    own = tmp_path / "own.csv"
    own.write_text("name,kind\ndata-25,SciFi\n")
    assert told(list(read(source, gt=str(gt), scenes=str(own))))["1st_data/mem_test/data-25"] == "SciFi"
    own.write_text("clip,scene\ndata-25,SciFi\n")
    with pytest.raises(UsageError, match="columns name, kind"):
        list(read(source, gt=str(gt), scenes=str(own)))
    with pytest.raises(UsageError, match=r"own2\.csv: this is not a CSV file"):
        read_scene_kinds(None, tmp_path / "own2.csv")


@pytest.mark.long
def test_scores_by_kind_of_scene(data, tmp_path, revisit):
    import shutil

    gt = shutil.copytree(data[0], tmp_path / "gt")
    (gt / "scenes.csv").write_text("name,kind\ndata-25,Urban\ndata-26,Aquatic\n")
    run = evaluated(data[1] / "copy", gt, tmp_path / "run", MEASURED)
    by_kind = next(table for table in run.summary["tables"] if table["title"] == "Scores by kind of scene")
    assert [row["name"] for row in by_kind["rows"]] == ["copy, Aquatic", "copy, Urban"]
    assert "clips have none" in by_kind["note"]  # the one with another action space is called otherwise
    found = json.loads((run.path / "result.json").read_text())["data"]
    kinds = {(row["perspective"], row["path"]): row.get(KIND) for row in found if row["test_type"] == "mem_test"}
    assert kinds["1st_data", "data-25"] == "Urban" and kinds["3rd_data", "data-26"] == "Aquatic"
    urban = [row["lcm"]["avg_mse"] for row in found if row.get(KIND) == "Urban"]
    assert by_kind["rows"][1]["cells"][0]["mean"] == pytest.approx(statistics.mean(urban), rel=1e-6)
    groups = [name.partition(" (")[0] for name in score_tables_by_group(run, "scene_type")]
    assert groups == ["scene_type: Aquatic", "scene_type: Urban", "scene_type: not known"]
    said = revisit("describe", gt).stdout
    assert "Kinds of scenes" in said and "Aquatic" in said and "not told" in said


# ---- captions -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_judge_writes_the_descriptions_of_recordings(tmp_path, revisit, make_clip):
    for k, name in enumerate(("yard", "hall", "pier")):
        make_clip(tmp_path / "videos" / f"{name}.mp4", count=8, seed=k)
        (tmp_path / "videos" / f"{name}.keys.csv").write_text("frame,keys\n0,w\n4,l\n")
    answers = iter([{"caption": "A walled yard.", "kind": "Urban"}, {"caption": "A long hall.", "kind": "Interior"}])

    def answer(body: dict[str, Any]) -> Any:
        found = next(answers, None)
        return completion("nothing to say" if found is None else json.dumps(found))

    (tmp_path / "kinds.csv").write_text("name,kind\nhall,Industrial\n")
    with serving(answer) as server:
        judge = tmp_path / "judge.yaml"
        judge.write_text(yaml.safe_dump({"url": server.url, "model": MODEL, "again": 0, "concurrency": 1}))
        done = revisit(
            "build", "mind", tmp_path / "videos", "--out", tmp_path / "built", "--judge", judge, "--frames", 2,
            "--scenes", tmp_path / "kinds.csv", "--licence", "CC0", "--source", "us", check=1,
        )  # fmt: skip
        assert server.calls == 3 and "the judge wrote no caption" in done.stderr
    place = tmp_path / "built/MIND-Data"
    written = {path.stem: path.read_text().strip() for path in (place / "1st_data/description").iterdir()}
    assert set(written.values()) == {"A walled yard.", "A long hall."} and len(written) == 2
    kinds = read_scene_kinds(place)
    assert kinds["1st_data", "hall"] == "Industrial"  # what a person says goes first
    assert "nothing is wrong" in revisit("build", "check", place).stdout
    prompts = {case.sample: case.prompt for case in read_predictions(place, tmp_path)}
    assert set(prompts.values()) >= {"A walled yard.", "A long hall."}


def read_predictions(place: Path, folder: Path) -> list[Case]:
    """Cases of predictions that are copies of the recordings."""
    import shutil

    for test in ("mem_test",):
        for video in (place / "1st_data/test" / test).glob("*/video.mp4"):
            to = folder / "predictions/1st_data" / test / video.parent.name / "video.mp4"
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(video, to)
    return [case for case in read(folder / "predictions", gt=str(place)) if isinstance(case, Case)]
