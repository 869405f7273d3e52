"""Cases of datasets in the formats that people train from, as sources and as references (docs/data.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from revisit.core import Case, Clip, Rejected, Remark, UsageError
from revisit.datasets.clips import MANIFEST, find_clips
from revisit.datasets.entries import DatasetEntry
from revisit.datasets.folder.read import FolderEntry, entries_with_references
from revisit.datasets.folder.read import read as read_folder
from revisit.datasets.hugging_face import is_hugging_face_dataset, read_hugging_face
from revisit.datasets.lerobot import is_lerobot_dataset, read_lerobot
from revisit.datasets.shards import list_tar_shards, read_shards
from revisit.geometry.camera_script import parse_script

Reader = Callable[[Path, Sequence[Path]], Iterable[DatasetEntry | Rejected | Remark]]


def dataset_reader_of(source: Path) -> Reader | None:
    """The reader of a dataset's format; None for folders of videos and manifests."""
    if (source / MANIFEST).is_file():
        return None
    if is_lerobot_dataset(source):
        return read_lerobot
    has_clips = source.is_dir() and any(find_clips(source))
    if is_hugging_face_dataset(source, beside_clips=has_clips):
        return read_hugging_face
    return read_shards if list_tar_shards(source) and not has_clips else None


def read(source: Path, roots: Sequence[Path] = (), **options: str) -> Iterator[FolderEntry]:
    """Cases of a dataset, of a folder of videos or of a manifest; `reference` may be a dataset, too."""
    reference = options.get("reference", "")
    reader = dataset_reader_of(source)
    truth_reader = dataset_reader_of(Path(reference)) if reference else None
    if reader is None and truth_reader is None:
        yield from read_folder(source, roots, **options)
        return
    if reader is None:
        others = {name: value for name, value in options.items() if name != "reference"}
        entries = list(read_folder(source, roots, **others))
    elif options.get("layout"):
        raise UsageError(f"{source} says what each clip is; leave --layout out")
    else:
        entries = [_case_of_entry(entry, source) for entry in reader(source, roots)]
    yield from entries if not reference else _add_truth_by_name(entries, Path(reference), truth_reader)


def _add_truth_by_name(entries: list[FolderEntry], place: Path, reader: Reader | None) -> Iterator[FolderEntry]:
    """The entries with the truth of the same name."""
    truths: dict[str, Clip] = {}
    for truth in reader(place, ()) if reader else ():
        if isinstance(truth, DatasetEntry):
            truths[truth.name] = truth.clip
        elif isinstance(truth, Rejected):
            yield Remark(f"{truth.id} of the reference: {truth.reason}")
    if reader is None:
        truths = {sample: Clip(path) for _, sample, path in find_clips(place)}
    cases = [entry for entry in entries if isinstance(entry, Case)]
    named = [(case, truths.get(case.clip_name or "") or truths.get(case.sample)) for case in cases]
    references = {case.id: truth for case, truth in named if truth is not None}
    yield from entries_with_references(entries, cases, references, sorted(truths), place)


def _case_of_entry(entry: DatasetEntry | Rejected | Remark, source: Path) -> FolderEntry:
    """The case of an entry, with its fields checked as those of a manifest are."""
    from pydantic import ValidationError

    from revisit.datasets.manifest import ManifestEntry, first_validation_problem_and_input

    model = source.resolve().stem if source.is_file() else source.resolve().name
    if not isinstance(entry, DatasetEntry):
        return replace(entry, model=entry.model or model) if isinstance(entry, Rejected) else entry
    fields = {"model": model, **entry.details, "id": entry.name, "video": entry.name or "clip"}
    try:
        checked = ManifestEntry.model_validate(fields)
        script = entry.camera or checked.camera
        if script:
            parse_script(script)
    except ValidationError as error:
        return Rejected(entry.name, first_validation_problem_and_input(error)[0], model)
    except UsageError as error:
        return Rejected(entry.name, f"its camera: {error}", model)
    return checked.make_case(entry.name, entry.clip, entry.reference, script)
