"""Labelled folders: real clips with what people saw in them, as `revisit audit --real` reads them.

Three formats are read. `labels.jsonl` is what `revisit labels export` writes (docs/labels.md): lines of the task
`marks` say what became of the target and when, those of `failure` what went wrong. `targets.json` is one object by
hand, from the name of a clip to its box, its verdict (`gate`) and, if known, its kind, its scene and its frames.
`eye.json` holds notes on the clips of several folders, from `scene/model` to what became of the view and of the target,
with "?" where nobody can say; `clip` says where a clip lies, else it is `scene_model` in one of the folders.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median_high
from typing import Any

from revisit.core import UsageError
from revisit.core.grouping import group_items
from revisit.core.text import convert_read_errors, parse_json
from revisit.labels.label import BACK, GONE, HIDDEN, read_label_files
from revisit.media import VIDEO_SUFFIXES
from revisit.stats.agreement import most_frequent_vote

LINES, BY_HAND, BY_EYE, MANIFEST = "labels.jsonl", "targets.json", "eye.json", "manifest.json"
VERDICTS = HIDDEN[:3]
UNSURE = HIDDEN[3]
TRUTH = "_gt"  # ends the name of the true clip of a scene, which the others are then compared with
DOUBTFUL = "?"
NUMBERED = re.compile(r"(.*\d)_[^_]+")  # the name of a clip of a numbered scene: Real_007_wan


@dataclass(frozen=True)
class Labelled:
    """A clip and what people saw in it."""

    name: str
    clip: Path
    scene: str  # clips of one scene are one witness
    box: tuple[float, float, float, float] | None  # of the target in the first frame, as fractions; None: not asked
    target: str = "target"
    verdict: str = ""  # of the target; empty where people were not sure or did not agree
    kind: str = ""  # what such clips have in common
    gone: int | None = None  # first frame in which nothing of it shows
    back: int | None = None  # first frame in which it is back
    view: str = ""  # what became of the first view, in the words of its gate
    failures: Mapping[str, bool] = field(default_factory=dict)  # kind of failure -> whether the clip shows it
    reference: Path | None = None
    source: str = ""  # the folder it lies in


def read_labelled_clips(folders: Sequence[Path]) -> list[Labelled]:
    """The labelled clips of some folders; a clip that two files label is one, and other clips must differ in name."""
    clips: list[Labelled] = []
    for folder in folders:
        files = [name for name in (LINES, BY_HAND, BY_EYE) if (folder / name).is_file()]
        if not files:
            raise UsageError(f"{folder}: no {LINES}, no {BY_HAND} and no {BY_EYE}; docs/labels.md says what they hold")
        if LINES in files:
            clips += _read_label_lines(folder)
        elif BY_HAND in files:
            clips += _read_targets_file(folder)
        if BY_EYE in files:
            clips += _read_eye_notes(folder, folders)
    merged: dict[Path, Labelled] = {}
    for clip in clips:
        clip = replace(clip, source=clip.source or clip.clip.parent.name)
        path = clip.clip.resolve()
        merged[path] = _merge_labels(merged[path], clip) if path in merged else clip
    twice = [name for name, count in Counter(one.name for one in merged.values()).items() if count > 1]
    if twice:
        raise UsageError(f"two labelled clips are called {twice[0]!r}; rename one of them")
    return list(merged.values())


def _merge_labels(first: Labelled, other: Labelled) -> Labelled:
    """One clip of two files: the first one's words, completed by the other's."""
    for name in ("verdict", "view"):
        one, two = getattr(first, name), getattr(other, name)
        if one and two and one != two:
            raise UsageError(f"{first.name} is labelled {one!r} and {two!r}; look at the clip and correct one of them")
    return replace(
        first, verdict=first.verdict or other.verdict, view=first.view or other.view, box=first.box or other.box,
        reference=first.reference or other.reference,
    )  # fmt: skip


def _read_json_file(path: Path) -> Any:
    with convert_read_errors(path, "JSON"):
        return parse_json(path.read_text(encoding="utf-8-sig"))


def _read_named_rows(path: Path) -> dict[str, Any]:
    """The rows of a file by name, notes left out."""
    content = _read_json_file(path)
    if not isinstance(content, Mapping):
        raise UsageError(f"{path}: expected an object, from the name of a clip to what was seen in it")
    return {name: row for name, row in content.items() if not name.startswith("_")}


def _read_eye_notes(folder: Path, folders: Sequence[Path]) -> list[Labelled]:
    file = folder / BY_EYE
    clips = []
    for name, row in _read_named_rows(file).items():
        if not isinstance(row, Mapping) or "target" not in row:
            raise UsageError(f"{file}: {name} needs `target`, what became of the target, or {DOUBTFUL!r}")
        verdict, view = str(row["target"]), str(row.get("view", DOUBTFUL))
        if verdict not in (*VERDICTS, DOUBTFUL):
            raise UsageError(
                f"{file}: {name} has the verdict {verdict!r}; expected {', '.join(VERDICTS)} or {DOUBTFUL!r}"
            )
        if verdict != DOUBTFUL and "box" not in row:
            raise UsageError(f"{file}: {name} needs a `box` of the first frame, as fractions")
        title = name.replace("/", "_")
        clip = folder / str(row["clip"]) if "clip" in row else _find_video(title, folder, folders)
        if clip is None or not clip.is_file():
            raise UsageError(
                f"{file}: {name} has no video; name the folder of {title} with a further --real, or its `clip`"
            )
        scene = str(row.get("scene") or (name.rpartition("/")[0] if "/" in name else name))
        truth = _find_video(f"{scene}{TRUTH}", folder, [clip.parent])
        clips.append(
            Labelled(
                title, clip, scene, _row_box(row, f"{file}: {name}") if "box" in row else None,
                str(row.get("name", "target")), "" if verdict == DOUBTFUL else verdict,
                view="" if view == DOUBTFUL else view,
                reference=truth if truth != clip else None,
            )
        )  # fmt: skip
    return clips


def _find_video(name: str, folder: Path, folders: Sequence[Path]) -> Path | None:
    """The video of a name in one of the folders, if there is one."""
    places = (place / f"{name}{suffix}" for place in (folder, *folders) for suffix in VIDEO_SUFFIXES)
    return next((path for path in places if path.is_file()), None)


def _read_targets_file(folder: Path) -> list[Labelled]:
    rows = _read_named_rows(folder / BY_HAND)
    scenes = _scene_by_clip_name(folder, rows)
    clips = []
    for name, row in rows.items():
        if not isinstance(row, Mapping) or "box" not in row or "gate" not in row:
            raise UsageError(f"{folder / BY_HAND}: {name} needs a `box` of the first frame and a `gate`, the verdict")
        verdict = str(row["gate"])
        if verdict not in (*HIDDEN, "borderline"):
            raise UsageError(f"{folder / BY_HAND}: {name} has the verdict {verdict!r}; expected {', '.join(HIDDEN)}")
        truth = _require_video(folder, f"{scenes[name]}{TRUTH}") if f"{scenes[name]}{TRUTH}" in rows else None
        clip = _require_video(folder, name)
        state = str(row.get("state", ""))
        failures = dict(row.get("failures", {}))
        if state and not failures:  # "reset (...)" or "changed (...)"
            failures = {"state_reset": state.startswith("reset")}
        clips.append(
            Labelled(
                name, clip, scenes[name], _row_box(row, f"{folder / BY_HAND}: {name}"),
                str(row.get("target", "target")), verdict if verdict in VERDICTS else "", str(row.get("class", "")),
                row.get("first_hidden_frame"),
                row.get("first_returned_frame"), str(row.get("view", "")), failures, truth if truth != clip else None,
            )
        )  # fmt: skip
    return clips


def _row_box(row: Mapping[str, Any], where: str) -> tuple[float, float, float, float]:
    try:
        x0, y0, x1, y1 = map(float, row["box"])
    except (TypeError, ValueError):
        raise UsageError(f"{where}: the box {row['box']!r} is not [x0, y0, x1, y1] as fractions of the frame") from None
    return x0, y0, x1, y1


def _require_video(folder: Path, name: str) -> Path:
    path = _find_video(name, folder, ())
    if path is None:
        raise UsageError(f"{folder}: {name} is labelled, and there is no video of that name")
    return path


def _scene_by_clip_name(folder: Path, rows: Mapping[str, Mapping[str, object]]) -> dict[str, str]:
    """Name -> scene: as the row says, by a common source in manifest.json, or by a numbered name (Real_007_wan)."""
    source: dict[str, str] = {}
    if (folder / MANIFEST).is_file():
        manifest = _read_json_file(folder / MANIFEST)
        entries = manifest.items() if isinstance(manifest, Mapping) else ()
        source = {name: str(row.get("path", "")) for name, row in entries if isinstance(row, Mapping)}
    shared = Counter(path for name, path in source.items() if name in rows and path)
    stems = Counter(name.rpartition("_")[0] for name in rows)
    scenes = {}
    for name, row in rows.items():
        stem, path = name.rpartition("_")[0], source.get(name, "")
        numbered = NUMBERED.fullmatch(Path(path).stem)
        by_source = path if shared[path] > 1 else numbered[1] if numbered else ""
        by_name = stem if stem[-1:].isdigit() and stems[stem] > 1 else ""
        scenes[name] = str(row.get("scene") or by_source or by_name or name)
    return scenes


def _read_label_lines(folder: Path) -> list[Labelled]:
    usable = [
        one for one in read_label_files([folder]) if one.task in ("marks", "failure") and not one.example and one.clip
    ]
    by_clip = group_items(usable, lambda label: label.clip)
    if not by_clip:
        raise UsageError(f"{folder / LINES}: no line of the tasks `marks` or `failure` names a clip")
    clips = []
    for clip, labels in by_clip.items():
        marks = [label for label in labels if label.task == "marks"]
        box = next((one.box for label in marks for one in label.boxes if one.frame == 0), None)
        if box is None:
            continue  # without a box in the first frame nobody can be asked about the target
        verdict = most_frequent_vote([label.answer for label in marks])
        first = marks[0]
        clips.append(
            Labelled(
                first.case, Path(clip), first.scene or first.case, box,
                next(one.name for label in marks for one in label.boxes),
                verdict if verdict in VERDICTS else "", first.condition,
                _high_median_or_none([label.frames[GONE] for label in marks if GONE in label.frames]),
                _high_median_or_none([label.frames[BACK] for label in marks if BACK in label.frames]),
                failures={one.question: True for one in labels if one.task == "failure" and one.question != "none"},
            )
        )  # fmt: skip
    return clips


def _high_median_or_none(frames: Sequence[int]) -> int | None:
    return median_high(frames) if frames else None
