"""Event-view records: tasks crossed with cameras, as each kind of interface can be asked (docs/wrbench.md).

An id is <family>__<event>__<camera>, and in a table of several models <id>@<model>, so that no two clips share one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

from revisit.control.generation import GenerationRecord
from revisit.control.generators import Generator, find_generator
from revisit.control.jobs import FRAMES
from revisit.control.requested_path import preset_script
from revisit.core import Case, Clip, Target, UsageError, digest
from revisit.core.text import read_package_yaml
from revisit.datasets.clips import first_file
from revisit.suites.wrbench.prompts import TIERS, EventTask, Row
from revisit.suites.wrbench.tables import published_row_of_model

TABLES = read_package_yaml(__package__, "cameras.yaml")
CAMERAS: dict[str, tuple[str, float]] = TABLES["cameras"]  # label -> its preset and degrees
INTERFACES: dict[str, list[str]] = TABLES["interfaces"]


def event_view_records(
    tasks: Sequence[EventTask],
    interface: str,
    cameras: Sequence[str] = (),
    *,
    card: Generator | None = None,
    first_frame: bool = True,
    frames: int | None = None,
    seed: int = 0,
    first_frames: Path | None = None,
    source_videos: Path | None = None,
) -> Iterator[GenerationRecord]:
    """Every task under every camera of an interface, or under the cameras that are named; in the words of its card.

    `first_frames` and `source_videos` are folders of files that a generator starts from.
    """
    interface = interface or _interface_of_generator(card)
    if interface not in INTERFACES:
        raise UsageError(f"unknown interface {interface!r}; choose one of {', '.join(INTERFACES)}")
    labels = cameras or INTERFACES[interface]
    unknown = [name for name in labels if name not in CAMERAS]
    if unknown:
        raise UsageError(f"unknown camera {unknown[0]!r}; choose one of {', '.join(CAMERAS)}")
    first_frame = first_frame and (card is None or card.takes != "nothing")
    count = frames or (card.frames if card else FRAMES)
    for task, label in product(tasks, labels):
        id, preset = f"{task.id}__{label}", CAMERAS[label][0]
        if interface == "words" and generator_takes_commands(card):
            prompt = task.prompt_with_camera_commands(preset, first_frame)
        elif first_frame:
            prompt = task.prompt_with_camera_words(preset) if interface == "words" else task.prompt
        else:
            prompt = task.prompt_without_first_frame(preset if interface == "words" else "")
        names = (id, task.id, task.family)
        image = _find_start_file(names, first_frames, (".png", ".jpg", ".jpeg", ".webp")) or task.first_frame
        video = _find_start_file(names, source_videos, (".mp4", ".mkv", ".webm", ".mov"))
        yield GenerationRecord(
            id,
            prompt,
            _camera_script_of_label(label, count),
            image.resolve() if image and first_frame else None,
            video.resolve() if video else None,
            seed,
            annotations={
                "family": task.family,
                "task": task.id,
                "factor": task.factor,
                "camera": label,
                "interface": interface,
                "subject": task.subject,
                "scene": task.place,
                "anchors": list(task.anchors[:2]),
                "acts_on": task.anchors[2] if len(task.anchors) > 2 else "",
                "event": task.event,
                "expected": task.expected,
            },
        )


def record_row(record: GenerationRecord) -> Row:
    """A line of records.jsonl, as `revisit generate` reads it."""
    files = {name: str(path) for name in ("image", "source_video") if (path := getattr(record, name))}
    facts = {"id": record.id, "prompt": record.prompt, "camera": record.camera, "seed": record.seed}
    return {**facts, **files, "annotations": record.annotations}


def select_records(
    records: Sequence[GenerationRecord], families: Sequence[str], limit: int | None
) -> list[GenerationRecord]:
    """Records of some families, at most so many: a random choice over events and cameras, always the same."""
    known_families = {record.annotations["family"] for record in records}
    unknown = [name for name in families if name not in known_families]
    if unknown:
        raise UsageError(f"unknown family {unknown[0]!r}; choose one of {', '.join(sorted(known_families))}")
    mine = [record for record in records if not families or record.annotations["family"] in families]
    selected = {record.id for record in sorted(mine, key=lambda record: digest(record.id))[:limit]}
    return [record for record in mine if record.id in selected]


def _interface_of_generator(card: Generator | None) -> str:
    """The interface of a generator by its card; that of paths where there is none."""
    if card is None:
        return "path"
    return "words" if card.condition == "prompt_only" else "path" if card.static else "moving_path"


def generator_takes_commands(card: Generator | None) -> bool:
    """Whether a generator knows commands in brackets."""
    return card is not None and card.payload == "camera_commands"


def _camera_script_of_label(label: str, frames: int) -> str:
    """The camera script of a label over so many frames."""
    name, degrees = CAMERAS[label][0], CAMERAS[label][1] or 60
    try:
        return preset_script(name, degrees=degrees, frames=frames)
    except UsageError:
        if frames % 2 or frames < 4:
            raise
        # Where a preset takes an odd number only, the camera rests in the last frame.
        return f"{preset_script(name, degrees=degrees, frames=frames - 1)},hold@1"


def _find_start_file(names: Sequence[str], folder: Path | None, suffixes: Sequence[str]) -> Path | None:
    """The file of a record in a folder: its own, else that of its task, else that of its family."""
    if folder is None:
        return None
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder; expected one with files named after records, tasks or families")
    return first_file(folder / f"{name}{suffix}" for name in names for suffix in suffixes)


def record_id_of_case(case: Case) -> str:
    """The id of the record that a case is a clip of; a model's name may hold an @ itself."""
    return case.id.removesuffix(f"@{case.model}")


def normalize_record_id(record_id: str) -> str:
    """The id of a record as it is written here: the published ones say `none` where no camera is in the prompt."""
    return re.sub(rf"__({'|'.join(TIERS)})__none(?=__|$)", r"__\1", record_id)


def condition_and_input_of_model(model: str) -> tuple[str, str]:
    """Viewpoint condition of a model, and what it starts from as the published table calls it, by its card.

    The condition of a model without a card is that of the published table; what is not known is empty.
    """
    try:
        card = find_generator(model)
    except UsageError:
        row = published_row_of_model(model)
        return row.condition if row else "", ""
    return card.condition, {"image": "TI2V", "source_video": "TV2V", "nothing": "T2V"}[card.takes]


def make_record_case(
    record: str, model: str, clip: Path, prompt: str, script: str, seed: int, notes: Mapping[str, object],
    target: Target | None = None,
) -> Case:  # fmt: skip
    """The case of one model's clip of a record."""
    return Case(
        id=f"{record}@{model}",
        suite="wrbench",
        model=model,
        sample=str(notes.get("task") or record),
        clip=Clip(clip),
        subset=str(notes.get("factor", "")),
        condition=str(notes.get("camera", "")),
        seed=seed,
        prompt=prompt,
        camera=script,
        target=target,
        annotations=dict(notes),
    )
