"""`revisit world`: worlds with known truth, and models that fail in known ways."""

from __future__ import annotations

from pathlib import Path

import typer

from revisit.cli import console

app = typer.Typer(help="Worlds with known truth.", no_args_is_help=True)


@app.callback()
def world() -> None:
    """Worlds with known truth, and models that fail in known ways."""


@app.command("render")
def render(
    suite: list[str] = typer.Option(
        ["all"],
        help="In whose layout: all, or names such as folder, mind, mbench (actions) or mbench-t (text); repeat it.",
    ),
    out: Path = typer.Option(Path("worlds"), help="Folder to write to, with one folder per suite."),
    seeds: int = typer.Option(2, min=1, max=1000, help="How many places; each suite makes one to four films of each."),
    size: str = typer.Option("240x416", help="Height x width; MIND gets half of it."),
    frames: int = typer.Option(
        None,
        help="Frames of a clip, 49 by default; in MIND of a prediction, 18. Its rule upstream needs 101.",
    ),
    failures: list[str] = typer.Option(
        [], help="Models, such as perfect, vanish or vanish@0.5; repeat it, or use commas. Each suite has its own set."
    ),
    workers: int = typer.Option(None, help="Processes; as many as cores by default."),
    fresh: bool = typer.Option(False, "--fresh", help="Render again from the start."),
    json: bool = typer.Option(False, "--json", help="Print what was written as JSON."),
) -> None:
    """Render films, and what models with known failures make of them, in the layouts of the benchmarks.

    What is complete is kept: the same command goes on where it stopped.
    """
    from revisit.worlds.layouts.common import Model
    from revisit.worlds.layouts.orders import LAYOUTS, evaluation
    from revisit.worlds.layouts.rendering import render as rendered

    suites = _parts(suite)
    models = [Model.parse(part) for part in _parts(failures)]
    chosen = list(LAYOUTS) if "all" in suites else suites
    console.message(f"rendering {', '.join(chosen)} into {out}")
    folders = rendered(
        out, chosen, seeds=seeds, size=_size(size), frames=frames, models=models, workers=workers, fresh=fresh,
        progress=console.Counter("rendered"),
    )  # fmt: skip
    commands = {name: evaluation(name, folder) for name, folder in folders.items()}
    if json:
        console.data({name: {"folder": folders[name], "evaluate": command} for name, command in commands.items()})
        return
    for name, command in commands.items():
        console.message(f"{name}: {folders[name]}")
        console.message(f"  {command}")


def _parts(values: list[str]) -> list[str]:
    return [part.strip() for value in values for part in value.split(",") if part.strip()]


def _size(text: str) -> tuple[int, int]:
    from revisit.core import UsageError

    try:
        height, width = (int(part) for part in text.lower().split("x"))
    except ValueError:
        raise UsageError(f"{text!r} is no size; a size is height x width, such as 240x416") from None
    return height, width
