"""Tables and figures for papers: marks as the papers print them, files that open, and names that stay text."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from revisit.core import Case, Clip, Record, UsageError, import_registering_modules
from revisit.report.leaderboards import as_html, as_latex, as_markdown
from revisit.results import Cell, Results
from revisit.results.display import mark_best_and_second
from revisit.results.leaderboards import (
    CEILING,
    Board,
    BoardCell,
    BoardColumn,
    BoardRow,
    join_comparable_boards,
    mark_best_and_second_rows,
)
from revisit.results.model_facts import load_model_facts, published_model_facts

import_registering_modules()
HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m\u202etxt.exe$\\alpha$_{x}%&#~^|`*\n\\end{tabular}"
# Where Tables 2 and 3 of arXiv 2606.27537 print an underline: the second of each column.
SECOND = {
    "2": {
        "VisQual": "HunyuanGameCraft", "MotSmooth": "Matrix-Game 2.0", "ObjConsist": "HunyuanWorldPlay",
        "3DConsist": "CogVideoX", "ORS": "LingBot-World", "PSNR": "LingBot-World", "SSIM": "LingBot-World",
        "LPIPS": "LingBot-World", "CamCtrl": "Stable Virtual Camera", "ImgReward": "LingBot-World",
    },
    "3": {"IF": "HunyuanWorldPlay", "OB": "HunyuanGameCraft", "CM": "HunyuanWorldPlay"},
}  # fmt: skip
BEST = {
    "PSNR": "Stable Virtual Camera",
    "LPIPS": "Stable Virtual Camera",
    "ORS": "HunyuanWorldPlay",
    "VisQual": "Matrix-Game 2.0",
}


@pytest.mark.parametrize("table", ["2", "3"])
def test_memobench_as_printed_has_the_paper_s_marks(table: str) -> None:
    from revisit.suites.memobench.leaderboard import board_of_paper_table

    board = board_of_paper_table(table)
    for column in board.columns:
        found = {
            mark: board.rows[place].model
            for place, mark in mark_best_and_second_rows(board, board.rows, column).items()
        }
        if column.key in SECOND[table]:
            assert found["second"] == SECOND[table][column.key], column.key
        if column.key in BEST:
            assert found["best"] == BEST[column.key]
    text = as_markdown([board])
    if table == "2":
        assert "**15.36**" in text and "<u>14.41</u>" in text and r"\underline{0.482}" in as_latex([board])


def test_wrbench_as_printed_is_marked_within_each_viewpoint_condition(shared: Path) -> None:
    """The caption says that marks are made within each condition; here from the printed numbers of another file."""
    from revisit.suites.wrbench.leaderboard import published_wrbench_boards

    rows = json.loads((shared / "golden/wrbench_table2.json").read_text())
    board = published_wrbench_boards(False)[0]
    columns = {column.key: column for column in board.columns}
    names = {"returned_spatial": "rsp", "returned_state": "rst", "integrity": "integ", "visible_spatial": "vsp",
             "visible_state": "vst", "alignment": "align"}  # fmt: skip
    checked = 0
    for key, short in names.items():
        found = {
            board.rows[place].model: mark
            for place, mark in mark_best_and_second_rows(board, board.rows, columns[key]).items()
        }
        for group in {row["group"] for row in rows}:
            mine = [row for row in rows if row["group"] == group]
            order = sorted((row[short] for row in mine), reverse=True)
            for place, mark in enumerate(("best", "second")):
                named = {
                    row[short] for row in mine for model in found if found[model] == mark and _same(row["name"], model)
                }
                assert named == {order[place]}, (key, group, mark)
                checked += 1
    assert checked == 6 * 4 * 2


def _same(one: str, other: str) -> bool:
    known = published_model_facts()
    return (known.canonical_name(one) or one) == (known.canonical_name(other) or other)


def cell_around(mean: float, seed: int = 0, spread: float = 0.02) -> BoardCell:
    """A cell of nine clips, each of a scene of its own."""
    values = mean + np.random.default_rng(seed).normal(0, spread, 9)
    return BoardCell(9, 9, float(values.mean()), clips={k: (float(value), str(k)) for k, value in enumerate(values)})


def test_the_second_is_best_of_the_others_by_the_same_rule() -> None:
    cells = {name: cell_around(mean, seed) for seed, (name, mean) in enumerate({"a": 0.9, "b": 0.7, "c": 0.5}.items())}
    assert mark_best_and_second(cells, True) == {"a": "best", "b": "second"} and mark_best_and_second(cells, None) == {}
    assert mark_best_and_second({**cells, "c": cell_around(0.69, 3, 0.05)}, True) == {"a": "best"}
    tied = {"a": Cell(0, 0, 2.0), "b": Cell(0, 0, 2.0), "c": Cell(0, 0, 1.0)}
    assert mark_best_and_second(tied, True, by_order_alone=True) == {"a": "best", "b": "best", "c": "second"}


def test_hostile_names_are_text_in_every_table() -> None:
    cell = BoardCell(3, 3, 0.5, (0.4, 0.6), text="", reasons=(HOSTILE,))
    board = Board(
        HOSTILE, HOSTILE, (BoardColumn("psnr", HOSTILE),), (BoardRow(HOSTILE, HOSTILE, {"psnr": cell}),), HOSTILE
    )
    for text in (as_markdown([board]), as_latex([board]), as_html([board])):
        assert "\x1b" not in text and "\u202e" not in text
    assert "<img" not in as_markdown([board]) and "<img" not in as_html([board])
    latex = as_latex([board])
    assert latex.count(r"\end{tabular}") == 1 and r"\textbackslash{}alpha\$" in latex
    assert as_latex([board]).count("\n") == 12  # a line end in a name makes no line


@pytest.fixture
def hostile_run(tmp_path: Path, make_clip: Callable[..., Path], revisit: Any) -> Path:
    lines = []
    for k, model in enumerate(("$\\alpha$ <b>one</b>", "two</text><script>")):
        for clip in range(3):
            make_clip(tmp_path / f"videos/{k}/{clip}.mp4", count=24, seed=clip + 5 * k)
            lines.append({"id": f"s{clip}", "model": model, "video": f"{k}/{clip}.mp4", "phases": [8, 16],
                          "reference": f"0/{clip}.mp4", "camera": "yaw:left:10@12,yaw:right:10@12"})  # fmt: skip
    (tmp_path / "videos/manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    asked = "psnr_returned,psnr,ssim,motion_smoothness,motion_amount,camera_path"
    revisit("eval", tmp_path / "videos", "--out", tmp_path / "run", "--no-report", "--workers", 0, "-m", asked)
    return tmp_path / "run"


@pytest.mark.long
def test_every_figure_is_a_file_that_opens_and_holds_names_as_text(
    hostile_run: Path, tmp_path: Path, revisit: Any
) -> None:
    pytest.importorskip("matplotlib")
    metrics = ["-m", "ssim", "-m", "motion_smoothness"]
    calls = {
        "radar": ["-m", "ssim", "-m", "motion_smoothness", "-m", "psnr"],
        "horizon": ["-m", "psnr"], "correlation": metrics, "phases": ["-m", "psnr_returned"],
        "scatter": metrics, "path": [], "strip": metrics,
    }  # fmt: skip
    for kind, more in calls.items():
        out = tmp_path / f"{kind}.svg"
        revisit("figure", kind, hostile_run, *more, "--out", out)
        drawn = ElementTree.fromstring(out.read_bytes())
        texts = "".join(text for node in drawn.iter() for text in (node.text, node.tail) if text)
        assert "\x1b" not in texts and "\u202e" not in texts
        if kind != "correlation":
            assert "$\\alpha$ <b>one</b>" in texts  # neither set as mathematics nor taken for markup
        again = tmp_path / f"again-{kind}.svg"
        revisit("figure", kind, hostile_run, *more, "--out", again)
        assert again.read_bytes() == out.read_bytes()
    revisit("figure", "strip", hostile_run, *metrics, "--out", tmp_path / "strip.pdf")
    assert (tmp_path / "strip.pdf").read_bytes().startswith(b"%PDF-")
    shown = revisit("show", hostile_run)
    assert "\x1b" not in shown.stdout + shown.stderr and "\u202e" not in shown.stdout + shown.stderr
    compared = revisit("compare", hostile_run, "-m", "psnr")
    assert "\x1b" not in compared.stdout + compared.stderr
    assert "bmp" in revisit("figure", "strip", hostile_run, "--out", tmp_path / "x.bmp", check=2).stderr


def test_facts_of_models_are_found_by_other_names_and_from_a_file(tmp_path: Path) -> None:
    known = published_model_facts()
    assert known.facts_of("svc")["category"] == "NVS" and known.group_name("ltxvideo", "camera") == "without camera"
    assert known.group_name("mine", "category") == "not known"
    own = tmp_path / "models.yaml"
    own.write_text("models:\n  mine-2: {category: CI2V, parameters: 3, from: mine-1}\n  mine-1: {camera: true}\n")
    mine = load_model_facts([], own)
    assert (
        mine.group_name("mine-2", "parameters") == "3" and mine.predecessor_among("mine-2", ["x", "mine-1"]) == "mine-1"
    )
    own.write_text("mine-2: {from: mine-1}\n")  # of which the file says nothing, nor of x
    assert load_model_facts([], own).predecessor_among("mine-2", ["x", "mine-2", "mine-1"]) == "mine-1"
    assert load_model_facts([], own).predecessor_among("mine-2", ["x", "mine-2"]) is None
    own.write_text("mine: {kategory: x}\n")
    with pytest.raises(UsageError, match="kategory"):
        load_model_facts([], own)


def test_hostile_facts_are_text_on_the_screen(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from revisit.cli.main import app

    facts = {"category": HOSTILE, "backbone": HOSTILE, "viewpoint": HOSTILE, "source": HOSTILE}
    (tmp_path / "models.yaml").write_text(json.dumps({"models": {HOSTILE: facts}}))  # JSON is YAML
    shown = CliRunner().invoke(app, ["show", "--models", "--facts", str(tmp_path / "models.yaml")])
    assert shown.exit_code == 0 and "<img" in shown.output
    assert "\x1b[31m" not in shown.output and "\u202e" not in shown.output


def test_stated_facts_are_those_of_the_paper_s_table(shared: Path) -> None:
    """Table S1 of arXiv 2606.27537, as its text has it."""
    text = (shared.parent / "papers/memobench.txt").read_text(encoding="utf-8")
    start = text.index("Table S1: Model configurations")
    rows = [line.split("\t") for line in text[start : start + 3000].splitlines() if line.count("\t") >= 7][1:]
    assert len(rows) == 10
    for name, _, category, size, fps, length, _, camera in (row[:8] for row in rows):
        facts = published_model_facts().facts_of(name.partition(" [")[0])
        height, width = map(int, size.split("×"))
        assert (facts["category"], facts["fps"], facts["frames"]) == (category, int(fps), int(length.split("/")[1]))
        assert facts["size"] == [width, height] and facts["camera"] == (camera.strip() == "✓")


def test_rows_in_groups_are_marked_within_their_group() -> None:
    cells = {"x": cell_around(0.9, 1), "y": cell_around(0.5, 2)}
    rows = tuple(BoardRow(name, "run", {"psnr": cell}, group) for group in "gh" for name, cell in cells.items())
    board = Board("t", "p", (BoardColumn("psnr", "PSNR"),), rows)
    assert mark_best_and_second_rows(board, rows, board.columns[0]) == {0: "best", 2: "best"}


def test_what_looks_less_changed_than_the_truth_is_not_marked_as_measured() -> None:
    columns = BoardColumn("target_identity", "Looks the same"), BoardColumn("target_identity.held", "Held")
    cell = replace(cell_around(0.7, 1), mean=0.7)
    rows = tuple(
        BoardRow(name, "run", dict.fromkeys(("target_identity", "target_identity.held"), cell), role=role)
        for name, role in (("a", ""), ("t", CEILING))
    )
    reset = BoardRow(
        "reset", "run", {"target_identity": cell_around(0.9, 2), "target_identity.held": cell_around(0.1, 2)}
    )
    board = Board("t", "p", columns, (reset, *rows), truths={("s",): "1"})
    assert (
        mark_best_and_second_rows(board, board.rows, columns[0]) == {}
    )  # it looks less changed than the truth: no merit
    assert mark_best_and_second_rows(board, board.rows[:2], columns[0]) == {0: "best"}
    assert mark_best_and_second_rows(board, board.rows, columns[1]) == {1: "best"}


def test_a_run_without_held_scores_shares_a_board_with_one_that_has_them() -> None:
    cell = cell_around(0.7, 1)
    plain = Board("t", "p", (BoardColumn("psnr", "P", protocol="1"),), (BoardRow("a", "x", {"psnr": cell}),))
    other = BoardRow("b", "y", {"psnr": cell_around(0.9, 2), "psnr.held": cell_around(0.2, 2)})
    both = (BoardColumn("psnr", "P", protocol="1"), BoardColumn("psnr.held", "P, held", protocol="1"))
    for boards in ([plain, Board("t", "p", both, (other,))], [Board("t", "p", both, (other,)), plain]):
        (joint,) = join_comparable_boards(boards)
        assert [column.key for column in joint.columns] == ["psnr", "psnr.held"]
        assert {row.model: row.cells["psnr.held"].mean for row in joint.rows} == {
            "a": cell.mean, "b": other.cells["psnr.held"].mean,
        }  # fmt: skip


def test_results_and_records_of_hostile_clips_can_be_read() -> None:
    one = Case(HOSTILE, "folder", HOSTILE, HOSTILE, Clip(Path("x")))
    assert Results([one], [Record(one, "psnr", False, "scored", 30.0)]).models == [HOSTILE]


def _unseen(axis: Any) -> list[Any]:
    """Ticks beyond the ends of an axis, which are not drawn."""
    low, high = sorted(axis.get_view_interval())
    return [tick for tick in axis.get_major_ticks() if not low <= tick.get_loc() <= high]


def _overlaps(figure: Any) -> list[tuple[str, str]]:
    """Pairs of texts of a figure that lie over each other."""
    from itertools import combinations

    from matplotlib.text import Text

    figure.canvas.draw()
    ticks = [tick for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for tick in _unseen(axis)]
    beyond = {id(label) for tick in ticks for label in (tick.label1, tick.label2)}
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    texts = [text for text in texts if id(text) not in beyond]
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts]
    return [(a, b) for (a, one), (b, other) in combinations(boxes, 2) if one.overlaps(other)]


def test_no_label_of_a_radar_or_horizon_lies_over_another(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from revisit.media import save_npz
    from revisit.report import figures

    metrics = [
        "return_consistency", "event_outcome", "lighting_consistency", "style_consistency", "visual_integrity_lite",
        "wr_integrity", "motion_smoothness", "ssim", "target_identity", "target_reappearance",
    ]  # fmt: skip
    models = [f"a model with a long name {k}" for k in range(8)]
    (tmp_path / "units").mkdir()
    save_npz(tmp_path / "units/one.npz", {"frame": np.arange(24), "value": np.linspace(0, 1, 24)})
    cases = [Case(f"s@{model}#0", "folder", model, "s", Clip(Path("x"))) for model in models]
    records = [
        Record(one, metric, False, "scored", 0.5 + 0.05 * k, units="units/one.npz", n_units=24)
        for k, one in enumerate(cases)
        for metric in metrics
        if k or metric != metrics[0]  # the first model is missing from the first curve
    ]
    results = Results(cases, records, folder=tmp_path)
    radar, horizon = figures.radar(results, metrics), figures.horizon(results, metrics[:3])
    assert _overlaps(radar) == [] and _overlaps(horizon) == []
    named = {text.get_text() for legend in horizon.legends for text in legend.get_texts()}
    assert named == set(models)  # also who is in a later curve only


def test_means_of_a_scatter_are_of_the_clips_that_have_both() -> None:
    pytest.importorskip("matplotlib")
    from revisit.report import figures

    cases = [Case(f"s{k}@a#0", "folder", "a", f"s{k}", Clip(Path("x"))) for k in range(3)]
    values: dict[str, list[float | None]] = {"ssim": [0.2, 0.4, 0.9], "wr_integrity": [0.5, 0.7, None]}
    records = [
        Record(case, metric, False, "unscored" if value is None else "scored", value)
        for metric, column in values.items()
        for case, value in zip(cases, column, strict=True)
    ]
    figure = figures.scatter(Results(cases, records), list(values))
    (mean,) = [line for line in figure.axes[0].get_lines() if line.get_marker() == "o"]
    assert (mean.get_xdata()[0], mean.get_ydata()[0]) == pytest.approx((0.3, 0.6))


def test_a_radar_says_which_axes_are_turned_round() -> None:
    pytest.importorskip("matplotlib")
    from revisit.report import figures

    case = Case("s@a#0", "folder", "a", "s", Clip(Path("x")))
    metrics = ["ssim", "wr_integrity", "camera_standstill"]
    figure = figures.radar(Results([case], [Record(case, one, False, "scored", 0.5) for one in metrics]), metrics)
    titles = [" ".join(text.get_text().split()) for text in figure.axes[0].texts]
    assert [title.endswith("↓, lowest outside") for title in titles] == [False, False, True]


def test_a_path_says_what_it_shows_and_draws_the_truth(tmp_path: Path, revisit: Any) -> None:
    pytest.importorskip("matplotlib")
    cases = [Case(f"{scene}@{model}#0", "folder", model, scene, Clip(Path(f"{model}{scene}"))) for scene, model in
             (("hall", "a"), ("hall", "b"), ("attic", "c"))]  # fmt: skip
    cases[0] = replace(cases[0], reference=Clip(Path("gt")))
    truth = Case("hall@truth", "folder", "truth", "hall", Clip(Path("gt")), truth=True)
    run = write_run(tmp_path / "run", cases=[*cases, truth])
    said = revisit("figure", "path", run, "--out", tmp_path / "path.svg").stderr
    assert "scene hall is drawn; --sample draws another of the 2" in said
    assert "not drawn: b: no texture" in said and "not drawn: c: no clip of this scene" in said
    assert "truth" in (tmp_path / "path.svg").read_text()


def write_run(folder: Path, cases: list[Case]) -> Path:
    """A run with camera paths of these cases; that of model b could not be followed."""
    from revisit.core.reasons import Reason
    from revisit.media import save_npz
    from revisit.results.record_files import RecordWriter, case_to_json

    (folder / "units").mkdir(parents=True)
    angles = {name: np.linspace(0, 9, 5) for name in ("value", "yaw", "pitch")}
    save_npz(folder / "units/one.npz", {"frame": np.arange(5), **angles})
    entries = [case_to_json(case) for case in cases]
    plan = {"suite": "folder", "cases": entries, "gates": {}, "metrics": {"camera_path": "p"}, "rejected": []}
    (folder / "plan.json").write_text(json.dumps(plan))
    (folder / "run.json").write_text(json.dumps({"suite": "folder", "protocol": {}}))
    (folder / "summary.json").write_text(json.dumps({"suite": "folder", "verdict": {"moments": [], "answers": []}}))
    with RecordWriter(folder / "records.jsonl") as writer:
        for case in cases:
            if case.model == "b":
                reason = Reason("not_followed", "no texture")
                writer.append(Record(case, "camera_path", False, "unscored", reason=reason))
            else:
                writer.append(Record(case, "camera_path", False, "scored", 9.0, units="units/one.npz", n_units=5))
    return folder


def test_latex_tables_have_labels_of_their_own() -> None:
    boards = [Board(title, "p", (BoardColumn("psnr", "PSNR"),), ()) for title in ("folder, Real", "folder, Real", "§")]
    text = as_latex(boards)
    assert [line for line in text.splitlines() if "label" in line] == [
        r"\label{tab:folder-real}", r"\label{tab:folder-real-2}", r"\label{tab:board}",
    ]  # fmt: skip
    assert text.index(r"\caption") < text.index(r"\label")


def test_a_strip_of_conditions_names_its_scene_and_model(
    tmp_path: Path, make_clip: Callable[..., Path], revisit: Any
) -> None:
    pytest.importorskip("matplotlib")
    lines = []
    for model in ("one", "two"):
        for condition in ("far", "near"):
            video = make_clip(tmp_path / f"videos/{model}-{condition}.mp4", count=9).name
            lines.append({"id": condition, "group": "hall", "condition": condition, "model": model, "video": video})
    (tmp_path / "videos/manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = ("--no-report", "--workers", 0, "-m", "motion_amount")
    revisit("eval", tmp_path / "videos", "--out", tmp_path / "run", *words)
    for model in ("one", "two"):
        out = tmp_path / f"{model}.svg"
        revisit("figure", "strip", tmp_path / "run", "--rows", "condition", "--model", model, "--out", out)
        assert f"hall, {model}" in out.read_text() and "near" in out.read_text()


def test_figures_of_a_run_without_clips_are_refused(tmp_path: Path, revisit: Any) -> None:
    pytest.importorskip("matplotlib")
    plan = {"suite": "folder", "cases": [], "gates": {}, "metrics": {"motion_amount": "p"}, "rejected": []}
    (tmp_path / "run").mkdir()
    (tmp_path / "run/plan.json").write_text(json.dumps(plan))
    (tmp_path / "run/run.json").write_text(json.dumps({"suite": "folder", "protocol": {}}))
    (tmp_path / "run/summary.json").write_text(json.dumps({"suite": "folder", "verdict": {"moments": []}}))
    (tmp_path / "run/records.jsonl").touch()
    for kind in ("path", "strip", "horizon"):
        said = revisit("figure", kind, tmp_path / "run", "--out", tmp_path / "a.svg", check=2).stderr
        assert "the run has no" in said, said
