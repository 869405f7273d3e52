"""`revisit leaderboard` and `table`: tables of models, of one or more runs and of published results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from revisit.cli import console
from revisit.cli.options import JSON, flag_option, metric_option, out_option

if TYPE_CHECKING:
    from revisit.results.leaderboards import Board, BoardRow
    from revisit.results.model_facts import ModelFacts

COLUMNS_PER_TABLE = 10
FORMATS = ("terminal", "markdown", "latex", "csv", "html")
FORMAT_BY_SUFFIX = {".md": "markdown", ".tex": "latex", ".csv": "csv", ".html": "html"}
PAPER_FORMATS = ("markdown", "latex", "csv")


def leaderboard(
    runs: list[Path] = typer.Argument(None, help="Run directories, or folders with MemoBench's own result files."),
    table_format: str = typer.Option("terminal", "--format", metavar="FORMAT", help=f"One of {', '.join(FORMATS)}."),
    published: bool = flag_option("--published", "Also show the tables of the benchmarks' papers."),
    supplement: bool = flag_option("--supplement", "Also show the tables of its supplement."),
    sort: str = typer.Option("", help="Column to sort by, such as ORS; the best come first."),
    subset: str = typer.Option("", help="Only one part of the dataset, such as Real or mem_test."),
    out: Path = out_option("Write to this file instead of the screen."),
    json: bool = JSON,
) -> None:
    """Compare the models of runs, one table per protocol. Numbers of two protocols never share a column."""
    from revisit.core import UsageError

    boards = _collect_boards(runs or [], published, supplement, subset)
    if not boards:
        raise UsageError("nothing to show: give run directories, or --published for the tables of the paper")
    if json:
        console.print_json([board.as_json() for board in boards])
        return
    if out is not None and table_format == "terminal":
        table_format = FORMAT_BY_SUFFIX.get(out.suffix.lower(), table_format)
    print_boards(boards, table_format, sort, out, runs or ())


def print_boards(
    boards: list[Board], table_format: str, sort: str, out: Path | None = None, runs: Sequence[Path] = ()
) -> None:
    """Print boards in a format, or write them to a file; a column to sort by must be there.

    A page of HTML links to the reports of `runs`.
    """
    from revisit.core.text import require_known_name
    from revisit.report.leaderboards import as_csv, as_html, as_latex, as_markdown

    as_text = {"terminal": as_markdown, "markdown": as_markdown, "latex": as_latex, "csv": as_csv}
    require_known_name(table_format, FORMATS, "format")
    require_sort_column(boards, sort)
    if out is None and table_format == "terminal":
        for board in boards:
            _print_board_in_parts(board, sort)
    elif table_format == "html":
        console.write_or_print(as_html(boards, sort, _report_addresses_by_run(runs, out)), out)
    else:
        console.write_or_print(as_text[table_format](boards, sort), out)


def _report_addresses_by_run(runs: Sequence[Path], out: Path | None) -> dict[str, str]:
    """Name of a run -> address of its report, from the folder of `out` where there is one.

    Names that two runs share have no address, nor have runs without a report.
    """
    import os
    from collections import Counter
    from urllib.parse import quote

    names = Counter(path.resolve().name for path in dict.fromkeys(runs))
    reports = {}
    for path in runs:
        report, name = path.resolve() / "report" / "index.html", path.resolve().name
        if report.is_file() and names[name] == 1:
            near = None if out is None else quote(os.path.relpath(report, out.resolve().parent).replace(os.sep, "/"))
            reports[name] = near or report.as_uri()
    return reports


def require_sort_column(boards: Sequence[Board], sort: str) -> None:
    """Refuse to sort by a column that no board has."""
    from revisit.core import UsageError
    from revisit.core.text import suggest_names

    columns = [column for board in boards for column in board.columns]
    names = {name.lower() for column in columns for name in (column.key, column.title)}
    if sort and sort.lower() not in names:
        titles = dict.fromkeys(column.title for column in columns)
        raise UsageError(f"unknown column {sort!r}; {suggest_names(sort, [*titles, *names])}")


def _collect_boards(runs: list[Path], published: bool, supplement: bool, subset: str) -> list[Board]:
    """The boards asked for: those of runs, then those of result files, then the printed ones."""
    from revisit.core import SUITES
    from revisit.results.leaderboards import join_comparable_boards

    own: list[Board] = []
    files: list[Board] = []
    suites: list[str] = []
    for path in runs:
        suite, boards, is_run = _suite_and_boards_of(path, subset)
        suites.append(suite)
        (own if is_run else files).extend(boards)
    printed: list[Board] = []
    if published or supplement:
        for name in dict.fromkeys(suites) or SUITES:  # the tables of a benchmark say nothing of another one
            tables = SUITES[name].published if name in SUITES else None
            printed += tables(supplement) if tables is not None else ()
            if name in suites and tables is None:
                console.print_to_stderr(f"{name}: Revisit has no published table of this suite")
    return [*join_comparable_boards(own), *files, *printed]


def _suite_and_boards_of(path: Path, subset: str) -> tuple[str, Sequence[Board], bool]:
    """Suite and boards of a run, or of result files by a benchmark's own scripts, and which of the two it is."""
    from revisit.core import SUITES
    from revisit.results.leaderboards import RunFacts, board_of_run
    from revisit.results.run import Run

    if not (path / "run.json").is_file():
        for suite in SUITES.values():
            board = suite.board_of_files(path, subset) if suite.board_of_files is not None else None
            if board is not None:
                return suite.id, [board], False
    run = Run(path)
    suite_id = str(run.facts["suite"])
    facts = RunFacts(path.resolve().name, run.facts, run.plan, run.results, run.summary)
    boards = SUITES[suite_id].boards if suite_id in SUITES else None
    return suite_id, [board_of_run(facts, subset=subset)] if boards is None else boards(facts, subset), True


def _print_board_in_parts(board: Board, sort: str) -> None:
    """Print a board, as many columns at a time as fit, and name the columns in which nobody has a value."""
    from revisit.report.leaderboards import title_with_arrow
    from revisit.results.leaderboards import sort_rows_best_first

    console.print_lines(board.title, f"protocol: {board.protocol}")
    rows = sort_rows_best_first(board, sort)
    filled = [column for column in board.columns if any(row.cell(column).mean is not None for row in rows)]
    for start in range(0, max(len(filled), 1), COLUMNS_PER_TABLE):
        part = filled[start : start + COLUMNS_PER_TABLE]
        cells = [[row.label, row.source, *(row.cell(c).to_text(c.decimals) for c in part)] for row in rows]
        console.print_table(["model", "source", *map(title_with_arrow, part)], cells, numbers=True)
    for column in board.columns:
        if column not in filled:
            reasons = "; ".join(sorted({reason for row in rows for reason in row.cell(column).reasons}))
            console.print_lines(f"no value: {column.title}{f' ({reasons})' if reasons else ''}")
    if board.note:
        console.print_lines(board.note)
    console.print_lines("")


def table(
    runs: list[Path] = typer.Argument(help="Run directories; runs whose numbers compare share a table."),
    metric: list[str] = metric_option("Columns, such as return_consistency.held; those of the verdict by default"),
    table_format: str = typer.Option(
        "markdown", "--format", metavar="FORMAT", help=f"One of {', '.join(PAPER_FORMATS)}."
    ),
    interval: bool = typer.Option(True, "--interval/--no-interval", help="With both ends of each 95 % interval."),
    by: str = typer.Option("", help="Best and second within groups of models: a fact of models.yaml."),
    sort: str = typer.Option("", help="Column to sort by; the better ones come first."),
    measured: bool = flag_option(
        "--measured", "Scores as measured, not held to the truth: a reset may then look best."
    ),
    cost: bool = flag_option("--cost", "With what generating a clip costs, where models.yaml says it."),
    models: Path = typer.Option(None, help="A file of facts of models; models.yaml beside the run by default."),
    out: Path = out_option("Write to this file instead of the screen."),
    json: bool = JSON,
) -> None:
    """Write a table of models by metric, for a paper. The best and second are marked by the same rule as everywhere."""
    from revisit.core.text import require_known_name
    from revisit.report import leaderboards as text
    from revisit.results.display import BEST_RULE
    from revisit.results.model_facts import load_model_facts

    require_known_name(table_format, PAPER_FORMATS, "format")
    boards = _boards_of_runs(runs, metric, measured)
    if by or cost:
        model_facts = load_model_facts(runs, models)
        boards = _group_rows_by_model_fact(boards, by, model_facts) if by else boards
        boards = _add_cost_columns(boards, model_facts) if cost else boards
    if json:
        console.print_json([board.as_json() for board in boards])
        return
    content = getattr(text, f"as_{table_format}")(boards, sort, interval)
    if table_format == "markdown":
        content += f"\n{BEST_RULE}\n"
    elif table_format == "latex":
        content += f"% {BEST_RULE}\n"
    console.write_or_print(content, out)


def _boards_of_runs(runs: list[Path], metric: list[str], measured: bool) -> list[Board]:
    from revisit.core import UsageError
    from revisit.results import leaderboards
    from revisit.results.run import Run
    from revisit.results.score_names import resolve_score_ids, strip_held_suffix

    boards = []
    for path in runs:
        run = Run(path)
        facts = run.facts
        named = resolve_score_ids(metric, list(facts["protocol"]["metrics"]), path, facts["suite"])
        ids = named or leaderboards.headline_score_ids(run.results, facts["suite"])
        columns = list(dict.fromkeys(map(strip_held_suffix, ids))) if measured else ids
        if not columns:
            raise UsageError(f"{path} has no score of what its suite asks; name columns with --metric")
        details = leaderboards.RunFacts(path.resolve().name, facts, run.plan, run.results, run.summary)
        boards.append(leaderboards.board_of_run(details, list(map(leaderboards.board_column_of_score, columns))))
    return leaderboards.join_comparable_boards(boards)


def _group_rows_by_model_fact(boards: list[Board], by: str, model_facts: ModelFacts) -> list[Board]:
    """Rows in groups by a fact of their models."""
    return [
        replace(board, rows=tuple(replace(row, group=model_facts.group_name(row.model, by)) for row in board.rows))
        for board in boards
    ]


def _add_cost_columns(boards: list[Board], model_facts: ModelFacts) -> list[Board]:
    """Boards with columns of what generating costs, of which less is better."""
    from revisit.core import UsageError
    from revisit.results.leaderboards import BoardColumn, cell_without_counts
    from revisit.results.model_facts import COSTS

    rows = [row for board in boards for row in board.rows]
    names = [name for name in COSTS if any(model_facts.cost_number(row.model, name) is not None for row in rows)]
    if not names:
        raise UsageError(
            "nobody says what generating costs; `revisit generate` measures it, or write a model's "
            "`cost: {seconds_per_clip: 42}` into models.yaml beside the run"
        )
    units = {name: f", {unit}" if unit else "" for name, (_, unit) in COSTS.items()}
    currencies = {str(model_facts.facts_of(row.model).get("cost", {}).get("currency", "")) for row in rows} - {""}
    if len(currencies) > 1 and "price_per_clip" in names:
        raise UsageError(f"prices in {' and '.join(sorted(currencies))} do not compare; write them in one currency")
    units["price_per_clip"] = f", {currencies.pop()}" if currencies else ""
    columns = [BoardColumn(name, f"{COSTS[name][0]}{units[name]}", higher_is_better=False) for name in names]

    def add_cost_cells(row: BoardRow) -> BoardRow:
        costs = {name: cell_without_counts(model_facts.cost_number(row.model, name)) for name in names}
        return replace(row, cells={**row.cells, **costs})

    return [
        replace(board, columns=(*board.columns, *columns), rows=tuple(map(add_cost_cells, board.rows)))
        for board in boards
    ]
