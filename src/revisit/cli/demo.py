"""`revisit demo`: five models with known failures, rendered and evaluated."""

from __future__ import annotations

from pathlib import Path

import typer

from revisit.cli import console


def demo(
    out: Path = typer.Option(Path("demo"), help="Folder for the videos and the run."),
    scenes: int = typer.Option(None, help="How many scenes; all by default."),
    workers: int = typer.Option(None, help="Processes; as many as cores by default."),
    fresh: bool = typer.Option(False, "--fresh", help="Evaluate again from the start."),
    json: bool = typer.Option(False, "--json", help="Print the summary as JSON."),
) -> None:
    """Render small worlds with five models that remember or fail in a known way, and evaluate them."""
    from revisit.cli.eval_ import eval_
    from revisit.worlds.demo import render_demo

    console.message(f"rendering worlds into {out / 'videos'}")
    render_demo(
        out / "videos", scenes=scenes, progress=lambda done, total, what: console.message(f"{done}/{total} {what}")
    )
    eval_(
        source=out / "videos", suite="folder", set="lite", protocol=None, metric=[], out=out / "run", limit=None,  # type: ignore[arg-type]
        workers=workers, fresh=fresh, align="auto", root=[], limits="", report=True, json=json, quiet=False,
    )  # fmt: skip
