"""`revisit build`: benchmark data of your own, by the builders of the benchmarks. `revisit describe`: what is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from revisit.cli import console
from revisit.cli.benchmarks import OpenGroup
from revisit.cli.help import Commands
from revisit.cli.options import JSON

app = Commands("Make benchmark data of your own.", cls=OpenGroup)
ROWS = 20  # of a table that are shown


@app.command("check")
def check_dataset(
    data: Path = typer.Argument(help="A dataset."),
    suite: str = typer.Option("", help="Whose; told by its layout by default."),
    json: bool = JSON,
) -> None:
    """List what the suite could not score, or is not as the card says. Exit code 1 if there is anything."""
    from revisit.core.text import count_and_noun
    from revisit.suites.authoring import card_problems

    name, tools = _suite_and_dataset_tools(data, suite)
    problems = [*card_problems(data), *tools.problems(data)]
    verdict = count_and_noun(len(problems), "problem") if problems else f"a dataset of {name}, nothing is wrong"
    if json:
        console.print_json({"suite": name, "problems": problems})
    else:
        console.print_lines(*problems, f"{data}: {verdict}")
    raise typer.Exit(1 if problems else 0)


def describe(
    data: Path = typer.Argument(help="A dataset: built here, or as a benchmark publishes it."),
    suite: str = typer.Option("", help="Whose; told by its layout by default."),
    figures: Path = typer.Option(None, help="Folder for histograms (SVG)."),
    json: bool = JSON,
) -> None:
    """Count what a dataset holds, as tables and figures. Categories, lengths, trajectories and gaps."""
    from revisit.report.plots import histogram_svg

    name, tools = _suite_and_dataset_tools(data, suite)
    contents = tools.describe(data)
    if figures is not None:
        figures.mkdir(parents=True, exist_ok=True)
        for title, values in contents.histograms.items():
            if len(values):
                file = figures / f"{title.replace(' ', '_').replace(',', '')}.svg"
                file.write_text(histogram_svg(title, list(values)), encoding="utf-8")
                console.print_to_stderr(f"figure: {file}")
    if json:
        tables = [{"title": title, "columns": list(columns), "rows": rows} for title, columns, rows in contents.tables]
        console.print_json({"suite": name, "title": contents.title, "facts": dict(contents.facts), "tables": tables})
        return
    typer.echo(contents.title)
    console.print_table(["", ""], [[key, str(value)] for key, value in contents.facts.items()])
    for title, columns, rows in contents.tables:
        if rows:
            typer.echo(title)
            console.print_table(list(columns), [[str(cell) for cell in row] for row in rows[:ROWS]])
            if len(rows) > ROWS:
                typer.echo(f"and {len(rows) - ROWS} more")


def _suite_and_dataset_tools(data: Path, suite: str) -> tuple[str, Any]:
    """The suite whose dataset a folder holds, and its tools."""
    from revisit.core import SUITES, UsageError

    if not data.is_dir():
        raise UsageError(f"{data}: no such folder")
    tools_by_suite = {name: SUITES[name].dataset for name in SUITES if SUITES[name].dataset is not None}
    name = suite or next((name for name, tools in tools_by_suite.items() if tools.recognises(data)), "")
    if not name:
        raise UsageError(f"{data}: no dataset of {', '.join(tools_by_suite)} is here; --suite says whose it is")
    if name not in tools_by_suite:
        raise UsageError(f"the suite {name!r} describes no dataset; these do: {', '.join(tools_by_suite)}")
    return name, tools_by_suite[name]
