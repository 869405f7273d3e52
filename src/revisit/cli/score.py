"""`revisit score`: scores a run again from cached evidence."""

from __future__ import annotations

from pathlib import Path

import typer

from revisit.cli import console


def score(
    run: Path = typer.Argument(help="A run directory."),
    all: bool = typer.Option(False, "--all", help="Print every metric, part and reason, not only the verdict."),
    json: bool = typer.Option(False, "--json", help="Print the summary as JSON."),
) -> None:
    """Score a run again from cached evidence, after a metric or protocol changed. Nothing is decoded."""
    from revisit.engine.request import Request
    from revisit.engine.run import rescore
    from revisit.results.run import Run

    done = Run(run)
    facts = done.facts
    again = rescore(Request.from_json(facts["request"]).plan(judge=facts["protocol"].get("judge")), run)
    if json:
        console.data(again.summary)
    else:
        console.summary(again.summary, all)
    raise typer.Exit(again.exit_code)
