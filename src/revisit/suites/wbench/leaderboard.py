"""Boards: those of a run, of the evaluator's report.json, and the published one (navigation split)."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

from revisit.core import METRICS, MediaError
from revisit.core.cases import CEILING, FLOOR
from revisit.core.text import parse_package_yaml
from revisit.media.text_files import read_json
from revisit.results.leaderboards import Board, BoardCell, BoardColumn, BoardRow, RunFacts, board_of_run, printed_cell
from revisit.results.stand_ins import set_apart
from revisit.suites.wbench.metrics import DIMENSIONS
from revisit.suites.wbench.summary import AVERAGE, NOTE, dimensions, means

SUMMARY = tuple(BoardColumn(name.lower(), name, decimals=1) for name in (AVERAGE, *DIMENSIONS))
ANOTHER_PROTOCOL = "the benchmark's own networks and judge: another protocol than any run of yours"


def boards_of(run: RunFacts, subset: str = "") -> list[Board]:
    """The board of the metrics, and that of the dimensions where any has all its columns."""
    board = board_of_run(run, subset=subset)
    protocol = run.facts["protocol"]
    results = set_apart(run.results)
    rows = [
        BoardRow(model, run.name, _cells(dimensions(means(part))), role=FLOOR if model in results.floors else "")
        for model, part in results.groups("model").items()
    ]
    if results.truths:
        rows.append(BoardRow(results.truth_name, run.name, _cells(dimensions(means(results.truth))), role=CEILING))
    if subset or not any(cell.mean is not None for row in rows for cell in row.cells.values()):
        return [board]
    return [board, Board("wbench, dimensions", f"{protocol['name']}:{protocol['hash']}", SUMMARY, tuple(rows), NOTE)]


def _cells(row: dict[str, float]) -> dict[str, BoardCell]:
    return {column.key: printed_cell(row.get(column.title)) for column in SUMMARY}


def board_of_files(folder: Path, subset: str = "") -> Board | None:
    """The board of evaluation/report.json below a model's folder, or of several models; None where there is none."""
    found = [
        *folder.glob("report.json"),
        *folder.glob("evaluation/report.json"),
        *folder.glob("*/evaluation/report.json"),
    ]
    names = {METRICS[metric].upstream: metric for ids in DIMENSIONS.values() for metric in ids}
    rows = []
    for path in sorted(found):
        try:
            content = read_json(path, "the report of WBench's evaluator")
        except MediaError:
            continue
        part = content.get("full" if subset == "full" else "navi")
        if not isinstance(part, dict) or "n_navi" not in content:
            continue
        columns = {names[name]: float(entry["mean"]) for name, entry in part.items() if name in names}
        cells = {metric: printed_cell(100 * value, f"{100 * value:.1f}") for metric, value in columns.items()}
        rows.append(
            BoardRow(
                str(content.get("model") or path.parent.parent.name), path.name, cells | _cells(dimensions(columns))
            )
        )
    if not rows:
        return None
    title = f"wbench, report.json, {'full' if subset == 'full' else 'navigation'} split"
    return Board(title, ANOTHER_PROTOCOL, (*SUMMARY, *_columns()), tuple(rows), NOTE, as_printed=True)


def _columns() -> tuple[BoardColumn, ...]:
    return tuple(
        BoardColumn(metric, METRICS[metric].title, decimals=1) for ids in DIMENSIONS.values() for metric in ids
    )


@cache
def published(supplement: bool = False) -> tuple[Board, ...]:
    """The printed board of 31 models; its 19 columns as the supplement."""
    content = parse_package_yaml((files(__package__) / "published.yaml").read_text(encoding="utf-8"))
    summary, detail = [], []
    for model, line in content["summary"].items():
        cells = {
            column.key: printed_cell(float(text), text) for column, text in zip(SUMMARY, line.split(), strict=True)
        }
        summary.append(BoardRow(model, "board", cells))
    columns = [BoardColumn(metric, METRICS[metric].title, decimals=1) for metric in content["columns"]]
    for model, line in content["detail"].items():
        cells = {
            column.key: printed_cell(float(text), text) for column, text in zip(columns, line.split(), strict=True)
        }
        detail.append(BoardRow(model, "board", cells))
    boards = (
        Board(
            "Published: WBench, navigation split",
            f"{content['source']} ({ANOTHER_PROTOCOL})",
            SUMMARY,
            tuple(summary),
            NOTE,
            as_printed=True,
        ),
        Board(
            "Published: WBench, navigation split, columns",
            f"{content['source']} ({ANOTHER_PROTOCOL})",
            tuple(columns),
            tuple(detail),
            "in percent",
            as_printed=True,
        ),
    )
    return boards if supplement else boards[:1]
