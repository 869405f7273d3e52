"""`revisit import`: turn what is there into what Revisit reads."""

from __future__ import annotations

import json as json_
from pathlib import Path

import typer

from revisit.cli import console

app = typer.Typer(help="Turn what is there into what Revisit reads.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def import_() -> None:
    """Turn what is there into what Revisit reads."""


@app.command()
def scan(
    folder: Path = typer.Argument(help="A folder of videos."),
    pattern: str = typer.Option(None, help="How paths name clips, such as '{id}_{model}.mp4' or '{model}/{id}.mp4'."),
    reference: str = typer.Option(None, help="The model whose clips are the ground truth."),
    targets: Path = typer.Option(None, help="JSON: clip name or id to {'box': [x0, y0, x1, y1], 'target': name}."),
    out: Path = typer.Option(None, help="Where to write; manifest.jsonl in the folder by default, - for stdout."),
    force: bool = typer.Option(False, "--force", help="Overwrite an existing manifest."),
    json: bool = typer.Option(False, "--json", help="Print the manifest's entries as a JSON list."),
) -> None:
    """Write a manifest for a folder of videos, to be completed by hand."""
    from revisit.core import UsageError
    from revisit.suites.folder.scan import read_targets
    from revisit.suites.folder.scan import scan as entries_of

    entries = list(
        entries_of(folder, pattern=pattern, reference=reference, targets=read_targets(targets) if targets else None)
    )
    lines = "".join(json_.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)
    if json:
        console.data(entries)
        return
    if out is not None and str(out) == "-":
        typer.echo(lines, nl=False)
        return
    path = out or folder / "manifest.jsonl"
    if path.exists() and not force:
        raise UsageError(f"{path} exists; --force overwrites it, --out chooses another place")
    path.write_text(lines, encoding="utf-8")
    models = sorted({entry["model"] for entry in entries})
    console.message(f"{len(entries)} clips of {len(models)} models ({', '.join(models[:8])}) in {path}")
