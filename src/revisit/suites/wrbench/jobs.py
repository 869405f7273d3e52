"""Jobs of WRBench: event-view records, from the published prompts, our own scenes, or a file of records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from revisit.control.camera_records import GenerationRecord, read_records
from revisit.control.delivery import refusals
from revisit.control.jobs import FRAMES, Batch, Job, Wanted, file_name
from revisit.control.requested_path import compile_script
from revisit.core import UsageError
from revisit.core.cases import CATEGORY, CEILING
from revisit.core.text import parse_json
from revisit.media.files import write_lines
from revisit.suites.clips import MANIFEST
from revisit.suites.wrbench.evaluator import hand_over
from revisit.suites.wrbench.prompts import natural25_tasks, own_tasks
from revisit.suites.wrbench.read import RECORDS
from revisit.suites.wrbench.records import chosen_views, interface_of, starting_from, told_in_commands

PUBLISHED = "natural25"
RENDERED = "rendered"  # the model that stands for the truth, which nobody filmed


def jobs(data: Path | None, out: Path | None, wanted: Wanted) -> Batch:
    """The jobs of a folder of prompts, or of our own scenes where none is given; `out` gets a folder per model."""
    wanted.known("interface", "cameras", "first_frames", "source_videos", "wrbench")
    home = (out or Path("generated/wrbench")) / wanted.model
    if data is not None and data.is_file():
        found = [_of_record(record, home, wanted) for record in read_records(data)]
    else:
        found = [_of_line(line, home, wanted) for line in _lines(data, wanted)]
    chosen = wanted.chosen(found)
    without = [job for job in chosen if job.image is None]
    count = f"{len(without)} of {len(chosen)} records"
    said = [
        f"nothing, but {count} have no first frame; --option first_frames names a folder of them, which "
        "`revisit build first-frames` can draw"
    ]
    said = [*(said if without and wanted.first_frame else ()), *_refused(chosen, wanted)]
    evaluate = [str(home.parent), "--suite", "wrbench"]
    return Batch(
        chosen, home, evaluate, lambda made: _index(home, made), said,
        _ceiling(chosen, home.parent / RENDERED, evaluate),
    )  # fmt: skip


def _refused(jobs: Sequence[Job], wanted: Wanted) -> list[str]:
    """Which cameras a generator will refuse, and why."""
    if wanted.to is None:
        return []
    scripts = {job.condition or job.id: job.camera for job in jobs}
    reasons = refusals(scripts, wanted.to, jobs[0].frames if jobs else None)
    return [f"{wanted.to.id} refuses {camera}: {reason}" for camera, reason in reasons.items()]


def _ceiling(jobs: Sequence[Job], home: Path, evaluate: Sequence[str]) -> Batch:
    """A place under each camera and event of the jobs, rendered: it says what the measures can see at best.

    It is not the scene that the prompt tells of, and nothing happens in it; so it has no first frame to keep to.
    """
    each = {(job.subset, job.condition): job for job in reversed(jobs)}.values()
    rendered = [
        replace(
            job, out=home / job.out.name, model=RENDERED, image=None, source_video=None,
            annotations={**job.annotations, CATEGORY: CEILING},
        )
        for job in reversed(each)
    ]  # fmt: skip
    return Batch(rendered, home, evaluate, lambda made: _list(home, made))


def _lines(data: Path | None, wanted: Wanted) -> list[dict[str, Any]]:
    if data is not None and (data / PUBLISHED).is_dir():
        data = data / PUBLISHED
    copy = wanted.option("wrbench")
    tasks = own_tasks() if data is None else natural25_tasks(data, Path(copy) if copy else None)
    interface = wanted.option("interface") or (interface_of(wanted.to) if wanted.to else "path")
    cameras = [name for name in wanted.option("cameras").split(",") if name]
    nothing = not wanted.first_frame or (wanted.to is not None and wanted.to.takes == "nothing")
    views = chosen_views(tasks, interface, cameras, first_frame=not nothing, commands=told_in_commands(wanted.to))
    images, videos = (
        Path(name) if (name := wanted.option(option)) else None for option in ("first_frames", "source_videos")
    )
    return [starting_from(view, images, videos, wanted.frames or _usual(wanted), wanted.seed) for view in views]


def _usual(wanted: Wanted) -> int:
    return wanted.to.frames if wanted.to else FRAMES


def _of_line(line: dict[str, Any], home: Path, wanted: Wanted) -> Job:
    files: dict[str, Any] = {name: Path(line[name]) for name in ("image", "source_video") if name in line}
    return _of_record(GenerationRecord(**(line | files)), home, wanted)


def _of_record(record: GenerationRecord, home: Path, wanted: Wanted) -> Job:
    usual = wanted.frames or (_usual(wanted) if wanted.to else None)
    path = compile_script(record.camera, frames=usual).path.c2w
    notes = record.annotations
    return Job(
        **wanted.clip | {"seed": record.seed or wanted.seed},
        id=record.id,
        out=home / f"{file_name(record.id)}.mp4",
        suite="wrbench",
        sample=str(notes.get("task") or record.id),
        subset=str(notes.get("factor", "")),
        condition=str(notes.get("camera", "")),
        frames=len(path),
        fps=wanted.rate,
        prompt=record.prompt,
        image=record.image if wanted.first_frame else None,
        source_video=record.source_video,
        camera=record.camera,
        path=path,
        policy=record.policy,
        annotations=notes,
    )


def _list(home: Path, jobs: Sequence[Job]) -> None:
    """The manifest of the model's clips."""
    made = [job for job in jobs if job.out.is_file()]
    lines = [
        {"id": job.id, "model": job.model, "video": job.out.name, "prompt": job.prompt, "camera": job.camera,
         "seed": job.seed, "annotations": dict(job.annotations)}
        for job in made
    ]  # fmt: skip
    _merged(home / MANIFEST, lines, lambda line: (home / str(line["video"])).is_file())


def _index(home: Path, jobs: Sequence[Job]) -> None:
    """The manifest of the model's clips with their sidecars, and the records that all models should have clips of."""
    _list(home, jobs)
    records = [
        {"id": job.id, "prompt": job.prompt, "camera": job.camera, "seed": job.seed,
         "annotations": dict(job.annotations)}
        for job in jobs
    ]  # fmt: skip
    _merged(home.parent / RECORDS, records, lambda line: True)
    hand_over(home / MANIFEST)


def _merged(path: Path, lines: Sequence[dict[str, Any]], keep: Any) -> None:
    """Lines by id: those that are there and these, which come in the place of theirs."""
    try:
        there = [parse_json(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    except FileNotFoundError:
        there = []
    except ValueError as error:
        raise UsageError(f"{path}: expected JSON lines ({error}); move it away") from error
    rows = {str(line["id"]): line for line in there if keep(line)} | {str(line["id"]): line for line in lines}
    write_lines(path, rows.values(), ascii=True)
