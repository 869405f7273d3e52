"""Records of camera requests (`revisit generate RECORDS`): JSON lines, each a job for one generator."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from revisit.control.delivery import plan_for_generator
from revisit.control.generator_backends import CommandBackend, worker_environment
from revisit.control.generators import Generator
from revisit.control.job_runner import GenerationSettings, JobResult, run_jobs
from revisit.control.jobs import Job, file_name_for_id
from revisit.core import RevisitError, UsageError
from revisit.media.files import write_json_lines


@dataclass(frozen=True)
class GenerationRecord:
    """What one clip shall show."""

    id: str
    prompt: str
    camera: str  # a script
    image: Path | None = None
    source_video: Path | None = None
    seed: int = 0
    policy: str = "none"
    annotations: Mapping[str, Any] = field(default_factory=dict)


def read_generation_records(path: Path) -> list[GenerationRecord]:
    """The records of a JSON-lines file; relative paths start at its folder."""
    if not path.is_file():
        raise UsageError(f"{path}: no such file; expected JSON lines with id, prompt and camera")
    try:
        # Only line feeds part records: a prompt may hold any other separator.
        lines = path.read_bytes().decode().split("\n")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: the file is not UTF-8 text ({error})") from error
    records = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)  # lone surrogates are refused below, not mended
            records.append(_record_from_row(row, path.parent))
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{path}:{number}: expected an object with id, prompt and camera ({error})") from error
    twice = sorted(record_id for record_id, count in Counter(record.id for record in records).items() if count > 1)
    if twice:
        raise UsageError(f"{path}: the id {twice[0]!r} occurs more than once")
    return records


def _record_from_row(row: Any, folder: Path) -> GenerationRecord:
    """The record of a line; ValueError with a sentence where a field is not what it should be."""
    if not isinstance(row, dict):
        raise ValueError("this is none")
    row = {name: value for name, value in row.items() if value is not None}
    id, seed, annotations = row.get("id"), row.get("seed", 0), row.get("annotations", {})
    files = {name: row[name] for name in ("image", "source_video") if row.get(name)}
    texts = {"prompt": row.get("prompt"), "camera": row.get("camera"), "policy": row.get("policy", "none"), **files}
    if wrong := next((name for name, value in texts.items() if not isinstance(value, str)), ""):
        raise ValueError(f"its {wrong} is {texts[wrong]!r} instead of text" if wrong in row else f"it has no {wrong}")
    if not isinstance(id, str | int) or isinstance(id, bool):
        raise ValueError("it has no id" if id is None else f"its id is {id!r} instead of text")
    if isinstance(seed, bool) or not re.fullmatch(r"-?\d{1,18}", str(seed).removesuffix(".0")):  # tables may write 7.0
        raise ValueError(f"its seed is {seed!r} instead of a whole number")
    if not isinstance(annotations, dict):
        raise ValueError(f"its annotations are {annotations!r} instead of an object")
    places = {name: folder / place for name, place in files.items()}
    return GenerationRecord(
        str(id),
        row["prompt"],
        row["camera"],
        **places,
        seed=int(str(seed).removesuffix(".0")),
        policy=texts["policy"],
        annotations=annotations,
    )


def job_from_record(record: GenerationRecord, to: Generator, folder: Path, frames: int | None = None) -> Job:
    """The job of a record: as long as its script says, where the generator can make that."""
    plan = plan_for_generator(record.camera, to, frames)
    clip = folder / f"{file_name_for_id(record.id)}.mp4"
    return Job(out=clip, frames=len(plan), fps=plan.fps, size=plan.size, sample=record.id, **vars(record))


def generate_records(
    records: Sequence[GenerationRecord],
    to: Generator,
    command: str,
    folder: Path,
    *,
    workers: int = 1,
    frames: int | None = None,
    **settings: Any,
) -> Iterator[JobResult]:
    """Run the command for every record that has no clip yet, and tell what became of each, in their order.

    `settings` are timeout and checkpoint, as GenerationSettings has them.
    """
    backends = [CommandBackend(command, worker_environment(number, ())) for number in range(max(workers, 1))]
    jobs, refused = [], []
    for record in records:
        try:
            jobs.append(job_from_record(record, to, folder, frames))
        except (RevisitError, ValueError, OverflowError) as error:
            refused.append(JobResult(record.id, "refused", str(error)[:1000]))
    how = GenerationSettings(replace="own", to=to, command=command, **settings)
    ended: dict[str, JobResult] = {}
    pending = [record.id for record in records]
    for result in run_jobs(jobs, backends, folder, how, refused):
        ended[result.id] = result
        while pending and pending[0] in ended:
            yield ended[pending.pop(0)]


def write_clip_manifest(
    records: Iterable[GenerationRecord], to: Generator, folder: Path, ended: Iterable[JobResult]
) -> Path:
    """manifest.jsonl of the clips that were made or kept, as `revisit eval` reads it.

    A clip that is there and was made from another prompt, because making it anew failed, is not the clip of its record.
    """
    good = {result.id for result in ended if result.is_clip_there}
    clips = [(record, folder / f"{file_name_for_id(record.id)}.mp4") for record in records if record.id in good]
    lines = [
        {
            "id": record.id, "model": to.id, "video": clip.name, "prompt": record.prompt, "camera": record.camera,
            "seed": record.seed, "annotations": dict(record.annotations),
        }
        for record, clip in clips
        if clip.is_file()
    ]  # fmt: skip
    path = folder / "manifest.jsonl"
    write_json_lines(path, lines, ascii=True)
    return path
