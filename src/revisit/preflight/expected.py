"""Expected: what is known of a clip before it is opened, from a suite's jobs or from the job files beside clips."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from revisit.control.job_runner import camera_plan_of_job, get_or_extract_first_frame, read_provenance_or_none
from revisit.control.jobs import Job
from revisit.core import Case, Clip, MediaError, RevisitError
from revisit.core.cases import CATEGORY
from revisit.core.text import parse_json
from revisit.media import is_clip_file, load_npy, natural_order

JOB = ".job.json"


@dataclass(frozen=True, eq=False)
class Expected:
    """One clip, and what was asked of it as far as anybody says so."""

    id: str
    clip: Path
    model: str = ""
    frames: int | None = None
    fps: float | None = None
    size: tuple[int, int] | None = None
    first: Path | None = None  # the picture it is to begin with
    path: np.ndarray | None = None  # (frames, 4, 4)
    inputs: str = ""  # the same for two clips that may well be alike
    stand_in: bool = False  # made by one: it knows no prompt
    problem: str = ""  # what is wrong with its inputs
    tolerance: float = 0.0  # share by which it may be longer or shorter; size and rate are free then


def expected_of_job(job: Job, folder: Path) -> Expected:
    """What a job of a suite expects."""
    first, problem, path = None, "", None
    try:
        for file in (job.image, job.context, job.source_video):
            place = file.path if isinstance(file, Clip) else file
            if place is not None and not place.exists():
                problem = f"{place}: no such file"
        first = get_or_extract_first_frame(job, folder) if not problem else None
        plan = camera_plan_of_job(job)
        path = None if plan is None else plan.path.c2w
    except RevisitError as error:
        problem = str(error)
    provenance = read_provenance_or_none(job.out) or {}
    inputs = json.dumps(
        [job.prompt, [s.prompt for s in job.segments], str(job.image), job.seed, job.camera], default=str
    )
    return Expected(
        job.id, job.out, job.model, job.frames, job.fps, job.size, first, path, inputs,
        CATEGORY in provenance, problem, job.tolerance,
    )  # fmt: skip


def find_unexpected_videos(allowed: Sequence[Path]) -> list[Path]:
    """Videos that lie among the clips of an exact set and belong to none of its samples."""
    folders = dict.fromkeys(path.parent for path in allowed if path.parent.is_dir())
    names = {path.resolve() for path in allowed}
    videos = (path for folder in folders for path in sorted(folder.iterdir(), key=natural_order))
    return [
        path for path in videos
        if is_clip_file(path) and not path.name.startswith(".") and path.resolve() not in names
    ]  # fmt: skip


def expected_in_folder(folder: Path, clips: Iterable[Path]) -> list[Expected]:
    """What job files in a folder expect, and its other clips, of which nothing is known."""
    by_clip = {expected.clip: expected for expected in _expected_of_job_files(folder)}
    inputs = {expected.first.parent for expected in by_clip.values() if expected.first}  # pictures, but no clip
    for path in clips:
        if path not in by_clip and path not in inputs:
            by_clip[path] = Expected(path.relative_to(folder).as_posix(), path)
    return list(by_clip.values())


def expected_of_cases(cases: Iterable[Case], folder: Path) -> list[Expected]:
    """The clips of cases, each once for a model, by the job files in a folder where they know it; and their others."""
    jobs = {expected.clip.resolve(): expected for expected in _expected_of_job_files(folder)}
    clips: dict[tuple[Path, str], Expected] = {}
    for case in cases:
        path = case.clip.path.resolve()
        if (path, case.model) not in clips:
            known = jobs.pop(path) if path in jobs else None
            clips[path, case.model] = known or Expected(case.sample, case.clip.path, case.model)
    return [*clips.values(), *jobs.values()]


def _expected_of_job_files(folder: Path) -> Iterator[Expected]:
    for file in sorted(folder.rglob(f"*{JOB}"), key=natural_order):
        try:
            job = parse_json(file.read_text(encoding="utf-8"))
            inputs, control = job["inputs"], job["control"]
            clip = file.with_name(file.name.removesuffix(JOB) + Path(job["out"]).suffix)
            first = Path(inputs["image"] or "")
            path = file.with_name(Path(control["path"]).name) if control.get("path") else None
            inputs_of_job = [inputs["prompt"], inputs["segments"], inputs["image"], job["seed"], control["script"]]
            yield Expected(
                str(job["id"]), clip, str(job["model"]), int(job["frames"]), float(job["fps"]), tuple(job["size"]),
                first if first.is_file() else None, load_npy(path) if path and path.is_file() else None,
                json.dumps(inputs_of_job), CATEGORY in (read_provenance_or_none(clip) or {}),
            )  # fmt: skip
        except MediaError as error:
            yield Expected(
                file.name, file.with_suffix(""), problem=f"{file}: the requested path cannot be read: {error}"
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            yield Expected(file.name, file.with_suffix(""), problem=f"{file}: this is no job file ({error})")
