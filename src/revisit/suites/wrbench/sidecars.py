"""Sidecars: the files that WRBench's own evaluator looks for beside each video, so that it can score clips made here.

`<video>.mp4.camera.json` says what the camera was asked to do, `<video>.mp4.target_c2w.npy` and
`<video>.mp4.camera_trajectory.json` hold the path, and `<video>.mp4.model_control_samples.json` what the generator was
given. The path is never amplified: the gains of the file are those of the path in it, so they are 1.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from revisit._version import __version__
from revisit.control.requested_path import FIELD_OF_VIEW, intrinsics
from revisit.core import UsageError
from revisit.core.text import parse_json, read_package_yaml
from revisit.geometry.camera_script import parse_script
from revisit.media.files import atomic_write_path, write_text_atomically
from revisit.metrics.camera import kind_of_path, relative_yaw, value_farthest_from_zero
from revisit.suites.wrbench.records import CAMERAS

ADAPTER = "revisit"  # in the files that were written here
CONVENTION = "opencv_c2w"
ROLE = "benchmark_intended_control"
EVIDENCE = ("benchmark_intent", "payload_audited")  # levels that count in the main table
MAIN_YAW, SAME_YAW = 60.0, 1e-6  # degrees
FACTS = read_package_yaml(__package__, "sidecar.yaml")
DIRECTIONS: dict[str, str] = FACTS["directions"]  # camera type -> its control family


@dataclass(frozen=True, eq=False)
class CameraTarget:
    """What a clip was asked to show."""

    model: str
    camera: str  # label of the record, such as yaw60_LR
    script: str
    c2w: np.ndarray  # (frames, 4, 4), not amplified
    fps: float
    size: tuple[int, int]  # width, height
    delivered: Mapping[str, Any]  # what the provenance of the clip says of its payload; may be empty

    @property
    def camera_type(self) -> str:
        """WRBench's name of the camera: by the label of the record, else by the path; empty where it has none."""
        label = CAMERAS[self.camera][0] if self.camera in CAMERAS else self.camera
        return label if label in DIRECTIONS else camera_type_of_path(self.c2w)

    @property
    def control_profile(self) -> str:
        """The control profile that WRBench's evaluator asks for."""
        family, yaw = DIRECTIONS.get(self.camera_type, ""), abs(self.peak_yaw)
        if family == "rotation":
            return "canonical_60deg" if abs(yaw - MAIN_YAW) <= SAME_YAW else f"diagnostic_{yaw:g}deg"
        return {"translation": "canonical_pan", "static": "canonical_static"}.get(family, "unknown")

    @property
    def peak_yaw(self) -> float:
        """The yaw farthest from the first view, with its sign, in degrees."""
        return round(value_farthest_from_zero(relative_yaw(self.c2w[:, :3, :3])), 9)


def camera_type_of_path(c2w: np.ndarray) -> str:
    """WRBench's name of a path that turns or slides to a side, or rests; empty for any other."""
    kind = kind_of_path(c2w)
    if kind == "static":
        return "static"
    motion = (c2w[:, :3, 3] - c2w[0, :3, 3]) @ c2w[0, :3, :3]
    if kind == "yaw" and np.abs(motion).max() < 1e-6:
        return "yaw_LR" if value_farthest_from_zero(relative_yaw(c2w[:, :3, :3])) < 0 else "yaw_RL"
    if kind == "sideways":
        return "pan_LR" if value_farthest_from_zero(motion[:, 0]) < 0 else "pan_RL"
    return ""


def why_not_main_profile(facts: Mapping[str, Any]) -> str:
    """Why a sidecar has no place in WRBench's main table, in a sentence; empty where it has one.

    The rules are those of the public evaluator with `--sidecar-profile-gate main`.
    """
    if facts.get("target_role") not in (ROLE, "canonical_intended_control"):
        return f"its target_role is {facts.get('target_role')!r}, not {ROLE}"
    direction, profile = facts.get("control_direction") or facts.get("camera_type"), facts.get("control_profile")
    family = facts.get("control_family") or DIRECTIONS.get(str(direction))
    if direction not in DIRECTIONS or DIRECTIONS[direction] != family:
        return f"its camera {direction!r} of the family {family!r} is none of {', '.join(DIRECTIONS)}"
    yaw = facts.get("yaw_peak_deg", facts.get("target_yaw_peak_deg"))
    profiles = {"rotation": ("canonical_60deg",), "static": ("canonical_static",)}
    if profile not in profiles.get(str(family), ("canonical_pan", "canonical_translation")):
        return f"its control profile is {profile}, and the main profile takes yaw by 60 degrees, pan and static"
    off = 0.0
    if family == "rotation":
        try:
            off = abs(abs(float(yaw)) - MAIN_YAW)
        except (TypeError, ValueError):
            off = math.inf
    if not off <= SAME_YAW:
        return f"its farthest yaw is {yaw}, not 60 degrees"
    level = facts.get("evidence_level")
    if level not in EVIDENCE and not (level is None and facts.get("target_certification_status") == "certified"):
        return f"its evidence level is {level!r}, none of {', '.join(EVIDENCE)}"
    missing = [name for name in FACTS["required"] if facts.get(name) in (None, "")]
    return f"it does not say {', '.join(missing)}" if missing else ""


def write_sidecars(clip: Path, target: CameraTarget) -> None:
    """Write the sidecars of a clip, in the place of those that were written here before.

    Parameters
    ----------
    clip
        The video. Paths in the sidecars are absolute: WRBench looks for them from where it is called.
    target
        What the clip was asked to show.
    """
    poses = np.asarray(target.c2w, np.float32)
    with atomic_write_path(sidecar_path(clip, "target_c2w.npy")) as temporary, temporary.open("wb") as file:
        np.save(file, poses)
    lens = np.tile(intrinsics(target.size), (len(poses), 1, 1)).astype(np.float32)
    path = {
        "c2w": poses.tolist(), "camera_type": target.camera_type, "conversion_mode": _payload_type(target),
        "coordinate_convention": CONVENTION, "fps": target.fps, "frame_count": len(poses), "intrinsics": lens.tolist(),
        "source": "camera_action_script",
    }  # fmt: skip
    write_text_atomically(sidecar_path(clip, "camera_trajectory.json"), json.dumps(path))
    facts = camera_sidecar_json(clip, target)
    samples = {
        "model_control_timeline": facts["model_control_timeline"],
        "official_camera_entrypoint": facts["official_camera_entrypoint"], "payload_type": facts["payload_type"],
        "schema_version": 1, "target_coordinate_convention": CONVENTION, "target_frame_count": len(poses),
    }  # fmt: skip
    write_text_atomically(sidecar_path(clip, "model_control_samples.json"), json.dumps(samples, indent=1))
    write_text_atomically(sidecar_path(clip, "camera.json"), json.dumps(facts, indent=1, sort_keys=True))


def camera_sidecar_json(clip: Path, target: CameraTarget) -> dict[str, object]:
    """The content of `<video>.mp4.camera.json`."""
    poses, path = (str(sidecar_path(clip, name).resolve()) for name in ("target_c2w.npy", "camera_trajectory.json"))
    basis = f"revisit {__version__} compiled the camera script"
    return {
        **FACTS["fixed"],
        **_control_facts(target),
        **_payload_facts(target),
        **dict.fromkeys(("certification_reason", "target_certification_basis"), basis),
        **dict.fromkeys(("camera_trajectory_json_path", "camera_trajectory_path"), path),
        **dict.fromkeys(("target_c2w_path", "target_pose_path", "trajectory_c2w_path"), poses),
        "model_control_samples_path": str(sidecar_path(clip, "model_control_samples.json").resolve()),
        "canonical_model_key": target.model,
        "fov": FIELD_OF_VIEW,
        "fps": float(target.fps),
        "image_size": list(target.size),
    }


def _control_facts(target: CameraTarget) -> dict[str, object]:
    """The path that was asked for: its camera, profile, script and peaks."""
    camera_type, yaw, profile = target.camera_type, target.peak_yaw, target.control_profile
    motion = (target.c2w[:, :3, 3] - target.c2w[0, :3, 3]) @ target.c2w[0, :3, :3]
    sideways = value_farthest_from_zero(motion[:, 0])
    return {
        **dict.fromkeys(("camera_type", "control_direction", "source_action"), camera_type or target.camera),
        **dict.fromkeys(("camera_script", "frame_action_script"), to_wrbench_script(target.script)),
        "canonical_control": camera_type or "unknown",
        "canonical_profile": "yaw_go_return_60deg" if profile == "canonical_60deg" else profile,
        "control_family": DIRECTIONS.get(camera_type, "unknown"),
        "control_profile": profile,
        "megasam_precision_inputs": {
            "rotation_axis": "y" if yaw else None, "rotation_peak_signed_deg": yaw,
            "translation_axis": "x" if abs(sideways) > 1e-9 else None, "translation_peak_signed": round(sideways, 9),
        },
        **({"target_yaw_peak_deg": abs(yaw)} if yaw else {}),
        "yaw_peak_deg": abs(yaw),
    }  # fmt: skip


def _payload_facts(target: CameraTarget) -> dict[str, object]:
    """What the generator was given, and for how many frames."""
    frames, payload = len(target.c2w), _payload_type(target)
    pose_count = int(target.delivered.get("poses") or frames)
    exact = bool(target.delivered.get("exact", False))
    return {
        **dict.fromkeys(FACTS["frame_counts"], frames),
        **dict.fromkeys(("conversion_mode", "model_payload_type", "payload_type"), payload),
        "frame_mapping": {
            "model_frames": frames, "requested_frames": frames, "target_frame_indices": list(range(frames)),
        },
        "model_control_timeline": {
            "control_sample_count": pose_count, "control_sample_kind": payload, "coordinate_convention": CONVENTION,
            "payload_type": payload, "requested_frame_count": frames, "schema_version": 1,
            "target_c2w_is_model_effective": exact, "target_frame_count": frames,
        },
        "model_payload_summary": {
            "gain": target.delivered.get("gain"), "exact": exact, "pose_count": pose_count,
            "sha256": target.delivered.get("sha256"),
        },
        "official_camera_entrypoint": str(target.delivered.get("loader") or ""),
        "target_c2w_is_model_effective": exact,
    }  # fmt: skip


def to_wrbench_script(script: str) -> str:
    """A script in the words of WRBench's grammar; as it is where a move has none there, such as an orbit."""
    try:
        steps = parse_script(script)
    except UsageError:
        return script
    if any(move.kind == "orbit" for step in steps for move in step.moves):
        return script
    words, parts = FACTS["words"], []
    for step in steps:
        moves = [f"{words.get(move.kind, move.kind)}:{move.direction}:{move.amount:.12g}" for move in step.moves]
        parts.append(f"{'+'.join(moves) or 'static'}@{step.frames}")
    return ",".join(parts)


def sidecar_path(clip: Path, name: str) -> Path:
    """The file of a clip that WRBench calls `<video>.mp4.<name>`."""
    return clip.with_name(f"{clip.name}.{name}")


def sidecar_adapter(clip: Path) -> str | None:
    """The adapter that wrote the sidecar of a clip; None where there is none, empty where it cannot be read."""
    path = sidecar_path(clip, "camera.json")
    if not path.is_file():
        return None
    try:
        return str(parse_json(path.read_text(encoding="utf-8"))["adapter"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _payload_type(target: CameraTarget) -> str:
    return str(target.delivered.get("family") or "camera_path")
