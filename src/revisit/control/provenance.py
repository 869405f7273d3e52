"""Provenance: what a generator was meant to show, what it was given, and what it made, in one record per clip."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    more: Mapping[str, Any] = field(default_factory=dict)  # caption segments, keys, context, asked size and length

    def __post_init__(self) -> None:
        if self.policy not in INPUT_POLICIES:
            raise UsageError(f"unknown input policy {self.policy!r}; choose one of {', '.join(INPUT_POLICIES)}")


def leaks(policy: str) -> bool:
    """Whether a clip made under this policy says nothing about memory, because the answer was among its inputs."""
    return policy == "full_target"


def provenance(
    record: str, plan: CameraPlan | None, to: Generator | None, delivery: Delivery | None, inputs: Inputs
) -> dict[str, Any]:
    """The record of one generation, before there is a clip. Without a card, a generator is told the plain path."""
    return {
        "record": record,
        "generator": to.id if to else "",
        "viewpoint_condition": to.condition if to else None,
        "intended": None if plan is None else _intended(plan),
        "delivered": None if delivery is None else delivery.facts(),
        "inputs": {
            "prompt": inputs.prompt,
            "seed": inputs.seed,
            "image_sha256": inputs.image_sha256,
            "video_sha256": inputs.video_sha256,
            "policy": inputs.policy,
            "enters_memory_tables": not leaks(inputs.policy),
            **inputs.more,
        },
        "versions": {"revisit": revisit.__version__},
    }


def _intended(plan: CameraPlan) -> dict[str, Any]:
    return {
        "script": plan.script,
        "frames": len(plan),
        "fps": plan.fps,
        "size": list(plan.size),
        "convention": "OpenCV camera-to-world, first frame at the origin",
        "peak_yaw_degrees": round(plan.peak_yaw, 6),
        "path_digest": digest(plan.path.c2w.round(9).tolist(), 24),
    }
