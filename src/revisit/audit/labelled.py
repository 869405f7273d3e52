"""Labelled folders: real clips with what people saw in them, as `revisit audit --real` reads them.

Two formats are read. `labels.jsonl` is what `revisit labels export` writes (docs/labels.md): lines of the task `marks`
say what became of the target and when, those of `failure` what went wrong. `targets.json` is one object by hand, from
the name of a clip to its box, its verdict (`gate`) and, if known, its kind, its scene and its frames.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from revisit.core import UsageError
from revisit.core.grouping import group_items
from revisit.core.text import parse_json
from revisit.labels.label import BACK, GONE, HIDDEN, read_labels
from revisit.media import VIDEO_SUFFIXES
from revisit.stats.agreement import majority

LINES, BY_HAND, MANIFEST = "labels.jsonl", "targets.json", "manifest.json"
VERDICTS = HIDDEN[:3]
UNSURE = HIDDEN[3]
TRUTH = "_gt"  # ends the name of the true clip of a scene, which the others are then compared with


@dataclass(frozen=True)
class Labelled:
    """A clip and what people saw in it."""

    name: str
    clip: Path
    scene: str  # clips of one scene are one witness
    box: tuple[float, float, float, float]  # of the target in the first frame, as fractions
    target: str = "target"
    verdict: str = ""  # of the target; empty where people were not sure or did not agree
    kind: str = ""  # what such clips have in common
    gone: int | None = None  # first frame in which nothing of it shows
    back: int | None = None  # first frame in which it is back
    view: str = ""  # what became of the first view, in the words of its gate
    failures: Mapping[str, bool] = field(default_factory=dict)  # kind of failure -> whether the clip shows it
    reference: Path | None = None


def read_labelled(folders: Sequence[Path]) -> list[Labelled]:
    """The labelled clips of some folders; names must differ."""
    clips: list[Labelled] = []
    for folder in folders:
        if (folder / LINES).is_file():
            clips += _from_lines(folder)
        elif (folder / BY_HAND).is_file():
            clips += _by_hand(folder)
        else:
            raise UsageError(f"{folder}: no {LINES} and no {BY_HAND}; docs/labels.md says what they hold")
    twice = [name for name, count in Counter(one.name for one in clips).items() if count > 1]
    if twice:
        raise UsageError(f"two labelled clips are called {twice[0]!r}; rename one of them")
    return clips


def _by_hand(folder: Path) -> list[Labelled]:
    try:
        content = parse_json((folder / BY_HAND).read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(f"{folder / BY_HAND}: not JSON ({error})") from None
    rows = {name: row for name, row in content.items() if not name.startswith("_")}
    scenes = _scenes(folder, rows)
    clips = []
    for name, row in rows.items():
        if not isinstance(row, Mapping) or "box" not in row or "gate" not in row:
            raise UsageError(f"{folder / BY_HAND}: {name} needs a `box` of the first frame and a `gate`, the verdict")
        verdict = str(row["gate"])
        if verdict not in (*HIDDEN, "borderline"):
            raise UsageError(f"{folder / BY_HAND}: {name} has the verdict {verdict!r}; expected {', '.join(HIDDEN)}")
        truth = _clip(folder, f"{scenes[name]}{TRUTH}") if f"{scenes[name]}{TRUTH}" in rows else None
        clip = _clip(folder, name)
        state = str(row.get("state", ""))
        failures = dict(row.get("failures", {}))
        if state and not failures:  # "reset (...)" or "changed (...)"
            failures = {"state_reset": state.startswith("reset")}
        x0, y0, x1, y1 = (float(value) for value in row["box"])
        clips.append(
            Labelled(
                name, clip, scenes[name], (x0, y0, x1, y1), str(row.get("target", "target")),
                verdict if verdict in VERDICTS else "", str(row.get("class", "")), row.get("first_hidden_frame"),
                row.get("first_returned_frame"), str(row.get("view", "")), failures, truth if truth != clip else None,
            )
        )  # fmt: skip
    return clips


def _clip(folder: Path, name: str) -> Path:
    for suffix in VIDEO_SUFFIXES:
        if (folder / f"{name}{suffix}").is_file():
            return folder / f"{name}{suffix}"
    raise UsageError(f"{folder}: {name} is labelled, and there is no video of that name")


def _scenes(folder: Path, rows: Mapping[str, Mapping[str, object]]) -> dict[str, str]:
    """Name -> scene: as the row says, by a common source in manifest.json, or by a numbered name (Real_007_wan)."""
    source: dict[str, str] = {}
    if (folder / MANIFEST).is_file():
        manifest = parse_json((folder / MANIFEST).read_text(encoding="utf-8"))
        entries = manifest.items() if isinstance(manifest, Mapping) else ()
        source = {name: str(row.get("path", "")) for name, row in entries if isinstance(row, Mapping)}
    shared = Counter(path for name, path in source.items() if name in rows and path)
    stems = Counter(name.rpartition("_")[0] for name in rows)
    scenes = {}
    for name, row in rows.items():
        stem, path = name.rpartition("_")[0], source.get(name, "")
        by_source = path if shared[path] > 1 else ""
        by_name = stem if stem[-1:].isdigit() and stems[stem] > 1 else ""
        scenes[name] = str(row.get("scene") or by_source or by_name or name)
    return scenes


def _from_lines(folder: Path) -> list[Labelled]:
    usable = [one for one in read_labels([folder]) if one.task in ("marks", "failure") and not one.example and one.clip]
    by_clip = group_items(usable, lambda label: label.clip)
    if not by_clip:
        raise UsageError(f"{folder / LINES}: no line of the tasks `marks` or `failure` names a clip")
    clips = []
    for clip, labels in by_clip.items():
        marks = [label for label in labels if label.task == "marks"]
        box = next((one.box for label in marks for one in label.boxes if one.frame == 0), None)
        if box is None:
            continue  # without a box in the first frame nobody can be asked about the target
        verdict = majority([label.answer for label in marks])
        first = marks[0]
        usable = [label for label in labels if label.task == "failure"]
        clips.append(
            Labelled(
                first.case, Path(clip), first.scene or first.case, box,
                next(one.name for label in marks for one in label.boxes),
                verdict if verdict in VERDICTS else "", first.condition,
                _middle([label.frames[GONE] for label in marks if GONE in label.frames]),
                _middle([label.frames[BACK] for label in marks if BACK in label.frames]),
                failures={label.question: True for label in usable if label.question != "none"},
            )
        )  # fmt: skip
    return clips


def _middle(frames: Sequence[int]) -> int | None:
    return sorted(frames)[len(frames) // 2] if frames else None
