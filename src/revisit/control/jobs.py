"""Jobs: what one clip shall be made from, as a small JSON file that any generator's script can read.

A suite turns its dataset into a `JobBatch` (`suites/<name>/jobs.py`); `job_runner` carries it out. A job names its
inputs (prompt, caption segments, first frame, context clip), its control (a camera script, the path in metres, rows of
keys, and the payload in the generator's own dialect), frames, size, frame rate and seed, and where the clip must lie.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from revisit.control.generators import Generator
from revisit.core import Clip, UsageError
from revisit.core.grouping import group_items
from revisit.geometry.poses import invert_rigid_poses, make_trajectory, resample

SCHEMA = 1
LONGEST_NAME = 120  # characters of an id that a file's name keeps
FRAMES, FPS, SIZE = 81, 16.0, (832, 480)  # where neither the user, the dataset nor a generator's card says another
TOLD = ("id", "suite", "model", "sample", "subset", "condition", "seed", "frames", "fps")  # to a generator, as they are
JobRequest = dict[str, Any]  # a job as its generator is given it (docs/generate.md)


@dataclass(frozen=True)
class Segment:
    """A caption and the frames it is meant for."""

    prompt: str
    first: int
    frames: int


@dataclass(frozen=True, eq=False)
class Job:
    """One clip to make."""

    id: str  # of the sample and condition; unique in a batch
    out: Path
    frames: int
    fps: float = FPS
    size: tuple[int, int] = SIZE  # width, height
    suite: str = ""
    model: str = ""
    sample: str = ""
    subset: str = ""
    condition: str = ""
    seed: int = 0
    prompt: str = ""
    segments: tuple[Segment, ...] = ()
    image: Path | Clip | None = None  # the first frame: a picture, or one frame of a video
    context: Clip | None = None  # what was seen before the clip begins
    source_video: Path | None = None
    camera: str = ""  # a script
    path: np.ndarray | None = None  # (frames, 4, 4) OpenCV camera-to-world in metres, where poses are known
    actions: tuple[Mapping[str, int | str], ...] = ()  # keys frame by frame
    policy: str = "none"
    annotations: Mapping[str, Any] = field(default_factory=dict)
    tolerance: float = 0.0  # share by which the clip may be longer or shorter; size and rate are its generator's then

    def as_json(self, out: Path, image: Path | None, control: Mapping[str, object]) -> JobRequest:
        """The job as its generator is given it; the clip is written to `out` and checked before it takes its place."""
        seen = self.context
        return {
            "schema": SCHEMA,
            **{name: getattr(self, name) for name in TOLD},
            "size": list(self.size),
            "inputs": {
                "prompt": self.prompt,
                "segments": [vars(segment) for segment in self.segments],
                "image": image and str(image.absolute()),
                "context": seen and {"video": str(seen.path.absolute()), "start": seen.start, "frames": seen.count},
                "source_video": self.source_video and str(self.source_video.absolute()),
            },
            "control": {"script": self.camera, "actions": [dict(row) for row in self.actions], **control},
            "out": str(out.absolute()),
        }


@dataclass(frozen=True)
class BatchRequest:
    """What a user asks of all jobs of a batch; None leaves it to the dataset or the generator's card."""

    model: str
    to: Generator | None = None  # the card whose dialect is spoken
    frames: int | None = None
    size: tuple[int, int] | None = None
    fps: float | None = None
    seed: int = 0
    first_frame: bool = True
    only: tuple[str, ...] = ()  # subsets, conditions, samples or ids; all where nothing is named
    limit: int | None = None  # jobs, spread evenly over subsets and conditions
    options: Mapping[str, str] = field(default_factory=dict)  # of the suite

    def __post_init__(self) -> None:
        if self.fps is not None and not 0 < self.fps < float("inf"):
            raise UsageError(f"{self.fps:g} frames a second is not a rate; give a number above zero")

    @property
    def size_model_and_seed(self) -> dict[str, Any]:
        """Size, model and seed of all clips, for a Job."""
        size = self.size or (self.to.size if self.to else SIZE)
        if min(size) < 16 or size[0] % 2 or size[1] % 2:
            raise UsageError(f"a size is width x height in even numbers of 16 or more, not {size[0]}x{size[1]}")
        return {"size": size, "model": self.model, "seed": self.seed}

    @property
    def frame_rate(self) -> float:
        """Frames a second."""
        return self.fps or (self.to.fps if self.to else FPS)

    def clip_frame_count(self, usual_frame_count: int) -> int:
        """Frames of a clip of which the dataset says that it usually has so many."""
        if self.frames is not None:
            frames = self.frames
        elif self.to is None or self.to.can_make_length(usual_frame_count):
            frames = usual_frame_count
        else:  # the longest that the generator makes and the dataset has
            frames = next((n for n in range(usual_frame_count, 1, -1) if self.to.can_make_length(n)), self.to.frames)
        if frames < 2:
            raise UsageError(f"a clip has 2 frames or more, not {frames}")
        return frames

    def suite_option(self, name: str, usual: str = "") -> str:
        """An option of the suite."""
        return self.options.get(name, usual)

    def refuse_unknown_options(self, *names: str) -> None:
        """Raise UsageError where an option was given that the suite does not have."""
        unknown = sorted(set(self.options) - set(names))
        if unknown:
            options = f"it has {', '.join(names)}" if names else "it has none"
            raise UsageError(f"jobs of this suite have no option {unknown[0]!r}; {options}")

    def select_jobs(self, jobs: Iterable[Job]) -> list[Job]:
        """The jobs that are asked for: those named, at most `limit`, spread evenly over subsets and conditions."""
        all_ = list(jobs)
        names = [{job.id, job.sample, job.subset, job.condition, *job.id.split("/")} for job in all_]
        unknown = [name for name in self.only if not any(name in mine for mine in names)]
        if unknown:
            raise UsageError(f"--only {unknown[0]}: there is no sample, subset or condition of that name")
        mine = [job for job, labels in zip(all_, names, strict=True) if not self.only or labels & set(self.only)]
        if self.limit is None or len(mine) <= self.limit:
            return mine
        kinds = group_items(range(len(mine)), lambda number: (mine[number].subset, mine[number].condition))
        order = sorted((turn, number) for numbers in kinds.values() for turn, number in enumerate(numbers))
        selected = {number for _, number in order[: self.limit]}
        return [job for number, job in enumerate(mine) if number in selected]


@dataclass(frozen=True)
class JobBatch:
    """Jobs of one model in one dataset, and what a suite's reader needs besides their clips."""

    jobs: Sequence[Job]
    home: Path  # the folder of the model: the log and extracted first frames lie there
    evaluate: Sequence[str]  # arguments of `revisit eval`
    index: Callable[[Sequence[Job]], None] | None = None  # writes the lists that the reader goes by
    left_out: Sequence[str] = ()  # sentences: samples that no job can be made of
    ceiling: JobBatch | None = None  # a rendered place, beside a baseline generator where there is no true video
    allowed: Sequence[Path] = ()  # all clips of an exact set, also those that were not chosen: no others may lie there
    remarks: Sequence[str] = ()  # sentences about jobs that are there


def require_distinct_jobs(jobs: Sequence[Job]) -> None:
    """Raise UsageError where two jobs have one id, or would write one file."""
    ids = Counter(job.id for job in jobs)
    twice = next((job_id for job_id, count in ids.items() if count > 1), None)
    if twice is not None:
        raise UsageError(f"two jobs are called {twice!r}; every sample and condition has an id of its own")
    places: dict[str, str] = {}
    for job in jobs:
        place = str(job.out.with_suffix("").absolute())
        if place in places:
            raise UsageError(f"{places[place]!r} and {job.id!r} would both be written to {job.out}; rename one of them")
        places[place] = job.id


def file_name_for_id(id: str) -> str:
    """A name for the clip of an id. Where an id cannot be a name as it is, a digest keeps it apart from all others."""
    name = re.sub(r"[^A-Za-z0-9_.@-]+", "_", id).strip("._")[:LONGEST_NAME]
    if name != id:
        name = f"{name or 'clip'}-{hashlib.sha256(id.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
    return name


def is_folder_name(name: str) -> bool:
    """Whether a name can be that of a folder, wherever the clips go."""
    return bool(name) and name == file_name_for_id(name)


def resample_relative_path(c2w: np.ndarray, frame_count: int) -> np.ndarray:
    """A path seen from its first pose, spread over so many frames."""
    relative = invert_rigid_poses(c2w[0]) @ c2w
    if len(relative) == frame_count:
        return relative
    return resample(make_trajectory(relative), np.linspace(0, len(relative) - 1, frame_count)).c2w.copy()


def split_frames(frames: int, shares: Sequence[float]) -> list[int]:
    """Whole numbers of frames, at least one each, in proportion to shares."""
    if frames < len(shares):
        raise UsageError(f"{frames} frames are too few for {len(shares)} parts")
    ends = [round(frames * sum(shares[: k + 1]) / sum(shares)) for k in range(len(shares))]
    counts: list[int] = []
    for k, end in enumerate(ends):
        parts_left = len(shares) - 1 - k
        counts.append(max(1, min(end, frames - parts_left) - sum(counts)))
    return counts
