"""Overlays: what observers and judges saw in a clip, as a page can draw it over the frames.

Boxes and masks go with the frames of the video. Matches join two frames. What a judge said comes with the pictures it
was shown. Only what lies in the evidence cache can be drawn; nothing is observed here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np

from revisit.engine.cache import EvidenceCache
from revisit.evidence.judged import NO, YES, JudgeAnswers
from revisit.report.film_strips import JUDGES, load_evidence_or_none
from revisit.report.videos import Videos
from revisit.web.templates import Context

BOXES = 240  # along a clip
MASKS = 48
MASK_SIDE = 64  # cells of the longer side of a drawn mask
PAIRS = 6
POINTS = 60  # of a pair


def observer_overlays(evidence: Mapping[str, str], cache: EvidenceCache) -> list[Context]:
    """Boxes, masks and matches of a clip, each kind with its title."""
    drawings = []
    track = load_evidence_or_none("target_track", evidence, cache)
    if track is not None:
        drawings.append(_box_overlay("target, as followed", track.index, track.box, track.inside > 0.05))
    region = load_evidence_or_none("object_region", evidence, cache)
    if region is not None:
        drawings.append(_box_overlay("target, as found", region.index, region.box, region.visible))
        if region.mask.size:
            drawings.append(_mask_overlay("mask of the target", region.index, region.mask))
    masks = load_evidence_or_none("object_masks", evidence, cache)
    if masks is not None and masks.mask.size:
        drawings.append(_mask_overlay("mask of the target", masks.index, masks.mask))
    matches = load_evidence_or_none("pair_matches", evidence, cache)
    geometry = load_evidence_or_none("geometry_track", evidence, cache)
    if matches is not None and geometry is not None and len(matches.frame):
        drawings.append(_match_overlay(matches, geometry))
    return [one for one in drawings if one["frame"]]


def judge_overlays(evidence: Mapping[str, str], cache: EvidenceCache, videos: Videos) -> list[Context]:
    """What judges said of a clip: questions with their answers, and the pictures they saw."""
    shots = _keep_judge_pictures(evidence, cache, videos)
    judgements = []
    for kind in JUDGES:
        record = load_evidence_or_none(kind, evidence, cache)
        if record is not None:
            rows = _judge_answer_rows(record) if isinstance(record, JudgeAnswers) else _plain_field_rows(record)
            problems = list(record.problems) + ([] if record.canary in ("", "passed") else [record.canary])
            judgements.append({"judge": record.judge, "rows": rows, "problems": problems, "shots": shots})
            shots = []  # shown once
    return judgements


def _box_overlay(title: str, index: np.ndarray, box: np.ndarray, visible: np.ndarray) -> Context:
    """Boxes in fractions of the frame; null where the target is not in it."""
    rows = _evenly_spread_rows(len(index), BOXES)
    boxes = [
        [round(float(edge), 4) for edge in box[k]] if visible[k] and np.isfinite(box[k]).all() else None for k in rows
    ]
    return {"kind": "boxes", "title": title, "frame": [int(index[k]) for k in rows], "box": boxes}


def _mask_overlay(title: str, index: np.ndarray, mask: np.ndarray) -> Context:
    """Masks as runs of a coarse grid: row, first column, length."""
    step = max(1, -(-max(mask.shape[1:]) // MASK_SIDE))
    rows = _evenly_spread_rows(len(index), MASKS)
    return {
        "kind": "masks",
        "title": title,
        "frame": [int(index[k]) for k in rows],
        "grid": [-(-mask.shape[2] // step), -(-mask.shape[1] // step)],
        "runs": [_true_runs_of_rows(np.asarray(mask[k][::step, ::step], bool)) for k in rows],
    }


def _true_runs_of_rows(mask: np.ndarray) -> list[list[int]]:
    edges = np.diff(np.pad(mask.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    starts, ends = np.argwhere(edges == 1), np.argwhere(edges == -1)
    return [[int(row), int(first), int(last - first)] for (row, first), (_, last) in zip(starts, ends, strict=True)]


def _match_overlay(matches: Any, geometry: Any) -> Context:
    """The pairs with the most matches, points in fractions of the frame."""
    size = np.array([geometry.width, geometry.height] * 2, float)
    most_matched = sorted(np.argsort(-np.diff(matches.offsets), kind="stable")[:PAIRS].tolist())
    pairs = []
    for k in most_matched:
        points = matches.points[matches.offsets[k] : matches.offsets[k + 1]]
        few = points[_evenly_spread_rows(len(points), POINTS)] / size
        pairs.append({"other": int(matches.other[k]), "n": len(points), "points": np.round(few, 4).tolist()})
    frames = [int(matches.frame[k]) for k in most_matched]
    return {"kind": "matches", "title": f"matches by {matches.matcher}", "frame": frames, "pairs": pairs}


def _judge_answer_rows(record: JudgeAnswers) -> list[Context]:
    words = {YES: "yes", NO: "no"}
    answers, positive, p_yes = record.answer.tolist(), record.positive.tolist(), record.p_yes.tolist()
    return [
        {
            "about": record.dimension[k],
            "question": record.text[k] if k < len(record.text) else f"question {int(record.question[k])}",
            "answer": words.get(answer, "no answer"),
            "p": None if math.isnan(p_yes[k]) else round(p_yes[k], 3),
            "good": bool(positive[k]) == (answer == YES) if answer in words else None,
        }
        for k, answer in enumerate(answers)
    ]


def _plain_field_rows(record: Any) -> list[Context]:
    """The plain fields of what a judge said."""
    values = {f.name: getattr(record, f.name) for f in fields(record)}
    hidden = ("judge", "frames", "canary", "problems")
    return [
        {
            "about": "",
            "question": name.replace("_", " "),
            "answer": " ".join(map(str, value.tolist())) if isinstance(value, np.ndarray) else str(value),
            "p": None,
            "good": None,
        }
        for name, value in values.items()
        if name not in hidden and not (isinstance(value, float) and math.isnan(value))
    ]


def _keep_judge_pictures(evidence: Mapping[str, str], cache: EvidenceCache, videos: Videos) -> list[list[Any]]:
    """Frame and address of each picture that a judge was shown."""
    frames = load_evidence_or_none("judge_frames", evidence, cache)
    shots = []
    for k, frame in enumerate([] if frames is None else frames.index.tolist()):
        address = f"frames/{evidence['judge_frames'][:16]}/{int(frame):06d}.jpg"
        videos.keep_picture(address, partial(frames.picture, k))
        shots.append([int(frame), address])
    return shots


def _evenly_spread_rows(count: int, most: int) -> list[int]:
    """At most so many rows, evenly spread, both ends among them."""
    return sorted({round(k) for k in np.linspace(0, count - 1, min(count, most))}) if count else []
