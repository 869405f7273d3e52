"""Makes a pose file for each clip, written completely or not at all, and kept while it is up to date.

A file names its producer and the digest of its clip; one that was made of the same clip by the same producer is kept,
so that the same call goes on where another stopped.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np

from revisit.core import Clip, MediaError
from revisit.media import array_shapes_in_npz, clip_digest, frame_count_in_mp4_index, load_npz, save_npz

Arrays = dict[str, np.ndarray]
Tell = Callable[[int, int, str], None]  # (done, of, name)


@dataclass(frozen=True)
class PoseTask:
    """A clip whose poses are wanted."""

    name: str
    clip: Clip
    place: Path
    log: Path | None = None  # where the estimator's own words go

    @cached_property
    def digest(self) -> str:
        return clip_digest(self.clip)


class Estimator(Protocol):
    """Makes poses of clips, one after the other."""

    @property
    def producer(self) -> str: ...

    def run(self, tasks: Sequence[PoseTask]) -> Iterator[tuple[PoseTask, Arrays | str]]:
        """Each task with its arrays, or with a sentence that says why there are none."""


@dataclass(frozen=True)
class PoseReport:
    """What was done."""

    made: int = 0
    kept: int = 0
    failed: tuple[str, ...] = ()


def update_pose_files(
    tasks: Iterable[PoseTask], estimator: Estimator, *, fresh: bool = False, tell: Tell | None = None
) -> PoseReport:
    """Make the files of poses that are not there yet."""
    up_to_date, todo, failed = 0, [], []
    for task in tasks:
        try:
            there = is_up_to_date_pose_file(task.place, task.digest, estimator.producer)
        except MediaError as error:  # a clip that cannot even be hashed
            failed.append(f"{task.name}: {error}")
            continue
        if there and not fresh:
            up_to_date += 1
        else:
            todo.append(task)
    count = 0
    for number, (task, result) in enumerate(estimator.run(todo) if todo else (), start=1):
        if isinstance(result, str):
            failed.append(f"{task.name}: {result}")
        else:
            write_pose_file(task, result, estimator.producer)
            count += 1
        if tell is not None:
            tell(number, len(todo), task.name)
    return PoseReport(count, up_to_date, tuple(failed))


def make_each_in_temporary_folder(
    tasks: Sequence[PoseTask], make: Callable[[PoseTask, Path], Arrays]
) -> Iterator[tuple[PoseTask, Arrays | str]]:
    """Each task with what `make` gives for it in an empty folder of its own, or what it raises."""
    for task in tasks:
        with tempfile.TemporaryDirectory(prefix="revisit-poses-") as folder:
            try:
                yield task, make(task, Path(folder))
            except MediaError as error:
                yield task, str(error)


def write_pose_file(task: PoseTask, arrays: Arrays, producer: str) -> None:
    """Write a file with where it is from; frames are numbered where there is a pose of each."""
    count = len(arrays["extrinsics"])
    if "frame_indices" not in arrays and count == _frame_count_or_none(task.clip):
        arrays["frame_indices"] = np.arange(count)
    origin = {"producer": np.array(producer), "video_digest": np.array(task.digest)}
    save_npz(task.place, {**arrays, **origin}, compress=True)


def _frame_count_or_none(clip: Clip) -> int | None:
    """How many frames a clip has, where its file says it."""
    announced = frame_count_in_mp4_index(clip.path) if clip.path.is_file() else None
    if announced is None:
        return None
    remaining = announced - clip.start
    return remaining if clip.count is None else min(remaining, clip.count)


def is_up_to_date_pose_file(path: Path, digest: str, producer: str) -> bool:
    """Whether a file is there, whole, and made of this clip by this producer."""
    try:
        if not path.is_file() or not {"video_digest", "producer"} <= array_shapes_in_npz(path).keys():
            return False
        origin = load_npz(path, members=("video_digest", "producer"))
    except MediaError:
        return False
    return str(origin["video_digest"]) == digest and str(origin["producer"]) == producer
