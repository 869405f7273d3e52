"""Generation: from a suite and its dataset to clips where its reader looks for them, by any generator backend.

Clips can also be made of records of camera requests (`revisit generate RECORDS`): JSON lines, each a job for one
generator.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from revisit.control import generator_backends, job_runner
from revisit.control.delivery import plan_for_generator
from revisit.control.generator_backends import BASELINE_GENERATORS, LOADING, GeneratorBackend, GeneratorFunction
from revisit.control.generators import Generator
from revisit.control.job_runner import GenerationSettings, JobResult
from revisit.control.jobs import BatchRequest, Job, JobBatch, file_name_for_id, is_folder_name, require_distinct_jobs
from revisit.control.metering import ModelCost, model_cost
from revisit.core import SUITES, RevisitError, UsageError
from revisit.core.cases import CEILING, FLOOR
from revisit.core.grouping import group_items
from revisit.core.text import parse_width_and_height, read_yaml_file, require_known_name
from revisit.media.files import write_json_lines, write_text_atomically

MODELS = "models.yaml"  # facts of models, beside their clips
WORLD = "world"  # the baseline that renders: it follows every path, and remembers all
NO_FIRST_FRAME = "no-first-frame"  # a condition of a run: what the model is called with it


@dataclass(frozen=True)
class GeneratorChoice:
    """The chosen generator backend: a command for each job, a process for many, a baseline generator, or a function."""

    command: str = ""
    serve: str = ""
    baseline: str = ""
    function: GeneratorFunction | None = None
    workers: int = 0  # 0: one, or one for each GPU
    gpus: Sequence[str] = ()
    loading: float = LOADING
    further: Mapping[str, GeneratorFunction] = field(default_factory=dict)  # baseline generators, by name

    def make_backends(self) -> Sequence[GeneratorBackend]:
        """Who works: a backend for each worker. None of them begins before it is given a job."""
        baselines = {**BASELINE_GENERATORS, **self.further}
        if sum(map(bool, (self.command, self.serve, self.baseline, self.function))) != 1:
            raise UsageError(
                "somebody has to make the clips: give --command (once for each clip), --serve (one process for many) "
                f"or --baseline ({', '.join(baselines)}); exactly one of them"
            )
        if self.baseline:
            require_known_name(self.baseline, baselines, "baseline")
        function = self.function or baselines.get(self.baseline)
        workers = range(self.workers or max(1, len(self.gpus)))
        if function is not None:
            return [generator_backends.FunctionBackend(function) for _ in workers]
        environments = [generator_backends.worker_environment(number, self.gpus) for number in workers]
        if self.command:
            return [generator_backends.CommandBackend(self.command, env) for env in environments]
        return [generator_backends.ProcessBackend(self.serve, env, self.loading) for env in environments]

    @property
    def description(self) -> str:
        """How the clips are made, for the provenance."""
        return self.command or self.serve or (f"baseline {self.baseline}" if self.baseline else "a Python function")


@dataclass(frozen=True)
class Generation:
    """What became of every job, and how to score the clips."""

    ended: tuple[JobResult, ...]
    batch: JobBatch

    @property
    def good(self) -> bool:
        """Whether every clip is there."""
        return all(result.is_clip_there for result in self.ended)

    @property
    def counts(self) -> dict[str, int]:
        """How many clips were made, kept, crashed, ..."""
        return dict(sorted(Counter(result.status for result in self.ended).items()))

    @property
    def source(self) -> Path:
        """What `revisit.evaluate` is given."""
        return Path(self.batch.evaluate[0])


def batch_request_per_size(model: str, sizes: Sequence[str], first_frame: bool, **facts: Any) -> list[BatchRequest]:
    """What is wanted under each condition: sizes, with or without the first frame. Each is a row of its own."""
    name = model if first_frame else f"{model}@{NO_FIRST_FRAME}"
    parsed_sizes = [parse_width_and_height(text) for text in sizes]
    if len(parsed_sizes) < 2:
        return [BatchRequest(name, size=parsed_sizes[0] if parsed_sizes else None, first_frame=first_frame, **facts)]
    return [BatchRequest(f"{name}@{w}x{h}", size=(w, h), first_frame=first_frame, **facts) for w, h in parsed_sizes]


def load_batch(suite: str, data: Path | None, out: Path | None, request: BatchRequest) -> JobBatch:
    """The jobs of a suite's dataset."""
    benchmark = SUITES[suite]
    if benchmark.jobs is None:
        raise UsageError(f"the suite {suite} does not say how its clips are generated")
    if data is not None and not data.exists():
        raise UsageError(f"{data}: no such file or folder; --data names the dataset of {suite}")
    if data is None and suite != "wrbench":
        raise UsageError(f"--data names the dataset of {suite}")
    name = request.model.replace("@", "-")
    if not is_folder_name(name):
        raise UsageError(
            f"{request.model!r} cannot be a model's name (it becomes a folder): use letters, digits, _, . and -"
        )
    batch: JobBatch = benchmark.jobs(data, out, request)
    require_distinct_jobs(batch.jobs)
    if not batch.jobs:
        raise UsageError("; ".join([f"there is nothing to generate in {data}", *batch.left_out[:3]]))
    return batch


def generate_batch(batch: JobBatch, choice: GeneratorChoice, settings: GenerationSettings) -> Iterator[JobResult]:
    """Make the clips that are not there, and write the lists that the suite's reader goes by."""
    backends = choice.make_backends()
    there: set[str] = set()
    try:
        for result in job_runner.run_jobs(batch.jobs, backends, batch.home, settings):
            there |= {result.id} if result.is_clip_there else set()
            yield result
    finally:
        # Of a clip that was made here from other inputs, the lists go on saying what it was made from.
        if batch.index is not None:
            read = job_runner.read_provenance_or_none
            batch.index([job for job in batch.jobs if job.id in there or read(job.out) is None])
        facts: dict[str, object] = {"category": settings.category} if settings.category else {}
        if not choice.baseline and (cost := batch_cost(batch, settings)):
            facts["cost"] = cost
        if facts:
            update_model_facts_file(Path(batch.evaluate[0]), batch.jobs[0].model, facts)


def generate_batches(
    batches: Sequence[JobBatch], choice: GeneratorChoice, settings: GenerationSettings
) -> Iterator[tuple[JobBatch, Iterator[JobResult]]]:
    """Each batch with its results as they come, which must be read before the next; then the rendered ceilings.

    A ceiling is rendered beside clips of a baseline generator; where none of them is there as requested, it stays as it
    is.
    """
    batches_with_clips = []
    for batch in batches:
        results: list[JobResult] = []
        yield batch, _append_results(generate_batch(batch, choice, settings), results)
        if any(result.is_clip_there for result in results):
            batches_with_clips.append(batch)
    # A ceiling is no model's own: it is rendered again when another size or length is asked for.
    rendering = replace(settings, command=f"baseline {WORLD}", category=CEILING, replace="own")
    for ceiling in ceiling_batches(batches_with_clips, choice):
        yield ceiling, generate_batch(ceiling, replace(choice, baseline=WORLD), rendering)


def _append_results(running: Iterator[JobResult], results: list[JobResult]) -> Iterator[JobResult]:
    for result in running:
        results.append(result)
        yield result


def ceiling_batches(batches: Sequence[JobBatch], choice: GeneratorChoice) -> list[JobBatch]:
    """The ceilings that are rendered beside the batches of a baseline generator, where there is no true video."""
    ceilings = {batch.ceiling.home: batch.ceiling for batch in batches if batch.ceiling is not None and choice.baseline}
    return list(ceilings.values())


def batch_cost(batch: JobBatch, settings: GenerationSettings) -> ModelCost:
    """What the clips of a batch cost, by the records beside them: those of earlier runs count, too."""
    clips = []
    for job in batch.jobs:
        provenance = (job_runner.read_provenance_or_none(job.out) if job.out.is_file() else None) or {}
        output, cost = provenance.get("output"), provenance.get("cost")
        if isinstance(cost, dict):
            made = output if isinstance(output, dict) and output.get("frames") and output.get("fps") else vars(job)
            clips.append((cost, made["frames"] / made["fps"]))
    return model_cost(clips, settings.price, settings.currency)


def update_model_facts_file(clips: Path, model: str, facts: Mapping[str, object]) -> None:
    """Write facts of a model into models.yaml beside the clips, where tables look for them; others stay."""
    path = clips / MODELS
    content = (read_yaml_file(path) if path.is_file() else None) or {"models": {}}
    models = content.get("models", content) if isinstance(content, dict) else None
    there = models.get(model, {}) if isinstance(models, dict) else None
    if not isinstance(models, dict) or not isinstance(there, dict):
        raise UsageError(f"{path}: expected names of models with facts; mend it or move it away")
    if {**there, **facts} == there:
        return
    models[model] = {**there, **facts}
    write_text_atomically(path, yaml.safe_dump(content, sort_keys=False, allow_unicode=True))


def generation_settings_for(choice: GeneratorChoice, **facts: Any) -> GenerationSettings:
    """Settings of a run; clips of baseline generators are marked as floors."""
    return GenerationSettings(command=choice.description, category=FLOOR if choice.baseline else "", **facts)


def plan_rows_by_condition(jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """The plan, a row for each subset and condition."""
    return [
        {
            "subset": subset, "condition": condition, "jobs": len(mine),
            "there": sum(job.out.is_file() for job in mine),
            "frames": _range_text([job.frames for job in mine]), "fps": _range_text([job.fps for job in mine]),
            "size": ", ".join(sorted({"x".join(map(str, job.size)) for job in mine})),
            "seconds": round(sum(job.frames / job.fps for job in mine), 1),
            "bytes": job_runner.estimate_missing_bytes(mine),
        }
        for (subset, condition), mine in group_items(jobs, lambda job: (job.subset, job.condition)).items()
    ]  # fmt: skip


def _range_text(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


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


def generate_clips_of_records(
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
    backends = GeneratorChoice(command, workers=max(workers, 1)).make_backends()
    jobs, refused = [], []
    for record in records:
        try:
            jobs.append(job_from_record(record, to, folder, frames))
        except (RevisitError, ValueError, OverflowError) as error:
            refused.append(JobResult(record.id, "refused", str(error)[:1000]))
    how = GenerationSettings(replace="own", to=to, command=command, **settings)
    ended: dict[str, JobResult] = {}
    pending = [record.id for record in records]
    for result in job_runner.run_jobs(jobs, backends, folder, how, refused):
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
