"""What is in a dataset of MIND, and what its suite could not score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from revisit.control.jobs import BatchRequest
from revisit.core import UsageError
from revisit.geometry.rotations import angle_between_rotations
from revisit.media import frame_count_in_mp4_index
from revisit.suites.authoring import DatasetDescription, DatasetTools, least_median_most_table, value_count_table
from revisit.suites.mind.jobs import mind_generation_jobs
from revisit.suites.mind.metrics.selection import MIRROR, VARIED
from revisit.suites.mind.read import KIND, find_truth_root, parse_action_space, read_recording_info, read_scene_kinds


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
