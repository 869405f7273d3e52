"""Runs with videos that play, made without observing anything: for tests of pages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from revisit.engine.cache import EvidenceCache
from revisit.evidence.frames import FrameFacts, Thumbnails
from revisit.evidence.target import TargetTrack
from revisit.media import save_npz

METRIC, GATE = "return_consistency", "view_return"
TAG = "corrected:11111111"


def make_scenes(
    folder: Path,
    models: Sequence[str],
    scenes: Sequence[str],
    *,
    video: Path | None = None,
    frames: int = 97,
    fps: float = 24.0,
    finished: bool = True,
    answered: int | None = None,
    prompt: str = "a room",
    pictures: bool = True,
) -> Path:
    """A run of every model on every scene, all of one video, which is the truth as well; return its folder.

    The score of model k is 0.9 - 0.1 k, its series falls towards the end. `answered` are the clips with answers.
    """
    path, cache = folder / "run", EvidenceCache(folder / "cache")
    (path / "units").mkdir(parents=True)
    clip = {"path": str(video or folder / "none.mp4"), "fps": None, "start": 0, "count": None}
    index = np.arange(frames)
    evidence: dict[str, str] = {}
    if pictures:
        evidence = {"thumbnails": "aa" * 20, "frame_facts": "bb" * 20, "target_track": "cc" * 20}
        cache.save("aa" * 20, _pictures(index))
        zeros = np.zeros(frames)
        digests = np.zeros((frames, 16), np.uint8)
        cache.save("bb" * 20, FrameFacts(index, index / fps, digests, zeros, zeros, 64, 48, fps))
        cache.save("cc" * 20, _track(index, fps))
        value = np.linspace(0.9, 0.3, frames)
        save_npz(path / "units/one.npz", {"frame": index, "value": value})
    cases, records = [], []
    for name in scenes:
        for k, model in enumerate(models):
            id = f"{name}@{model}#0"
            cases.append(
                {
                    "id": id, "suite": "folder", "model": model, "sample": name, "clip": clip, "reference": clip,
                    "subset": "", "condition": "", "seed": 0, "prompt": prompt, "camera": "", "target": None,
                    "phases": None, "annotations": {}, "artifacts": {}, "digest": "dd" * 32, "evidence": evidence,
                    "absent": {}, "reference_evidence": {},
                }
            )  # fmt: skip
            if answered is not None and len(cases) > answered:
                continue
            common = {"case": id, "version": 1, "protocol": TAG, "key": "k", "seconds": 0.1, "schema": 2}
            phases = [["visible", 0, 30], ["away", 31, 60], ["returned", 61, frames - 1]]
            records.append(
                {**common, "gate": GATE, "status": "open", "label": "left, returned", "facts": {"phases": phases}}
            )
            units = {"n_units": frames, "units": "units/one.npz"} if pictures else {}
            score = 0.9 - 0.1 * k
            records.append({**common, "metric": METRIC, "status": "scored", "score": score, "facts": {}, **units})
    _write(path, cache, cases, records, finished)
    return path


def _pictures(index: np.ndarray) -> Thumbnails:
    import cv2

    _, jpeg = cv2.imencode(".jpg", np.full((48, 64, 3), 120, np.uint8))
    size = len(jpeg.ravel())
    return Thumbnails(index, np.tile(jpeg.ravel(), len(index)), np.arange(len(index) + 1) * size, 64, 48)


def _track(index: np.ndarray, fps: float) -> TargetTrack:
    n = len(index)
    ones, box = np.ones(n), np.tile([0.25, 0.25, 0.5, 0.75], (n, 1))
    numbers = dict.fromkeys(
        (
            "inside",
            "flow",
            "near",
            "part",
            "peak",
            "second",
            "first",
            "early",
            "colour",
            "own_colour",
            "stands",
            "place_stands",
        ),
        ones,
    )
    return TargetTrack(
        index=index, seconds=index / fps, box=box, peak_box=box, place=ones, place_box=box, place_second=ones,
        at_place=ones, camera=ones, cells=9, texture=1.0, width_px=16.0, height_px=24.0, **numbers,
    )  # fmt: skip


def _write(
    path: Path, cache: EvidenceCache, cases: Sequence[Mapping[str, Any]], records: Sequence[Any], finished: bool
) -> None:
    head = {
        "title": "Return consistency", "unit": "score", "range": [0, 1], "higher_is_better": True, "version": 1,
        "protocol": [TAG],
    }  # fmt: skip
    models = sorted({case["model"] for case in cases})
    cell = {"n": 1, "of": 1, "failed": 0, "mean": 0.5, "interval": None}
    stages = [{"stage": stage, "n": 1} for stage in ("all clips", "readable", "memory scored")]
    summary = {
        "suite": "folder", "protocol": TAG, "set": "lite", "partial": None, "total_cases": len(cases),
        "cases": len(cases), "rejected": [], "failed": [], "metrics": {METRIC: head}, "not_asked": {},
        "models": {model: {"cases": 1, "funnel": stages, "labels": {}, "scores": {METRIC: cell}} for model in models},
        "funnel": stages,
    }  # fmt: skip
    protocol = {
        "name": "corrected", "hash": "1", "parameters": {}, "align": "auto", "metrics": {METRIC: TAG},
        "gates": {GATE: TAG}, "observers": {},
    }  # fmt: skip
    times = {"started": "2026-01-02T03:04:05+00:00", "finished": "2026-01-02T03:05:05+00:00" if finished else None}
    facts = {
        "revisit": "0.1.0", "suite": "folder", "set": "lite", "request": {"source": "/data"}, "protocol": protocol,
        "environment": {"python": "3", "platform": "p", "host": "h", "cores": 2, "libraries": {}},
        "cache": str(cache.root), "notes": {}, "counters": {},
        "invocations": [{"command": "revisit eval", "seconds": 60, "counters": {}, **times}],
    }  # fmt: skip
    plan = {
        "suite": "folder", "protocol": "corrected", "set": "lite", "align": "auto", "partial": None,
        "total_cases": len(cases), "metrics": {METRIC: TAG}, "gates": {GATE: TAG}, "cases": cases, "rejected": [],
    }  # fmt: skip
    for name, content in (("run", facts), ("plan", plan), *((("summary", summary),) if finished else ())):
        (path / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    add_records(path, records)


def add_records(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    with (path / "records.jsonl").open("a", encoding="utf-8") as file:
        file.write("".join(json.dumps(record) + "\n" for record in records))
