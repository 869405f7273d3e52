"""Jobs of MBench: exit–wait–reenter sequences from a first frame (A), and caption segments in a row (T).

What is generated is the list of assignments: a file that the user names, `assignments.jsonl` of the dataset, or what
any model of the dataset has on its list. Clips go to the dataset itself, where the evaluator looks for them, or to
`out`, which becomes a dataset with the same card and samples.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from revisit.control.jobs import BatchRequest, Job, JobBatch, Segment, split_frames
from revisit.core import Clip, Reason, UsageError
from revisit.datasets.clips import first_file
from revisit.geometry.camera_script import Move, Step, camera_path_of_length, parse_script
from revisit.media.files import write_json_lines
from revisit.suites.mbench import dataset
from revisit.suites.mbench.dataset import ListItem, MBenchDataset
from revisit.suites.mbench.metrics.actions import WAIT, parse_requested_motion
from revisit.suites.mbench.package import model_list_row, read_assignments, read_model_list_by_item
from revisit.suites.mbench.read import caption_or_joined_segments, find_source_video, segment_captions

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
    opened = dataset.open_mbench_dataset(data)
    root = opened.root if out is None else out
    place = MBenchDataset(root, opened.card, opened.setting)
    model_folder = root / "models" / request.model
    left_out: list[str] = []
    all_jobs = list(_iter_jobs(opened, place, request, left_out))
    write_index = partial(_update_model_list, opened, model_folder)
    words = [str(root), "--suite", "mbench"]
    return JobBatch(request.select_jobs(all_jobs), model_folder, words, write_index, left_out)


def _iter_jobs(data: MBenchDataset, place: MBenchDataset, request: BatchRequest, left_out: list[str]) -> Iterator[Job]:
    for row in _clips_to_generate(data, request.suite_option("assignments")):
        subset, sample, condition = (row[name] for name in dataset.NEEDED)
        facts, problems = data.sample_facts_and_problems(subset, sample)
        item = ListItem(request.model, subset, sample, condition, 0, {}, facts, None, {})
        try:
            if problems:
                raise UsageError(problems[0][1])
            control = (
                _caption_job_fields(item, request) if data.setting == "T" else _camera_job_fields(data, item, request)
            )
        except UsageError as error:
            left_out.append(f"{item.id}: {error}")
            continue
        yield Job(
            id=item.id,
            out=place.path_from_pattern("output_video", **item.path_fields),
            suite="mbench",
            sample=sample,
            subset=subset,
            condition=condition,
            prompt=caption_or_joined_segments(facts),
            image=_first_frame_of_sample(data, item) if request.first_frame else None,
            **request.size_model_and_seed,
            **control,
        )


def _clips_to_generate(data: MBenchDataset, file: str) -> list[dict[str, str]]:
    """Subset, sample and condition of every clip to make."""
    path = Path(file) if file else data.root / ASSIGNMENTS
    if file or path.is_file():
        return read_assignments(path, data)
    lists = [data.root / "models" / model / dataset.LIST for model in data.models]
    rows = {tuple(row.values()): row for path in lists for row in read_assignments(path, data)}
    if not rows:
        raise UsageError(
            f"{data.root}: nothing says which samples go with which conditions; expected {ASSIGNMENTS}, the list of a "
            "model, or --option assignments=FILE with subset, sample_id and condition_id in every line"
        )
    return list(rows.values())


def _camera_job_fields(data: MBenchDataset, item: ListItem, request: BatchRequest) -> dict[str, Any]:
    """Length and camera of an action-conditioned clip."""
    motion = parse_requested_motion(item.action, data.declared_motion_of_item(item))
    if isinstance(motion, Reason):
        raise UsageError(motion.sentence)
    usual = round((item.seconds_in_condition or SECONDS) * (request.fps or FPS)) + 1
    frames = request.clip_frame_count(usual)
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
        option, default = ("degrees", "60") if kind in ("yaw", "tilt") else ("metres", "1")
        usual_amount = request.suite_option(option, default)
        steps.append(Step((Move(kind, direction, float(next(amounts, None) or usual_amount)),), count))
    script = ",".join(map(str, steps))
    return {
        "frames": frames, "fps": request.fps or FPS, "camera": script,
        "path": camera_path_of_length(parse_script(script), frames),
        "actions": tuple({"action": word} for step, (word, _) in zip(steps, phases, strict=True)
                         for _ in range(step.frames)),
    }  # fmt: skip


def _caption_job_fields(item: ListItem, request: BatchRequest) -> dict[str, Any]:
    """Length and captions of a text-conditioned clip: segments of about five seconds."""
    texts = segment_captions(item.facts)
    if not texts:
        raise UsageError("its sample has no caption_segments, which tell what happens when")
    frames = request.clip_frame_count(round(SEGMENT * (request.fps or FPS)) * len(texts) + 1)
    counts = split_frames(frames, [1.0] * len(texts))
    firsts = accumulate(counts[:-1], initial=0)
    parts = tuple(Segment(*part) for part in zip(texts, firsts, counts, strict=True))
    return {"frames": frames, "fps": request.fps or FPS, "segments": parts}


def _first_frame_of_sample(data: MBenchDataset, item: ListItem) -> Path | Clip | None:
    sample = data.root / "samples" / item.subset / item.sample
    picture = first_file((sample / "first_frame.png", sample / "first_frame.jpg"))
    video = find_source_video(data, item)
    return Clip(video.path, count=1) if picture is None and video is not None else picture


def _update_model_list(data: MBenchDataset, model_folder: Path, jobs: Sequence[Job]) -> None:
    """The list of the model: every clip that was asked for, so that coverage counts those that are missing.

    Where clips lie elsewhere, the card and the samples of the dataset are put beside them.
    """
    root = model_folder.parents[1]
    root.mkdir(parents=True, exist_ok=True)
    for name in (dataset.CARD, dataset.ANCHORS, ASSIGNMENTS):
        if (data.root / name).is_file() and not (root / name).exists():
            shutil.copyfile(data.root / name, root / name)
    if root != data.root and not (root / "samples").exists():
        (root / "samples").symlink_to((data.root / "samples").resolve(), target_is_directory=True)
    rows = read_model_list_by_item(model_folder / dataset.LIST)
    for job in jobs:
        row = dict(zip(dataset.NEEDED, (job.subset, job.sample, job.condition), strict=True))
        line = model_list_row(root, data.setting, job.model, row, job.out)
        rows[job.id] = {**line, "artifacts": {}, "annotations": {}, "metadata": {}}
    write_json_lines(model_folder / dataset.LIST, rows.values())
