"""`revisit build wrbench`: scene families in the layout of the published prompts."""

from __future__ import annotations

from pathlib import Path

import typer

from revisit.cli import console


def build(
    scenes: Path = typer.Argument(help="YAML with families of scenes, as the suite's own scenes.yaml has them."),
    out: Path = typer.Option(..., help="An empty folder for families, variants, layouts, tails and first frames."),
    t2i: str = typer.Option("", help="Your text-to-image command: 'python draw.py --prompt {prompt} --out {out}'."),
    timeout: float = typer.Option(600, help="Seconds for one picture."),
    licence: str = typer.Option(..., "--licence", help="Of the scenes and pictures; it goes onto the card."),
    source: str = typer.Option(..., help="Where they are from; it goes onto the card."),
) -> None:
    """Write prompts for image- and text-to-video from scenes, draw first frames, and refuse what tells the end."""
    from revisit.control.makers import OneShot
    from revisit.suites.wrbench.build import read, write

    families = read(scenes)
    drawer = OneShot(t2i, {}) if t2i else None

    def draw(name: str, prompt: str, path: Path) -> str:
        assert drawer is not None
        path.parent.mkdir(parents=True, exist_ok=True)
        inputs = {"prompt": prompt, "image": None, "source_video": None, "context": None}
        request = {
            "id": name, "sample": name, "seed": 0, "frames": 1, "fps": 1.0, "size": [1294, 712], "inputs": inputs,
            "control": {}, "out": str(path),
        }  # fmt: skip
        status, reason = drawer.make(request, path, timeout)
        return f"{status}: {reason}" if status else "" if path.is_file() else "the command wrote no file"

    place, said = write(out, families, licence=licence, source=source, draw=draw if drawer else None)
    for sentence in said:
        console.message(sentence)
    console.message(f"{len(families)} families, {4 * len(families)} events")
    typer.echo(f"revisit build check {place}")
    raise typer.Exit(1 if said else 0)
