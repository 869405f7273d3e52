"""`revisit build mbench`: datasets in MBench's layout from a folder of real videos."""

from __future__ import annotations

from pathlib import Path

import typer

from revisit.cli import console
from revisit.cli.judge import FRAMES, JUDGE, chosen_judge, look_at, store_of


def build(
    videos: Path = typer.Argument(help="A folder of videos."),
    out: Path = typer.Option(..., help="An empty folder; MBench-A and MBench-T are made in it."),
    judge: str = JUDGE,
    frames: int = FRAMES,
    licence: str = typer.Option(..., "--licence", help="Of the videos, such as CC-BY-4.0; it goes onto the card."),
    source: str = typer.Option(..., help="Where the videos are from; it goes onto the card."),
) -> None:
    """Choose, describe and caption videos with a judge, and write MBench-A and MBench-T."""
    from revisit.core import RevisitError, UsageError
    from revisit.suites.authoring import empty_folder, videos_in
    from revisit.suites.mbench.build import ask, write

    found = videos_in(videos)
    empty_folder(out)
    chosen, told = chosen_judge(judge), []
    with chosen.asker(store_of(chosen)) as asker:
        for video in found:
            try:
                said = ask(asker, video, lambda path: look_at(path, frames))
            except RevisitError as error:
                said = str(error)
            if isinstance(said, str):
                console.message(f"left out: {said}")
            else:
                told.append(said)
                console.message(f"{video.name}: {said.subset}, {said.name}")
    if not told:
        raise UsageError("no video was chosen; the reasons are above")
    made = write(out, told, licence=licence, source=source)
    console.message(f"{len(told)} of {len(found)} videos chosen")
    for place in made:
        typer.echo(f"revisit build check {place}")
