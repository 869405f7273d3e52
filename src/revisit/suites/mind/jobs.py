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

from revisit.control.jobs import BatchRequest, Job, JobBatch, resample_path
from revisit.core import Clip, UsageError
from revisit.core.text import require_readable
from revisit.geometry.camera_script import script_of
from revisit.geometry.formats import from_unreal_rows
from revisit.media import natural_order
from revisit.suites.mind.metrics.selection import MAIN, MIRROR
from revisit.suites.mind.read import PERSPECTIVES, ActionRow, action_file, recording, truth_root

FPS = 24.0
KEYS = ("ws", "ad", "ud", "lr")


def jobs(data: Path, out: Path | None, request: BatchRequest) -> JobBatch:
    """The jobs of a dataset; predictions are laid out in `out`, a folder per model."""
    request.refuse_unknown_options()
    root = truth_root(data)
    folder = (out or Path("generated/mind")) / request.model
    left_out: list[str] = []
    candidates = [
        job
        for perspective in PERSPECTIVES
        for job in (
            *(job for test in MAIN for job in _recordings(root, perspective, test, folder, request, left_out)),
            *_mirrors(root, perspective, folder, request, left_out),
        )
    ]
    words = [str(folder.parent), "--suite", "mind", "--option", f"gt={data}"]
    return JobBatch(request.select(candidates), folder, words, left_out=left_out)


def _recordings(
    root: Path, perspective: str, test: str, out_folder: Path, request: BatchRequest, left_out: list[str]
) -> Iterator[Job]:
    folder = root / perspective / "test" / test
    for place in sorted((entry for entry in folder.glob("*") if entry.is_dir()), key=natural_order):
        record = recording(place)
        if isinstance(record, str):
            left_out.append(record)
            continue
        rows = _rows(record.actions)[record.mark : record.total]
        yield Job(
            id=f"{perspective}/{test}/{place.name}",
            out=out_folder / perspective / test / place.name / "video.mp4",
            prompt=record.caption,
            image=Clip(record.video, start=max(record.mark - 1, 0), count=1) if request.first_frame else None,
            context=Clip(record.video, count=record.mark) if record.mark else None,
            annotations={"mark_time": record.mark, "total_time": record.total},
            **_common_fields(perspective, test, place.name, rows, request),
        )


def _mirrors(
    root: Path, perspective: str, out_folder: Path, request: BatchRequest, left_out: list[str]
) -> Iterator[Job]:
    folder = root / perspective / "test" / MIRROR
    files = sorted(folder.glob("*.json"), key=natural_order) if folder.is_dir() else []
    for image in sorted(folder.glob("*.png"), key=natural_order):
        for number, file in enumerate(files, start=1):
            try:
                rows = _rows(file)
            except UsageError as error:
                left_out.append(str(error))
                continue
            yield Job(
                id=f"{perspective}/{MIRROR}/{image.stem}/{file.stem}",
                out=out_folder / perspective / MIRROR / image.stem / f"path-{number}.mp4",
                image=image if request.first_frame else None,
                annotations={"trajectory": file.stem},
                **_common_fields(perspective, MIRROR, image.stem, rows, request),
            )


def _common_fields(
    perspective: str, test: str, name: str, rows: Sequence[ActionRow], request: BatchRequest
) -> dict[str, Any]:
    """What jobs of both kinds have: length, keys and path."""
    frames = min(request.length(len(rows)), len(rows))
    rows = rows[:frames]
    path, script = None, ""
    if all("actor_pos" in row or "camera_pos" in row for row in rows):
        upright = from_unreal_rows(rows).c2w  # turns are told about the vertical of the world
        path, script = resample_path(upright, frames), script_of(upright, _changes(rows))
    return {
        **request.clip,
        "suite": "mind", "sample": name, "subset": perspective, "condition": test, "frames": frames,
        "fps": request.fps or FPS, "path": path, "camera": script,
        "actions": tuple({key: int(row.get(key, 0)) for key in KEYS} for row in rows),
    }  # fmt: skip


def _changes(rows: Sequence[ActionRow]) -> list[int]:
    """Frames at which other keys are held."""
    key_codes = np.array([[int(row.get(key, 0)) for key in KEYS] for row in rows])
    return [int(k) + 1 for k in np.nonzero((key_codes[1:] != key_codes[:-1]).any(axis=1))[0]]


def _rows(path: Path) -> list[ActionRow]:
    with require_readable(path, "an action file with rows under `data`"):
        rows = action_file(path)["data"]
    if not all(isinstance(row, dict) for row in rows):
        raise UsageError(f"{path}: expected an action file with one object per frame under `data`")
    return list(rows)
