"""Provenance: what a generator was meant to show, what it was given, and what it made, in one record per clip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import revisit
from revisit.control.compiling import CameraPlan
from revisit.control.delivery import Delivery
from revisit.control.generators import Generator
from revisit.core import UsageError, digest

# What a dense control (depth, edges, segmentation of the target view) may give away.
INPUT_POLICIES = {
    "none": "no dense control was given",
    "source_only": "dense controls come from the source view only",
    "endpoint_masked": "dense controls of the target view, with the event's end masked",
    "full_target": "dense controls of the target view: they may show the answer",
}


@dataclass(frozen=True)
class Inputs:
    """What a generation starts from, by content."""

    prompt: str
    seed: int
    image_sha256: str | None = None
    video_sha256: str | None = None
    policy: str = "none"

    def __post_init__(self) -> None:
        if self.policy not in INPUT_POLICIES:
            raise UsageError(f"there is no input policy {self.policy!r}; there are {', '.join(INPUT_POLICIES)}")


def leaks(policy: str) -> bool:
    """Whether a clip made under this policy says nothing about memory, because the answer was among its inputs."""
    return policy == "full_target"


def provenance(
    record: str,
    plan: CameraPlan,
    to: Generator,
    delivery: Delivery,
    inputs: Inputs,
    output: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The record of one generation. `output` is what is known of the clip once it is there."""
    return {
        "record": record,
        "generator": to.id,
        "viewpoint_condition": to.condition,
        "intended": {
            "script": plan.script,
            "frames": len(plan),
            "fps": plan.fps,
            "size": list(plan.size),
            "convention": "OpenCV camera-to-world, first frame at the origin",
            "peak_yaw_degrees": round(plan.peak_yaw, 6),
            "path_digest": digest(plan.path.c2w.round(9).tolist(), 24),
        },
        "delivered": delivery.facts(),
        "inputs": {
            "prompt": inputs.prompt,
            "seed": inputs.seed,
            "image_sha256": inputs.image_sha256,
            "video_sha256": inputs.video_sha256,
            "policy": inputs.policy,
            "enters_memory_tables": not leaks(inputs.policy),
        },
        "versions": {"revisit": revisit.__version__},
        "output": output,
    }
