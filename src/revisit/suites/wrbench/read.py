"""Cases from clips of event-view records.

- what `revisit generate` wrote: a folder with manifest.jsonl, or folders of several models with one each;
- any tree <model>/<record>.mp4 with the records (records.jsonl beside it, or --option records=...);
- what WRBench's own tools wrote (see `upstream`): manifests in shards, or a JSON list of videos.

Viewpoint condition and interface are those of each clip: of its record, of what was written down when it was made, or
of the generator's card. Records that nobody made a clip of are missing, and counted. Clips that were given dense
controls of the target view say nothing about memory; they are kept and marked (`leaks`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from revisit.core import Case, Clip, Rejected, Target, UsageError, digest
from revisit.core.cases import CEILING
from revisit.core.text import json_lines, parse_json
from revisit.media import natural_order
from revisit.media.files import is_file
from revisit.metrics.requested_camera import Request, request_of
from revisit.suites.clips import MANIFEST, find_clips, read_manifest, read_targets
from revisit.suites.wrbench import upstream
from revisit.suites.wrbench.judge_context import told_to_judges
from revisit.suites.wrbench.metrics.camera import PROFILES
from revisit.suites.wrbench.questions import wording
from revisit.suites.wrbench.records import case_of, condition_of, input_of, plain_record, record_of
from revisit.suites.wrbench.tables import CONDITIONS

RECORDS = "records.jsonl"
POSE_FILES = ("{id}/poses.npy", "{id}/extrinsics_opencv_w2c.npy", "{id}.npy", "{id}.npz", "{id}.txt", "{id}.json")


def recognises(source: Path) -> bool:
    """Whether the clips come with event-view records."""
    if upstream.manifests(source):
        return True
    if source.is_file():
        return source.suffix == ".jsonl" and _has_records(source)
    if not source.is_dir():
        return False
    if (source / RECORDS).is_file() or upstream.has_sidecars(source):
        return True
    found = [source / MANIFEST, *(folder / MANIFEST for folder in source.iterdir() if folder.is_dir())]
    return any(_has_records(path) for path in found if path.is_file())


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
    questions: str | None = None,
    profile: str | None = None,
) -> Iterator[Case | Rejected]:
    """Cases of all models in `source`, and what is missing or cannot be used.

    `questions` and `profile` are read by `settings`.
    """
    if condition is not None and condition not in CONDITIONS:
        raise UsageError(f"--option condition takes {', '.join(CONDITIONS)}, not {condition!r}")
    extra = _Extra(
        _folder("poses", poses, "a file of poses per clip"),
        condition,
        read_targets(Path(targets).expanduser()) if targets is not None else {},
        _folder("reference", reference, "<record>.mp4"),
        _series(Path(series).expanduser()) if series is not None else {},
    )
    wanted = _records(Path(records).expanduser() if records else source / RECORDS, required=records is not None)
    theirs = upstream.manifests(source)
    ours = [path for path in _manifests(source) if path not in theirs]
    found = _from_manifests(ours, theirs, roots, wanted) if theirs or ours else _from_tree(source, wanted)
    seen: set[str] = set()
    for entry in found:
        if isinstance(entry, Case):
            if entry.id in seen:
                yield Rejected(entry.id, "two clips have this record and model; only one is allowed", entry.model)
                continue
            seen.add(entry.id)
            yield extra.onto(entry)
        else:
            yield entry


def settings(questions: str | None = None, profile: str | None = None, **_: str) -> dict[str, dict[str, Any]]:
    """The parameters that options set: another wording where a file brings one, and which targets count."""
    if profile not in (None, *PROFILES):
        raise UsageError(f"--option profile takes {' or '.join(PROFILES)}, not {profile!r}")
    found: dict[str, dict[str, Any]] = {} if profile is None else {"wr_camera_precision": {"profile": profile}}
    if questions is None:
        return found
    read_ = wording(Path(questions).expanduser())
    name = f"{Path(questions).name} {digest(read_, 12)}"
    return found | {id: {"wording": name, "questions": read_} for id in ("judge.probes", "judge.judgeability")}


@dataclass(frozen=True)
class _Extra:
    """What the options add to every case."""

    poses: Path | None
    condition: str | None
    targets: Mapping[str, Any]
    reference: Path | None
    series: Mapping[str, str]

    def onto(self, case: Case) -> Case:
        notes = dict(case.annotations)
        if self.condition is not None:
            notes["viewpoint_condition"] = self.condition
            notes["interface"] = "words" if self.condition == "prompt_only" else "path"
        if case.model in self.series:
            notes["series"] = self.series[case.model]
        artifacts = dict(case.artifacts)
        if self.poses is not None:
            record, video = record_of(case), str(notes.get("video_id") or "")
            stem = case.clip.path.stem
            ids = [f"{case.model}/{record}", f"{case.model}/{stem}", case.id, record, video, stem]
            ids += [f"pose/{upstream.safe_name(id)}" for id in (video, record) if id]
            names = [name.format(id=id) for id in ids if id for name in POSE_FILES]
            file = next((path for name in names if (path := _file_in(self.poses, name)) is not None), None)
            if file is not None:
                artifacts["poses"] = file
        target = case.target
        for key in (case.id, case.clip.path.name, case.clip.path.stem, case.sample):
            if target is None and key in self.targets:
                entry = self.targets[key]
                target = Target(str(entry.get("target", "target")), tuple(entry["box"]))
        truth = case.reference
        if self.reference is not None:
            file = _file_in(self.reference, f"{record_of(case)}.mp4")
            truth = Clip(file) if file is not None else None
        return replace(case, annotations=notes, artifacts=artifacts, target=target, reference=truth)


def _from_manifests(
    ours: Sequence[Path], theirs: Sequence[Path], roots: Sequence[Path], wanted: Mapping[str, Mapping[str, Any]]
) -> Iterator[Case | Rejected]:
    """Cases of our own manifests and of those of WRBench's tools, which may lie side by side."""
    for path in ours:
        made: set[str] = set()
        model, ceiling = path.parent.name, False
        for entry in read_manifest(path, roots):
            if isinstance(entry, Rejected):
                yield entry
                continue
            record = plain_record(entry.id.removesuffix(f"@{entry.model}#{entry.seed}"))
            made.add(record)
            model = entry.model
            ceiling = entry.category == CEILING
            known = {**wanted.get(record, {}).get("annotations", {}), **entry.annotations}
            case = case_of(
                record, entry.model, entry.clip.path, entry.prompt, entry.camera, entry.seed, known, entry.target
            )
            yield _told(replace(case, clip=entry.clip, reference=entry.reference, phases=entry.phases))
        if not ceiling:  # of a ceiling there is a clip for each camera and event, not for each record
            yield from _missing(wanted, made, model)
    for entry in upstream.read_manifests(theirs, roots):
        yield _told(entry) if isinstance(entry, Case) else entry


def _from_tree(source: Path, wanted: Mapping[str, Mapping[str, Any]]) -> Iterator[Case | Rejected]:
    if not wanted and not upstream.has_sidecars(source):
        raise UsageError(
            f"{source}: no records found; expected a manifest.jsonl that `revisit generate` wrote, a {RECORDS}, "
            "or --option records=FILE"
        )
    made: dict[str, set[str]] = {}
    for model, sample, path in find_clips(source):
        name = sample.rpartition("/")[2]
        named = [plain_record(id) for id in (sample, name, name.partition("@")[0])]
        record = next((id for id in named if id in wanted), None)
        if record is None:
            try:
                alone = upstream.case_beside(path)
            except UsageError as error:
                yield Rejected(f"{sample}@{model}", str(error), model)
                continue
            if alone is not None:
                yield _told(alone)
                continue
        made.setdefault(model, set())
        if record is None:
            yield Rejected(f"{sample}@{model}", f"no record is called {named[-1]!r}", model)
            continue
        made[model].add(record)
        row = wanted[record]
        yield _told(
            case_of(
                record, model, path, str(row.get("prompt", "")), str(row.get("camera", "")), int(row.get("seed", 0)),
                row.get("annotations", {}),
            )
        )  # fmt: skip
    for model, records in made.items():
        yield from _missing(wanted, records, model)


def _missing(wanted: Mapping[str, Mapping[str, Any]], made: set[str], model: str) -> Iterator[Rejected]:
    for record, row in wanted.items():
        if record not in made:
            notes = row.get("annotations", {})
            subset, camera = str(notes.get("factor", "")), str(notes.get("camera", ""))
            yield Rejected(f"{record}@{model}", "this clip was not generated", model, subset, camera, missing=True)


def _told(case: Case) -> Case | Rejected:
    """A case with what the files beside its clip know, and with the condition of its generator's card."""
    try:
        script, known, files = upstream.beside(case.clip.path)
    except UsageError as error:
        return Rejected(case.id, str(error), case.model)
    notes = {**case.annotations, **known, **_provenance(case.clip.path)}
    condition = notes.get("viewpoint_condition") or condition_of(case.model)
    if not condition and notes.get("interface") == "words":
        condition = "prompt_only"  # the camera was put into words: no other viewpoint was given
    notes["viewpoint_condition"] = condition
    notes.setdefault("interface", "words" if condition == "prompt_only" else "path")
    notes["input"] = notes.get("input") or input_of(case.model)
    named = [text for text in (script, case.camera, upstream.SCRIPTS.get(case.condition, "")) if text]
    readable = (text for text in named if isinstance(request_of(replace(case, camera=text)), Request))
    camera = next(readable, next(iter(named), ""))
    notes |= told_to_judges(replace(case, camera=camera, annotations=notes))
    return replace(case, camera=camera, annotations=notes, artifacts={**case.artifacts, **files})


def _provenance(clip: Path) -> dict[str, Any]:
    """What the record of the generation says that the tables need; nothing where there is none."""
    try:
        known = parse_json(clip.with_suffix(".provenance.json").read_text(encoding="utf-8"))
        inputs, delivered, made_with = (known.get(name) or {} for name in ("inputs", "delivered", "made_with"))
        found = {
            "viewpoint_condition": known.get("viewpoint_condition"),
            "policy": inputs.get("policy"),
            "leaks": not inputs.get("enters_memory_tables", True),
            "exact": delivered.get("exact"),
            "checkpoint": made_with.get("checkpoint"),
        }
        return {name: value for name, value in found.items() if value not in (None, "")}
    except (OSError, ValueError, AttributeError):
        return {}


def _folder(option: str, value: str | None, what: str) -> Path | None:
    folder = None if value is None else Path(value).expanduser()
    if folder is not None and not folder.is_dir():
        raise UsageError(f"{folder}: no such folder; --option {option} names one with {what}")
    return folder


def _file_in(folder: Path, name: str) -> Path | None:
    """The file of that name below a folder; None where there is none, or where no file can have the name."""
    path = folder / name
    return path if is_file(path) and path.resolve().is_relative_to(folder.resolve()) else None


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
    for number, row in json_lines(path.read_text(encoding="utf-8")):
        if not isinstance(row, dict) or "id" not in row:
            raise UsageError(f"{path}:{number}: expected a JSON object with an id")
        found[plain_record(str(row["id"]))] = row
    return found


def _series(path: Path) -> dict[str, str]:
    """Model -> the series it belongs to."""
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
        return {str(model): str(name) for model, name in content.items()}
    except (OSError, ValueError, AttributeError) as error:
        raise UsageError(f"{path}: expected a JSON object from models to the name of their series ({error})") from error


def _has_records(path: Path) -> bool:
    first = upstream.first_row(path) or {}
    notes = first.get("annotations")
    return isinstance(notes, dict) and {"task", "factor"} <= set(notes)
