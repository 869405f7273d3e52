"""`revisit demo` and `world`: worlds with known truth, models with known failures, and what their scores are."""

from __future__ import annotations

from pathlib import Path

import typer

from revisit.cli import console
from revisit.cli.eval_ import run_evaluation, write_report_and_print_summary
from revisit.cli.help import Commands
from revisit.cli.options import ALL, JSON, WORKERS, flag_option, out_option

app = Commands("Render worlds with known truth.")


@app.command("render")
def render_worlds(
    suite: list[str] = typer.Option(
        ["all"],
        help="Layouts to write: all, or names such as folder, mind, mbench (actions) or mbench-t (text); repeatable.",
    ),
    out: Path = out_option("Folder to write to, with one folder per suite.", Path("worlds")),
    seeds: int = typer.Option(2, min=1, max=1000, help="Number of places; each suite makes one to four films of each."),
    size: str = typer.Option("240x416", help="Height x width; MIND gets half of it."),
    frames: int = typer.Option(
        None, help="Frames per clip, 49 by default; for MIND per prediction, 18. MIND's rule upstream needs 101."
    ),
    failures: list[str] = typer.Option(
        [],
        help="Models, such as perfect or vanish@0.5 (repeatable, or separated by commas). Each suite has its own set.",
    ),
    workers: int = WORKERS,
    fresh: bool = flag_option("--fresh", "Render again from the start."),
    json: bool = JSON,
) -> None:
    """Render films and clips of models with known failures. In the layouts of benchmarks. The same command resumes."""
    from revisit.core.text import parse_width_and_height, split_commas
    from revisit.worlds.layouts.common import Model
    from revisit.worlds.layouts.film_orders import LAYOUTS, evaluation_command
    from revisit.worlds.layouts.rendering import render_layouts as rendered

    suites = split_commas(suite)
    models = [Model.parse(part) for part in split_commas(failures)]
    layouts = list(LAYOUTS) if "all" in suites else suites
    console.print_to_stderr(f"rendering {', '.join(layouts)} into {out}")
    folders = rendered(
        out, layouts, seeds=seeds, size=parse_width_and_height(size, "height x width, such as 240x416"),
        frames=frames, models=models, workers=workers, fresh=fresh, progress=console.Counter("rendered"),
    )  # fmt: skip
    commands = {name: evaluation_command(name, folder) for name, folder in folders.items()}
    if json:
        console.print_json({name: {"folder": folders[name], "evaluate": command} for name, command in commands.items()})
        return
    for name, command in commands.items():
        console.print_to_stderr(f"{name}: {folders[name]}", f"  {command}")


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
