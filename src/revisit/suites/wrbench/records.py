"""Event-view records: tasks crossed with cameras, as each kind of interface can be asked.

| interface | cameras | records |
|---|---|---|
| `path` | static, yaw by 30 and 60 degrees, left first and right first | 500 |
| `moving_path` | the same without static | 400 |
| `words` | static, yaw left first, yaw right first, in words | 300 |

Further scopes (pan, arc, orbit) may be asked for by name. An id is <family>__<event>__<camera>, and in a table of
several models <id>@<model>, so that no two clips share one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from revisit.control.generators import generator
from revisit.core import Case, Clip, Target, UsageError
from revisit.suites.wrbench.prompts import TIERS, Task
from revisit.suites.wrbench.tables import published

# label -> (camera preset, degrees)
CAMERAS: dict[str, tuple[str, float]] = {
    "static": ("static", 0),
    "yaw30_LR": ("yaw_LR", 30),
    "yaw30_RL": ("yaw_RL", 30),
    "yaw60_LR": ("yaw_LR", 60),
    "yaw60_RL": ("yaw_RL", 60),
    "yaw_LR": ("yaw_LR", 60),
    "yaw_RL": ("yaw_RL", 60),
    "pan_LR": ("pan_LR", 0),
    "pan_RL": ("pan_RL", 0),
    "arc_LR": ("arc_LR", 60),
    "arc_RL": ("arc_RL", 60),
    "orbit": ("orbit", 0),
}
INTERFACES: dict[str, tuple[str, ...]] = {
    "path": ("static", "yaw30_LR", "yaw30_RL", "yaw60_LR", "yaw60_RL"),
    "moving_path": ("yaw30_LR", "yaw30_RL", "yaw60_LR", "yaw60_RL"),
    "words": ("static", "yaw_LR", "yaw_RL"),
}


@dataclass(frozen=True)
class EventView:
    """One clip to make: a task under a camera, as one interface is told."""

    id: str
    task: Task
    camera: str  # label
    preset: str
    degrees: float
    prompt: str
    interface: str

    def as_json(self, script: str, seed: int = 0) -> dict[str, Any]:
        """A line of records.jsonl, as `revisit camera run` reads it."""
        return {
            "id": self.id,
            "prompt": self.prompt,
            "camera": script,
            "seed": seed,
            **({"image": str(self.task.first_frame)} if self.task.first_frame else {}),
            "annotations": {
                "family": self.task.family,
                "task": self.task.id,
                "factor": self.task.factor,
                "camera": self.camera,
                "interface": self.interface,
                "subject": self.task.subject,
                "event": self.task.prompt,
                "expected": self.task.expected,
            },
        }


def event_views(
    tasks: Sequence[Task], interface: str, cameras: Sequence[str] = (), *, first_frame: bool = True
) -> Iterator[EventView]:
    """Every task under every camera of an interface, or under the cameras that are named."""
    if interface not in INTERFACES:
        raise UsageError(f"there is no interface {interface!r}; there are {', '.join(INTERFACES)}")
    chosen = tuple(cameras) or INTERFACES[interface]
    unknown = [name for name in chosen if name not in CAMERAS]
    if unknown:
        raise UsageError(f"there is no camera {unknown[0]!r}; there are {', '.join(CAMERAS)}")
    for task in tasks:
        for camera in chosen:
            preset, degrees = CAMERAS[camera]
            told = task.with_camera(preset) if interface == "words" else task.prompt
            if not first_frame:
                if not task.from_nothing:
                    raise UsageError(f"{task.id} has no prompt for generators that get no first frame")
                told = task.from_nothing
            yield EventView(f"{task.id}__{camera}", task, camera, preset, degrees, told, interface)


def record_of(case: Case) -> str:
    """The id of the record that a case is a clip of; a model's name may hold an @ itself."""
    return case.id.removesuffix(f"@{case.model}")


def plain_record(id: str) -> str:
    """The id of a record as it is written here: the published ones say `none` where no camera is in the prompt."""
    return re.sub(rf"__({'|'.join(TIERS)})__none(?=__|$)", r"__\1", id)


def condition_of(model: str) -> str:
    """The viewpoint condition of a model by its card, or by the published table; nothing where neither knows it."""
    try:
        return generator(model).condition
    except UsageError:
        names = {row.model: row.condition for row in published()[1]}
        return names.get(re.sub(r"[^a-z0-9]+", "_", model.lower()), "")


def case_of(
    record: str, model: str, clip: Path, prompt: str, script: str, seed: int, notes: Mapping[str, Any],
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


def clip_id(view: EventView, model: str) -> str:
    """The name of one model's clip of a record, unlike any other model's."""
    return f"{view.id}@{model}"
