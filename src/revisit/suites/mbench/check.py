"""Check: finds everything that a dataset lacks for some metrics, item by item, with file and line.

Strict where reading is lenient: `revisit mbench validate` ends with exit code 1 when anything here is a violation.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from revisit.core import Clip, MediaError, Reason
from revisit.media import open_clip
from revisit.suites.mbench.dataset import LIST, DatasetProblem, ListItem, MBenchDataset
from revisit.suites.mbench.imports import count_poses_in_file
from revisit.suites.mbench.metrics.actions import parse_requested_motion
from revisit.suites.mbench.names import MemoryDimension
from revisit.suites.mbench.read import Filter, find_object_anchor, object_description, segment_captions


def check_dataset_items(
    data: MBenchDataset, keep: Filter, dimensions: Sequence[MemoryDimension], limit: int | None = None
) -> tuple[list[DatasetProblem], int]:
    """What is wrong with the chosen items (violations, and links, which are only told), and how many were looked at.

    Items count of which some chosen dimension is asked. With a limit, so many of each model and subset are looked at.
    """
    problems: list[DatasetProblem] = []
    items = 0
    for model in keep.models:
        looked: Counter[str] = Counter()
        for entry in data.items_and_problems(model):
            if isinstance(entry, DatasetProblem):
                problems.append(entry)
                continue
            looked[entry.subset] += keep.accepts(entry)
            if not keep.accepts(entry) or (limit is not None and looked[entry.subset] > limit):
                continue
            mine = [d for d in dimensions if d.subset == entry.subset]
            items += bool(mine)
            problems += item_problems(data, entry, mine)
    return problems, items


def item_problems(
    data: MBenchDataset, item: ListItem, dimensions: Sequence[MemoryDimension]
) -> Iterator[DatasetProblem]:
    """What an item lacks for some dimensions."""
    poses = any(dimension.poses for dimension in dimensions)
    for problem in item.problems:
        if poses or "artifact" not in problem.kind:
            yield problem

    in_list = f"models/{item.model}/{LIST}", item.line, item.id
    in_sample = f"samples/{item.subset}/{item.sample}/sample.json", None, item.id
    if dimensions and item.video is not None and (reason := unreadable_video_reason(item.video)):
        yield DatasetProblem("not a video", *in_list, f"{item.video.name}: {reason}")
    names = {dimension.name for dimension in dimensions}
    if item.subset == "object" and any(name.startswith("object_") for name in names):
        anchor = find_object_anchor(data, item)
        if data.setting == "A" and anchor.fields is None:
            text = "metadata.object_anchor is missing; add it there, or to anchors.json of the dataset"
            yield DatasetProblem("no anchor", *in_sample, text)
        elif anchor.fields is not None and anchor.target is None:
            anchor_text = json.dumps(anchor.fields)[:120]
            text = f"the anchor {anchor_text} is not inside the frame; expected center_x, center_y, width, height"
            yield DatasetProblem("bad anchor", *in_sample, text)
        if data.setting == "T" and not object_description({**item.facts, "object_name": ""}):
            text = "metadata.object_card is missing, or has no name: name and attributes"
            yield DatasetProblem("no object card", *in_sample, text)
    if item.subset == "causal" and dimensions and data.setting == "T" and not segment_captions(item.facts):
        text = "metadata.caption_segments is missing: a list of texts, one per part"
        yield DatasetProblem("no caption segments", *in_sample, text)
    if "camera_interaction" in names:
        motion = parse_requested_motion(item.action, data.declared_motion_of_item(item))
        if isinstance(motion, Reason):
            yield DatasetProblem("unknown action", *in_list, motion.sentence)
    path = item.artifacts.get("da3")
    if poses and path is None and not any("artifact" in p.kind and p.violation for p in item.problems):
        text = "results.npz is missing; `revisit mbench prepare` makes one"
        yield DatasetProblem("missing artifact", *in_list, text)
    elif poses and path is not None and (trouble := pose_artifact_problem(path)) is not None:
        kind, text = trouble
        yield DatasetProblem(kind, *in_list, text)


def unreadable_video_reason(path: Path) -> str:
    """Why the first frame of a file cannot be shown; empty where it can."""
    try:
        with open_clip(Clip(path), wanted=np.array([0])) as clip:
            return "" if next(iter(clip), None) is not None else "it has no frame"
    except MediaError as error:
        return str(error)


def pose_artifact_problem(path: Path) -> tuple[str, str] | None:
    """What is wrong with a pose artifact, in a word and in a sentence, as its reader finds it."""
    try:
        count = count_poses_in_file(path)
    except MediaError as error:
        return "bad artifact", str(error)
    pictures = path.parent / "input_images"
    if pictures.is_dir() and (pictures_count := len(list(pictures.glob("*.png")))) != count:
        return "wrong count", f"there are {pictures_count} pictures in input_images and {count} poses"
    return None
