"""`revisit world`: renders worlds with known truth, and models with known failures."""

from __future__ import annotations

from pathlib import Path

import typer

from revisit.cli import console
from revisit.cli.help import Commands
from revisit.cli.options import JSON, WORKERS, flag_option, out_option

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
        console.print_to_stderr(f"{name}: {folders[name]}")
        console.print_to_stderr(f"  {command}")
