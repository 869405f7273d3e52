"""Jobs of WRBench: event-view records, from the published prompts, our own scenes, or a file of records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from revisit.control.delivery import refusal_reasons
from revisit.control.generation import GenerationRecord, read_generation_records
from revisit.control.jobs import BatchRequest, Job, JobBatch, file_name_for_id
from revisit.control.requested_path import compile_script
from revisit.core import UsageError
from revisit.core.cases import CATEGORY, CEILING
from revisit.core.text import count_and_noun, parse_json
from revisit.datasets.clips import MANIFEST
from revisit.media.files import write_json_lines
from revisit.suites.wrbench.evaluator import write_evaluator_sidecars
from revisit.suites.wrbench.prompts import own_event_tasks, read_natural25_tasks
from revisit.suites.wrbench.read import RECORDS
from revisit.suites.wrbench.records import event_view_records

PUBLISHED = "natural25"
RENDERED = "rendered"  # the model that stands for the truth, which nobody filmed


def wrbench_generation_jobs(data: Path | None, out: Path | None, request: BatchRequest) -> JobBatch:
    """The jobs of a folder of prompts, or of our own scenes where none is given; `out` gets a folder per model."""
    request.refuse_unknown_options("interface", "cameras", "first_frames", "source_videos", "wrbench")
    if request.model == RENDERED:
        sentence = f"the folder {RENDERED} is that of the ceiling, which is rendered beside baselines"
        raise UsageError(f"{sentence}; choose another --model")
    folder = (out or Path("generated/wrbench")) / request.model
    selected = request.select_jobs(_job_of_record(record, folder, request) for record in _records(data, request))
    without = [job for job in selected if job.image is None]
    remark = (
        f"{len(without)} of {count_and_noun(len(selected), 'record')} without a first frame; --option first_frames "
        "names a folder of them, which `revisit build first-frames` can draw"
    )
    evaluate = [str(folder.parent), "--suite", "wrbench"]
    return JobBatch(
        selected, folder, evaluate, lambda finished: _write_manifest_records_and_sidecars(folder, finished),
        _camera_refusal_notes(selected, request), _rendered_ceiling_jobs(selected, folder.parent / RENDERED, evaluate),
        remarks=[remark] if without and request.first_frame else (),
    )  # fmt: skip


def _camera_refusal_notes(jobs: Sequence[Job], request: BatchRequest) -> list[str]:
    """Which cameras a generator will refuse, and why."""
    if request.to is None:
        return []
    scripts = {job.condition or job.id: job.camera for job in jobs}
    reasons = refusal_reasons(scripts, request.to, jobs[0].frames if jobs else None)
    return [f"{request.to.id} refuses {camera}: {reason}" for camera, reason in reasons.items()]


def _rendered_ceiling_jobs(jobs: Sequence[Job], folder: Path, evaluate: Sequence[str]) -> JobBatch:
    """A place under each camera and event of the jobs, rendered: it says what the measures can see at best.

    It is not the scene that the prompt tells of, and nothing happens in it; so it has no first frame to keep to.
    """
    each = {(job.subset, job.condition): job for job in reversed(jobs)}.values()
    rendered = [
        replace(
            job, out=folder / job.out.name, model=RENDERED, image=None, source_video=None,
            annotations={**job.annotations, CATEGORY: CEILING},
        )
        for job in reversed(each)
    ]  # fmt: skip
    return JobBatch(rendered, folder, evaluate, lambda finished: _update_model_manifest(folder, finished))


def _records(data: Path | None, request: BatchRequest) -> Iterable[GenerationRecord]:
    """The records in a file, or those of the published prompts or of our own scenes."""
    if data is not None and data.is_file():
        return read_generation_records(data)
    copy, images, videos = (
        Path(name) if (name := request.suite_option(option)) else None
        for option in ("wrbench", "first_frames", "source_videos")
    )
    if data is not None and (data / PUBLISHED).is_dir():
        data = data / PUBLISHED
    return event_view_records(
        own_event_tasks() if data is None else read_natural25_tasks(data, copy),
        request.suite_option("interface"),
        [name for name in request.suite_option("cameras").split(",") if name],
        card=request.to,
        first_frame=request.first_frame,
        frames=request.frames,
        seed=request.seed,
        first_frames=images,
        source_videos=videos,
    )


def _job_of_record(record: GenerationRecord, folder: Path, request: BatchRequest) -> Job:
    usual = request.frames or (request.to.frames if request.to else None)
    path = compile_script(record.camera, frames=usual).path.c2w
    notes = record.annotations
    fields = {**vars(record), **request.size_model_and_seed, "seed": record.seed or request.seed}
    if not request.first_frame:
        fields["image"] = None
    return Job(
        **fields,
        out=folder / f"{file_name_for_id(record.id)}.mp4",
        suite="wrbench",
        sample=str(notes.get("task") or record.id),
        subset=str(notes.get("factor", "")),
        condition=str(notes.get("camera", "")),
        frames=len(path),
        fps=request.frame_rate,
        path=path,
    )


def _job_record_line(job: Job) -> dict[str, object]:
    """What manifests and records say of a clip."""
    notes = dict(job.annotations)
    return {"id": job.id, "prompt": job.prompt, "camera": job.camera, "seed": job.seed, "annotations": notes}


def _update_model_manifest(folder: Path, jobs: Sequence[Job]) -> None:
    """The manifest of the model's clips."""
    clips = [job for job in jobs if job.out.is_file()]
    lines = [{"id": job.id, "model": job.model, "video": job.out.name, **_job_record_line(job)} for job in clips]
    _merge_json_lines_by_id(folder / MANIFEST, lines)


def _write_manifest_records_and_sidecars(folder: Path, jobs: Sequence[Job]) -> None:
    """The manifest of the model's clips with their sidecars, and the records that all models should have clips of."""
    _update_model_manifest(folder, jobs)
    _merge_json_lines_by_id(folder.parent / RECORDS, [_job_record_line(job) for job in jobs])
    write_evaluator_sidecars(folder / MANIFEST)


def _merge_json_lines_by_id(path: Path, lines: Sequence[Mapping[str, object]]) -> None:
    """Lines by id: those that are there, but for those whose video is gone, and these, which come in their place."""
    try:
        there = [parse_json(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    except FileNotFoundError:
        there = []
    except ValueError as error:
        raise UsageError(f"{path}: expected JSON lines ({error}); move it away") from error
    kept = [line for line in there if "video" not in line or (path.parent / str(line["video"])).is_file()]
    write_json_lines(path, {str(line["id"]): line for line in (*kept, *lines)}.values(), ascii=True)
