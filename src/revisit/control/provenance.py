"""Provenance: what a generator was meant to show, what it was given, and what it made, in one record per clip."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import revisit
from revisit.control.delivery import Delivery
from revisit.control.generators import Generator
from revisit.control.jobs import Job
from revisit.control.requested_path import CameraPlan
from revisit.core import Clip, UsageError, digest
from revisit.media import file_digest
from revisit.media.digest import digest_of_size_and_ends
from revisit.media.files import file_exists

ClipRecord = dict[str, Any]  # <clip>.provenance.json
# What a dense control (depth, edges, segmentation of the target view) may give away.
# none: no dense control; source_only: of the source view; endpoint_masked: of the target view, with the event's end
# masked; full_target: of the target view, so that it may show the answer.
INPUT_POLICIES = ("none", "source_only", "endpoint_masked", "full_target")


def provenance_record(
    job: Job, image: Path | None, plan: CameraPlan | None, delivery: Delivery | None, to: Generator | None
) -> ClipRecord:
    """What the record of a job's clip says, except for the clip itself. Inputs are named by their content.

    Without a card, a generator is told the plain path. A clip whose inputs may have shown the answer says nothing about
    memory.
    """
    if job.policy not in INPUT_POLICIES:
        raise UsageError(f"unknown input policy {job.policy!r}; choose one of {', '.join(INPUT_POLICIES)}")
    record: ClipRecord = {
        "record": job.id,
        "generator": to.id if to else "",
        "viewpoint_condition": to.condition if to else None,
        "intended": None if plan is None else _path_facts(plan),
        "delivered": None if delivery is None else delivery.record_facts(),
        "inputs": {
            "prompt": job.prompt,
            "seed": job.seed,
            "image_sha256": _file_digest_or_none(image),
            "video_sha256": _file_digest_or_none(job.source_video),
            "policy": job.policy,
            "enters_memory_tables": job.policy != "full_target",
        },
        "versions": {"revisit": revisit.__version__},
    }
    if job.suite:
        record["inputs"] |= {
            "segments": [asdict(segment) for segment in job.segments],
            "actions": [dict(row) for row in job.actions],
            "context": _context_facts(job.context),
            "frames": job.frames, "size": list(job.size), "fps": job.fps,
        }  # fmt: skip
        record["job"] = {name: getattr(job, name) for name in ("suite", "model", "sample", "condition")}
    return record


def _path_facts(plan: CameraPlan) -> dict[str, object]:
    return {
        "script": plan.script,
        "frames": len(plan),
        "fps": plan.fps,
        "size": list(plan.size),
        "convention": "OpenCV camera-to-world, first frame at the origin",
        "peak_yaw_degrees": round(plan.farthest_signed_yaw_degrees, 6),
        "path_digest": digest(plan.path.c2w.round(9).tolist(), 24),
    }


def _context_facts(clip: Clip | None) -> dict[str, object] | None:
    if clip is None:
        return None
    if not file_exists(clip.path):
        raise UsageError(f"{clip.path}: no such file; it is the context of the clip")
    return {"digest": digest_of_size_and_ends(clip.path), "start": clip.start, "frames": clip.count}


def _file_digest_or_none(path: Path | None) -> str | None:
    if path is None:
        return None
    if not file_exists(path):
        raise UsageError(f"{path}: no such file")
    return file_digest(path)
