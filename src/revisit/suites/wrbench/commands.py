"""`revisit wrbench`: records to generate, and what the paper's table says; `revisit build wrbench`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import typer

from revisit.cli import console
from revisit.cli.help import Commands
from revisit.cli.options import JSON, OWN_GENERATORS, out_option
from revisit.suites.wrbench.commands_writing import (
    IMAGES,
    SIZE,
    build_first_frames,
    build_prompts,
    build_scenes,
    draw_pictures,
)

app = Commands("WRBench: records to generate, and published results.")


@app.command()
def records(
    out: Path = out_option("Where to write records.jsonl, which `revisit generate` reads.", required=True),
    data: Path = typer.Option(
        None, help="Folder of the published Natural-25 files; the 25 built-in scenes by default."
    ),
    model: str = typer.Option(
        "", help="A generator from `revisit camera models`; it sets interface, frames and inputs."
    ),
    interface: str = typer.Option("", help="path (500 records), moving_path (400) or words (300); path by default."),
    camera: list[str] = typer.Option([], help="Only these cameras, such as pan_LR or orbit (repeatable)."),
    family: list[str] = typer.Option([], help="Only these families of scenes (repeatable)."),
    limit: int = typer.Option(None, min=1, help="At most this many records, chosen at random but always the same."),
    frames: int = typer.Option(None, min=2, help="Frames per clip; the generator's number by default, or 81."),
    seed: int = typer.Option(0, help="Seed to write into every record."),
    no_first_frame: bool = typer.Option(False, "--no-first-frame", help="For generators that get only text."),
    first_frames: Path = typer.Option(None, help="Folder of first frames: <record>, <task> or <family> .png or .jpg."),
    source_videos: Path = typer.Option(None, help="Folder of source videos: <record>, <task> or <family> .mp4."),
    own: Path = OWN_GENERATORS,
    wrbench: Path = typer.Option(None, help="Your copy of WRBench, if --data does not lie in it; for its wording."),
    json: bool = JSON,
) -> None:
    """Write records for a generator, and say which it will refuse."""
    from collections import Counter

    from revisit.control.delivery import refusal_reasons
    from revisit.control.generators import find_generator
    from revisit.core.grouping import group_items
    from revisit.media.files import write_json_lines
    from revisit.suites.wrbench.prompts import own_event_tasks, read_natural25_tasks
    from revisit.suites.wrbench.records import event_view_records, generator_takes_commands, record_row, select_records

    card = find_generator(model, own) if model else None
    length = frames or (card.frames if card else 81)
    takes = "nothing" if no_first_frame else card.takes if card else "image"
    tasks = read_natural25_tasks(data, wrbench) if data is not None else own_event_tasks()
    every = event_view_records(
        tasks,
        interface,
        camera,
        card=card,
        first_frame=not no_first_frame,
        frames=length,
        seed=seed,
        first_frames=first_frames,
        source_videos=source_videos,
    )
    rows = [record_row(record) for record in select_records(list(every), family, limit)]
    scripts = {row["annotations"]["camera"]: row["camera"] for row in rows}
    reasons = {} if card is None else refusal_reasons(scripts, card, length)
    refused = group_items(reasons, reasons.__getitem__)
    what = {"image": "first frame", "source_video": "source video"}.get(takes, "")
    without = sum(takes not in row for row in rows) if what else 0
    write_json_lines(out, rows)
    cameras = Counter(row["annotations"]["camera"] for row in rows)
    if json:
        facts = {"records": len(rows), "cameras": dict(cameras), "frames": length, "starts_from": takes}
        console.print_json({**facts, "without_it": without, "refused": refused, "file": str(out)})
        return
    typer.echo(f"{len(rows)} records in {out}: " + ", ".join(f"{count} {name}" for name, count in cameras.items()))
    if card is None and frames is None:
        console.print_to_stderr(f"clips of {length} frames; --model NAME uses the settings of a generator")
    if without:
        option = f"--{what.replace(' ', '-')}s"
        console.print_to_stderr(f"{without} records have no {what}; give a folder of them with {option}")
    for reason, labels in refused.items():
        count = sum(cameras[label] for label in labels)
        console.print_to_stderr(
            f"{card.id if card else ''} will refuse {count} records ({', '.join(labels)}): {reason}"
        )
    in_parts = takes == "nothing" or generator_takes_commands(card)
    if data is not None and in_parts and {task.wording.source for task in tasks} == {None}:
        console.print_to_stderr(
            "the parts of the prompts are joined by words of Revisit, because no copy of WRBench was found; --wrbench "
            "names yours, and its words are used"
        )


@app.command()
def export(
    source: Path = typer.Argument(help="Clips as `revisit eval` reads them: a folder with records, or a manifest."),
    out: Path = out_option(
        "Manifest for WRBench's evaluator: a JSON list for `eval run`, JSON lines (.jsonl) for `eval d1`.",
        required=True,
    ),
    records: Path = typer.Option(None, help="File that listed the records, if it does not lie beside the clips."),
    root: list[Path] = typer.Option([], "--root", help="Another folder that the manifest may name files of."),
    json: bool = JSON,
) -> None:
    """Write what WRBench's own evaluator needs. Sidecars beside each clip, and its manifest."""
    import json as json_

    from revisit.core import UsageError
    from revisit.media.files import write_json_lines, write_text_atomically
    from revisit.suites.wrbench.evaluator import write_evaluator_sidecars

    if out.suffix not in (".json", ".jsonl"):
        raise UsageError(f"--out {out}: give a name that ends in .json or .jsonl")
    handover = write_evaluator_sidecars(source, root, records=str(records) if records is not None else None)
    if out.suffix == ".jsonl":
        write_json_lines(out, handover.rows)
    else:
        write_text_atomically(out, json_.dumps(handover.rows, indent=1, ensure_ascii=False) + "\n")
    if json:
        facts = {"rows": len(handover.rows), "sidecars": handover.sidecars, "without": dict(handover.without)}
        console.print_json(
            {**facts, "profiles": dict(handover.profiles), "missing": handover.missing, "manifest": str(out)}
        )
        return
    typer.echo(f"{len(handover.rows)} rows in {out}; {handover.sidecars} clips have sidecars")
    for sentence in handover.warning_sentences():
        console.print_to_stderr(sentence)


@app.command()
def published(
    t2v: bool = typer.Option(False, "--t2v", help="The addendum for text to video instead of the main table."),
    json: bool = JSON,
) -> None:
    """Print the paper's table with support, daggers and averages. Its protocol differs from that of your runs."""
    from revisit.suites.wrbench.display import published_columns_table
    from revisit.suites.wrbench.metrics import TITLES
    from revisit.suites.wrbench.tables import (
        MEASURES,
        T2V_MEASURES,
        printed_averages_note,
        published_model_rows,
        published_text_to_video_rows,
    )

    if t2v:
        source, addendum = published_text_to_video_rows()
        if json:
            console.print_json({"source": source, "rows": [dict(row) for row in addendum]})
            return
        typer.echo(f"{source}; returned measures and precision were not published")
        cells = [
            [row["title"], row["camera"], str(row["n"]), *(f"{row[name]:.3f}" for name in T2V_MEASURES)]
            for row in addendum
        ]
        console.print_table(["model", "camera", "n", *(TITLES[name] for name in T2V_MEASURES)], cells, numbers=True)
        return
    source, rows = published_model_rows()
    if json:
        entries = [
            {
                "model": row.model,
                "condition": row.condition,
                "outputs": row.outputs,
                "support": row.support,
                "sparse": row.has_few_returns,
                "average": row.average,
                **{measure: row.mean_of_measure(measure) for measure in MEASURES},
            }
            for row in rows
        ]
        console.print_json({"source": source, "rows": entries})
        return
    table = published_columns_table(rows, source, counts=False)
    typer.echo(f"{table['title']}; {table['note']}; {printed_averages_note()}")
    console.print_table(
        ["model", *table["columns"]], [[row["name"], *row["cells"]] for row in table["rows"]], numbers=True
    )


def build_wrbench_dataset(
    scenes: Path = typer.Argument(help="YAML with families of scenes, as the suite's own scenes.yaml has them."),
    out: Path = out_option("An empty folder for families, variants, layouts, tails and first frames.", required=True),
    t2i: str = typer.Option("", help="Your text-to-image command: 'python draw.py --prompt {prompt} --out {out}'."),
    images: str = IMAGES,
    size: str = SIZE,
    timeout: float = typer.Option(600, help="Seconds for one picture by --t2i."),
    licence: str = typer.Option(..., "--licence", help="Of the scenes and pictures; it goes onto the card."),
    source: str = typer.Option(..., help="Where they are from; it goes onto the card."),
    json: bool = JSON,
) -> None:
    """Write WRBench's prompts from scenes, and draw first frames.

    For image- and text-to-video; what tells the end is refused.
    """
    from revisit.core import UsageError
    from revisit.suites.wrbench.build import Draw, read_scene_families, write_wrbench_dataset

    if t2i and images:
        raise UsageError("first frames are drawn by --t2i, a command, or by --images, a server; give one of them")
    families = read_scene_families(scenes)
    draw: Draw | None = partial(_draw_by_server, images, size) if images else None
    if t2i:
        draw = partial(_draw_by_command, t2i, timeout)
    place, problems = write_wrbench_dataset(out, families, licence=licence, source=source, draw=draw)
    for sentence in problems:
        console.print_to_stderr(sentence)
    console.print_to_stderr(f"{len(families)} families, {4 * len(families)} events")
    if json:
        console.print_json({"dataset": str(place), "families": len(families), "problems": list(problems)})
    else:
        typer.echo(f"revisit build check {place}")
    raise typer.Exit(1 if problems else 0)


def _draw_by_command(command: str, timeout: float, prompts: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Draw with a command for each picture; why some have none."""
    from revisit.control.generator_backends import CommandBackend
    from revisit.control.jobs import Job
    from revisit.suites.wrbench.build import SIZE as PUBLISHED

    maker = CommandBackend(command, {})
    folder.mkdir(parents=True, exist_ok=True)
    trouble = {}
    for name, prompt in prompts.items():
        path = folder / f"{name}.png"
        request = Job(name, path, 1, 1.0, PUBLISHED, sample=name, prompt=prompt).as_json(path, None, {})
        ended = maker.make(request, path, timeout)
        if ended.status or not path.is_file():
            trouble[name] = f"{ended.status}: {ended.reason}" if ended.status else "the command wrote no file"
    return trouble


def _draw_by_server(images: str, size: str, prompts: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Draw with a text-to-image server; why some pictures are not there."""
    ended = draw_pictures(images, prompts, folder, size)
    return {one.id: f"{one.status}: {one.reason}" for one in ended if not one.has_picture}


COMMANDS = {
    "build wrbench": build_wrbench_dataset,
    "build first-frames": build_first_frames,
    "build scenes": build_scenes,
    "build prompts": build_prompts,
    "wrbench": app,
}
