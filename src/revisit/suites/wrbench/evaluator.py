"""Clips for WRBench's own evaluator: the sidecars beside each clip, and the manifest that it takes.

A row of the manifest says what its video shows. `oov_gap` is the camera of the clip, not that of the prompt: the public
exporter leaves D5 and D6 out of rows that say `none` there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from revisit.control.job_runner import clip_frames_fps_and_size, read_provenance_or_none
from revisit.core import Case, MediaError, Rejected, Remark, RevisitError
from revisit.geometry.camera_script import camera_path_of_length, parse_script
from revisit.media import load_npy
from revisit.suites.wrbench.prompts import TIERS
from revisit.suites.wrbench.read import read
from revisit.suites.wrbench.records import CAMERAS, record_id_of_case
from revisit.suites.wrbench.sidecars import ADAPTER, CameraTarget, sidecar_adapter, write_sidecars
from revisit.suites.wrbench.upstream import pose_folder_name

WORDS_ONLY = "their camera was put into words, so they have no path to compare with"
THEIRS = "they have sidecars of another tool"


@dataclass
class EvaluatorExport:
    """What was written for WRBench's evaluator."""

    rows: list[dict[str, object]] = field(default_factory=list)  # of its manifest
    sidecars: int = 0  # clips that got sidecars
    without: Counter[str] = field(default_factory=Counter)  # why clips got none -> how many
    profiles: Counter[str] = field(default_factory=Counter)  # control profile -> clips
    missing: int = 0  # clips that nobody made

    def warning_sentences(self) -> list[str]:
        """What a user must know of it."""
        lines = [f"{count} clips got no sidecar: {why}" for why, count in sorted(self.without.items())]
        profiles = sorted(self.profiles.items())
        if names := ", ".join(f"{count} {name}" for name, count in profiles if not name.startswith("canonical")):
            lines.append(
                f"WRBench scores {names} with --sidecar-profile-gate certified_opencv only; main takes yaw by 60 "
                "degrees, pan and static"
            )
        return [*lines, *([f"{self.missing} clips are missing"] if self.missing else [])]


def write_evaluator_sidecars(
    source: Path, roots: Sequence[Path] = (), *, records: str | None = None
) -> EvaluatorExport:
    """Write the sidecars of all clips in a source, and give the rows of a manifest of them.

    Parameters
    ----------
    source
        What `revisit eval` reads as WRBench: a folder of clips with records, a manifest, or a run of WRBench's tools.
    records
        A file that listed the records, where it does not lie beside the clips.

    Returns
    -------
    EvaluatorExport
        Rows, and how many clips got sidecars and why others did not. Sidecars of other tools are never touched.
    """
    handover = EvaluatorExport()
    for entry in read(source, roots, records=records):
        if isinstance(entry, Rejected):
            handover.missing += entry.missing
            handover.without.update([] if entry.missing else [entry.reason])
            continue
        if isinstance(entry, Remark):  # on videos that are no part of what is handed over
            continue
        target = camera_target_or_reason(entry)
        if isinstance(target, str):
            handover.without[target] += 1
        else:
            write_sidecars(entry.clip.path, target)
            handover.sidecars += 1
            handover.profiles[target.control_profile] += 1
        handover.rows.append(evaluator_manifest_row(entry, None if isinstance(target, str) else target))
    return handover


def write_manifest_sidecars(manifest: Path) -> list[str]:
    """Write the sidecars of the clips of a manifest that was made here; what a user must know of them."""
    handover = write_evaluator_sidecars(manifest)
    return [f"{handover.sidecars} clips got the sidecars that WRBench's evaluator reads", *handover.warning_sentences()]


def camera_target_or_reason(case: Case) -> CameraTarget | str:
    """What a clip was asked to show, or why that cannot be written beside it."""
    clip = case.clip.path
    if case.annotations.get("viewpoint_condition") == "prompt_only":
        return WORDS_ONLY
    if sidecar_adapter(clip) not in (None, ADAPTER):
        return THEIRS
    provenance = read_provenance_or_none(clip) or {}
    output = provenance.get("output") or {}
    if not all(map(output.get, ("frames", "size", "fps"))):
        output = clip_frames_fps_and_size(clip)
    if not output.get("frames"):
        return f"they cannot be read ({output.get('problem') or 'the length is not known'})"
    frames, fps, size = int(output["frames"]) - case.clip.start, float(output["fps"]), tuple(output["size"])
    if not case.camera:
        return "no camera script is known of them"
    try:
        path = camera_path_of_length(parse_script(case.camera), frames)
    except RevisitError as error:
        return f"their camera script cannot be read ({error})"
    with suppress(MediaError):  # the path that was written when the clip was made, if it has a pose for each frame
        own_path = load_npy(clip.with_suffix(".target_c2w.npy"))
        if own_path.shape == (frames, 4, 4) and own_path.dtype.kind == "f" and np.isfinite(own_path).all():
            path = np.asarray(own_path, float)
    delivered = provenance.get("delivered")
    delivered = delivered if isinstance(delivered, Mapping) else {}
    return CameraTarget(case.model, case.condition, case.camera, path, fps, size, delivered)


def evaluator_manifest_row(case: Case, target: CameraTarget | None) -> dict[str, object]:
    """The row of a clip in the manifest of WRBench's evaluator."""
    notes = case.annotations
    record = record_id_of_case(case)
    tier = str(notes.get("task") or record).rpartition("__")[2]
    name, _, divergence = tier.partition("_") if tier in TIERS else ("", "", "")
    label = CAMERAS[case.condition][0] if case.condition in CAMERAS else case.condition
    camera = (target.camera_type if target is not None else "") or label
    return {
        "video_id": pose_folder_name(case.id),
        "path": str(case.clip.path.resolve()),
        "model": case.model,
        "camera_type": camera,
        "camera": case.condition,
        "family_id": str(notes.get("family", "")),
        "reasoning_tier": name,
        "divergence_id": divergence or None,
        "event_delta": str(notes.get("factor") or case.subset),
        "oov_gap": camera,
        "world_state_prompt": str(notes.get("event") or case.prompt),
        "expected_state": str(notes.get("expected") or notes.get("event") or case.prompt),
        "prompt": case.prompt,
        "seed": case.seed,
        "model_input": str(notes.get("input") or ""),
        "viewpoint_condition_type": str(notes.get("viewpoint_condition") or "").replace("_", "-"),
        **({"condition_frame_count": case.clip.start} if case.clip.start else {}),
    }
