"""`revisit demo`: five models with known failures, rendered and evaluated."""

from __future__ import annotations

from pathlib import Path

import typer

from revisit.cli import console


def demo(
    out: Path = typer.Option(Path("demo"), help="Folder for the videos and the run."),
    scenes: int = typer.Option(4, min=1, max=4, help="How many of the four scenes."),
    workers: int = typer.Option(None, help="Processes; as many as cores by default."),
    fresh: bool = typer.Option(False, "--fresh", help="Render and evaluate again from the start."),
    json: bool = typer.Option(False, "--json", help="Print the summary as JSON."),
) -> None:
    """Render small worlds with five models that remember or fail in a known way, and evaluate them."""
    from revisit.cli.eval_ import eval_
    from revisit.worlds.demo import SCENES, render_demo

    videos = out / "videos"
    if fresh or not (videos / "manifest.jsonl").is_file():  # the manifest is written last: with it, all is there
        console.message(f"rendering {scenes} rooms, as they are and as five models remember them, into {videos}")
        render_demo(videos, scenes=SCENES[:scenes], progress=console.Counter("rendered"))
    eval_(
        source=videos, suite="folder", set="lite", protocol=None, metric=[], out=out / "run", limit=None,  # type: ignore[arg-type]
        workers=workers, fresh=fresh, align="auto", root=[], limits="", report=True, json=json, quiet=False,
    )  # fmt: skip
