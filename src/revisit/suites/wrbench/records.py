"""Event-view records: tasks crossed with cameras, as each kind of interface can be asked (docs/wrbench.md).

An id is <family>__<event>__<camera>, and in a table of several models <id>@<model>, so that no two clips share one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from revisit.control.delivery import refusal_reasons
from revisit.control.generators import Generator, find_generator
from revisit.control.presets import preset_script
from revisit.core import Case, Clip, Target, UsageError, digest
from revisit.core.grouping import group_items
from revisit.core.text import read_package_yaml
from revisit.suites.wrbench.prompts import TIERS, EventTask, Row
from revisit.suites.wrbench.tables import published_row_of_model

TABLES = read_package_yaml(__package__, "cameras.yaml")
CAMERAS: dict[str, tuple[str, float]] = TABLES["cameras"]  # label -> its preset and degrees
INTERFACES: dict[str, list[str]] = TABLES["interfaces"]


@dataclass(frozen=True)
class EventView:
    """One clip to make: a task under a camera, as one interface is told."""

    id: str
    task: EventTask
    camera: str  # label
    prompt: str
    interface: str
    first_frame: bool = True  # whether the generator starts from one

    def to_record_row(self, script: str, seed: int = 0, source_video: Path | None = None) -> Row:
        """A line of records.jsonl, as `revisit generate` reads it."""
        image = self.task.first_frame if self.first_frame else None
        return {
            "id": self.id,
            "prompt": self.prompt,
            "camera": script,
            "seed": seed,
            **({"image": str(image)} if image else {}),
            **({"source_video": str(source_video)} if source_video else {}),
            "annotations": {
                "family": self.task.family,
                "task": self.task.id,
                "factor": self.task.factor,
                "camera": self.camera,
                "interface": self.interface,
                "subject": self.task.subject,
                "scene": self.task.place,
                "anchors": list(self.task.anchors[:2]),
                "acts_on": self.task.anchors[2] if len(self.task.anchors) > 2 else "",
                "event": self.task.event,
                "expected": self.task.expected,
            },
        }


def event_views(
    tasks: Sequence[EventTask],
    interface: str,
    cameras: Sequence[str] = (),
    *,
    first_frame: bool = True,
    commands: bool = False,
) -> Iterator[EventView]:
    """Every task under every camera of an interface, or under the cameras that are named.

    With `commands`, words about the camera are commands in brackets, as Hailuo knows them.
    """
    if interface not in INTERFACES:
        raise UsageError(f"unknown interface {interface!r}; choose one of {', '.join(INTERFACES)}")
    labels = cameras or INTERFACES[interface]
    unknown = [name for name in labels if name not in CAMERAS]
    if unknown:
        raise UsageError(f"unknown camera {unknown[0]!r}; choose one of {', '.join(CAMERAS)}")
    for task in tasks:
        for camera in labels:
            preset = CAMERAS[camera][0]
            if commands and interface == "words":
                prompt = task.prompt_with_camera_commands(preset, first_frame)
            elif first_frame:
                prompt = task.prompt_with_camera_words(preset) if interface == "words" else task.prompt
            else:
                prompt = task.prompt_without_first_frame(preset if interface == "words" else "")
            yield EventView(f"{task.id}__{camera}", task, camera, prompt, interface, first_frame)


def select_views(views: Sequence[EventView], families: Sequence[str], limit: int | None) -> list[EventView]:
    """Records of some families, at most so many: a random choice over events and cameras, always the same."""
    known_families = {view.task.family for view in views}
    unknown = [name for name in families if name not in known_families]
    if unknown:
        raise UsageError(f"unknown family {unknown[0]!r}; choose one of {', '.join(sorted(known_families))}")
    mine = [view for view in views if not families or view.task.family in families]
    selected = {view.id for view in sorted(mine, key=lambda view: digest(view.id))[:limit]}
    return [view for view in mine if view.id in selected]


def interface_of_generator(card: Generator | None) -> str:
    """The interface of a generator by its card; that of paths where there is none."""
    if card is None:
        return "path"
    return "words" if card.condition == "prompt_only" else "path" if card.static else "moving_path"


def generator_takes_commands(card: Generator | None) -> bool:
    """Whether a generator knows commands in brackets."""
    return card is not None and card.payload == "camera_commands"


def refused_cameras_by_reason(views: Sequence[EventView], card: Generator, frames: int) -> dict[str, list[str]]:
    """Why a generator will refuse some of these records -> the labels of their cameras."""
    scripts = {view.camera: camera_script_of_view(view, frames) for view in views}
    reasons = refusal_reasons(scripts, card, frames)
    return group_items(reasons, reasons.__getitem__)


def record_line(view: EventView, first_frames: Path | None, source_videos: Path | None, frames: int, seed: int) -> Row:
    """The line of a record, with the files of these folders that it starts from."""
    image = _find_start_file(view, first_frames, (".png", ".jpg", ".jpeg", ".webp")) or view.task.first_frame
    video = _find_start_file(view, source_videos, (".mp4", ".mkv", ".webm", ".mov"))
    view = replace(view, task=replace(view.task, first_frame=image.resolve() if image else None))
    return view.to_record_row(camera_script_of_view(view, frames), seed, video.resolve() if video else None)


def camera_script_of_view(view: EventView, frames: int) -> str:
    """The camera script of a record over so many frames."""
    name, degrees = CAMERAS[view.camera][0], CAMERAS[view.camera][1] or 60
    try:
        return preset_script(name, degrees=degrees, frames=frames)
    except UsageError:
        if frames % 2 or frames < 4:
            raise
        # Where a preset takes an odd number only, the camera rests in the last frame.
        return f"{preset_script(name, degrees=degrees, frames=frames - 1)},hold@1"


def _find_start_file(view: EventView, folder: Path | None, suffixes: Sequence[str]) -> Path | None:
    """The file of a record in a folder: its own, else that of its task, else that of its family."""
    if folder is None:
        return None
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder; expected one with files named after records, tasks or families")
    names = [f"{name}{suffix}" for name in (view.id, view.task.id, view.task.family) for suffix in suffixes]
    return next((folder / name for name in names if (folder / name).is_file()), None)


def record_id_of_case(case: Case) -> str:
    """The id of the record that a case is a clip of; a model's name may hold an @ itself."""
    return case.id.removesuffix(f"@{case.model}")


def normalize_record_id(record_id: str) -> str:
    """The id of a record as it is written here: the published ones say `none` where no camera is in the prompt."""
    return re.sub(rf"__({'|'.join(TIERS)})__none(?=__|$)", r"__\1", record_id)


def viewpoint_condition_of_model(model: str) -> str:
    """The viewpoint condition of a model by its card, or by the published table; nothing where neither knows it."""
    try:
        return find_generator(model).condition
    except UsageError:
        row = published_row_of_model(model)
        return row.condition if row else ""


def input_type_of_model(model: str) -> str:
    """What a model starts from, as the published table calls it; nothing where no card knows it."""
    try:
        return {"image": "TI2V", "source_video": "TV2V", "nothing": "T2V"}[find_generator(model).takes]
    except UsageError:
        return ""


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
