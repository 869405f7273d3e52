"""`revisit table`: the few columns that answer a suite's questions, for a paper."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from revisit.cli import console
from revisit.cli.options import JSON, flag_option, metric_option, out_option

if TYPE_CHECKING:
    from revisit.results.leaderboards import Board, BoardRow
    from revisit.results.model_facts import ModelFacts

FORMATS = ("markdown", "latex", "csv")


def table(
    runs: list[Path] = typer.Argument(help="Run directories; runs whose numbers compare share a table."),
    metric: list[str] = metric_option("Columns, such as return_consistency.held; those of the verdict by default"),
    table_format: str = typer.Option("markdown", "--format", metavar="FORMAT", help=f"One of {', '.join(FORMATS)}."),
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
    from revisit.core import UsageError, import_registering_modules
    from revisit.report import leaderboards as text
    from revisit.results.display import BEST_RULE
    from revisit.results.model_facts import load_model_facts

    import_registering_modules()
    if table_format not in FORMATS:
        raise UsageError(f"there is no format {table_format!r}; there are {', '.join(FORMATS)}")
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
