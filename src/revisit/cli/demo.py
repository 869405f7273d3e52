"""`revisit demo`: renders and evaluates models with known failures."""

from __future__ import annotations

from pathlib import Path

import typer

from revisit.cli import console
from revisit.cli.options import ALL, JSON, WORKERS, flag_option, out_option
from revisit.cli.running import run_evaluation, write_report_and_print_summary


def demo(
    out: Path = out_option("Folder for the videos and the run; demo, or demo-<suite>, by default."),
    suite: str = typer.Option("folder", help="Suite whose layout is used: folder, mind, or a plugin's."),
    scenes: int = typer.Option(None, min=1, max=9, help="How many of the nine rooms, all by default; only for folder."),
    workers: int = WORKERS,
    fresh: bool = flag_option("--fresh", "Render and evaluate again from the start."),
    show_all: bool = ALL,
    json: bool = JSON,
) -> None:
    """Render small worlds and score models with known failures."""
    from revisit.core import UsageError
    from revisit.engine.request import Request
    from revisit.worlds.layouts.film_orders import DEMOS

    if suite not in DEMOS:
        raise UsageError(f"there is a demo for {' and '.join(DEMOS)}, not for {suite!r}")
    if scenes is not None and suite != "folder":
        raise UsageError(f"--scenes chooses rooms of the suite folder; the demo of {suite} is always the same")
    out = out or Path("demo" if suite == "folder" else f"demo-{suite}")
    render, count = DEMOS[suite], console.Counter("rendered")
    source, option = render(out / "videos", fresh, scenes or 9, console.print_to_stderr, count)
    request = Request.from_options(source, suite, "lite", options=option)
    run = run_evaluation(request, out / "run", fresh=fresh, workers=workers)
    raise typer.Exit(write_report_and_print_summary(run, show_all=show_all, json=json))
