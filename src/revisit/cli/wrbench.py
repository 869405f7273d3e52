"""`revisit wrbench`: records to generate, and what the paper's table says."""

from __future__ import annotations

import json as json_
from pathlib import Path

import typer

from revisit.cli import console

app = typer.Typer(help="WRBench: records to generate; published results.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
def records(
    out: Path = typer.Option(..., help="Where to write records.jsonl, which `revisit camera run` reads."),
    data: Path = typer.Option(None, help="Folder of the published Natural-25 files; our own 25 scenes by default."),
    interface: str = typer.Option("path", help="path (500 records), moving_path (400) or words (300)."),
    camera: list[str] = typer.Option([], help="Only these cameras (repeat it), such as pan_LR or orbit."),
    frames: int = typer.Option(81, help="Frames of a clip, an odd number."),
    seed: int = typer.Option(0, help="Seed that is written into every record."),
    no_first_frame: bool = typer.Option(False, "--no-first-frame", help="For generators that get text alone."),
    first_frames: Path = typer.Option(None, help="Folder of first frames, <family>.png, for our own scenes."),
    json: bool = typer.Option(False, "--json", help="Print what was written as JSON."),
) -> None:
    """Write the records that a generator shall make clips of."""
    from collections import Counter
    from dataclasses import replace

    from revisit.control.presets import preset
    from revisit.suites.wrbench.prompts import natural25_tasks, own_tasks
    from revisit.suites.wrbench.records import event_views

    tasks = natural25_tasks(data) if data is not None else own_tasks()
    if first_frames is not None:
        known = {path.stem: path for path in sorted(first_frames.iterdir()) if path.suffix.lower() in (".png", ".jpg")}
        tasks = tuple(replace(task, first_frame=known.get(task.family, task.first_frame)) for task in tasks)
    lines = []
    cameras: Counter[str] = Counter()
    for view in event_views(tasks, interface, camera, first_frame=not no_first_frame):
        script = preset(view.preset, degrees=view.degrees or 60, frames=frames)
        row = view.as_json(script, seed)
        if "image" in row:
            row["image"] = str(Path(row["image"]).resolve())
        lines.append(json_.dumps(row, ensure_ascii=False) + "\n")
        cameras[view.camera] += 1
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("".join(lines), encoding="utf-8")
    without = sum('"image"' not in line for line in lines)
    if json:
        console.data(
            {"records": len(lines), "cameras": dict(cameras), "without_first_frame": without, "file": str(out)}
        )
        return
    typer.echo(f"{len(lines)} records in {out}: " + ", ".join(f"{count} {name}" for name, count in cameras.items()))
    if without and not no_first_frame:
        console.message(f"{without} records have no first frame; give a folder of them with --first-frames")


@app.command()
def published(json: bool = typer.Option(False, "--json", help="Print JSON.")) -> None:
    """Print the paper's table with its support, daggers and averages. Another protocol than any run of yours."""
    from revisit.suites.wrbench.shown import main_table
    from revisit.suites.wrbench.tables import MEASURES
    from revisit.suites.wrbench.tables import published as rows_of

    source, rows = rows_of()
    if json:
        console.data(
            {
                "source": source,
                "rows": [
                    {
                        "model": row.model, "condition": row.condition, "outputs": row.outputs, "support": row.support,
                        "sparse": row.sparse, "average": row.average,
                        **{measure: row.value(measure) for measure in MEASURES},
                    }
                    for row in rows
                ],
            }
        )  # fmt: skip
        return
    made = main_table(rows, source, counts=False)
    typer.echo(f"{made['title']}; {made['note']}")
    console.table(["model", *made["columns"]], [[row["name"], *row["cells"]] for row in made["rows"]], numbers=True)
