"""`revisit report`: a run as a page that opens from disk."""

from __future__ import annotations

from pathlib import Path

import typer

from revisit.cli import console


def report(
    run: Path = typer.Argument(help="A run directory."),
    copy_clips: bool = typer.Option(
        False, "--copy-clips", help="Copy the videos into the report, to send it to someone."
    ),
    json: bool = typer.Option(False, "--json", help="Print the run's summary as JSON as well."),
) -> None:
    """Write RUN/report/index.html and print its path."""
    from revisit.engine.run import Run
    from revisit.report.html import write_report

    done = Run(run)
    page = write_report(done, copy_clips=copy_clips)
    if json:
        console.data({"report": str(page), "summary": done.summary})
    else:
        typer.echo(str(page))
