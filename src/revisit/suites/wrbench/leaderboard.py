"""WRBench's table of a run as a board: D1 to D6, support and Avg, with stand-ins in separate columns."""

from __future__ import annotations

from collections.abc import Iterable

from revisit.core import UsageError
from revisit.results.leaderboards import (
    Board,
    BoardCell,
    BoardColumn,
    BoardRow,
    RunFacts,
    add_clips_to_cells,
    board_columns_of_run,
    cell_without_counts,
    protocol_tag,
)
from revisit.suites.wrbench.display import BEFORE_SUPPORT, DAGGER, SPARSE_NOTE
from revisit.suites.wrbench.metrics import METRIC_OF, STAND_INS, TITLES
from revisit.suites.wrbench.tables import (
    ALL,
    MEASURES,
    T2V_MEASURES,
    SummaryRow,
    printed_averages_note,
    published_model_rows,
    published_text_to_video_rows,
)

CONDITION = BoardColumn("viewpoint", "viewpoint", None)
SUPPORT = BoardColumn("support", "support")
EMPTY = cell_without_counts(None)
AVERAGE, MIXED = BoardColumn("average", "Avg", decimals=3), BoardColumn("mixed", "Avg with stand-ins", decimals=3)


def wrbench_run_boards(run: RunFacts, subset: str = "") -> list[Board]:
    """The board of a run."""
    if subset:
        raise UsageError("the board of a WRBench run has no parts; `revisit report --by factor` shows them")
    part = run.summary["wrbench"]
    rows = [*part["rows"], *([part["truth"]] if part.get("truth") else [])]
    names = [name for name in ALL if name in MEASURES or any(row[name]["value"] is not None for row in rows)]
    hashed = {
        one.key: one.protocol for one in board_columns_of_run(run, [BoardColumn(METRIC_OF[name], "") for name in names])
    }
    measures = [_measure_column(name, hashed.get(METRIC_OF[name], "")) for name in names]
    substitutes = [
        f"{row['model']}: {', '.join(TITLES[name] for name in row['average_with_stand_ins']['stand_ins'])}"
        for row in rows
        if row["average_with_stand_ins"]
    ]
    board = Board(
        title="wrbench",
        protocol=protocol_tag(run.facts),
        columns=(*_order_board_columns(measures), *([MIXED] if substitutes else [])),
        rows=tuple(
            BoardRow(row["model"], run.name, _board_cells(row, names), role=row.get("role", "")) for row in rows
        ),
        note="; ".join([SPARSE_NOTE, *([f"stand-ins in Avg: {', '.join(substitutes)}"] if substitutes else [])]),
    )
    return [add_clips_to_cells(board, run.results, {name: METRIC_OF[name] for name in names})]


def published_wrbench_boards(supplement: bool) -> list[Board]:
    """The paper's table, and, as its supplement, the addendum for generators that get only text."""
    source, rows = published_model_rows()
    board_rows = [
        BoardRow(
            row.title, "paper", _board_cells(row.to_json({"judged": {"share": row.support}}), MEASURES), row.condition
        )
        for row in rows
    ]
    protocol = "the paper's own poses, features and judges: another protocol than any run of yours"
    main = Board(
        f"wrbench, {source}", protocol, _order_board_columns(map(_measure_column, MEASURES)), tuple(board_rows),
        f"{SPARSE_NOTE}; {printed_averages_note()}", as_printed=True,
    )  # fmt: skip
    return [main, *([_text_to_video_board(protocol)] if supplement else [])]


def _text_to_video_board(protocol: str) -> Board:
    """The addendum for text to video: a row per camera."""
    source, rows = published_text_to_video_rows()
    columns = tuple(map(_measure_column, T2V_MEASURES))
    board_rows = []
    for row in rows:
        cells = {name: BoardCell(row["n"], row["n"], row[name]) for name in T2V_MEASURES}
        board_rows.append(BoardRow(f"{row['title']}, {row['camera']}", "addendum", cells))
    note = "returned measures and precision were not published; alignment of static is the static hold"
    return Board(f"wrbench text to video, {source}", protocol, columns, tuple(board_rows), note, as_printed=True)


def _measure_column(name: str, protocol: str = "") -> BoardColumn:
    return BoardColumn(name, TITLES[name], decimals=3, protocol=protocol)


def _order_board_columns(measures: Iterable[BoardColumn]) -> tuple[BoardColumn, ...]:
    """Columns in the order of the published table: support in the middle, Avg behind D6, stand-ins at the end."""
    columns = list(measures)
    first = [column for column in columns if column.key in BEFORE_SUPPORT]
    last = [column for column in columns if column.key in STAND_INS]
    return (CONDITION, *first, SUPPORT, *(one for one in columns if one not in (*first, *last)), AVERAGE, *last)


def _board_cells(row: SummaryRow, names: Iterable[str]) -> dict[str, BoardCell]:
    cells = {}
    for name in names:
        value, n = row[name]["value"], row[name]["n"]
        text = f"{value:.3f}{DAGGER}" if value is not None and name.startswith("returned") and row["sparse"] else ""
        cells[name] = BoardCell(n, row["outputs"], value, text=text, reasons=("no score",) if value is None else ())
    judged = row["support"]["judged"]
    cells["support"] = cell_without_counts(judged["share"], f"{judged['share']:.1%}") if judged else EMPTY
    reason = "" if row["average"] is not None else "a measure is missing"
    cells["average"] = cell_without_counts(row["average"], reason=reason)
    mixed = row["average_with_stand_ins"]
    cells["mixed"] = cell_without_counts(mixed["value"]) if mixed else EMPTY
    cells["viewpoint"] = cell_without_counts(0.0, str(row["condition"]).replace("_", "-") or "unknown")
    return cells
