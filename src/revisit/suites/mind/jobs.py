"""Jobs of MIND: the recordings of a dataset, to be gone on with by their keys, and its go-and-return tests.

A prediction begins at `mark_time`. Its generator may see everything before (the context clip), gets the last of these
frames as a picture, the keys of every frame, and the path that the keys led along in the recording. Mirror tests are
every first frame with every action file; which one a clip follows is in its job.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from revisit.control.jobs import BatchRequest, Job, JobBatch, resample_relative_path
from revisit.core import Clip, UsageError
from revisit.core.text import convert_read_errors
from revisit.geometry.camera_script import script_of_path
from revisit.geometry.formats import from_unreal_rows
from revisit.media import natural_order
from revisit.suites.clips import visible_folders
from revisit.suites.mind.metrics.selection import MAIN, MIRROR
from revisit.suites.mind.read import PERSPECTIVES, ActionRow, find_truth_root, read_action_file, read_recording_info

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
    frames = min(request.clip_length(len(rows)), len(rows))
    rows = rows[:frames]
    path, script = None, ""
    if all("actor_pos" in row or "camera_pos" in row for row in rows):
        upright = from_unreal_rows(rows).c2w  # turns are told about the vertical of the world
        path, script = resample_relative_path(upright, frames), script_of_path(upright, _key_change_frames(rows))
    return {
        **request.size_model_and_seed,
        "suite": "mind", "sample": name, "subset": perspective, "condition": test, "frames": frames,
        "fps": request.fps or FPS, "path": path, "camera": script,
        "actions": tuple({key: int(row.get(key, 0)) for key in KEYS} for row in rows),
    }  # fmt: skip


def _key_change_frames(rows: Sequence[ActionRow]) -> list[int]:
    """Frames at which other keys are held."""
    key_codes = np.array([[int(row.get(key, 0)) for key in KEYS] for row in rows])
    return [int(k) + 1 for k in np.nonzero((key_codes[1:] != key_codes[:-1]).any(axis=1))[0]]


def _read_action_rows(path: Path) -> list[ActionRow]:
    with convert_read_errors(path, "an action file with rows under `data`"):
        rows = read_action_file(path)["data"]
    if not all(isinstance(row, dict) for row in rows):
        raise UsageError(f"{path}: expected an action file with one object per frame under `data`")
    return list(rows)
