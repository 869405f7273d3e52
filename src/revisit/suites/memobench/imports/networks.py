"""Results of networks, from files: detections, depth, patch descriptors and ratings of frames. For users who run the
networks themselves. Frames are numbered from 0. `maker` names the network and is told with every score. The files are
described in docs/memobench-metrics.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import MediaError, observer
from revisit.media.error_names import raise_media_errors_naming_file
from revisit.media.text_files import read_json_object
from revisit.observers.imports import (
    label_or_default,
    parse_finite_floats,
    parse_frame_numbers,
    read_csv,
    read_npz_with_frames,
    sort_by_frame,
)
from revisit.suites.memobench.evidence import (
    AestheticScores,
    DepthMaps,
    Detections,
    IdentityTokens,
    ImageQuality,
    ImageRewards,
)

DETECTIONS = (
    "a CSV with the columns frame, coverage, score (both empty in a frame without masks) and prompt; a JSON object "
    'with "prompt" and "frames": [{"frame": 0, "masks": [{"coverage": 0.1, "score": 0.9}]}]; or an npz with frame, '
    "coverage, score, looked (all frames asked) and prompt"
)
COLUMNS = ("frame", "coverage", "score")
VALUES = "a CSV with the columns frame and value, or an npz with frame and value; maker names the network"
DEPTH = "an npz with depth (frames, height, width), frame, inverse (near is large) and maker"
TOKENS = "an npz with tokens (frames, patches, channels), frame, cropped and maker"


@observer(id="import.detections", version=1, kind="file", makes=Detections, artifact="detections", sets=("lite",))
def detections(path: Path) -> Detections:
    """Masks of a text-prompted detector (coverage and confidence of each), from a file."""
    with raise_media_errors_naming_file(path):
        reader = {".csv": _read_detections_csv, ".json": _read_detections_json}.get(path.suffix.lower())
        facts = (reader or _read_detections_npz)(path)
        index, frame = (parse_frame_numbers(facts[name], DETECTIONS) for name in ("looked", "frame"))
        coverage, score = (parse_finite_floats(facts[name], name, DETECTIONS) for name in ("coverage", "score"))
        for name, values in (("coverage", coverage), ("score", score)):
            if len(values) and (values.min() < 0 or values.max() > 1):
                ends = f"{values.min():g} to {values.max():g}"
                raise MediaError(f"{name} ranges from {ends}; expected values from 0 to 1")
        if not len(frame) == len(coverage) == len(score):
            counts = f"{len(frame)} frames, {len(coverage)} coverages and {len(score)} scores"
            raise MediaError(f"it has {counts}; expected one of each per mask")
        threshold = parse_finite_floats([facts.get("threshold") or 0], "threshold", DETECTIONS)[0]
    return Detections(
        index=np.union1d(index, frame),
        frame=frame,
        coverage=coverage,
        score=score,
        prompt=label_or_default(facts, "prompt", ""),
        threshold=float(threshold),
        maker=label_or_default(facts, "maker"),
    )


# `looked`, the frames that were looked at; frame, coverage and score of each mask; what the file says of itself.
DetectionTable = Mapping[str, Any]


def _read_detections_csv(path: Path) -> DetectionTable:
    rows = read_csv(path, COLUMNS, DETECTIONS)
    masks = [row for row in rows if row["coverage"] or row["score"]]
    prompts = {row["prompt"] for row in rows if row.get("prompt")}
    if len(prompts) > 1:
        raise MediaError(f"it has {len(prompts)} different prompts; write one file for each")
    facts = {**(rows[0] if rows else {}), "prompt": "".join(prompts)}
    return {**facts, **_detection_columns(masks), "looked": [row["frame"] for row in rows]}


def _read_detections_json(path: Path) -> DetectionTable:
    content = read_json_object(path, DETECTIONS)
    frames = content.get("frames")
    if not isinstance(frames, list) or not all(isinstance(entry, dict) for entry in frames):
        raise MediaError(f"it has no list of frames; expected {DETECTIONS}")
    masks = []
    for entry in frames:
        number, frame_masks = entry.get("frame"), entry.get("masks", [])
        if not isinstance(frame_masks, list) or not all(isinstance(mask, dict) for mask in frame_masks):
            raise MediaError(f"the masks of frame {number} are not a list of objects; expected {DETECTIONS}")
        masks += [{**mask, "frame": number} for mask in frame_masks]
    return {**content, **_detection_columns(masks), "looked": [entry.get("frame") for entry in frames]}


def _read_detections_npz(path: Path) -> DetectionTable:
    arrays = read_npz_with_frames(path, "score", DETECTIONS)
    if "coverage" not in arrays:
        raise MediaError(f"it has no coverage; expected {DETECTIONS}")
    columns = {name: np.ravel(arrays[name]) for name in COLUMNS}
    return {**arrays, **columns, "looked": np.ravel(arrays.get("looked", arrays["frame"]))}


def _detection_columns(rows: Sequence[Mapping[str, object]]) -> dict[str, list[object]]:
    return {name: [row.get(name) for row in rows] for name in COLUMNS}


@observer(id="import.depth", version=1, kind="file", makes=DepthMaps, artifact="depth", sets=("lite",))
def depth(path: Path) -> DepthMaps:
    """Depth maps of frames, from an npz file."""
    with raise_media_errors_naming_file(path):
        arrays = read_npz_with_frames(path, "depth", DEPTH)
        maps = arrays["depth"]
        if maps.ndim != 3 or not np.isfinite(maps).all():
            raise MediaError(f"its depth has the shape {maps.shape} or values that are not finite; expected {DEPTH}")
        frame, maps = sort_by_frame(arrays["frame"], maps.astype(np.float32))
    return DepthMaps(frame, maps, bool(arrays.get("inverse", np.array(True)).all()), label_or_default(arrays, "maker"))


@observer(id="import.tokens", version=1, kind="file", makes=IdentityTokens, artifact="tokens")
def tokens(path: Path) -> IdentityTokens:
    """Patch descriptors of frames, from an npz file."""
    with raise_media_errors_naming_file(path):
        arrays = read_npz_with_frames(path, "tokens", TOKENS)
        descriptors = arrays["tokens"]
        if descriptors.ndim == 4:
            descriptors = descriptors.reshape(len(descriptors), -1, descriptors.shape[3])
        if descriptors.ndim != 3 or not np.isfinite(descriptors).all():
            shape = descriptors.shape
            raise MediaError(f"its tokens have the shape {shape} or values that are not finite; expected {TOKENS}")
        frame, descriptors = sort_by_frame(arrays["frame"], descriptors.astype(np.float32))
    return IdentityTokens(
        frame, descriptors, label_or_default(arrays, "maker"), bool(arrays.get("cropped", np.array(False)).any())
    )


@observer(id="import.aesthetic", version=1, kind="file", makes=AestheticScores, artifact="aesthetic", sets=("lite",))
def aesthetic(path: Path) -> AestheticScores:
    """Aesthetic scores of frames (about 0 to 10), from a file."""
    return AestheticScores(*_read_frame_values_and_maker(path))


@observer(
    id="import.image_quality", version=1, kind="file", makes=ImageQuality, artifact="image_quality", sets=("lite",)
)
def image_quality(path: Path) -> ImageQuality:
    """Technical quality of frames (0 to 1), from a file."""
    return ImageQuality(*_read_frame_values_and_maker(path))


@observer(id="import.image_reward", version=1, kind="file", makes=ImageRewards, artifact="image_reward", sets=("lite",))
def image_reward(path: Path) -> ImageRewards:
    """ImageReward of frames (its own scale, about -2 to 2), from a file."""
    return ImageRewards(*_read_frame_values_and_maker(path))


def _read_frame_values_and_maker(path: Path) -> tuple[np.ndarray, np.ndarray, str]:
    """Frame numbers, their values, and who made them."""
    with raise_media_errors_naming_file(path):
        if path.suffix.lower() == ".csv":
            rows = read_csv(path, ("frame", "value"), VALUES)
            columns = {name: [row[name] for row in rows] for name in ("frame", "value")}
            facts: Mapping[str, Any] = {**(rows[0] if rows else {}), **columns}
        else:
            facts = read_npz_with_frames(path, "value", VALUES)
        frame = parse_frame_numbers(facts["frame"], VALUES)
        value = parse_finite_floats(np.ravel(facts["value"]), "value", VALUES)
        if not len(frame):
            raise MediaError(f"it has no frames; expected {VALUES}")
        return (*sort_by_frame(frame, value), label_or_default(facts, "maker"))
