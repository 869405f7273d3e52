"""`revisit check`: checks the inputs of clips before they are generated, and the clips afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from revisit.cli import console
from revisit.cli.options import JOB_OPTION, JSON, LAYOUT, ONLY, OWN_GENERATORS, ROOT

if TYPE_CHECKING:
    from revisit.preflight.expected import Expected

SHOWN = 4  # clips that a row of the table names


def check(
    what: str = typer.Argument(help="A suite, a clip, a manifest, or a folder of clips, with job files if generated."),
    data: Path = typer.Option(None, help="The dataset of the suite, as for `revisit generate`."),
    model: str = typer.Option("", help="The model whose clips are checked."),
    out: Path = typer.Option(None, help="Folder of the clips; generated/SUITE, or for mbench the dataset itself."),
    generator: str = typer.Option("", help="The card of the generator, as for `revisit generate`."),
    frames: int = typer.Option(None, min=2, help="Frames per clip."),
    size: str = typer.Option("", help="Width x height."),
    fps: float = typer.Option(None, help="Frames per second."),
    first_frame: bool = typer.Option(True, "--first-frame/--no-first-frame", help="Whether clips have a first frame."),
    only: list[str] = ONLY,
    limit: int = typer.Option(None, min=1, help="At most this many clips."),
    option: list[str] = JOB_OPTION,
    layout: str = LAYOUT,
    root: list[Path] = ROOT,
    workers: int = typer.Option(1, min=1, help="Number of clips to check at the same time."),
    own: Path = OWN_GENERATORS,
    json: bool = JSON,
) -> None:
    """Look for missing, broken, frozen, black or swapped clips.

    Also for duplicates and wrong camera paths. The exit code is 0 if nothing is wrong, and 1 if anything is. Without
    any clip only the inputs are checked.
    """
    from revisit.core import SUITES, Case, Rejected, UsageError
    from revisit.core.text import count_and_noun, parse_named_values, split_commas
    from revisit.media import is_clip_file
    from revisit.preflight import expected as expecting
    from revisit.preflight.check import KINDS, check_clips
    from revisit.suites.clips import MANIFEST, find_clip_files, is_frame_folder, read_manifest

    others: list[Path] = []
    rejected: list[Rejected] = []
    place = Path(what)
    manifest = place / MANIFEST if place.is_dir() else place

    if what in SUITES and not place.is_dir():
        from revisit.cli.generate import print_left_out_jobs_and_remarks
        from revisit.control.generation import batch_requests, load_batch
        from revisit.control.generators import find_generator

        if not model:
            raise UsageError("give --model, the model whose clips are checked")
        (condition,) = batch_requests(
            model, split_commas([size]), first_frame, to=find_generator(generator, own) if generator else None,
            frames=frames, fps=fps, only=tuple(split_commas(only)), limit=limit, options=parse_named_values(option),
        )  # fmt: skip
        batch = load_batch(what, data, out, condition)
        print_left_out_jobs_and_remarks(batch)
        expected = expecting.expected_of_jobs(batch.jobs, batch.home)
        others = expecting.find_unexpected_videos(batch.allowed)
    elif manifest.is_file() and is_clip_file(manifest):
        expected = [expecting.Expected(manifest.stem, manifest)]
    elif manifest.is_file() and not layout:
        entries = list(read_manifest(manifest, root))
        rejected = [entry for entry in entries if isinstance(entry, Rejected)]
        cases = [entry for entry in entries if isinstance(entry, Case)]
        expected = expecting.expected_of_cases(cases, manifest.parent)
        listed = {one.clip.resolve() for one in expected}
        found = find_clip_files(place) if place.is_dir() else ()
        if unlisted := [path for _, _, path in found if path.resolve() not in listed]:
            left_out = count_and_noun(len(unlisted), "clip")
            console.print_notes(f"{MANIFEST} does not list {left_out} of the folder, such as {unlisted[0]}")
    elif is_frame_folder(place):
        expected = [expecting.Expected(place.resolve().name, place)]
    elif place.is_dir():
        paths = [path for _, _, path in find_clip_files(place)]
        expected = _add_models_and_missing_clips(expecting.expected_in_folder(place, paths), place, layout)
    else:
        raise UsageError(f"{what}: there is no such suite, file or folder; suites are {', '.join(SUITES)}")
    if not expected and not rejected:
        raise UsageError(f"{what}: there is no clip and no job to check")
    count = console.Counter("looked at")
    result = check_clips(
        expected, strangers=others, rejected=rejected, workers=workers, tell=lambda done, total: count(done, total, "")
    )
    if json:
        faults = [{**vars(fault), "clip": str(fault.clip)} for fault in result.faults]
        remarks = {"not_checked": result.unchecked, "remarks": result.remarks}
        console.print_json({"clips": result.clips, "there": result.there, "faults": faults, **remarks})
        raise typer.Exit(1 if result.faults else 0)
    rows = []
    for kind, meaning in KINDS.items():
        mine = [fault for fault in result.faults if fault.kind == kind]
        if mine:
            rows += [["", "", f"{fault.model} {fault.id}".lstrip(), fault.sentence] for fault in mine[:SHOWN]]
            rows[-min(len(mine), SHOWN)][:2] = [kind, str(len(mine))]
            if len(mine) > SHOWN:
                rows.append(["", "", f"and {len(mine) - SHOWN} more", meaning])
    if rows:
        console.print_table(["fault", "clips", "which", "what"], rows)
    console.print_to_stderr(*result.remarks)
    for reason, clips in result.unchecked.items():
        console.print_to_stderr(f"not checked in {clips} of {result.there} clips, {reason}")
    finding = f"{count_and_noun(len(result.faults), 'fault') if result.faults else 'no faults'} found"
    if not result.there:
        typer.echo(f"there are no clips yet; the inputs of {result.clips} clips were checked: {finding}")
    else:
        typer.echo(f"{result.there} of {result.clips} clips exist; {finding}")
    raise typer.Exit(1 if result.faults else 0)


def _add_models_and_missing_clips(expected: list[Expected], folder: Path, layout: str) -> list[Expected]:
    """The clips with the models that the folder's layout says, where no job does, and those that a model lacks."""
    from dataclasses import replace

    from revisit.core import UsageError
    from revisit.preflight.expected import Expected
    from revisit.suites.folder.path_patterns import path_of_clip_in_layout
    from revisit.suites.folder.read import understand_layout

    if all(one.model for one in expected):
        return expected
    try:
        understood = understand_layout(folder, layout)
    except UsageError:
        if layout:
            raise
        return expected  # names that `eval` would ask about; clips are checked all the same
    if not understood.readings:
        return expected
    console.print_notes(*understood.summary_sentences)
    reading = understood.readings[0]
    with_models = [
        replace(one, model=reading.facts[one.clip].model) if not one.model and one.clip in reading.facts else one
        for one in expected
    ]
    pattern = "{model}/{scene}" if "*" in reading.layout or not reading.layout else reading.layout
    missing = [
        Expected(clip.scene, folder / path_of_clip_in_layout(pattern, clip), clip.model)
        for clip in reading.missing_clips
    ]
    return with_models + missing
