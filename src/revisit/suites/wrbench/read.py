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
from dataclasses import replace
from pathlib import Path

from revisit.control.job_runner import read_provenance_or_none
from revisit.core import Case, Clip, Rejected, Remark, Target, UsageError, digest
from revisit.core.cases import CEILING
from revisit.core.text import convert_read_errors, count_and_noun, join_names, parse_json
from revisit.datasets.clips import (
    MANIFEST,
    find_clips,
    find_target,
    read_manifest,
    read_target_boxes,
    require_option_folder,
)
from revisit.media import VIDEO_SUFFIXES, natural_order
from revisit.media.files import file_exists
from revisit.metrics.camera import CameraRequest, camera_request_of_case
from revisit.suites.wrbench import upstream
from revisit.suites.wrbench.judge_context import judge_context_annotations
from revisit.suites.wrbench.metrics.camera import PROFILES
from revisit.suites.wrbench.prompts import Row, read_json_lines_with_keys
from revisit.suites.wrbench.questions import read_custom_question_set
from revisit.suites.wrbench.records import (
    condition_and_input_of_model,
    make_record_case,
    normalize_record_id,
    record_id_of_case,
)
from revisit.suites.wrbench.tables import CONDITIONS

RECORDS = "records.jsonl"
POSE_FILES = ("{id}/poses.npy", "{id}/extrinsics_opencv_w2c.npy", "{id}.npy", "{id}.npz", "{id}.txt", "{id}.json")


def is_wrbench_source(source: Path) -> bool:
    """Whether the clips come with event-view records."""
    manifests = _own_manifest_paths(source)
    if upstream.find_wrbench_manifests(source) or any(map(_first_row_is_event_record, manifests)):
        return True
    return source.is_dir() and ((source / RECORDS).is_file() or upstream.has_sidecars(source))


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
    **_: str,
) -> Iterator[Case | Rejected | Remark]:
    """Cases of all models in `source`, what is missing or cannot be used, and a remark on videos in no manifest.

    The other options are read by `wrbench_parameters_from_options`.
    """
    if condition is not None and condition not in CONDITIONS:
        raise UsageError(f"--option condition takes {', '.join(CONDITIONS)}, not {condition!r}")
    pose_folder = require_option_folder("poses", poses) if poses is not None else None
    boxes = read_target_boxes(Path(targets).expanduser()) if targets is not None else {}
    references = require_option_folder("reference", reference) if reference is not None else None
    series_by_model = _read_series_by_model(Path(series).expanduser()) if series is not None else {}
    listing = Path(records).expanduser() if records else source / RECORDS
    if records is not None and not listing.is_file():
        raise UsageError(f"{listing}: no such file; --option records names the file that listed the records")
    rows = read_json_lines_with_keys(listing, "id", optional=True)
    records_by_id = {normalize_record_id(str(row["id"])): row for row in rows}
    theirs = upstream.find_wrbench_manifests(source)
    ours = [path for path in _own_manifest_paths(source) if path not in theirs]
    if theirs or ours:
        entries = _cases_from_manifests(ours, theirs, roots, records_by_id)
    else:
        entries = _cases_from_tree(source, records_by_id)
    case_ids: set[str] = set()
    listed: set[Path] = set()
    for entry in entries:
        if isinstance(entry, Case):
            listed.add(entry.clip.path)
            if entry.id in case_ids:
                yield Rejected(entry.id, "two clips have this record and model; only one is allowed", entry.model)
                continue
            case_ids.add(entry.id)
            yield _apply_options(entry, pose_folder, condition, boxes, references, series_by_model)
        else:
            yield entry
    if theirs or ours:
        yield from _remark_on_unlisted_videos(source, [*theirs, *ours], listed)


def wrbench_parameters_from_options(
    questions: str | None = None, profile: str | None = None, **_: str
) -> dict[str, dict[str, object]]:
    """The parameters that options set: another wording where a file brings one, and which targets count."""
    if profile not in (None, *PROFILES):
        raise UsageError(f"--option profile takes {' or '.join(PROFILES)}, not {profile!r}")
    parameters: dict[str, dict[str, object]] = {} if profile is None else {"wr_camera_precision": {"profile": profile}}
    if questions is None:
        return parameters
    read_ = read_custom_question_set(Path(questions).expanduser())
    wording: dict[str, object] = {"wording": f"{Path(questions).name} {digest(read_, 12)}", "questions": read_}
    return parameters | {"judge.probes": wording, "judge.judgeability": wording}


def _apply_options(
    case: Case,
    poses: Path | None,
    condition: str | None,
    targets: Mapping[str, Target],
    reference: Path | None,
    series: Mapping[str, str],
) -> Case:
    """A case with what the options add to it."""
    notes = dict(case.annotations)
    if condition is not None:
        notes |= {"viewpoint_condition": condition, "interface": "words" if condition == "prompt_only" else "path"}
    if case.model in series:
        notes["series"] = series[case.model]
    artifacts, target, truth = dict(case.artifacts), case.target, case.reference
    record = record_id_of_case(case)
    if poses is not None:
        video, stem = str(notes.get("video_id") or ""), case.clip.path.stem
        ids = [f"{case.model}/{record}", f"{case.model}/{stem}", case.id, record, video, stem]
        ids += [f"pose/{upstream.pose_folder_name(clip_id)}" for clip_id in (video, record) if clip_id]
        names = (name.format(id=clip_id) for clip_id in ids if clip_id for name in POSE_FILES)
        if file := next(filter(None, (_find_file_below(poses, name) for name in names)), None):
            artifacts["poses"] = file
    if target is None:
        target = find_target(targets, (case.id, case.clip.path.name, case.clip.path.stem, case.sample))
    if reference is not None:
        file = _find_file_below(reference, f"{record}.mp4")
        truth = None if file is None else Clip(file)
    return replace(case, annotations=notes, artifacts=artifacts, target=target, reference=truth)


def _cases_from_manifests(
    ours: Sequence[Path], theirs: Sequence[Path], roots: Sequence[Path], records_by_id: Mapping[str, Row]
) -> Iterator[Case | Rejected]:
    """Cases of our own manifests and of those of WRBench's tools, which may lie side by side."""
    for path in ours:
        record_ids: set[str] = set()
        model, ceiling = path.parent.name, False
        for entry in read_manifest(path, roots):
            if isinstance(entry, Rejected):
                yield entry
                continue
            record = normalize_record_id(entry.id.removesuffix(f"@{entry.model}#{entry.seed}"))
            record_ids.add(record)
            model = entry.model
            ceiling = entry.category == CEILING
            annotations = {**records_by_id.get(record, {}).get("annotations", {}), **entry.annotations}
            asked = entry.prompt, entry.camera, entry.seed
            case = make_record_case(record, entry.model, entry.clip.path, *asked, annotations, entry.target)
            yield _add_sidecar_facts(replace(case, clip=entry.clip, reference=entry.reference, phases=entry.phases))
        if not ceiling:  # of a ceiling there is a clip for each camera and event, not for each record
            yield from _missing_record_entries(records_by_id, record_ids, model)
    for entry in upstream.read_wrbench_manifests(theirs, roots):
        yield _add_sidecar_facts(entry) if isinstance(entry, Case) else entry


def _cases_from_tree(source: Path, records_by_id: Mapping[str, Row]) -> Iterator[Case | Rejected]:
    if not source.exists():
        raise UsageError(f"{source}: no such folder")
    if not records_by_id and not upstream.has_sidecars(source):
        raise UsageError(
            f"{source}: no records found; expected a manifest.jsonl that `revisit generate` wrote, a {RECORDS}, "
            "or a file of records beside it (`--option records=FILE`; of `wrbench export`, `--records FILE`)"
        )
    records_by_model: dict[str, set[str]] = {}
    for model, sample, path in find_clips(source):
        name = sample.rpartition("/")[2]
        candidates = [normalize_record_id(record_id) for record_id in (sample, name, name.partition("@")[0])]
        record = next((record_id for record_id in candidates if record_id in records_by_id), None)
        if record is not None:
            records_by_model.setdefault(model, set()).add(record)
            row = records_by_id[record]
            asked = str(row.get("prompt", "")), str(row.get("camera", "")), int(row.get("seed", 0))
            yield _add_sidecar_facts(make_record_case(record, model, path, *asked, row.get("annotations", {})))
            continue
        try:
            case = upstream.case_from_sidecar(path)
        except UsageError as error:
            yield Rejected(f"{sample}@{model}", str(error), model)
            continue
        if case is None:
            records_by_model.setdefault(model, set())
            yield Rejected(f"{sample}@{model}", f"no record is called {candidates[-1]!r}", model)
        else:
            yield _add_sidecar_facts(case)
    for model, records in records_by_model.items():
        yield from _missing_record_entries(records_by_id, records, model)


def _remark_on_unlisted_videos(source: Path, manifests: Sequence[Path], listed: set[Path]) -> Iterator[Remark]:
    """A remark on the videos beside those of the manifests that no manifest names, such as those of other seeds."""
    beside = {path for folder in {path.parent for path in listed if path.is_file()} for path in folder.iterdir()}
    others = sorted(path for path in beside - listed if path.suffix.lower() in VIDEO_SUFFIXES)
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in manifests] if others else []
    ends = ('/{}"', '"{}"')  # of a path in JSON
    unlisted = [path for path in others if not any(end.format(path.name) in text for text in texts for end in ends)]
    if unlisted:
        names = [path.relative_to(source).as_posix() if path.is_relative_to(source) else path.name for path in unlisted]
        count = count_and_noun(len(unlisted), "video")
        yield Remark(f"{count} not evaluated, being in no manifest beside the others: {join_names(names)}")


def _missing_record_entries(records_by_id: Mapping[str, Row], record_ids: set[str], model: str) -> Iterator[Rejected]:
    for record, row in records_by_id.items():
        if record not in record_ids:
            notes = row.get("annotations", {})
            subset, camera = str(notes.get("factor", "")), str(notes.get("camera", ""))
            yield Rejected(f"{record}@{model}", "this clip was not generated", model, subset, camera, missing=True)


def _add_sidecar_facts(case: Case) -> Case | Rejected:
    """A case with what the files beside its clip know, and with the condition of its generator's card."""
    try:
        script, sidecar_notes, files = upstream.read_sidecar_facts(case.clip.path)
    except UsageError as error:
        return Rejected(case.id, str(error), case.model)
    notes = {**case.annotations, **sidecar_notes, **_provenance_annotations(case.clip.path)}
    usual_condition, usual_input = condition_and_input_of_model(case.model)
    condition = notes.get("viewpoint_condition") or usual_condition
    if not condition and notes.get("interface") == "words":
        condition = "prompt_only"  # the camera was put into words: no other viewpoint was given
    notes["viewpoint_condition"] = condition
    notes.setdefault("interface", "words" if condition == "prompt_only" else "path")
    notes["input"] = notes.get("input") or usual_input
    scripts = [text for text in (script, case.camera, upstream.SCRIPTS.get(case.condition, "")) if text]
    readable = (
        text for text in scripts if isinstance(camera_request_of_case(replace(case, camera=text)), CameraRequest)
    )
    camera = next(readable, next(iter(scripts), ""))
    notes |= judge_context_annotations(replace(case, camera=camera, annotations=notes))
    return replace(case, camera=camera, annotations=notes, artifacts={**case.artifacts, **files})


def _provenance_annotations(clip: Path) -> dict[str, object]:
    """What the record of the generation says that the tables need; nothing where there is none."""
    provenance = read_provenance_or_none(clip)
    if provenance is None:
        return {}
    try:
        inputs, delivered, made_with = (provenance.get(name) or {} for name in ("inputs", "delivered", "made_with"))
        notes = {
            "viewpoint_condition": provenance.get("viewpoint_condition"),
            "policy": inputs.get("policy"),
            "leaks": not inputs.get("enters_memory_tables", True),
            "exact": delivered.get("exact"),
            "checkpoint": made_with.get("checkpoint"),
        }
        return {name: value for name, value in notes.items() if value not in (None, "")}
    except AttributeError:
        return {}


def _find_file_below(folder: Path, name: str) -> Path | None:
    """The file of that name below a folder; None where there is none, or where no file can have the name."""
    path = folder / name
    return path if file_exists(path) and path.resolve().is_relative_to(folder.resolve()) else None


def _own_manifest_paths(source: Path) -> list[Path]:
    if source.is_file():
        return [source]
    if (source / MANIFEST).is_file():
        return [source / MANIFEST]
    return sorted((path for path in source.glob(f"*/{MANIFEST}")), key=natural_order) if source.is_dir() else []


def _read_series_by_model(path: Path) -> dict[str, str]:
    """Model -> the series it belongs to."""
    with convert_read_errors(path, "a JSON object from models to the name of their series"):
        content = parse_json(path.read_text(encoding="utf-8"))
        return {str(model): str(name) for model, name in content.items()}


def _first_row_is_event_record(path: Path) -> bool:
    first = upstream.first_manifest_row(path) if path.suffix == ".jsonl" else None
    notes = (first or {}).get("annotations")
    return isinstance(notes, dict) and {"task", "factor"} <= set(notes)
