"""`revisit verdict`: which model answers each question of a run best, and how sure that is."""

from __future__ import annotations

from pathlib import Path

import typer

from revisit.cli import console


def verdict(
    run: Path = typer.Argument(help="A run directory."),
    all: bool = typer.Option(False, "--all", help="Print every metric, part and reason as well."),
    json: bool = typer.Option(False, "--json", help="Print the verdict as JSON."),
) -> None:
    """Tell which model answers each question best, how sure that is, and where to look."""
    from revisit.core import load_all
    from revisit.results.run import Run
    from revisit.results.verdict import verdict_of

    load_all()
    done = Run(run)
    made = verdict_of(done)
    if json:
        console.data(made)
    else:
        console.summary({**done.summary, "verdict": made}, all)
