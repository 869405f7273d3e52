"""`revisit flashback`: what a folder of Flashback holds."""

from __future__ import annotations

from pathlib import Path

import typer


def flashback(folder: Path = typer.Argument(help="A folder with flashback.txt.")) -> None:
    """Count the clips of a folder, and the videos there are of each."""
    from revisit import Case
    from revisit_example.flashback.suite import read

    there = [isinstance(entry, Case) for entry in read(folder)]
    typer.echo(f"{sum(there)} of {len(there)} videos are there")


COMMANDS = {"flashback": flashback}
