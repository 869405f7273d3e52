"""Cases from clips of event-view records.

- what `revisit camera run` wrote: a folder with manifest.jsonl, or folders of several models with one each;
- any tree <model>/<record>.mp4 with the records (records.jsonl beside it, or --option records=...);
- WRBench's own manifest: a JSON list with video_id, path, model, camera_type and the event's sentence.

Records that nobody made a clip of are missing, and counted. Clips that were given dense controls of the target view say
nothing about memory; they are kept and marked (`leaks`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from revisit.core import Case, Clip, Rejected, Target, UsageError
from revisit.media import natural_order
from revisit.suites.folder.read import MANIFEST, find_clips, read_manifest
from revisit.suites.wrbench.records import record_of

RECORDS = "records.jsonl"
PUBLIC = "manifest.json"  # WRBench's own list of videos
CONDITIONS = ("source_video", "geometry_cache", "model_inferred", "prompt_only")
SCRIPTS = {  # what WRBench's camera types ask for, over the 81 frames of its default
    "static": "hold@80",
    **{
        f"yaw{size}_{way}": f"yaw:{out}:{size or 60}@40,yaw:{back}:{size or 60}@40"
        for size in ("", "30", "60")
        for way, out, back in (("LR", "left", "right"), ("RL", "right", "left"))
    },
    "pan_LR": "truck:left:0.5@40,truck:right:0.5@40",
    "pan_RL": "truck:right:0.5@40,truck:left:0.5@40",
}
POSE_FILES = ("{id}/poses.npy", "{id}.npy", "{id}.npz", "{id}.txt", "{id}.json")


def recognises(source: Path) -> bool:
    """Whether the clips come with event-view records."""
    if source.is_file():
        return source.suffix == ".json" and _is_list_of_videos(source)
    if not source.is_dir():
        return False
    if (source / RECORDS).is_file() or _is_list_of_videos(source / PUBLIC):
        return True
    manifests = [source / MANIFEST, *(folder / MANIFEST for folder in source.iterdir() if folder.is_dir())]
    return any(_has_records(path) for path in manifests if path.is_file())


def read(
    source: Path,
    roots: Sequence[Path] = (),
    *,
    records: str | None = None,
    poses: str | None = None,
    condition: str | None = None,
    targets: str | None = None,
    reference: str | None = None,
    series: str | None = None,
) -> Iterator[Case | Rejected]:
    """Cases of all models in `source`, and what is missing or cannot be used."""
    if condition is not None and condition not in CONDITIONS:
        raise UsageError(f"--option condition takes {', '.join(CONDITIONS)}, not {condition!r}")
    extra = _Extra(poses, condition, targets, reference, series)
    if source.is_dir() and not _manifests(source) and _is_list_of_videos(source / PUBLIC):
        source = source / PUBLIC
    if source.is_file() and source.suffix == ".json":
        found: Iterator[Case | Rejected] = _upstream(source, roots)
    else:
        wanted = _records(Path(records).expanduser() if records else source / RECORDS, required=records is not None)
        manifests = _manifests(source)
        found = _from_manifests(manifests, roots, wanted) if manifests else _from_tree(source, wanted)
    seen: set[str] = set()
    for entry in found:
        if isinstance(entry, Case):
            if entry.id in seen:
                yield Rejected(entry.id, "two clips have this record and model; a table has room for one", entry.model)
                continue
            seen.add(entry.id)
            yield extra.onto(entry)
        else:
            yield entry


class _Extra:
    """What the options add to every case."""

    def __init__(
        self, poses: str | None, condition: str | None, targets: str | None, reference: str | None, series: str | None
    ) -> None:
        from revisit.suites.folder.scan import read_targets

        self.poses = None if poses is None else Path(poses).expanduser()
        if self.poses is not None and not self.poses.is_dir():
            raise UsageError(f"{self.poses}: no such folder; --option poses names one with a file of poses per clip")
        self.reference = None if reference is None else Path(reference).expanduser()
        if self.reference is not None and not self.reference.is_dir():
            raise UsageError(f"{self.reference}: no such folder; --option reference names one with <record>.mp4")
        self.condition = condition
        self.series = _series(Path(series).expanduser()) if series is not None else {}
        self.targets = read_targets(Path(targets).expanduser()) if targets is not None else {}

    def onto(self, case: Case) -> Case:
        notes = dict(case.annotations)
        if self.condition is not None:
            notes["viewpoint_condition"] = self.condition
        if case.model in self.series:
            notes["series"] = self.series[case.model]
        artifacts = dict(case.artifacts)
        if self.poses is not None:
            record = record_of(case)
            names = [name.format(id=id) for id in (f"{case.model}/{record}", case.id, record) for name in POSE_FILES]
            file = next((self.poses / name for name in names if (self.poses / name).is_file()), None)
            if file is not None:
                artifacts["poses"] = file
        target = case.target
        for key in (case.id, case.clip.path.name, case.clip.path.stem, case.sample):
            if target is None and key in self.targets:
                entry = self.targets[key]
                target = Target(str(entry.get("target", "target")), tuple(entry["box"]))
        truth = case.reference
        if self.reference is not None:
            file = self.reference / f"{record_of(case)}.mp4"
            truth = Clip(file) if file.is_file() else None
        return replace(case, annotations=notes, artifacts=artifacts, target=target, reference=truth)


def _from_manifests(
    manifests: Sequence[Path], roots: Sequence[Path], wanted: Mapping[str, Mapping[str, Any]]
) -> Iterator[Case | Rejected]:
    for path in manifests:
        made: set[str] = set()
        model = path.parent.name
        for entry in read_manifest(path, roots):
            if isinstance(entry, Rejected):
                yield entry
                continue
            record = entry.id.removesuffix(f"@{entry.model}#{entry.seed}")
            made.add(record)
            model = entry.model
            known = {**wanted.get(record, {}).get("annotations", {}), **entry.annotations}
            case = _case(
                record, entry.model, entry.clip.path, entry.prompt, entry.camera, entry.seed, known, entry.target
            )
            yield replace(case, reference=entry.reference, phases=entry.phases)
        yield from _missing(wanted, made, model)


def _from_tree(source: Path, wanted: Mapping[str, Mapping[str, Any]]) -> Iterator[Case | Rejected]:
    if not wanted:
        raise UsageError(
            f"{source}: no records found; expected a manifest.jsonl that `revisit camera run` wrote, a {RECORDS}, "
            "or --option records=FILE"
        )
    made: dict[str, set[str]] = {}
    for model, sample, path in find_clips(source):
        record = sample.rpartition("/")[2].partition("@")[0]
        made.setdefault(model, set())
        if record not in wanted:
            yield Rejected(f"{sample}@{model}", f"no record is called {record!r}", model)
            continue
        made[model].add(record)
        row = wanted[record]
        yield _case(
            record, model, path, row.get("prompt", ""), row.get("camera", ""), int(row.get("seed", 0)),
            row.get("annotations", {}),
        )  # fmt: skip
    for model, records in made.items():
        yield from _missing(wanted, records, model)


def _missing(wanted: Mapping[str, Mapping[str, Any]], made: set[str], model: str) -> Iterator[Rejected]:
    for record, row in wanted.items():
        if record not in made:
            notes = row.get("annotations", {})
            subset, camera = str(notes.get("factor", "")), str(notes.get("camera", ""))
            yield Rejected(f"{record}@{model}", "nobody made this clip", model, subset, camera, missing=True)


def _case(
    record: str, model: str, path: Path, prompt: str, script: str, seed: int, notes: Mapping[str, Any],
    target: Target | None = None,
) -> Case:  # fmt: skip
    """A case of a record, with what the sidecar of its clip knows."""
    known = {**notes, **_provenance(path)}
    known["event"] = _for_judges(str(known.get("event") or prompt), str(known.get("expected", "")))
    camera = str(known.get("camera", ""))
    return Case(
        id=f"{record}@{model}",
        suite="wrbench",
        model=model,
        sample=str(known.get("task") or record),
        clip=Clip(path),
        subset=str(known.get("factor", "")),
        condition=camera,
        seed=seed,
        prompt=prompt,
        camera=script or SCRIPTS.get(camera, ""),
        target=target,
        annotations=known,
    )


def _for_judges(event: str, expected: str) -> str:
    """What a judge is told: the event, and how it should end, which the generator was not told."""
    return f"{event} What must be true in the end: {expected}" if expected and expected not in event else event


def _provenance(clip: Path) -> dict[str, Any]:
    """What the record of the generation says that the tables need; nothing where there is none."""
    try:
        known = json.loads(clip.with_suffix(".provenance.json").read_text(encoding="utf-8"))
        found = {"viewpoint_condition": known["viewpoint_condition"], "policy": known["inputs"]["policy"]}
        return {**found, "leaks": not known["inputs"]["enters_memory_tables"], "exact": known["delivered"]["exact"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _upstream(path: Path, roots: Sequence[Path]) -> Iterator[Case | Rejected]:
    """Cases of WRBench's own manifest."""
    allowed = [path.parent.resolve(), *(root.resolve() for root in roots)]
    for number, row in enumerate(_json_list(path), start=1):
        where = f"{path.name} entry {number}"
        if not isinstance(row, dict) or not row.get("video_id") or not (row.get("path") or row.get("video_path")):
            yield Rejected(where, "expected an object with video_id and path")
            continue
        video = (path.parent / str(row.get("path") or row["video_path"])).resolve()
        model = str(row.get("model") or "model")
        if not any(video.is_relative_to(root) for root in allowed):
            yield Rejected(where, f"{video.name} lies outside the manifest's folder; allow it with --root", model)
            continue
        camera = str(row.get("camera_type") or "")
        event = str(row.get("world_state_prompt") or row.get("prompt_text") or "")
        parts = str(row["video_id"]).split("__")
        notes = {
            "family": parts[0], "task": "__".join(parts[:2]), "camera": camera, "event": event, "expected": event,
            "factor": str(row.get("event_delta") or _factor(parts[1] if len(parts) > 1 else "")),
            "viewpoint_condition": str(row.get("viewpoint_condition_type") or "").replace("-", "_"),
        }  # fmt: skip
        yield _case(str(row["video_id"]), model, video, event, _script_beside(video), int(row.get("seed") or 0), notes)


def _script_beside(clip: Path) -> str:
    """The camera script in the sidecar of a clip, if there is one."""
    try:
        return str(json.loads(clip.with_suffix(".camera.json").read_text(encoding="utf-8")).get("camera_script") or "")
    except (OSError, ValueError, AttributeError):
        return ""


def _factor(tier: str) -> str:
    from revisit.suites.wrbench.prompts import TIERS

    return TIERS.get(tier, "")


def _manifests(source: Path) -> list[Path]:
    if source.is_file():
        return [source]
    if (source / MANIFEST).is_file():
        return [source / MANIFEST]
    return sorted((path for path in source.glob(f"*/{MANIFEST}")), key=natural_order) if source.is_dir() else []


def _records(path: Path, required: bool) -> dict[str, dict[str, Any]]:
    """Record id -> its line."""
    if not path.is_file():
        if required:
            raise UsageError(f"{path}: no such file; --option records names the file that listed the records")
        return {}
    found = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.strip():
            try:
                row = json.loads(line)
                found[str(row["id"])] = row
            except (ValueError, KeyError, TypeError) as error:
                raise UsageError(f"{path}:{number}: expected a JSON object with an id") from error
    return found


def _series(path: Path) -> dict[str, str]:
    """Model -> the series it belongs to."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return {str(model): str(name) for model, name in content.items()}
    except (OSError, ValueError, AttributeError) as error:
        raise UsageError(f"{path}: expected a JSON object from models to the name of their series ({error})") from error


def _has_records(path: Path) -> bool:
    try:
        with path.open(encoding="utf-8") as file:
            first = json.loads(file.readline(1_000_000))
        return {"task", "factor"} <= set(first.get("annotations") or {})
    except (OSError, ValueError, AttributeError):
        return False


def _is_list_of_videos(path: Path) -> bool:
    try:
        rows = _json_list(path)
    except UsageError:
        return False
    return bool(rows) and isinstance(rows[0], dict) and "video_id" in rows[0]


def _json_list(path: Path) -> list[Any]:
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: no JSON ({error})") from error
    if not isinstance(rows, list):
        raise UsageError(f"{path}: expected a JSON list of videos")
    return rows
