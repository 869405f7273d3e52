"""Files from outside: a judge's answers, and what networks found: detections, depth, patch descriptors and ratings.

For users who run judges and networks themselves. Answers are a results CSV of the public MemoBench script (columns
scene, video_id, Evaluation, ...), a JSON list of objects with ID and Answer, an object with such a list under `answers`
and the names `judge` and `frames`, or JSON lines of such objects. Rules for broken answers: docs/memobench-vqa.md.

Frames are numbered from 0. `maker` names the network and is told with every score. The files of networks are described
in docs/memobench-metrics.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import MediaError, observer
from revisit.core.text import parse_json
from revisit.evidence.judged import (
    BankQuestion,
    JudgeAnswers,
    case_questions,
    entry_question_number,
    find_json_in_reply,
    judge_answers_from_entries,
)
from revisit.media.error_names import raise_media_errors_naming_file
from revisit.media.text_files import csv_dict_reader, read_csv_table, read_json_object, read_text
from revisit.observers import imports
from revisit.suites.memobench.evidence import (
    AestheticScores,
    DepthMaps,
    Detections,
    IdentityTokens,
    ImageQuality,
    ImageRewards,
)

MOST_BYTES = 16 << 20  # of answers
ANSWERS = 'a list of objects with "ID" and "Answer" (Yes or No), or a results CSV with such a list under Evaluation'
DETECTIONS = (
    "a CSV with the columns frame, coverage, score (both empty in a frame without masks) and prompt; a JSON object "
    'with "prompt" and "frames": [{"frame": 0, "masks": [{"coverage": 0.1, "score": 0.9}]}]; or an npz with frame, '
    "coverage, score, looked (all frames asked) and prompt"
)
COLUMNS = ("frame", "coverage", "score")
VALUES = "a CSV with the columns frame and value, or an npz with frame and value; maker names the network"
DEPTH = "an npz with depth (frames, height, width), frame, inverse (near is large) and maker"
TOKENS = "an npz with tokens (frames, patches, channels), frame, cropped and maker"


@observer(
    id="import.vqa_answers", version=2, kind="file", makes=JudgeAnswers, artifact="vqa_answers",
    inputs=("annotations",), sets=("lite",),
)  # fmt: skip
def vqa_answers(path: Path, annotations: Mapping[str, object]) -> JudgeAnswers:
    """The answers in a file, for the questions of the case or, where it has none, for those that the file echoes."""
    with raise_media_errors_naming_file(path):
        entries, judge, frames = read_answer_entries(path)
        questions = case_questions(annotations) or questions_from_answer_entries(entries)
    return judge_answers_from_entries(questions, entries, judge=judge, frames=frames)


def read_answer_entries(path: Path) -> tuple[Sequence[Any], str, str]:
    """The entries of a file of answers, unchecked, who gave them, and the digest of the frames they are about."""
    text, what = read_text(path, MOST_BYTES), "it"
    name, kind = f"answers in {path.suffix.removeprefix('.') or 'a file'}", path.suffix.lower()
    if kind == ".csv":
        rows = list(csv_dict_reader(text))
        if len(rows) != 1 or not rows[0].get("Evaluation"):
            raise MediaError(f"it has {len(rows)} rows; expected one row with the judge's list under Evaluation")
        text, what = rows[0]["Evaluation"], "its Evaluation"
    try:
        lines = kind in (".jsonl", ".ndjson")
        content = [parse_json(line) for line in text.split("\n") if line.strip()] if lines else find_json_in_reply(text)
    except ValueError as error:
        raise MediaError(f"{what} is not JSON ({error}); expected {ANSWERS}") from None
    if isinstance(content, dict) and isinstance(content.get("answers"), list):
        return content["answers"], str(content.get("judge") or name), str(content.get("frames") or "")
    if not isinstance(content, list):
        raise MediaError(f"{what} is a {type(content).__name__}; expected {ANSWERS}")
    return content, name, ""


def questions_from_answer_entries(entries: Sequence[Any]) -> tuple[BankQuestion, ...]:
    """The questions as the entries echo them; refused unless each says its number, dimension and polarity."""
    questions: dict[int, BankQuestion] = {}
    for position, entry in enumerate(entries, 1):
        number = entry_question_number(entry)
        polarity = entry.get("Dimension Polarity") if isinstance(entry, dict) else None
        if number is None or polarity not in ("Positive", "Negative") or not entry.get("Dimension"):
            raise MediaError(
                f"entry {position} lacks ID, Dimension or Dimension Polarity, and no question bank was given that has "
                "them; give the folder of the bank"
            )
        question = BankQuestion(number, str(entry["Dimension"]), polarity == "Positive", str(entry.get("Question", "")))
        questions.setdefault(number, question)
    return tuple(questions.values())


@observer(id="import.detections", version=1, kind="file", makes=Detections, artifact="detections", sets=("lite",))
def detections(path: Path) -> Detections:
    """Masks of a text-prompted detector (coverage and confidence of each), from a file."""
    with raise_media_errors_naming_file(path):
        reader = {".csv": _read_detections_csv, ".json": _read_detections_json}.get(path.suffix.lower())
        facts = (reader or _read_detections_npz)(path)
        index, frame = (imports.parse_frame_numbers(facts[name], DETECTIONS) for name in ("looked", "frame"))
        coverage, score = (imports.parse_finite_floats(facts[name], name, DETECTIONS) for name in ("coverage", "score"))
        for name, values in (("coverage", coverage), ("score", score)):
            if len(values) and (values.min() < 0 or values.max() > 1):
                ends = f"{values.min():g} to {values.max():g}"
                raise MediaError(f"{name} ranges from {ends}; expected values from 0 to 1")
        if not len(frame) == len(coverage) == len(score):
            counts = f"{len(frame)} frames, {len(coverage)} coverages and {len(score)} scores"
            raise MediaError(f"it has {counts}; expected one of each per mask")
        threshold = imports.parse_finite_floats([facts.get("threshold") or 0], "threshold", DETECTIONS)[0]
    return Detections(
        index=np.union1d(index, frame),
        frame=frame,
        coverage=coverage,
        score=score,
        prompt=imports.one_line_text_or_default(facts, "prompt", ""),
        threshold=float(threshold),
        maker=imports.one_line_text_or_default(facts, "maker"),
    )


# `looked`, the frames that were looked at; frame, coverage and score of each mask; what the file says of itself.
DetectionTable = Mapping[str, Any]


def _read_detections_csv(path: Path) -> DetectionTable:
    _, rows = read_csv_table(path, COLUMNS, DETECTIONS)
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
    arrays = imports.read_npz_with_frames(path, "score", DETECTIONS, "coverage")
    columns = {name: np.ravel(arrays[name]) for name in COLUMNS}
    return {**arrays, **columns, "looked": np.ravel(arrays.get("looked", arrays["frame"]))}


def _detection_columns(rows: Sequence[Mapping[str, object]]) -> dict[str, list[object]]:
    return {name: [row.get(name) for row in rows] for name in COLUMNS}


@observer(id="import.depth", version=1, kind="file", makes=DepthMaps, artifact="depth", sets=("lite",))
def depth(path: Path) -> DepthMaps:
    """Depth maps of frames, from an npz file."""
    with raise_media_errors_naming_file(path):
        arrays = imports.read_npz_with_frames(path, "depth", DEPTH)
        maps = imports.finite_float_table(arrays, "depth", DEPTH, axes=3)
        frame, maps = imports.sort_by_unique_frame(arrays["frame"], maps)
    return DepthMaps(
        frame,
        maps,
        bool(arrays.get("inverse", np.array(True)).all()),
        imports.one_line_text_or_default(arrays, "maker"),
    )


@observer(id="import.tokens", version=1, kind="file", makes=IdentityTokens, artifact="tokens")
def tokens(path: Path) -> IdentityTokens:
    """Patch descriptors of frames, from an npz file."""
    with raise_media_errors_naming_file(path):
        arrays = imports.read_npz_with_frames(path, "tokens", TOKENS)
        if arrays["tokens"].ndim == 4:  # patches in rows and columns
            count, _, _, channels = arrays["tokens"].shape
            arrays["tokens"] = arrays["tokens"].reshape(count, -1, channels)
        descriptors = imports.finite_float_table(arrays, "tokens", TOKENS, axes=3)
        frame, descriptors = imports.sort_by_unique_frame(arrays["frame"], descriptors)
    return IdentityTokens(
        frame,
        descriptors,
        imports.one_line_text_or_default(arrays, "maker"),
        bool(arrays.get("cropped", np.array(False)).any()),
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
            _, rows = read_csv_table(path, ("frame", "value"), VALUES)
            columns = {name: [row[name] for row in rows] for name in ("frame", "value")}
            facts: Mapping[str, Any] = {**(rows[0] if rows else {}), **columns}
        else:
            facts = imports.read_npz_with_frames(path, "value", VALUES)
        frame = imports.parse_frame_numbers(facts["frame"], VALUES)
        value = imports.parse_finite_floats(np.ravel(facts["value"]), "value", VALUES)
        if not len(frame):
            raise MediaError(f"it has no frames; expected {VALUES}")
        return (*imports.sort_by_unique_frame(frame, value), imports.one_line_text_or_default(facts, "maker"))
