"""`revisit generate` and `check`: makes the clips of a suite with your own generator, and looks for faults in clips."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from revisit.cli import console
from revisit.cli.options import JSON, LAYOUT, OWN_GENERATORS, ROOT, flag_option, out_option, refuse_other_parameters

if TYPE_CHECKING:
    from revisit.control.generation import GeneratorChoice
    from revisit.control.generators import Generator
    from revisit.control.job_runner import GenerationSettings, JobResult
    from revisit.control.jobs import JobBatch
    from revisit.core import Rejected
    from revisit.preflight.check import CheckReport
    from revisit.preflight.expected import Expected

ONLY = typer.Option([], help="Only these subsets, conditions or samples (repeatable, or separated by commas).")
JOB_OPTION = typer.Option([], "--option", metavar="NAME=VALUE", help="An option of the jobs of the suite (repeatable).")
RECORD_OPTIONS = (
    "suite", "command", "out", "generator", "frames", "workers", "timeout", "checkpoint", "own", "json"
)  # fmt: skip
FAULTS_SHOWN = 4  # clips that a row of the table names


def generate(
    ctx: typer.Context,
    suite: str = typer.Argument(
        metavar="SUITE|RECORDS", help="A benchmark such as mind, `folder` (a manifest), or a records.jsonl."
    ),
    data: Path = typer.Option(
        None, help="The dataset; for wrbench prompts or a records.jsonl, its own scenes by default."
    ),
    model: str = typer.Option("", help="Name of your model in tables; the baseline's name by default."),
    command: str = typer.Option(
        "", help="Run this for every clip: 'python gen.py --prompt {prompt} --image {image} --out {out}'."
    ),
    serve: str = typer.Option("", help="Start this once per worker; it reads a job per line and answers on stdout."),
    baseline: str = typer.Option("", help="A generator without a network: pan, hold, repeat or world."),
    out: Path = out_option("Folder for the clips; generated/SUITE, or for mbench the dataset itself."),
    generator: str = typer.Option("", help="The generator from `revisit camera models` whose camera format is used."),
    frames: int = typer.Option(None, min=2, help="Frames per clip; by default the dataset's or the generator's."),
    size: list[str] = typer.Option([], help="Width x height, such as 832x480; several make a condition of each."),
    fps: float = typer.Option(None, help="Frames per second."),
    seed: int = typer.Option(0, help="Seed of all jobs."),
    first_frame: bool = typer.Option(True, "--first-frame/--no-first-frame", help="Whether jobs have a first frame."),
    only: list[str] = ONLY,
    limit: int = typer.Option(None, min=1, help="At most this many clips, spread over subsets and conditions."),
    option: list[str] = JOB_OPTION,
    workers: int = typer.Option(0, min=0, help="Workers; one, or one for each GPU by default."),
    gpus: str = typer.Option("", help="GPUs by number, such as 0,1,2, shared out among the workers."),
    timeout: float = typer.Option(3600, help="Seconds after which a clip is given up."),
    load_timeout: float = typer.Option(3600, help="Further seconds for a process of --serve to load its weights."),
    retries: int = typer.Option(1, min=0, help="Retries of a clip that crashed, hung or came out wrong."),
    replace: bool = flag_option("--replace", "Make clips again that were made from other inputs."),
    checkpoint: str = typer.Option("", help="Name of the weights, for the record."),
    price: float = typer.Option(None, min=0, help="What a clip costs, for the model's card and the tables."),
    currency: str = typer.Option("USD", help="Of the price."),
    own: Path = OWN_GENERATORS,
    dry_run: bool = flag_option("--dry-run", "Print the plan and the disk space it needs, without making clips."),
    json: bool = JSON,
) -> None:
    """Make the clips of a benchmark with your generator. The same command resumes.

    Instead of a suite, a file of records (JSON lines: id, prompt, camera, and image or source_video where needed) makes
    one clip of each: it needs --generator, --command and --out.
    """
    from revisit.control.generation import GeneratorChoice, batch_request_per_size, generation_settings_for, load_batch
    from revisit.control.generators import find_generator as generator_card
    from revisit.core import SUITES, UsageError
    from revisit.core.text import parse_named_values, split_commas
    from revisit.worlds.on_demand import rendered_world_frames

    if Path(suite).is_file() or suite.endswith(".jsonl"):
        refuse_other_parameters(ctx, RECORD_OPTIONS, "a file of records")
        if not generator or not command or out is None:
            raise UsageError("a file of records needs --generator, --command and --out")
        limits = {"timeout": timeout, "workers": workers, "frames": frames}
        card = generator_card(generator, own)
        _generate_records_and_exit(Path(suite), card, out, json, command=command, checkpoint=checkpoint, **limits)
    SUITES[suite]  # says so where there is none
    if not model and not baseline:
        raise UsageError("give --model, the name of your model in tables and folders")
    further = {"world": rendered_world_frames}
    maker = GeneratorChoice(command, serve, baseline, None, workers, split_commas([gpus]), load_timeout, further)
    if not dry_run:
        maker.make_backends()
    to = generator_card(generator, own) if generator else None
    settings = generation_settings_for(
        maker, timeout=timeout, retries=retries, replace="any" if replace else "", to=to, checkpoint=checkpoint,
        price=price, currency=currency,
    )  # fmt: skip
    batches = [
        load_batch(suite, data, out, condition)
        for condition in batch_request_per_size(
            model or baseline, split_commas(size), first_frame, to=to, frames=frames, fps=fps, seed=seed,
            only=tuple(split_commas(only)), limit=limit, options=parse_named_values(option),
        )
    ]  # fmt: skip
    if dry_run:
        _print_plans(batches, maker, json)
    else:
        _generate_batches_and_exit(batches, maker, settings, json)


def _print_plans(batches: Sequence[JobBatch], maker: GeneratorChoice, json: bool) -> None:
    """Print what would be made, and the space it needs."""
    from revisit.control.generation import ceiling_batches, plan_rows_by_condition
    from revisit.media.files import free_disk_bytes

    columns = ["subset", "condition", "jobs", "there", "frames", "fps", "size", "seconds"]
    for batch in (*batches, *ceiling_batches(batches, maker)):
        print_left_out_jobs_and_remarks(batch)
        rows = plan_rows_by_condition(batch.jobs)
        need, free = sum(row["bytes"] for row in rows), free_disk_bytes(batch.home)
        if json:
            console.print_json({"home": str(batch.home), "plan": rows, "bytes": need, "free": free})
            continue
        typer.echo(str(batch.home))
        console.print_table(columns, [[str(row[name]) for name in columns] for row in rows])
        jobs, there = (sum(row[name] for row in rows) for name in ("jobs", "there"))
        typer.echo(f"{jobs} clips, {there} already made; about {need / 1e6:.1f} MB to come, {free / 1e9:.1f} GB free")


def _generate_batches_and_exit(
    batches: Sequence[JobBatch], maker: GeneratorChoice, settings: GenerationSettings, json: bool
) -> NoReturn:
    """Make the clips, and print what became of them and the command that scores them."""
    from revisit.control import generation
    from revisit.core import UsageError
    from revisit.media.files import free_disk_bytes

    results: list[JobResult] = []
    total = sum(len(batch.jobs) for batch in (*batches, *generation.ceiling_batches(batches, maker)))
    for batch, running in generation.generate_batches(batches, maker, settings):
        print_left_out_jobs_and_remarks(batch)
        need = sum(row["bytes"] for row in generation.plan_rows_by_condition(batch.jobs))
        free = free_disk_bytes(batch.home)
        if need > free:
            raise UsageError(
                f"the clips need about {need / 1e9:.1f} GB, but only {free / 1e9:.1f} GB are free in {batch.home}; "
                "free some space, or choose another --out"
            )
        _print_and_collect_results(running, total, results)
    _print_remark_counts(results, total)
    for batch in batches if not maker.baseline else ():
        console.print_to_stderr(_generation_cost_line(generation.batch_cost(batch, settings)))
    lines = list(dict.fromkeys(shlex.join(["revisit", "eval", *batch.evaluate]) for batch in batches))
    content = {
        "counts": _count_results_by_status(results),
        "evaluate": lines if any(result.is_clip_there for result in results) else [],
        "jobs": [result.__dict__ for result in results],
    }
    _print_outcome_and_exit(results, content if json else None, lines)


def _generate_records_and_exit(file: Path, card: Generator, out: Path, json: bool, **settings: Any) -> NoReturn:
    """Run the command for every record that has no clip yet, and write a manifest of the clips."""
    from revisit.control.generation import generate_clips_of_records, read_generation_records, write_clip_manifest
    from revisit.core import SUITES

    records = read_generation_records(file)
    results: list[JobResult] = []
    _print_and_collect_results(generate_clips_of_records(records, card, folder=out, **settings), len(records), results)
    _print_remark_counts(results, len(records))
    if card.note:
        console.print_to_stderr(card.note)
    manifest = write_clip_manifest(records, card, out, results)
    for suite in SUITES.values():
        if suite.accompany is not None and suite.recognises(manifest):
            console.print_to_stderr(*suite.accompany(manifest))
    rows = [result.__dict__ for result in results]
    content = {"manifest": str(manifest), "counts": _count_results_by_status(results), "records": rows}
    # Records of a benchmark carry its task and factor; their manifest is read as that benchmark.
    as_suite = " --suite wrbench" if any({"task", "factor"} <= {*record.annotations} for record in records) else ""
    commands = [f"revisit eval {shlex.quote(str(manifest))}{as_suite}"]
    _print_outcome_and_exit(results, content if json else None, commands)


def _print_and_collect_results(running: Iterable[JobResult], total: int, results: list[JobResult]) -> None:
    """Print a line for every clip as it ends, and add it to the results."""
    for result in running:
        results.append(result)
        reason = f": {result.reason}" if result.reason else ""
        tries = f" (tried {result.tries} times)" if result.tries > 1 else ""
        console.print_to_stderr(f"{len(results)}/{total} {result.id}: {result.status}{reason}{tries}")


def _print_remark_counts(results: Sequence[JobResult], total: int) -> None:
    for remark, count in Counter(remark for result in results for remark in result.remarks).items():
        console.print_to_stderr(f"{count} of {total}: {remark}")


def _count_results_by_status(results: Sequence[JobResult]) -> dict[str, int]:
    return dict(sorted(Counter(result.status for result in results).items()))


def _print_outcome_and_exit(results: Sequence[JobResult], content: object, commands: Sequence[str]) -> NoReturn:
    """Print JSON, or how many clips ended how and what to do next; exit code 1 where a clip is missing."""
    if content is not None:
        console.print_json(content)
    else:
        typer.echo(", ".join(f"{count} {status}" for status, count in _count_results_by_status(results).items()))
        if {result.status for result in results} == {"kept"}:
            typer.echo("nothing was left to make; this scores the clips:")
        elif not any(result.is_clip_there for result in results):
            commands = ["there is no clip to score: see the reasons above, then run the command again"]
        for command in commands:
            typer.echo(command)
    raise typer.Exit(0 if all(result.is_clip_there for result in results) else 1)


def print_left_out_jobs_and_remarks(batch: JobBatch) -> None:
    console.print_to_stderr(*(f"left out: {sentence}" for sentence in dict.fromkeys(batch.left_out)), *batch.remarks)


def _generation_cost_line(cost: dict[str, Any]) -> str:
    """What clips cost, as a line."""
    from revisit.core.text import count_and_noun

    if not cost:
        return "no clip was made, so nothing is known of the cost"
    loading = ", with loading" if cost.get("with_loading") else ""
    parts = [f"{cost['seconds_per_clip']:.4g} s per clip over {count_and_noun(cost['clips'], 'clip')}{loading}"]
    parts += [f"peak memory {cost['peak_memory_gb']:.3g} GB"] if "peak_memory_gb" in cost else []
    parts += [f"peak GPU memory {cost['peak_gpu_memory_gb']:.3g} GB"] if "peak_gpu_memory_gb" in cost else []
    parts += [f"{cost['price_per_clip']:.4g} {cost['currency']} per clip"] if "price_per_clip" in cost else []
    return f"cost: {'; '.join(parts)} ({cost['machine']})"


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
    from revisit.core import SUITES, UsageError
    from revisit.core.text import parse_named_values, split_commas
    from revisit.preflight import expected as expecting
    from revisit.preflight.check import check_clips

    others: list[Path] = []
    rejected: list[Rejected] = []
    if what in SUITES and not Path(what).is_dir():
        from revisit.control.generation import batch_request_per_size, load_batch
        from revisit.control.generators import find_generator

        if not model:
            raise UsageError("give --model, the model whose clips are checked")
        (condition,) = batch_request_per_size(
            model, split_commas([size]), first_frame, to=find_generator(generator, own) if generator else None,
            frames=frames, fps=fps, only=tuple(split_commas(only)), limit=limit, options=parse_named_values(option),
        )  # fmt: skip
        batch = load_batch(what, data, out, condition)
        print_left_out_jobs_and_remarks(batch)
        expected = [expecting.expected_of_job(job, batch.home) for job in batch.jobs]
        others = expecting.find_unexpected_videos(batch.allowed)
    else:
        expected, rejected = _expected_in_place(what, layout, root)
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
    else:
        _print_check_result(result)
    raise typer.Exit(1 if result.faults else 0)


def _expected_in_place(what: str, layout: str, root: Sequence[Path]) -> tuple[list[Expected], list[Rejected]]:
    """The clips of a file, a manifest or a folder, and what a manifest names that cannot be used."""
    from revisit.core import SUITES, Case, Rejected, UsageError
    from revisit.core.text import count_and_noun
    from revisit.datasets.clips import MANIFEST, find_clip_files, is_frame_folder, read_manifest
    from revisit.media import is_clip_file
    from revisit.preflight import expected as expecting

    place = Path(what)
    manifest = place / MANIFEST if place.is_dir() else place
    if manifest.is_file() and is_clip_file(manifest):
        return [expecting.Expected(manifest.stem, manifest)], []
    if manifest.is_file() and not layout:
        entries = list(read_manifest(manifest, root))
        cases = [entry for entry in entries if isinstance(entry, Case)]
        expected = expecting.expected_of_cases(cases, manifest.parent)
        listed = {one.clip.resolve() for one in expected}
        found = find_clip_files(place) if place.is_dir() else ()
        if unlisted := [path for _, _, path in found if path.resolve() not in listed]:
            left_out = count_and_noun(len(unlisted), "clip")
            console.print_notes(f"{MANIFEST} does not list {left_out} of the folder, such as {unlisted[0]}")
        return expected, [entry for entry in entries if isinstance(entry, Rejected)]
    if is_frame_folder(place):
        return [expecting.Expected(place.resolve().name, place)], []
    if place.is_dir():
        paths = [path for _, _, path in find_clip_files(place)]
        return _add_models_and_missing_clips(expecting.expected_in_folder(place, paths), place, layout), []
    raise UsageError(f"{what}: there is no such suite, file or folder; suites are {', '.join(SUITES)}")


def _print_check_result(result: CheckReport) -> None:
    """Print the faults by kind, and how many clips there are."""
    from revisit.core.text import count_and_noun
    from revisit.preflight.check import KINDS

    rows = []
    for kind, meaning in KINDS.items():
        mine = [fault for fault in result.faults if fault.kind == kind]
        if mine:
            rows += [["", "", f"{fault.model} {fault.id}".lstrip(), fault.sentence] for fault in mine[:FAULTS_SHOWN]]
            rows[-min(len(mine), FAULTS_SHOWN)][:2] = [kind, str(len(mine))]
            if len(mine) > FAULTS_SHOWN:
                rows.append(["", "", f"and {len(mine) - FAULTS_SHOWN} more", meaning])
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


def _add_models_and_missing_clips(expected: list[Expected], folder: Path, layout: str) -> list[Expected]:
    """The clips with the models that the folder's layout says, where no job does, and those that a model lacks."""
    from dataclasses import replace

    from revisit.core import UsageError
    from revisit.datasets.folder.path_patterns import path_of_clip_in_layout
    from revisit.datasets.folder.read import understand_layout
    from revisit.preflight.expected import Expected

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
