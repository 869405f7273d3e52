"""Leaderboards: own runs, result files of the public scripts, and the paper's tables, never in one column."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revisit.cli.leaderboard import print_boards
from revisit.core import Case, Clip, MediaError, Reason, Record, Rejected, UsageError
from revisit.report.leaderboards import as_csv, as_html, as_latex, as_markdown
from revisit.results import Results
from revisit.results.leaderboards import (
    Board,
    BoardCell,
    BoardColumn,
    BoardRow,
    RunFacts,
    board_of_run,
    cell_without_counts,
    join_comparable_boards,
    mark_best_and_second_rows,
    sort_rows_best_first,
)
from revisit.results.record_files import case_to_json
from revisit.suites.memobench.leaderboard import (
    COLUMNS,
    MAIN,
    SUPPLEMENT,
    board_of_files,
    board_of_paper_table,
)

LPIPS = BoardColumn("memo_lpips", "LPIPS", higher_is_better=False, decimals=3)
PSNR = BoardColumn("memo_psnr", "PSNR", decimals=2)


def board(*rows: BoardRow) -> Board:
    return Board("memobench", "corrected:1234, observers lite", (PSNR, LPIPS), rows)


def row(model: str, psnr: float | None, lpips: float | None, n: int = 3) -> BoardRow:
    def cell(mean: float | None, margin: float) -> BoardCell:
        if mean is None:
            return BoardCell(0, 3, reasons=("none",))
        clips = {k: (mean + margin * off, f"scene {k}") for k, off in enumerate(spread[:n])}
        return BoardCell(n, 3, mean, (mean - margin, mean + margin), clips=clips)

    spread = np.random.default_rng(sum(map(ord, model))).normal(0, 0.3, 3)

    return BoardRow(model, "run", {"memo_psnr": cell(psnr, 0.5), "memo_lpips": cell(lpips, 0.04)})


def run_facts(
    name: str = "one",
    protocol: str = "corrected",
    hashes: dict[str, str] | None = None,
    models: tuple[str, ...] = ("A", "B"),
    judge: str = "",
) -> RunFacts:
    hashes = hashes or {"memo_psnr": "aaaa", "memo_vqa_cm": "bbbb"}
    cases = [
        Case(f"{sample}@{model}", "memobench", model, sample, Clip(Path("c.mp4")), subset=subset)
        for model in models
        for sample, subset in (("Barnyard_001", "Synthetic"), ("Havana_002", "Synthetic"), ("007", "Real"))
    ]
    facts, none = {"judge": judge} if judge else {}, Reason("no_file", "no file of vqa answers was given")
    records = []
    for position, case in enumerate(cases):
        scored = Record(case, "memo_psnr", False, "scored", 10.0 + position, facts=facts)
        unscored = Record(case, "memo_vqa_cm", False, "unscored", reason=none)
        records += [scored, unscored if case.subset == "Real" else scored.with_changed_fields(question="memo_vqa_cm")]
    rejected = [Rejected("x", "missing", models[0], "Real", missing=True)]
    return RunFacts(
        name,
        {"suite": "memobench", "set": "lite", "protocol": {"name": protocol, "hash": "ffff", "metrics": hashes}},
        {"cases": [case_to_json(case) for case in cases], "total_cases": len(cases)},
        Results(cases, records, rejected),
    )


# the paper's tables


def test_printed_tables_are_those_of_the_paper(shared: Path) -> None:
    golden = json.loads((shared / "golden/memobench_t2_t3.json").read_text())
    for table, key in (("2", "table2"), ("3", "table3")):
        made = {
            row.model: {name: cell.mean for name, cell in row.cells.items()} for row in board_of_paper_table(table).rows
        }
        expected = {
            model: {name: number for name, number in numbers.items() if name != "All"}
            for model, numbers in golden[key].items()
        }
        assert made == expected


REAL_CLIPS = 164


def value(table: str, model: str, column: str) -> float | None:
    """A printed number, or None where the table does not have it."""
    row = next((row for row in board_of_paper_table(table).rows if row.model == model), None)
    cell = row.cells.get(column) if row else None
    return cell.mean if cell else None


def implied_real_camera_score(model: str, real: int = REAL_CLIPS) -> float | None:
    """The mean camera score on real clips that Tables 2 (all clips) and S8 (synthetic ones) together imply."""
    all_clips, synthetic, n = value("2", model, "CamCtrl"), value("S8", model, "CamCtrl"), value("S8", model, "n")
    if all_clips is None or synthetic is None or n is None:
        return None
    return (all_clips * (n + real) - synthetic * n) / real


def inconsistencies() -> list[str]:
    """Sentences on printed numbers that cannot be right together, or that sit oddly beside each other."""
    found = []
    for model in (row.model for row in board_of_paper_table("S8").rows):
        implied = implied_real_camera_score(model)
        if implied is not None and implied < 0:
            found.append(
                f"{model}: CamCtrl of Table 2 and of Table S8 imply a mean of {implied:.1f} on the {REAL_CLIPS} real "
                "clips, and the score is never below 0"
            )
    for better, worse in _pairs():
        found.append(f"Table S8: {better} has the smaller rotation error, and {worse} the higher CamCtrl by 5 or more")
    for row in board_of_paper_table("S6").rows:
        for name, sign in (("PSNR", 1), ("SSIM", 1), ("LPIPS", -1)):
            whole = value("2", row.model, name)
            visible, returned = (row.cells[f"{name}_{phase}"].mean for phase in "VR")
            if (
                whole is None
                or visible is None
                or returned is None
                or sign * returned <= sign * whole <= sign * visible
            ):
                continue
            found.append(f"{row.model}: {name} of Table 2 ({whole:g}) lies outside both phases of Table S6")
    return found


def _pairs(margin: float = 5.0) -> list[tuple[str, str]]:
    """Models of Table S8 with the same clips of which the one with the larger error has the clearly higher score."""
    rows = [row for row in board_of_paper_table("S8").rows if row.cells["n"].mean == 159]
    return [
        (one.model, other.model)
        for one in rows
        for other in rows
        if (one.cells["ATE"].mean or 0) < (other.cells["ATE"].mean or 0)
        and (one.cells["CamCtrl"].mean or 0) + margin <= (other.cells["CamCtrl"].mean or 0)
    ]


def test_every_printed_table_has_its_shape_and_names_models_alike() -> None:
    shapes = {
        name: (len(board_of_paper_table(name).rows), len(board_of_paper_table(name).columns))
        for name in (*MAIN, *SUPPLEMENT)
    }
    assert shapes == {
        "2": (10, 10),
        "3": (10, 4),
        "S2": (7, 3),
        "S3": (8, 2),
        "S4": (5, 2),
        "S10": (2, 6),
        "S5": (8, 7),
        "S6": (8, 6),
        "S7": (15, 1),
        "S8": (8, 5),
        "S9": (4, 6),
    }
    models = {row.model for row in board_of_paper_table("2").rows}
    assert all({row.model for row in board_of_paper_table(name).rows} <= models for name in ("3", "S5", "S6", "S8"))
    assert all("another protocol" in board_of_paper_table(name).protocol for name in (*MAIN, *SUPPLEMENT))
    assert board_of_paper_table("2").rows[0].cells["SSIM"].to_text(2) == "0.490"  # as printed
    assert value("2", "nobody", "ORS") is None
    assert value("3", "CogVideoX", "ORS") is None


def test_what_the_printed_tables_say_of_each_other() -> None:
    implied = {row.model: implied_real_camera_score(row.model) for row in board_of_paper_table("S8").rows}
    assert implied["LingBot-World"] == pytest.approx(-16.6, abs=0.05)
    assert implied["Wan2.2"] == pytest.approx(-5.4, abs=0.05)
    assert sum(found is not None and found < 0 for found in implied.values()) == 2
    assert implied_real_camera_score("HunyuanWorldPlay") is None
    found = inconsistencies()
    assert len(found) == 4
    assert "imply a mean of -16.6 on the 164 real clips" in found[0]
    assert not any("outside both phases" in sentence for sentence in found)  # Table S6 brackets Table 2


# boards


def test_rows_are_sorted_the_better_first_and_unscored_last() -> None:
    made = board(row("b", 14.0, 0.5), row("a", None, None), row("c", 12.0, 0.4))
    assert [r.model for r in sort_rows_best_first(made, "LPIPS")] == ["c", "b", "a"]
    assert [r.model for r in sort_rows_best_first(made, "psnr")] == ["b", "c", "a"]
    assert [r.model for r in sort_rows_best_first(made)] == ["a", "b", "c"]


def leader(rows: list[BoardRow], column: BoardColumn) -> int | None:
    found = mark_best_and_second_rows(board(*rows), rows, column)
    return next((place for place, mark in found.items() if mark == "best"), None)


def test_the_best_is_marked_where_pairs_and_coverage_allow_it() -> None:
    assert leader([row("a", 14.0, 0.5), row("b", 12.0, 0.4)], LPIPS) == 1
    assert leader([row("a", 14.0, 0.5), row("b", 14.1, 0.4)], PSNR) is None
    assert leader([row("a", 14.0, 0.5), row("b", 15.0, 0.4, n=1)], PSNR) is None
    assert leader([row("a", 14.0, None)], PSNR) is None
    assert leader([row("a", 1, 1), row("b", 2, 2)], BoardColumn("memo_psnr", "n", None)) is None


def test_numbers_follow_the_common_rule_unless_a_benchmark_prints_its_own() -> None:
    assert BoardCell(3, 4, 0.00042).to_text() == "0.00042 (3/4)" and BoardCell(3, 4, 0.4).to_text(3) == "0.400 (3/4)"
    assert (
        BoardCell(0, 4, reasons=("none",)).to_text(3) == "– (0/4)"
        and cell_without_counts(0.49, "0.490").to_text() == "0.490"
    )


def test_a_run_becomes_a_board_with_counts() -> None:
    made = board_of_run(run_facts(), COLUMNS)
    assert [r.model for r in made.rows] == ["A", "B"]
    psnr, memory = (made.rows[0].cells[key] for key in ("memo_psnr", "memo_vqa_cm"))
    assert (psnr.mean, psnr.n, psnr.of) == (11.0, 3, 4)  # the missing clip counts
    assert (memory.mean, memory.n) == (10.5, 2)
    assert made.rows[0].cells["memo_lpips"] == BoardCell(0, 4, unscored={"missing": 1}, reasons=("missing",))
    assert made.rows[1].cells["memo_lpips"] == BoardCell(0, 3, reasons=("not asked",))
    assert made.protocol == "corrected:ffff, observers lite"
    real = board_of_run(run_facts(), COLUMNS, "real").rows[1]
    assert (real.cells["memo_psnr"].n, real.cells["memo_psnr"].of) == (1, 1)
    assert real.cells["memo_vqa_cm"].reason == "no file"
    with pytest.raises(UsageError, match="its parts are Real, Synthetic"):
        board_of_run(run_facts(), COLUMNS, "Outdoor")
    whole = run_facts()
    whole = replace(whole, results=Results([replace(case, subset="") for case in whole.results.cases], []))
    with pytest.raises(UsageError, match="has no clips in 'Outdoor'; it has no parts"):
        board_of_run(whole, COLUMNS, "Outdoor")


def test_runs_of_two_protocols_or_judges_do_not_share_a_column() -> None:
    same = join_comparable_boards(
        [board_of_run(run_facts(), COLUMNS), board_of_run(run_facts("two", models=("C",)), COLUMNS)]
    )
    assert len(same) == 1
    assert [(r.model, r.source) for r in same[0].rows] == [("A", "one"), ("B", "one"), ("C", "two")]
    other = run_facts("two", "upstream", {"memo_psnr": "cccc", "memo_vqa_cm": "dddd"})
    assert len(join_comparable_boards([board_of_run(run_facts(), COLUMNS), board_of_run(other, COLUMNS)])) == 2
    judged = [run_facts(judge="a model"), run_facts("two", judge="another model")]
    assert len(join_comparable_boards([board_of_run(run, COLUMNS) for run in judged])) == 2
    part = run_facts("two", hashes={"memo_psnr": "aaaa"})
    (both,) = join_comparable_boards([board_of_run(part, COLUMNS), board_of_run(run_facts(), COLUMNS)])
    assert next(c for c in both.columns if c.key == "memo_vqa_cm").protocol == "bbbb"


def test_runs_share_a_board_where_common_clips_have_the_same_references() -> None:
    """A scene may have a reference for each condition; a run that lacks one of its clips shares the board."""
    whole = run_facts(models=("A",))

    def as_conditions(run: RunFacts, references: dict[str, str]) -> Board:
        named = [
            {**entry, "sample": "one", "reference_digest": references[entry["id"].split("@")[0]]}
            for entry in run.plan["cases"]
            if entry["id"].split("@")[0] in references
        ]
        return board_of_run(replace(run, plan={**run.plan, "cases": named}), COLUMNS)  # type: ignore[typeddict-item]

    both = as_conditions(whole, {"Barnyard_001": "1", "007": "2"})
    part = as_conditions(run_facts("two", models=("C",)), {"007": "2"})
    swapped = as_conditions(run_facts("three", models=("D",)), {"Barnyard_001": "2", "007": "1"})
    assert len(join_comparable_boards([both, part])) == 1
    assert len(join_comparable_boards([both, swapped])) == 2


def test_a_board_says_how_many_clips_posed_the_test() -> None:
    run = run_facts()
    funnel = [{"stage": "all clips", "n": 3}, {"stage": "memory scored", "n": 1}]
    told = replace(run, summary={"models": {"A": {"funnel": funnel}}})
    made = board_of_run(told, COLUMNS)
    assert made.columns[0].title == "test posed"
    assert [row.cell(made.columns[0]).to_text(2) for row in made.rows] == ["1/3", "–"]
    assert board_of_run(run, COLUMNS).columns[0].title == "VisQual"
    counts = {"models": {"A": {"asked": 2, "returned": 1}, "B": {"asked": 2, "returned": 0}}}
    made = board_of_run(replace(run, summary={"look_away": counts}), COLUMNS)
    assert made.columns[0].title == "looks away and comes back"
    assert [row.cell(made.columns[0]).to_text(2) for row in made.rows] == ["1/2", "0/2"]


def test_a_run_whose_clips_two_judges_saw_says_so() -> None:
    run = run_facts(judge="a model")
    first = run.results.records[0]
    mixed = run.results.mapped(lambda r: r.with_changed_fields(facts={"judge": "another"}) if r == first else r)
    made = board_of_run(replace(run, results=mixed), COLUMNS)
    assert made.note == "not all clips were observed alike (PSNR: a model, another)"


# formats

NASTY = '<script>alert("x")</script>|$_{'


def test_names_are_escaped_in_every_format() -> None:
    made = [board(row(NASTY, 14.0, 0.5), row("b", 12.0, 0.4))]
    page = as_html(made)
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(&#34;x&#34;)" in page
    assert "innerHTML" not in page
    assert r"\|$\_{" in as_markdown(made)
    assert "<script>" not in as_markdown(made)
    assert r"\textbar{}\$\_\{" in as_latex(made)


def test_formats_show_counts_protocol_and_what_is_unscored() -> None:
    made = [board(row("a", 14.0, None), row("b", 12.0, 0.4)), board_of_paper_table("3")]
    text = as_markdown(made, "PSNR")
    assert "Protocol: corrected:1234, observers lite" in text
    assert "| a | run | **14.00 (3/3)** | – (0/3) |" in text
    assert "### Published: Questions and answers" in text
    lines = list(csv.DictReader(io.StringIO(as_csv(made))))
    assert len(lines) == 2 * 2 + 10 * 4
    assert (lines[1]["value"], lines[1]["n"], lines[1]["reason"]) == ("", "0", "none")
    assert {line["protocol"] for line in lines} == {made[0].protocol, made[1].protocol}
    latex = as_latex(made)
    assert latex.count(r"\begin{tabular}") == 2
    assert r"LPIPS $\downarrow$" in latex
    page = as_html(made)
    assert page.count('<table class="scores">') == 2
    assert 'data-first="ascending"' in page  # less is better


# result files of the public scripts


def write(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def results(folder: Path) -> Path:
    head = "id,scene,data_type,CameraControllability,GT_ALL_LPIPS"
    write(folder / "outputs/fantasy-world/eval_real_20260102_000000.csv", head, "007,real,real,0.2,0.5")
    write(
        folder / "outputs/fantasy-world/eval_synthetic_20260101_000000.csv",
        head, "Barnyard_001,Barnyard,synthetic,0.6,0.3", "Barnyard_002,Barnyard,synthetic,,",
    )  # fmt: skip
    write(folder / "ors_results/FantasyWorld/ors_scores.csv", "clip_id,data_type,ors", "007,real,0.25")
    score = json.dumps({"Instruction Following": 0.5})
    write(
        folder / "vqa_results/FantasyWorld/Barnyard-1.csv",
        "scene,video_id,score",
        f'Barnyard,1,"{score.replace(chr(34), chr(34) * 2)}"',
    )
    write(folder / "vqa_results/FantasyWorld/overall.csv", "scene,video_id,Instruction Following", "Barnyard,1,0.5")
    write(folder / "vqa_results/FantasyWorld_old/Barnyard-1.csv", "scene,video_id,score", "Barnyard,1,oops")
    return folder


def test_all_files_of_a_model_are_read_and_nothing_is_rescaled(tmp_path: Path) -> None:
    made = board_of_files(results(tmp_path))
    assert made is not None
    (only,) = made.rows  # "fantasy-world" and "FantasyWorld" are one model
    camera = only.cells["memo_camera"]
    assert camera.mean == pytest.approx(0.4)  # not 40
    assert (camera.n, camera.of) == (2, 3)
    assert only.cells["memo_lpips"].mean == pytest.approx(0.4)
    assert only.cells["memo_ors"].mean == 0.25
    assert only.cells["memo_vqa_if"].mean == 50.0
    assert only.cells["memo_psnr"].mean is None
    assert made.protocol == "upstream files"
    synthetic = board_of_files(tmp_path, "Synthetic")
    assert synthetic is not None and synthetic.rows[0].cells["memo_camera"].of == 2


def test_a_clip_in_two_files_counts_once(tmp_path: Path) -> None:
    head = "id,scene,data_type,GT_ALL_PSNR"
    write(tmp_path / "m/eval_both_1.csv", head, "007,real,real,10")
    write(tmp_path / "m/eval_both_2.csv", head, "007,real,real,20")
    made = board_of_files(tmp_path)
    assert made is not None
    assert (made.rows[0].cells["memo_psnr"].mean, made.rows[0].cells["memo_psnr"].n) == (20.0, 1)
    assert "more than one file" in made.note


@pytest.mark.parametrize(
    ("name", "lines", "sentence"),
    [
        ("m/eval_x.csv", ["a,b", "1,2"], "eval_x.csv: it has no column id"),
        ("m/Barnyard-1.csv", ["scene,video_id,score", "Barnyard,1,oops"], "its score is 'oops'"),
    ],
)
def test_broken_result_files_are_refused_in_a_sentence(
    tmp_path: Path, name: str, lines: list[str], sentence: str
) -> None:
    write(tmp_path / name, *lines)
    with pytest.raises(MediaError, match=sentence):
        board_of_files(tmp_path)


def test_a_folder_without_results_has_no_board(tmp_path: Path) -> None:
    assert board_of_files(tmp_path) is None


# the command


def test_the_command_shows_files_and_printed_tables(revisit: Callable[..., Any], tmp_path: Path) -> None:
    results(tmp_path / "theirs")
    shown = revisit("leaderboard", "theirs", "--published").stdout
    assert shown.index("upstream files") < shown.index("Published: Automated evaluation")
    assert "another protocol" in shown


def test_options_of_the_command(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from revisit.cli.main import app

    def ask(*arguments: object) -> Any:
        return CliRunner().invoke(app, ["leaderboard", *map(str, arguments)])

    page = tmp_path / "board.html"
    assert ask("--published", "--format", "html", "--out", page).exit_code == 0
    assert page.read_text().startswith("<!doctype html>")
    assert len(json.loads(ask("--supplement", "--json").stdout)) == 21  # MemoBench 11, WRBench 2, MIND 2, and others
    assert "unknown column 'ELO'" in str(ask("--published", "--sort", "ELO").exception)
    assert "there is no format 'pdf'" in str(ask("--published", "--format", "pdf").exception)
    assert "nothing to show" in str(ask().exception)
    assert "is not a run" in str(ask(tmp_path / "nothing").exception)


def test_each_reason_of_an_empty_column_is_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    without = [("a", ("too short", "a file; its copy")), ("b", ("too short",)), ("c", ())]
    rows = [BoardRow(name, "run", {"memo_lpips": BoardCell(0, 2, reasons=reasons)}) for name, reasons in without]
    print_boards([board(*rows)], "terminal", "")
    assert "no value: LPIPS (a file; its copy; too short)\n" in capsys.readouterr().out
    assert "(a file; its copy; too short)" in as_html([board(*rows)])
    cells = json.loads(json.dumps(board(*rows).as_json()))["rows"][0]["cells"]
    assert list(cells["memo_lpips"])[-2:] == ["text", "reason"]
    assert cells["memo_lpips"]["reason"] == "too short; a file; its copy"
