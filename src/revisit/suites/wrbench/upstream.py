"""What WRBench's own tools write: manifests (a JSON list, or lines in shards) and the files beside each video.

A generation run holds <run>/<model>/manifest.shard00.jsonl and, beside each <video>.mp4, <video>.mp4.camera.json
(script, gains, frames), <video>.mp4.target_c2w.npy (the intended path, amplified by the model's gain) and others.
Paths in them start where the tool was called; only their ends are looked for, below the manifest's own folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from revisit.core import Case, Clip, MediaError, Rejected, UsageError
from revisit.core.text import convert_read_errors, parse_json, parse_numbered_json_lines, read_package_yaml
from revisit.datasets.clips import first_file
from revisit.media.files import file_exists
from revisit.media.text_files import read_json_object
from revisit.suites.wrbench.prompts import TIERS, Row
from revisit.suites.wrbench.records import CAMERAS, condition_and_input_of_model, make_record_case, normalize_record_id
from revisit.suites.wrbench.sidecars import sidecar_path, why_not_main_profile

LIST = "manifest.json"
SHARDS = "manifest.shard*.jsonl"
MADE = ("", "ok", "skipped", "skipped_existing")  # skipped: the clip was there already
SCRIPTS: dict[str, str] = read_package_yaml(__package__, "cameras.yaml")["scripts"]


def find_wrbench_manifests(source: Path) -> list[Path]:
    """The manifests in a folder, in the folders of a run or in a folder of runs; or the file itself."""
    if source.is_file():
        return [source] if _is_wrbench_manifest(source) else []
    if not source.is_dir():
        return []
    shards = sorted(path for below in ("", "*/", "*/*/") for path in source.glob(below + SHARDS))
    lists = [source / name for name in (LIST, "manifest.jsonl") if (source / name).is_file()]
    return [path for path in [*shards, *lists] if _is_wrbench_manifest(path)]


def read_wrbench_manifests(paths: Sequence[Path], roots: Sequence[Path]) -> Iterator[Case | Rejected]:
    """Cases of these manifests."""
    for path in paths:
        with convert_read_errors(path, "a manifest of JSON"):
            text = path.read_text(encoding="utf-8-sig")
            videos = parse_json(text) if path.suffix == ".json" else None
        if path.suffix == ".json" and not isinstance(videos, list):
            raise UsageError(f"{path}: expected a JSON list of videos")
        for k, row in parse_numbered_json_lines(text) if videos is None else enumerate(videos, start=1):
            where = f"{path.name} {'line' if videos is None else 'entry'} {k}"
            facts = row if isinstance(row, dict) else {}
            if facts.get("video_id") and (facts.get("path") or facts.get("video_path")):
                yield _case_of_manifest_row(where, facts, path.parent, roots)
            else:
                yield Rejected(where, "expected an object with video_id and path", str(facts.get("model") or ""))


def read_sidecar_facts(clip: Path) -> tuple[str, dict[str, object], dict[str, Path]]:
    """(script, what is known, files) of the files that WRBench's tools wrote beside a video; all empty without them.

    Raises UsageError for a file that is there and cannot be read: its clip was perhaps never finished.
    """
    names = ("camera", "payload", "model_control_samples")
    facts, payload, samples = (_read_sidecar_object(clip, name) for name in names)
    timeline = samples.get("model_control_timeline") or facts.get("model_control_timeline") or {}
    notes = {
        "asked_frames": facts.get("requested_frame_count") or timeline.get("requested_frame_count"),
        "asked_fps": facts.get("fps"),
        "asked_size": facts.get("image_size"),
        "turn_gain": facts.get("rotation_gain"),
        "way_gain": facts.get("translation_gain"),
        "payload": payload.get("payload_type") or facts.get("payload_type"),
        "control_samples": timeline.get("control_sample_count"),
    }
    if facts:
        notes["outside_main_profile"] = why_not_main_profile(facts)
    script = str(facts.get("camera_script") or payload.get("camera_script") or "")
    annotations = {name: value for name, value in notes.items() if value is not None}
    pose_file = first_file(sidecar_path(clip, name) for name in ("target_c2w.npy", "camera_trajectory.json"))
    return script, annotations, {} if pose_file is None else {"true_poses": pose_file}


def case_from_sidecar(clip: Path) -> Case | None:
    """The case of a video that has no manifest, from its name and <video>.mp4.camera.json; None without that file."""
    facts = _read_sidecar_object(clip, "camera")
    if not facts:
        return None
    record, model = normalize_record_id(clip.stem), str(facts.get("canonical_model_key") or clip.parent.name)
    parts = clip.stem.split("__")
    tier = next((part for part in parts[1:2] if part in TIERS), "")
    notes = {
        "video_id": clip.stem,
        "family": parts[0],
        "task": f"{parts[0]}__{tier}" if tier else clip.stem,
        "factor": TIERS.get(tier, ""),
        "camera": str(facts.get("camera_type") or ""),
    }
    return make_record_case(record, model, clip, "", str(facts.get("camera_script") or ""), 0, notes)


def has_sidecars(folder: Path) -> bool:
    """Whether videos in a folder, or in the folders below it, have the files that WRBench's tools write beside them."""
    return any(True for below in ("", "*/") for _ in folder.glob(f"{below}*.mp4.camera.json"))


def _read_sidecar_object(clip: Path, name: str) -> Row:
    """The JSON object in <video>.mp4.<name>.json; empty where there is no such file."""
    path = sidecar_path(clip, f"{name}.json")
    if not path.is_file():
        return {}
    try:
        return read_json_object(path, "the object that WRBench's tools write")
    except (OSError, MediaError) as error:
        raise UsageError(f"{path.name}: {error}; generate the clip again, or remove the file") from error


def _case_of_manifest_row(where: str, row: Row, folder: Path, roots: Sequence[Path]) -> Case | Rejected:
    video_id, model = str(row["video_id"]), str(row.get("model") or "model")
    video_name = str(row.get("eval_video_path") or row.get("path") or row["video_path"])
    camera = str(row.get("camera") if row.get("camera") in CAMERAS else row.get("camera_type") or "")
    parts = video_id.split("__")
    family, tier = str(row.get("family_id") or parts[0]), str(row.get("reasoning_tier") or "".join(parts[1:2]))
    tier += f"_{row['divergence_id']}" if row.get("divergence_id") else ""
    record = normalize_record_id(video_id)
    factor = str(row.get("event_delta") or TIERS.get(tier, ""))
    if str(row.get("status") or "") not in MADE:
        why = " ".join(str(row.get("error") or row.get("status")).split())[:200]
        return Rejected(f"{record}@{model}", f"its generation failed: {why}", model, factor, camera, missing=True)
    video = _find_named_video(video_name, folder, roots)
    if video is None:
        if file_exists(folder / video_name):
            return Rejected(where, f"{video_name!r} lies outside the manifest's folder; allow it with --root", model)
        return Rejected(f"{record}@{model}", "nobody made this clip", model, factor, camera, missing=True)
    event = str(row.get("world_state_prompt") or row.get("prompt_text") or "")
    condition = (
        str(row.get("viewpoint_condition_type") or "").replace("-", "_") or condition_and_input_of_model(model)[0]
    )
    in_prompt = str(row.get("oov_gap") or "none") != "none"  # the camera stands in the prompt
    notes: dict[str, object] = {
        "video_id": video_id,
        "family": family,
        "task": f"{family}__{tier}" if tier else family,
        "factor": factor,
        "camera": camera,
        "interface": "words" if condition == "prompt_only" or (in_prompt and not condition) else "path",
        "event": event,
        "expected": str(row.get("expected_state") or event),
        "viewpoint_condition": condition,
        "input": row.get("model_input"),
    }
    prompt = str(row.get("prompt") or row.get("ti2v_prompt") or event)
    case = make_record_case(record, model, video, prompt, SCRIPTS.get(camera, ""), int(row.get("seed") or 0), notes)
    # HyDRA's videos begin with the source: what was generated follows after it.
    before = 0 if row.get("eval_video_path") else int(row.get("condition_frame_count") or 0)
    return replace(case, clip=Clip(video, start=before))


def _find_named_video(name: str, folder: Path, roots: Sequence[Path]) -> Path | None:
    """The file that a manifest names: its path, or the end of it, below the manifest's folder or a root."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    for root in (folder, *roots):
        for first in range(len(parts)):
            path = root.joinpath(*(part for part in parts[first:] if part != "/"))
            if file_exists(path) and path.resolve().is_relative_to(root.resolve()):
                return path.resolve()
    return None


def _is_wrbench_manifest(manifest: Path) -> bool:
    return "video_id" in (first_manifest_row(manifest) or {})


def first_manifest_row(path: Path) -> Row | None:
    """The first row of a manifest, if it is an object; None where the file is something else."""
    try:
        if path.suffix == ".jsonl":
            with path.open(encoding="utf-8-sig") as file:
                rows = [parse_json(file.readline(1_000_000))]
        else:
            rows = parse_json(path.read_text(encoding="utf-8-sig")) if path.suffix == ".json" else []
    except (OSError, ValueError):
        return None
    return rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else None


def pose_folder_name(name: str) -> str:
    """The name of a video's folder in the pose cache of WRBench's tools."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("._")
