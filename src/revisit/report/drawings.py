"""What a page draws of a clip: phases and the per-frame values behind an answer, and overlays over its frames.

Phases: which frames show the view or target, which hide it, which have it back. A gate says them in its facts as
`phases` ([name, first frame, last frame], inclusive), or frame by frame in its units (`phase`: 0 visible, 1 away,
2 returned, -1 cannot tell; or `hidden`: yes or no), or as first frames in its facts (`first_hidden_frame`,
`first_return_frame`); a dataset, with the case.

Overlays: what observers and judges saw. Boxes and masks go with the frames of the video. Matches join two frames. What
a judge said comes with the pictures it was shown. Only what lies in the evidence cache can be drawn; nothing is
observed here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np

from revisit.core import Case, MediaError, Series
from revisit.core.text import read_package_yaml
from revisit.engine.cache import EvidenceCache
from revisit.evidence.judged import NO, YES, JudgeAnswers
from revisit.report.videos import JUDGES, Videos, evenly_spread_rows, load_evidence_or_none
from revisit.results import Results
from revisit.results.display import round_for_page
from revisit.web.templates import Context

PHASE_KINDS = {
    name: kind for kind, names in read_package_yaml("revisit.report", "phases.yaml").items() for name in names
}
PHASE_NAMES = {0: "visible", 1: "away", 2: "returned"}
UNKNOWN_PHASE = "cannot tell"
COLUMNS = ("frame", "other", "value", "phase", "hidden")  # of a series
Phase = list[Any]  # kind, name as the gate says it, first frame, last frame
BOXES = 240  # along a clip
MASKS = 48
MASK_SIDE = 64  # cells of the longer side of a drawn mask
PAIRS = 6
POINTS = 60  # of a pair


def phases_of_gate(facts: Mapping[str, object], series: Series | None, last: int) -> list[Phase]:
    """Phases as a gate says them, cut to frames 0 to `last`; empty where it says none."""
    listed = facts.get("phases")
    if isinstance(listed, Sequence) and not isinstance(listed, str):
        return _phases_within_frames(listed, last)
    if series is not None and {"phase", "hidden"} & series.columns.keys():
        return phases_from_series(series, last)
    starts = first_frame_of_each_kind(facts)
    return phases_from_starts(starts.get("hidden"), starts.get("returned"), last)


def first_frame_of_each_kind(facts: Mapping[str, object]) -> dict[str, int]:
    """The first frame of each kind of phase, from facts called first_..._frame."""
    starts: dict[str, int] = {}
    for key, frame in facts.items():
        if key.startswith("first_") and key.endswith("_frame") and isinstance(frame, int):
            starts.setdefault(PHASE_KINDS.get(key[len("first_") : -len("_frame")], ""), frame)
    return starts


def phases_from_series(series: Series, last: int) -> list[Phase]:
    """Stretches of equal phase; a sampled frame stands for those up to the next one."""
    frame = series["frame"].astype(int)
    if "phase" in series.columns:
        names = [PHASE_NAMES.get(int(phase), UNKNOWN_PHASE) for phase in series["phase"]]
    else:
        hidden = series["hidden"].astype(bool)
        names_in_view = np.where(np.cumsum(hidden) > 0, "returned", "visible")
        names = ["hidden" if away else str(name) for away, name in zip(hidden, names_in_view, strict=True)]
    starts = [k for k in range(len(names)) if k == 0 or names[k] != names[k - 1]]
    ends = [int(frame[k]) - 1 for k in starts[1:]] + [last]
    return _phases_within_frames([(names[k], int(frame[k]), end) for k, end in zip(starts, ends, strict=True)], last)


def phases_from_starts(hidden: int | None, returned: int | None, last: int) -> list[Phase]:
    """Three phases from the first hidden and the first returned frame."""
    if hidden is None:
        return []
    back = last + 1 if returned is None else returned
    phases = [("visible", 0, hidden - 1), ("hidden", hidden, back - 1), ("returned", back, last)]
    return _phases_within_frames(phases, last)


def _phases_within_frames(entries: Iterable[Any], last: int) -> list[Phase]:
    """The phases of entries, cut to frames 0 to `last`; what is none is left out."""
    phases = []
    for entry in entries:
        with suppress(TypeError, ValueError):
            name, first, final = entry
            first, final = max(int(first), 0), min(int(final), last)
            if first <= final:
                phases.append([PHASE_KINDS.get(str(name), "other"), str(name), first, final])
    return phases


def read_drawable_series(results: Results, case: Case, question: str) -> Series | None:
    """The columns of a series that the page knows, in the order of frames; None where nothing can be drawn."""
    try:
        series_of_run = results.series(case, question)
    except (MediaError, ValueError):
        return None
    present = {} if series_of_run is None else series_of_run.columns
    columns = {name: present[name] for name in COLUMNS if name in present}
    if {"frame", "value"} - columns.keys() or any(c.ndim != 1 or c.dtype.kind not in "biuf" for c in columns.values()):
        return None
    columns["value"] = columns["value"].astype(float)
    if "phase" in columns:
        columns["value"][columns["phase"] < 0] = np.nan  # where a gate cannot tell, its value stands for nothing
    placed = np.flatnonzero(np.isfinite(columns["frame"].astype(float)))
    order = placed[np.argsort(columns["frame"][placed], kind="stable")]
    series = Series(**{name: column[order] for name, column in columns.items()})
    return series if np.isfinite(series["value"]).any() else None


def thin_series(series: Series, limits: Sequence[float | None], higher_is_better: bool | None, most: int) -> Context:
    """What the page draws: frames, values (null where unknown), the scale, and the frame with the worst value."""
    frame, value = series["frame"].astype(int), series["value"]
    rows = np.union1d(np.arange(0, len(frame), -(-len(frame) // most)), [len(frame) - 1])
    worst = None if higher_is_better is None else series.worst(higher_is_better)
    if worst is not None:
        rows = np.union1d(rows, [worst])
    least, greatest = float(np.nanmin(value)), float(np.nanmax(value))
    low, high = limits
    return {
        "frame": [int(f) for f in frame[rows]],
        "value": [round_for_page(float(v), 3) if np.isfinite(v) else None for v in value[rows]],
        "low": min(least, 0.0 if low is None else low),
        "high": greatest if high is None else max(greatest, high),
        "worst": None if worst is None else int(frame[worst]),
    }


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
    rows = evenly_spread_rows(len(index), BOXES)
    boxes = [
        [round(float(edge), 4) for edge in box[k]] if visible[k] and np.isfinite(box[k]).all() else None for k in rows
    ]
    return {"kind": "boxes", "title": title, "frame": [int(index[k]) for k in rows], "box": boxes}


def _mask_overlay(title: str, index: np.ndarray, mask: np.ndarray) -> Context:
    """Masks as runs of a coarse grid: row, first column, length."""
    step = max(1, -(-max(mask.shape[1:]) // MASK_SIDE))
    rows = evenly_spread_rows(len(index), MASKS)
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
        few = points[evenly_spread_rows(len(points), POINTS)] / size
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
