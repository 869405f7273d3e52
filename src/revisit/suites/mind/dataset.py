"""A dataset of MIND: the jobs that it asks for, what is in it, and what its suite could not score.

Its recordings are to be gone on with by their keys, and it has go-and-return tests. A prediction begins at `mark_time`.
Its generator may see everything before (the context clip), gets the last of these frames as a picture, the keys of
every frame, and the path that the keys led along in the recording. Mirror tests are every first frame with every action
file; which one a clip follows is in its job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from revisit.control.jobs import BatchRequest, Job, JobBatch, resample_relative_path
from revisit.core import Clip, UsageError
from revisit.core.text import convert_read_errors
from revisit.datasets.clips import visible_folders
from revisit.geometry.camera_script import script_of_path
from revisit.geometry.formats import from_unreal_rows
from revisit.geometry.rotations import angle_between_rotations
from revisit.media import frame_count_in_mp4_index, natural_order
from revisit.suites.authoring import DatasetDescription, DatasetTools, least_median_most_table, value_count_table
from revisit.suites.mind.metrics.selection import MAIN, MIRROR, VARIED
from revisit.suites.mind.read import (
    KIND,
    PERSPECTIVES,
    ActionRow,
    find_truth_root,
    parse_action_space,
    read_action_file,
    read_recording_info,
    read_scene_kinds,
)

FPS = 24.0
KEYS = ("ws", "ad", "ud", "lr")


def mind_generation_jobs(data: Path, out: Path | None, request: BatchRequest) -> JobBatch:
    """The jobs of a dataset; predictions are laid out in `out`, a folder per model."""
    request.refuse_unknown_options()
    root = find_truth_root(data)
    folder = (out or Path("generated/mind")) / request.model
    left_out: list[str] = []
    candidates: list[Job] = []
    for perspective in PERSPECTIVES:
        for test in MAIN:
            candidates += _recording_jobs(root, perspective, test, folder, request, left_out)
        candidates += _mirror_jobs(root, perspective, folder, request, left_out)
    words = [str(folder.parent), "--suite", "mind", "--option", f"gt={data}"]
    return JobBatch(request.select_jobs(candidates), folder, words, left_out=left_out)


def _recording_jobs(
    root: Path, perspective: str, test: str, out_folder: Path, request: BatchRequest, left_out: list[str]
) -> Iterator[Job]:
    folder = root / perspective / "test" / test
    for place in visible_folders(folder):
        record = read_recording_info(place)
        if isinstance(record, str):
            left_out.append(record)
            continue
        rows = _read_action_rows(record.actions)[record.mark : record.total]
        yield Job(
            id=f"{perspective}/{test}/{place.name}",
            out=out_folder / perspective / test / place.name / "video.mp4",
            prompt=record.caption,
            image=Clip(record.video, start=max(record.mark - 1, 0), count=1) if request.first_frame else None,
            context=Clip(record.video, count=record.mark) if record.mark else None,
            annotations={"mark_time": record.mark, "total_time": record.total},
            **_common_job_fields(perspective, test, place.name, rows, request),
        )


def _mirror_jobs(
    root: Path, perspective: str, out_folder: Path, request: BatchRequest, left_out: list[str]
) -> Iterator[Job]:
    folder = root / perspective / "test" / MIRROR
    files = sorted(folder.glob("*.json"), key=natural_order)
    for image in sorted(folder.glob("*.png"), key=natural_order):
        for number, file in enumerate(files, start=1):
            try:
                rows = _read_action_rows(file)
            except UsageError as error:
                left_out.append(str(error))
                continue
            yield Job(
                id=f"{perspective}/{MIRROR}/{image.stem}/{file.stem}",
                out=out_folder / perspective / MIRROR / image.stem / f"path-{number}.mp4",
                image=image if request.first_frame else None,
                annotations={"trajectory": file.stem},
                **_common_job_fields(perspective, MIRROR, image.stem, rows, request),
            )


def _common_job_fields(
    perspective: str, test: str, name: str, rows: Sequence[ActionRow], request: BatchRequest
) -> dict[str, Any]:
    """What jobs of both kinds have: length, keys and path."""
    frames = min(request.clip_frame_count(len(rows)), len(rows))
    rows = rows[:frames]
    actions = tuple({key: int(row.get(key, 0)) for key in KEYS} for row in rows)
    path, script = None, ""
    if all("actor_pos" in row or "camera_pos" in row for row in rows):
        upright = from_unreal_rows(rows).c2w  # turns are told about the vertical of the world
        changes = [number for number, (before, now) in enumerate(pairwise(actions), start=1) if now != before]
        path, script = resample_relative_path(upright, frames), script_of_path(upright, changes)
    return {
        **request.size_model_and_seed,
        "suite": "mind", "sample": name, "subset": perspective, "condition": test, "frames": frames,
        "fps": request.fps or FPS, "path": path, "camera": script,
        "actions": actions,
    }  # fmt: skip


def _read_action_rows(path: Path) -> list[ActionRow]:
    with convert_read_errors(path, "an action file with rows under `data`"):
        rows = read_action_file(path)["data"]
    if not all(isinstance(row, dict) for row in rows):
        raise UsageError(f"{path}: expected an action file with one object per frame under `data`")
    return list(rows)


def is_mind_dataset(folder: Path) -> bool:
    """Whether the folder holds 1st_data/test or 3rd_data/test."""
    try:
        return folder.is_dir() and bool(find_truth_root(folder))
    except UsageError:
        return False


def describe_mind_dataset(folder: Path) -> DatasetDescription:
    """Counts by perspective and test, lengths of context and prediction, keys, turns and ways."""
    all_jobs = mind_generation_jobs(folder, None, BatchRequest("describe")).jobs
    main = [job for job in all_jobs if job.condition != MIRROR]
    context = [job.annotations["mark_time"] for job in main]
    paths = [job.path for job in main if job.path is not None]
    turns = [float(angle_between_rotations(path[0, :3, :3], path[:, :3, :3]).max()) for path in paths]
    distances = [float(np.linalg.norm(np.diff(path[:, :3, 3], axis=0), axis=1).sum()) for path in paths]
    lengths = [job.frames for job in main]
    key_axes = [name for job in main for row in job.actions for name, code in row.items() if code]
    ranges: dict[str, Sequence[float]] = {
        "frames of context": context, "frames to predict": lengths, "greatest turn, degrees": turns,
        "way, metres": distances,
    }  # fmt: skip
    spaces = [parse_action_space(job.sample, job.condition) for job in main if job.condition == VARIED]
    spaces_in_words = [f"{space.get('speed', '?')}x, {space.get('angle', '?')}" for space in spaces]
    clips = [f"{job.subset} {job.condition}" for job in all_jobs]
    tables = [
        value_count_table("Clips", ("perspective and test", "clips"), clips),
        least_median_most_table("Lengths and ways", ranges),
        value_count_table("Keys held (frames)", ("axis", "frames"), key_axes),
        value_count_table("Varied action spaces", ("speed and angle", "clips"), spaces_in_words),
    ]
    root = find_truth_root(folder)
    kinds_by_name = read_scene_kinds(root)
    kinds = [_scene_kind_of_recording(root, job.subset, job.condition, job.sample, kinds_by_name) for job in main]
    if any(kinds):
        kinds = [kind or "not told" for kind in kinds]
        tables.append(value_count_table("Kinds of scenes", ("kind", "recordings"), kinds))
    facts = {"recordings": len(main), "mirror clips": len(all_jobs) - len(main), "with poses": len(turns)}
    return DatasetDescription("MIND", facts, tables, {"frames to predict": lengths, "greatest turn, degrees": turns})


def _scene_kind_of_recording(
    root: Path, perspective: str, test: str, name: str, kinds_by_name: Mapping[tuple[str, str], str]
) -> str:
    """The kind of a recording's scene: by the table, by its action file, by its name."""
    entry = read_recording_info(root / perspective / "test" / test / name)
    own = "" if isinstance(entry, str) else entry.kind
    by_table = kinds_by_name.get((perspective, name)) or kinds_by_name.get(("", name))
    return by_table or own or str(parse_action_space(name, test).get(KIND, ""))


def mind_dataset_problems(folder: Path) -> list[str]:
    """What could not be scored, as sentences."""
    batch = mind_generation_jobs(folder, None, BatchRequest("check"))
    sentences = list(batch.left_out)
    for job in batch.jobs:
        if job.path is None:
            sentences.append(f"{job.id}: its action file has no poses, so its camera cannot be checked")
        if job.condition == MIRROR and job.frames % 2:
            sentences.append(f"{job.id}: a go-and-return clip has an even number of frames, not {job.frames}")
        if job.context is not None:
            length = frame_count_in_mp4_index(job.context.path)
            total = job.annotations["total_time"]
            if length not in (None, total):
                sentences.append(f"{job.id}: the video has {length} frames and action.json {total}")
    return sentences


DATASET = DatasetTools(is_mind_dataset, describe_mind_dataset, mind_dataset_problems)
