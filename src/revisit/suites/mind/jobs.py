"""Jobs of MIND: the recordings of a dataset, to be gone on with by their keys, and its go-and-return tests.

A prediction begins at `mark_time`. Its generator may see everything before (the context clip), gets the last of these
frames as a picture, the keys of every frame, and the path that the keys led along in the recording. Mirror tests are
every first frame with every action file; which one a clip follows is in its job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from revisit.control.jobs import Batch, Job, Wanted, over_frames
from revisit.core import Clip, UsageError
from revisit.geometry.formats import from_unreal_rows
from revisit.geometry.path_script import script_of
from revisit.media import natural_order
from revisit.suites.mind.metrics.selection import MAIN, MIRROR
from revisit.suites.mind.read import PERSPECTIVES, action_file, recording, truth_root

FPS = 24.0
KEYS = ("ws", "ad", "ud", "lr")


def jobs(data: Path, out: Path | None, wanted: Wanted) -> Batch:
    """The jobs of a dataset; predictions are laid out in `out`, a folder per model."""
    wanted.known()
    root = truth_root(data)
    home = (out or Path("generated/mind")) / wanted.model
    left_out: list[str] = []
    found = [
        job
        for perspective in PERSPECTIVES
        for job in (
            *(job for test in MAIN for job in _recordings(root, perspective, test, home, wanted, left_out)),
            *_mirrors(root, perspective, home, wanted, left_out),
        )
    ]
    words = [str(home.parent), "--suite", "mind", "--option", f"gt={data}"]
    return Batch(wanted.chosen(found), home, words, left_out=left_out)


def _recordings(
    root: Path, perspective: str, test: str, home: Path, wanted: Wanted, left_out: list[str]
) -> Iterator[Job]:
    folder = root / perspective / "test" / test
    for place in sorted((entry for entry in folder.glob("*") if entry.is_dir()), key=natural_order):
        known = recording(place)
        if isinstance(known, str):
            left_out.append(known)
            continue
        rows = _rows(known.actions)[known.mark : known.total]
        yield Job(
            id=f"{perspective}/{test}/{place.name}",
            out=home / perspective / test / place.name / "video.mp4",
            prompt=known.caption,
            image=Clip(known.video, start=max(known.mark - 1, 0), count=1) if wanted.first_frame else None,
            context=Clip(known.video, count=known.mark) if known.mark else None,
            annotations={"mark_time": known.mark, "total_time": known.total},
            **_shared(perspective, test, place.name, rows, wanted),
        )


def _mirrors(root: Path, perspective: str, home: Path, wanted: Wanted, left_out: list[str]) -> Iterator[Job]:
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
                out=home / perspective / MIRROR / image.stem / f"path-{number}.mp4",
                image=image if wanted.first_frame else None,
                annotations={"trajectory": file.stem},
                **_shared(perspective, MIRROR, image.stem, rows, wanted),
            )


def _shared(
    perspective: str, test: str, name: str, rows: Sequence[Mapping[str, Any]], wanted: Wanted
) -> dict[str, Any]:
    """What jobs of both kinds have: length, keys and path."""
    frames = min(wanted.length(len(rows)), len(rows))
    rows = rows[:frames]
    path, script = None, ""
    if all("actor_pos" in row or "camera_pos" in row for row in rows):
        upright = from_unreal_rows(rows).c2w  # turns are told about the vertical of the world
        path, script = over_frames(upright, frames), script_of(upright, _changes(rows))
    return {
        **wanted.clip,
        "suite": "mind", "sample": name, "subset": perspective, "condition": test, "frames": frames,
        "fps": wanted.fps or FPS, "path": path, "camera": script,
        "actions": tuple({key: int(row.get(key, 0)) for key in KEYS} for row in rows),
    }  # fmt: skip


def _changes(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Frames at which other keys are held."""
    held = np.array([[int(row.get(key, 0)) for key in KEYS] for row in rows])
    return [int(k) + 1 for k in np.nonzero((held[1:] != held[:-1]).any(axis=1))[0]]


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        rows = action_file(path)["data"]
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(f"{path}: expected an action file with rows under `data` ({error})") from error
    if not all(isinstance(row, dict) for row in rows):
        raise UsageError(f"{path}: expected an action file with one object per frame under `data`")
    return list(rows)
