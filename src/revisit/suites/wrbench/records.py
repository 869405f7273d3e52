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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from revisit.core import Case, UsageError
from revisit.suites.wrbench.prompts import Task

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


def clip_id(view: EventView, model: str) -> str:
    """The name of one model's clip of a record, unlike any other model's."""
    return f"{view.id}@{model}"
