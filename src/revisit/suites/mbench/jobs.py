"""Jobs of MBench: exit–wait–reenter sequences from a first frame (A), and caption segments in a row (T).

What is generated is the list of assignments: a file that the user names, `assignments.jsonl` of the dataset, or what
any model of the dataset has on its list. Clips go to the dataset itself, where the evaluator looks for them, or to
`out`, which becomes a dataset with the same card and samples.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from revisit.control.jobs import BatchRequest, Job, JobBatch, Segment, split_frames
from revisit.core import Clip, Reason, UsageError
from revisit.geometry.camera_script import Move, Step, parse_script, timed_path
from revisit.media.files import write_lines
from revisit.suites.mbench.dataset import ANCHORS, CARD, LIST, NEEDED, ListItem, MBenchDataset, is_name, open_dataset
from revisit.suites.mbench.metrics.actions import WAIT, requested_motion
from revisit.suites.mbench.package import list_row, read_assigned_samples, read_list
from revisit.suites.mbench.read import prompt_of, segments_of

ASSIGNMENTS = "assignments.jsonl"
FPS = 16.0  # A: 10 s are 161 frames, 25 s are 401
SECONDS = 25.0  # of a condition that does not say how long it is
SEGMENT = 5.0  # seconds of a caption segment
EXIT, STAY, REENTER = 0.4, 0.2, 0.4  # shares of a wait that nobody declares
MOVES = {
    "left": ("yaw", "left"), "right": ("yaw", "right"), "up": ("tilt", "up"), "down": ("tilt", "down"),
    "forward": ("dolly", "forward"), "backward": ("dolly", "back"),
    "strafe_left": ("truck", "left"), "strafe_right": ("truck", "right"),
}  # fmt: skip
NUMBER = re.compile(r"_(\d+)$")


def jobs(data: Path, out: Path | None, request: BatchRequest) -> JobBatch:
    """The jobs of a dataset."""
    request.refuse_unknown_options("assignments", "degrees", "metres")
    opened = open_dataset(data)
    root = opened.root if out is None else out
    place = MBenchDataset(root, opened.card, opened.setting)
    model_folder = root / "models" / request.model
    if not is_name(request.model):
        raise UsageError(f"{request.model!r} cannot be a model's name, because it becomes a folder's name")
    left_out: list[str] = []
    all_jobs = list(_jobs(opened, place, request, left_out))

    def index(finished_jobs: Sequence[Job]) -> None:
        if out is not None:
            _copy_card(opened, root)
        _write_list(model_folder, opened.setting, finished_jobs)

    return JobBatch(request.select(all_jobs), model_folder, [str(root), "--suite", "mbench"], index, left_out)


def _jobs(data: MBenchDataset, place: MBenchDataset, request: BatchRequest, left_out: list[str]) -> Iterator[Job]:
    for row in _assignments(data, request.option("assignments")):
        subset, sample, condition = (row[name] for name in NEEDED)
        facts, problems = data.sample(subset, sample)
        item = ListItem(request.model, subset, sample, condition, 0, {}, facts, None, {})
        if problems:
            left_out.append(f"{item.id}: {problems[0].text}")
            continue
        try:
            control = _caption_fields(item, request) if data.setting == "T" else _camera_fields(data, item, request)
        except UsageError as error:
            left_out.append(f"{item.id}: {error}")
            continue
        yield Job(
            id=item.id,
            out=place.place("output_video", **item.names),
            suite="mbench",
            sample=sample,
            subset=subset,
            condition=condition,
            prompt=prompt_of(facts),
            image=_first_frame(data.root / "samples" / subset / sample) if request.first_frame else None,
            **request.clip,
            **control,
        )


def _assignments(data: MBenchDataset, file: str) -> list[dict[str, str]]:
    """Subset, sample and condition of every clip to make."""
    path = Path(file) if file else data.root / ASSIGNMENTS
    if file or path.is_file():
        return read_assigned_samples(path, data)
    lists = [data.root / "models" / model / LIST for model in data.models]
    rows = {tuple(row.values()): row for path in lists for row in read_assigned_samples(path, data)}
    if not rows:
        raise UsageError(
            f"{data.root}: nothing says which samples go with which conditions; expected {ASSIGNMENTS}, the list of a "
            "model, or --option assignments=FILE with subset, sample_id and condition_id in every line"
        )
    return list(rows.values())


def _camera_fields(data: MBenchDataset, item: ListItem, request: BatchRequest) -> dict[str, Any]:
    """Length and camera of an action-conditioned clip."""
    motion = requested_motion(item.action, data.motion(item))
    if isinstance(motion, Reason):
        raise UsageError(motion.sentence)
    usual = round((item.length or SECONDS) * (request.fps or FPS)) + 1
    frames = request.length(usual)
    phases = list(motion.phases)
    if motion.waits:
        phases = [(phases[0][0], EXIT), (WAIT, STAY), (phases[1][0], REENTER)]
    parts = [part for part in item.action.split("_then_") if not part.startswith(WAIT)]
    amounts = iter([int(number[1]) if (number := NUMBER.search(part)) else None for part in parts])
    steps = []
    for (word, _), count in zip(phases, split_frames(frames - 1, [share for _, share in phases]), strict=True):
        if word == WAIT:
            steps.append(Step((), count))
            continue
        kind, direction = MOVES[word]
        usual_amount = request.option("degrees", "60") if kind in ("yaw", "tilt") else request.option("metres", "1")
        steps.append(Step((Move(kind, direction, float(next(amounts, None) or usual_amount)),), count))
    script = ",".join(map(str, steps))
    return {
        "frames": frames, "fps": request.fps or FPS, "camera": script, "path": timed_path(parse_script(script), frames),
        "actions": tuple({"action": word} for step, (word, _) in zip(steps, phases, strict=True)
                         for _ in range(step.frames)),
    }  # fmt: skip


def _caption_fields(item: ListItem, request: BatchRequest) -> dict[str, Any]:
    """Length and captions of a text-conditioned clip: segments of about five seconds."""
    texts = segments_of(item.facts)
    if not texts:
        raise UsageError("its sample has no caption_segments, which tell what happens when")
    frames = request.length(round(SEGMENT * (request.fps or FPS)) * len(texts) + 1)
    counts = split_frames(frames, [1.0] * len(texts))
    firsts = accumulate(counts[:-1], initial=0)
    parts = tuple(Segment(*part) for part in zip(texts, firsts, counts, strict=True))
    return {"frames": frames, "fps": request.fps or FPS, "segments": parts}


def _first_frame(sample: Path) -> Path | Clip | None:
    for name in ("first_frame.png", "first_frame.jpg"):
        if (sample / name).is_file():
            return sample / name
    video = sample / "source_video.mp4"
    return Clip(video, count=1) if video.is_file() else None


def _copy_card(data: MBenchDataset, root: Path) -> None:
    """The card and the samples of the dataset, for clips that lie elsewhere."""
    root.mkdir(parents=True, exist_ok=True)
    for name in (CARD, ANCHORS, ASSIGNMENTS):
        if (data.root / name).is_file() and not (root / name).exists():
            shutil.copyfile(data.root / name, root / name)
    if not (root / "samples").exists():
        (root / "samples").symlink_to((data.root / "samples").resolve(), target_is_directory=True)


def _write_list(model_folder: Path, setting: str, jobs: Sequence[Job]) -> None:
    """The list of the model: every clip that was asked for, so that coverage counts those that are missing."""
    rows = read_list(model_folder / LIST)
    for job in jobs:
        row = dict(zip(NEEDED, (job.subset, job.sample, job.condition), strict=True))
        line = list_row(model_folder.parents[1], setting, job.model, row, job.out)
        rows[job.id] = {**line, "artifacts": {}, "annotations": {}, "metadata": {}}
    write_lines(model_folder / LIST, rows.values())
