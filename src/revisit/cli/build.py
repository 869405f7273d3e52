"""`revisit build`, `import` and `describe`: data of your own, by the builders of the benchmarks or from other files."""

from __future__ import annotations

import json as json_
from pathlib import Path
from typing import Any

import typer

from revisit.cli import console
from revisit.cli.benchmarks import OpenGroup
from revisit.cli.help import Commands
from revisit.cli.options import JSON, flag_option, out_option

app = Commands("Make benchmark data of your own.", cls=OpenGroup)
import_app = Commands("Convert existing files into the formats that Revisit reads.", cls=OpenGroup)
ROWS = 20  # of a table that are shown


@app.command("check")
def check_dataset(
    data: Path = typer.Argument(help="A dataset."),
    suite: str = typer.Option("", help="Whose; told by its layout by default."),
    json: bool = JSON,
) -> None:
    """List what the suite could not score, or is not as the card says. Exit code 1 if there is anything."""
    from revisit.core.text import count_and_noun

    name, tools = _suite_and_dataset_tools(data, suite)
    problems = tools.problems_with_card(data)
    verdict = count_and_noun(len(problems), "problem") if problems else f"a dataset of {name}, nothing is wrong"
    if json:
        console.print_json({"suite": name, "problems": problems})
    else:
        console.print_lines(*problems, f"{data}: {verdict}")
    raise typer.Exit(1 if problems else 0)


def describe(
    data: Path = typer.Argument(help="A dataset: built here, or as a benchmark publishes it."),
    suite: str = typer.Option("", help="Whose; told by its layout by default."),
    figures: Path = typer.Option(None, help="Folder for histograms (SVG)."),
    json: bool = JSON,
) -> None:
    """Count what a dataset holds, as tables and figures. Categories, lengths, trajectories and gaps."""
    from revisit.report.plots import histogram_svg

    name, tools = _suite_and_dataset_tools(data, suite)
    contents = tools.describe(data)
    if figures is not None:
        figures.mkdir(parents=True, exist_ok=True)
        for title, values in contents.histograms.items():
            if len(values):
                file = figures / f"{title.replace(' ', '_').replace(',', '')}.svg"
                file.write_text(histogram_svg(title, list(values)), encoding="utf-8")
                console.print_to_stderr(f"figure: {file}")
    if json:
        tables = [{"title": title, "columns": list(columns), "rows": rows} for title, columns, rows in contents.tables]
        console.print_json({"suite": name, "title": contents.title, "facts": dict(contents.facts), "tables": tables})
        return
    typer.echo(contents.title)
    console.print_table(["", ""], [[key, str(value)] for key, value in contents.facts.items()])
    for title, columns, rows in contents.tables:
        if rows:
            typer.echo(title)
            console.print_table(list(columns), [[str(cell) for cell in row] for row in rows[:ROWS]])
            if len(rows) > ROWS:
                typer.echo(f"and {len(rows) - ROWS} more")


def _suite_and_dataset_tools(data: Path, suite: str) -> tuple[str, Any]:
    """The suite whose dataset a folder holds, and its tools."""
    from revisit.core import SUITES, UsageError

    if not data.is_dir():
        raise UsageError(f"{data}: no such folder")
    tools_by_suite = {name: SUITES[name].dataset for name in SUITES if SUITES[name].dataset is not None}
    name = suite or next((name for name, tools in tools_by_suite.items() if tools.recognises(data)), "")
    if not name:
        raise UsageError(f"{data}: no dataset of {', '.join(tools_by_suite)} is here; --suite says whose it is")
    if name not in tools_by_suite:
        raise UsageError(f"the suite {name!r} describes no dataset; these do: {', '.join(tools_by_suite)}")
    return name, tools_by_suite[name]


@import_app.command()
def scan(
    folder: Path = typer.Argument(help="A folder of videos."),
    pattern: str = typer.Option(
        None,
        "--pattern",
        "--layout",
        help="How paths are read, such as '{scene}_{model}.mp4'; as `eval` does by default.",
    ),
    reference: str = typer.Option(None, help="The model whose clips are the truth, where its name does not say so."),
    targets: Path = typer.Option(None, help="JSON file: clip name or id to {'box': [x0, y0, x1, y1], 'target': name}."),
    out: Path = out_option("Where to write; manifest.jsonl in the folder by default, - for stdout."),
    force: bool = flag_option("--force", "Overwrite an existing manifest."),
    json: bool = flag_option("--json", "Print the manifest's entries as a JSON list."),
) -> None:
    """Write a manifest of a folder of videos as `eval` reads it, to complete by hand."""
    from revisit.core import UsageError
    from revisit.core.text import count_and_noun, join_names
    from revisit.datasets.clips import read_target_boxes
    from revisit.datasets.folder.read import scan_folder

    boxes = read_target_boxes(targets) if targets else None
    entries = list(
        scan_folder(folder, pattern=pattern, reference=reference, targets=boxes, on_remark=console.print_notes)
    )
    lines = "".join(json_.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)
    if json:
        console.print_json(entries)
        return
    if out is not None and str(out) == "-":
        typer.echo(lines, nl=False)
        return
    path = out or folder / "manifest.jsonl"
    if path.exists() and not force:
        raise UsageError(f"{path} exists; pass --force to overwrite it, or choose another file with --out")
    path.write_text(lines, encoding="utf-8")
    models = sorted({entry["model"] for entry in entries})
    with_truth = sum("reference" in entry for entry in entries)
    console.print_to_stderr(
        f"{count_and_noun(len(entries), 'clip')} of {count_and_noun(len(models), 'model')} ({join_names(models, 9)}), "
        f"{with_truth or 'none'} with its truth, in {path}"
    )


@import_app.command()
def poses(
    source: Path = typer.Argument(help="Poses of a clip: npz of Depth Anything 3, VGGT, ViPE or MapAnything, COLMAP …"),
    out: Path = out_option("The npz file to write.", Path("results.npz")),
    format: str = typer.Option("auto", help="da3, vggt, mapanything, vipe, colmap or another of docs/poses.md."),
    intrinsics: str = typer.Option(None, help="A file (ViPE's npz, COLMAP's cameras.txt) or fx,fy,cx,cy in pixels."),
    depth: Path = typer.Option(None, help="An npz with the array depth (N, H, W), if the source has none."),
    size: str = typer.Option(None, help="WIDTHxHEIGHT of the intrinsics, if it differs from the depth maps."),
    convention: str = typer.Option("auto", help="w2c or c2w, if the file does not say; auto finds out from its depth."),
    force: bool = flag_option("--force", "Overwrite an existing file."),
    json: bool = flag_option("--json", "Print what is known about the file as JSON."),
) -> None:
    """Write poses and depth as the npz that geometry metrics read. Depth in half floats, no pictures."""
    from revisit.core import UsageError
    from revisit.core.text import parse_width_and_height
    from revisit.observers.geometry_file import convert_geometry_file

    if out.exists() and not force:
        raise UsageError(f"{out} exists; pass --force to overwrite it, or choose another file with --out")
    pixels = None if size is None else parse_width_and_height(size)
    details = convert_geometry_file(
        source, out, format=format, intrinsics=intrinsics, depth=depth, size=pixels, convention=convention
    )
    if json:
        console.print_json(details)
        return
    console.print_to_stderr(
        f"{details['poses']} poses ({details['convention']}, according to {details['said_by']}) for depth maps of "
        f"{details['grid'][0]} x {details['grid'][1]} in {out}, {details['megabytes']} MB"
    )
