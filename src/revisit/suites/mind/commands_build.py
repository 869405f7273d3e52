"""`revisit build mind`: a dataset in MIND's layout from recordings with key logs or poses."""

from __future__ import annotations

from pathlib import Path

import typer

from revisit.cli import console


def build(
    recordings: Path = typer.Argument(help="A folder of <name>.mp4 with <name>.keys.csv or <name>.poses.npy."),
    out: Path = typer.Option(..., help="An empty folder; the dataset is made in MIND-Data/."),
    perspective: str = typer.Option("1st_data", help="1st_data or 3rd_data."),
    mark: float = typer.Option(0.5, help="Share of a recording that is context; the rest is to be predicted."),
    metres: float = typer.Option(0.05, help="What a key walks in a frame, where only keys are known."),
    degrees: float = typer.Option(2.0, help="What a key turns in a frame, where only keys are known."),
    licence: str = typer.Option(..., "--licence", help="Of the recordings; it goes onto the card."),
    source: str = typer.Option(..., help="Where they are from; it goes onto the card."),
) -> None:
    """Write action.json and images.txt for recordings, and the ten go-and-return tests from their first frames."""
    from revisit.suites.authoring import videos_in
    from revisit.suites.mind.build import Steps, write

    data, left_out = write(
        out, videos_in(recordings), perspective=perspective, mark=mark, steps=Steps(metres, degrees), licence=licence,
        source=source,
    )  # fmt: skip
    for sentence in left_out:
        console.message(f"left out: {sentence}")
    typer.echo(f"revisit build check {data}")
