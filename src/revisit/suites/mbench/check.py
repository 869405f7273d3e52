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
from revisit.suites.mbench.imports import poses_in
from revisit.suites.mbench.metrics.actions import requested_motion
from revisit.suites.mbench.names import MemoryDimension
from revisit.suites.mbench.read import Filter, anchor_of, object_words, segments_of, target_of


def check(
    data: MBenchDataset, keep: Filter, dimensions: Sequence[MemoryDimension], limit: int | None = None
) -> tuple[list[DatasetProblem], int]:
    """What is wrong with the chosen items (violations, and links, which are only told), and how many were looked at.

    Items count of which some chosen dimension is asked. With a limit, so many of each model and subset are looked at.
    """
    problems: list[DatasetProblem] = []
    items = 0
    for model in keep.models:
        looked: Counter[str] = Counter()
        for entry in data.items(model):
            if isinstance(entry, DatasetProblem):
                problems.append(entry)
                continue
            looked[entry.subset] += keep.takes(entry)
            if not keep.takes(entry) or (limit is not None and looked[entry.subset] > limit):
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

    def of_line(kind: str, text: str) -> DatasetProblem:
        return DatasetProblem(kind, f"models/{item.model}/{LIST}", item.line, item.id, text)

    if dimensions and item.video is not None and (reason := video_problem(item.video)):
        yield of_line("not a video", f"{item.video.name}: {reason}")
    sample = f"samples/{item.subset}/{item.sample}/sample.json"
    names = {dimension.name for dimension in dimensions}

    def lacks(kind: str, text: str) -> DatasetProblem:
        return DatasetProblem(kind, sample, None, item.id, text)

    if item.subset == "object" and any(name.startswith("object_") for name in names):
        anchor = anchor_of(data, item)[0]
        if data.setting == "A" and anchor is None:
            text = "metadata.object_anchor is missing; add it there, or to anchors.json of the dataset"
            yield lacks("no anchor", text)
        elif anchor is not None and target_of(data, item, anchor)[0] is None:
            anchor_text = json.dumps(anchor)[:120]
            text = f"the anchor {anchor_text} is not inside the frame; expected center_x, center_y, width, height"
            yield lacks("bad anchor", text)
        if data.setting == "T" and not object_words({**item.facts, "object_name": ""}):
            yield lacks("no object card", "metadata.object_card is missing, or has no name: name and attributes")
    if item.subset == "causal" and dimensions:
        if data.setting == "T" and not segments_of(item.facts):
            yield lacks("no caption segments", "metadata.caption_segments is missing: a list of texts, one per part")
        if data.setting == "A" and not (item.action or item.facts.get("caption")):
            yield lacks("no action", "neither annotations.action nor metadata.caption says what should happen")
    if "camera_interaction" in names and isinstance(motion := requested_motion(item.action, data.motion(item)), Reason):
        yield of_line("no action" if motion.kind == "no_camera" else "unknown action", motion.sentence)
    if poses:
        if item.artifact is None and not any("artifact" in p.kind and p.violation for p in item.problems):
            yield of_line("missing artifact", "results.npz is missing; `revisit mbench prepare` makes one")
        elif item.artifact is not None and (trouble := artifact_problem(item.artifact)) is not None:
            yield of_line(*trouble)


def video_problem(path: Path) -> str:
    """Why the first frame of a file cannot be shown; empty where it can."""
    try:
        with open_clip(Clip(path), wanted=np.array([0])) as clip:
            return "" if next(iter(clip), None) is not None else "it has no frame"
    except MediaError as error:
        return str(error)


def artifact_problem(path: Path) -> tuple[str, str] | None:
    """What is wrong with a pose artifact, in a word and in a sentence, as its reader finds it."""
    try:
        count = poses_in(path)
    except MediaError as error:
        return "bad artifact", str(error)
    pictures = path.parent / "input_images"
    if pictures.is_dir() and (pictures_count := len(list(pictures.glob("*.png")))) != count:
        return "wrong count", f"there are {pictures_count} pictures in input_images and {count} poses"
    return None
