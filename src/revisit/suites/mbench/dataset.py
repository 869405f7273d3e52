"""Dataset: reads dataset.yaml, samples/ and models/<id>/samples.jsonl, and lists their problems.

`samples/` is a pool; what is evaluated is the list of each model, `models/<model>/samples.jsonl`. Paths in a list begin
at the folder of the model; patterns in dataset.yaml begin at the dataset. A path is looked for at the model, then at
the dataset, then where the command runs. Links are followed; a path that leads out of these places needs --root.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from revisit.core import UsageError
from revisit.core.text import join_names, parse_json_or_none, parse_numbered_json_lines, read_yaml_file
from revisit.media.files import file_exists, write_text_atomically
from revisit.suites.mbench.metrics.actions import parse_declared_phases
from revisit.suites.mbench.names import SETTINGS, SUBSETS

CARD, LIST, SAMPLE = "dataset.yaml", "samples.jsonl", "sample.json"
ARTIFACTS = "artifacts.json"  # folders that `revisit mbench prepare --output` filled
ANCHORS = "anchors.json"  # sample id -> object anchor, for samples that came without
# What networks said of a clip, from whoever ran them (docs/mbench-metrics.md).
FEATURES = ("masks", "object_features", "faces", "bodies", "grams", "clip_features", "poses")
_ITEM = "{subset}/{sample_id}/{condition_id}"
PLACES = {
    "output_video": f"models/{{model_id}}/outputs/{_ITEM}/video.mp4",
    "artifact_da3": f"models/{{model_id}}/artifacts/{_ITEM}/da3/results.npz",
    **{f"artifact_{name}": f"models/{{model_id}}/artifacts/{_ITEM}/{name}.npz" for name in FEATURES},
}
LIFTED = ("caption", "caption_segments", "object_anchor", "object_card", "object_name")  # found beside metadata, too
NEEDED = ("subset", "sample_id", "condition_id")
KindAndText = tuple[str, str]  # of a problem
CONDITION = re.compile(r"(?P<action>.+)_(?P<length>\d+(?:\.\d+)?)s")


@dataclass(frozen=True)
class DatasetProblem:
    """Something that is wrong, where, and whether it is a violation or only worth knowing."""

    kind: str  # in one or two words, such as "missing video"
    file: str  # from the dataset's folder on
    line: int | None
    item: str
    text: str
    violation: bool = True

    @property
    def place(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def __str__(self) -> str:
        return f"{self.place}: {self.kind}{f' ({self.item})' if self.item else ''}: {self.text}"


@dataclass(frozen=True)
class ListItem:
    """One line of a model's list, with what the sample says of it."""

    model: str
    subset: str
    sample: str
    condition: str
    line: int
    row: Mapping[str, object]
    facts: Mapping[str, object]  # metadata and annotations of the sample and of the row
    video: Path | None
    artifacts: Mapping[str, Path]
    problems: tuple[DatasetProblem, ...] = ()

    @property
    def id(self) -> str:
        return f"{self.subset}:{self.sample}:{self.condition}"

    @property
    def path_fields(self) -> dict[str, str]:
        """What patterns of paths may hold."""
        names = (self.model, self.subset, self.sample, self.condition)
        return dict(zip(("model_id", *NEEDED), names, strict=True))

    @property
    def action(self) -> str:
        """What the camera was asked to do, such as left_then_right; the whole condition where nothing else says so."""
        declared = _mapping_or_empty(self.row.get("annotations")).get("action")
        match = CONDITION.fullmatch(self.condition)
        return str(declared or (match and match["action"]) or self.facts.get("action") or self.condition)

    @property
    def seconds_in_condition(self) -> float | None:
        """How long the clip should be, in seconds, as its condition says."""
        match = CONDITION.fullmatch(self.condition)
        return float(match["length"]) if match else None


@dataclass
class MBenchDataset:
    """A folder in MBench's layout."""

    root: Path
    card: Mapping[str, Any]
    setting: str
    roots: Sequence[Path] = ()
    artifacts: Sequence[Path] = ()  # folders of pose artifacts that the user names
    samples: dict[tuple[str, str], tuple[dict[str, object], list[KindAndText]]] = field(default_factory=dict)

    @cached_property
    def subsets(self) -> list[str]:
        """Subsets that the card declares; all four where it declares none."""
        return [str(name) for name in self.card.get("subsets") or SUBSETS]

    @cached_property
    def models(self) -> list[str]:
        """Models that have a list."""
        return sorted(path.parent.name for path in (self.root / "models").glob(f"*/{LIST}") if path.is_file())

    @cached_property
    def anchors_from_side_file(self) -> Mapping[str, object]:
        """Anchors from the side file."""
        path = self.root / ANCHORS
        content = parse_json_or_none(path.read_text(encoding="utf-8-sig")) if path.is_file() else {}
        if not isinstance(content, dict):
            raise UsageError(f"{path}: expected sample ids with anchors, such as {{'sample_1': {{'center_x': 10}}}}")
        return content

    @cached_property
    def prepared_artifact_folders(self) -> list[Path]:
        """Folders that hold pose artifacts beside those of the models: named by the user, or noted by `prepare`."""
        noted = read_noted_artifact_folders(self.root)
        return [*self.artifacts, *(Path(os.path.normpath(self.root / folder)) for folder in noted)]

    @cached_property
    def declared_motions(self) -> Mapping[str, list[tuple[str, float]]]:
        """What the card declares of actions or whole conditions: phases with relative lengths, by name."""
        actions, where = self.card.get("actions") or {}, f"{self.root / CARD}: actions"
        if not isinstance(actions, dict):
            raise UsageError(f"{where} is {str(actions)[:60]!r}; expected names with lists of phases")
        return {str(name): parse_declared_phases(value, f"{where}.{name}") for name, value in actions.items()}

    def declared_motion_of_item(self, item: ListItem) -> list[tuple[str, float]] | None:
        """The declared phases of an item, by its condition or its action; None where the name has to do."""
        return self.declared_motions.get(item.condition) or self.declared_motions.get(item.action)

    def path_from_pattern(self, pattern: str, **names: str) -> Path:
        """The path of a pattern of the card, or of the layout's own."""
        template = _mapping_or_empty(self.card.get("paths")).get(pattern, PLACES[pattern])
        try:
            return self.root / str(template).format(**names)
        except (KeyError, IndexError, ValueError, AttributeError):
            raise UsageError(
                f"{self.root / CARD}: paths.{pattern} is {str(template)[:200]!r}; it may hold {{model_id}}, "
                "{subset}, {sample_id} and {condition_id}"
            ) from None

    def sample_facts_and_problems(self, subset: str, sample: str) -> tuple[dict[str, object], list[KindAndText]]:
        """What a sample says of itself, lifted to one level, and what is wrong with its file."""
        if (subset, sample) not in self.samples:
            self.samples[subset, sample] = self._read_sample_facts_and_problems(subset, sample)
        return self.samples[subset, sample]

    def _read_sample_facts_and_problems(self, subset: str, sample: str) -> tuple[dict[str, object], list[KindAndText]]:
        path = self.root / "samples" / subset / sample / SAMPLE
        if not file_exists(path):
            elsewhere = [s for s in SUBSETS if s != subset and file_exists(self.root / "samples" / s / sample / SAMPLE)]
            if elsewhere:
                text = f"the sample {sample} is in samples/{elsewhere[0]}, not in samples/{subset}; correct the subset"
                return {}, [("wrong subset", text)]
            return {}, [("no sample", "there is no such file; every item needs a sample")]
        content = parse_json_or_none(path.read_text(encoding="utf-8-sig", errors="replace"))
        if not isinstance(content, dict):
            return {}, [("not JSON", "expected one JSON object with sample_id and subset")]
        return flatten_metadata(content), [
            (kind, f"it says {name} {content[name]!r}, and its folder says {expected!r}")
            for name, expected, kind in (("sample_id", sample, "wrong sample"), ("subset", subset, "wrong subset"))
            if content.get(name, expected) != expected
        ]

    def refuse_unknown(self, noun: str, names: Iterable[str], known: Iterable[str]) -> None:
        """Raise UsageError where the dataset has no model, subset, condition or sample of one of these names."""
        own = sorted(known)
        if unknown := [name for name in names if name not in own]:
            raise UsageError(f"{self.root} has no {noun} {unknown[0]!r}; it has {join_names(own, 12) or 'none'}")

    def items_and_problems(self, model: str) -> Iterator[ListItem | DatasetProblem]:
        """The items of a model's list, in its order; of items that are there twice the last one."""
        file = f"models/{model}/{LIST}"
        rows: dict[str, ListItem] = {}
        text = (self.root / file).read_text(encoding="utf-8-sig", errors="replace")
        for number, row in parse_numbered_json_lines(text):
            problem = self._list_row_problem(row)
            if problem is not None:
                kind, sentence = problem
                yield DatasetProblem(kind, file, number, str(_mapping_or_empty(row).get("item_id", ""))[:200], sentence)
                continue
            item = self._make_list_item(model, _mapping_or_empty(row), number, file)
            if item.id in rows:
                sentence = f"it is already on line {rows[item.id].line}; the last line counts"
                yield DatasetProblem("duplicate item", file, number, item.id, sentence)
            rows[item.id] = item
        yield from rows.values()

    def all_case_ids(self) -> set[str]:
        """All items of all lists, as cases are called."""
        return {f"{item.id}@{model}" for model in self.models for item in self.items_of_model(model)}

    def items_of_model(self, model: str) -> list[ListItem]:
        """The items of a model's list, without what is wrong with its lines."""
        return [entry for entry in self.items_and_problems(model) if isinstance(entry, ListItem)]

    def _list_row_problem(self, row: object) -> tuple[str, str] | None:
        """Why a line cannot become an item, in a word and in a sentence."""
        if not isinstance(row, dict):
            return "not JSON", "expected one JSON object per line"
        missing = [name for name in NEEDED if not is_single_path_part(row.get(name))]
        if missing:
            return "no name", f"{missing[0]} is {str(row.get(missing[0]))[:80]!r}; expected a name without slashes"
        if row["subset"] not in self.subsets:
            return "wrong subset", f"the subset is {row['subset']!r}; dataset.yaml has {', '.join(self.subsets)}"
        return None

    def _make_list_item(self, model: str, row: Mapping[str, object], line: int, file: str) -> ListItem:
        names = {"model_id": model, **{name: str(row[name]) for name in NEEDED}}
        subset, sample, condition = (names[name] for name in NEEDED)
        item_id = f"{subset}:{sample}:{condition}"
        facts, sample_problems = self.sample_facts_and_problems(subset, sample)
        sample_file = f"samples/{subset}/{sample}/{SAMPLE}"
        problems = [DatasetProblem(kind, sample_file, None, item_id, text) for kind, text in sample_problems]

        def add_problem(kind: str, text: str, violation: bool = True) -> None:
            problems.append(DatasetProblem(kind, file, line, item_id, text, violation))

        for name, expected in (("model_id", model), ("dataset_id", SETTINGS[self.setting]), ("item_id", item_id)):
            if row.get(name, expected) != expected:
                add_problem(f"wrong {name}", f"it says {row[name]!r}; expected {expected!r}")
        videos = _mapping_or_empty(row.get("media")).get("videos")
        listed = [entry for entry in videos if isinstance(entry, dict)] if isinstance(videos, list) else []
        generated = next((entry for entry in listed if entry.get("role") in ("generated", None)), None)
        if videos and generated is None:
            add_problem("no generated video", "none of media.videos has the role generated")
        listed_path = _mapping_or_empty(generated).get("path")
        video = self._find_item_file("output_video", names, listed_path, "video", add_problem)
        artifacts = {}
        for name in ("da3", *FEATURES):
            listed_path = _mapping_or_empty(_mapping_or_empty(row.get("artifacts")).get(name)).get("path")
            what = "artifact" if name == "da3" else f"{name} file"
            path = self._find_item_file(f"artifact_{name}", names, listed_path, what, add_problem)
            if path is not None:
                artifacts[name] = path
        own = {**facts, **{k: v for k, v in flatten_metadata(row).items() if v not in (None, "", [], {})}}
        return ListItem(model, subset, sample, condition, line, row, own, video, artifacts, tuple(problems))

    def _find_item_file(
        self, pattern: str, names: Mapping[str, str], declared: Any, file_kind: str, report_problem: Any
    ) -> Path | None:
        """The file of an item, by the path its line gives or else by the pattern; tells what is wrong with it.

        Poses that are not there are looked for where `prepare` put them.
        """
        model = names["model_id"]
        default = self.path_from_pattern(pattern, **names)
        prepared = self.prepared_artifact_folders if pattern == "artifact_da3" else ()
        spare = [place for folder in prepared if file_exists(place := prepared_poses_path(folder, **names))]
        places = [default]
        if declared is not None:
            if not (isinstance(declared, str) and declared and "\x00" not in declared and "://" not in declared):
                text = f"the path is {str(declared)[:80]!r}; expected a path relative to models/{model}"
                report_problem(f"bad {file_kind} path", text)
                return None
            if Path(declared).is_absolute():
                text = f"{declared} works on this machine only; write it relative to models/{model}"
                report_problem(f"absolute {file_kind} path", text)
            bases = (self.root / "models" / model, self.root, Path.cwd())
            places = [Path(os.path.normpath(base / declared)) for base in bases]
        allowed = [self.root, Path.cwd(), *self.roots, *self.artifacts]
        inside = [place for place in places if _lies_in_any_folder(place, allowed)]
        path = next(filter(file_exists, inside), None)
        path = path or next((place for place in spare if _lies_in_any_folder(place, allowed)), None)
        if path is None and (spare or not inside):
            outside = spare[0] if spare else declared or default
            text = f"{outside} leads out of the dataset; allow its folder with --root, or move it"
            report_problem(f"{file_kind} outside", text)
        elif path is None:
            links = [place for place in inside if os.path.islink(place)]  # noqa: PTH114 - a name may be too long
            if links:
                text = f"{self._path_for_messages(links[0])} is a link to {links[0].readlink()}, which is not there"
                report_problem(f"broken {file_kind} link", text)
            elif file_kind == "video" or declared is not None:
                report_problem(f"missing {file_kind}", f"there is no {self._path_for_messages(inside[0])}")
        elif path.is_symlink():
            text = f"{self._path_for_messages(path)} is a link to {path.readlink()}; it is followed"
            report_problem(f"{file_kind} is a link", text, False)
        return path

    def _path_for_messages(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)


def flatten_metadata(content: Mapping[str, object]) -> dict[str, object]:
    """Metadata and annotations on one level; keys that stand at the top are used where metadata lacks them."""
    top = {name: content[name] for name in LIFTED if name in content}
    return {**_mapping_or_empty(content.get("annotations")), **top, **_mapping_or_empty(content.get("metadata"))}


def prepared_poses_path(folder: Path, *, model_id: str, subset: str, sample_id: str, condition_id: str) -> Path:
    """Where `prepare --output` puts the poses of an item."""
    return folder / model_id / subset / sample_id / condition_id / "da3" / "results.npz"


def read_noted_artifact_folders(root: Path) -> list[str]:
    """Folders that `prepare` noted in a dataset."""
    path = root / ARTIFACTS
    noted = parse_json_or_none(path.read_text(encoding="utf-8-sig")) if path.is_file() else {"folders": []}
    folders = _mapping_or_empty(noted).get("folders")
    if not (isinstance(folders, list) and all(isinstance(folder, str) for folder in folders)):
        raise UsageError(f'{path}: expected {{"folders": [paths]}}, as `revisit mbench prepare --output` writes it')
    return folders


def note_artifact_folder(data: MBenchDataset, folder: Path) -> str:
    """Write into the dataset where `prepare` put artifacts; return what to tell the user."""
    place = folder.resolve()
    listed = place.relative_to(data.root).as_posix() if place.is_relative_to(data.root) else str(place)
    folders = list(dict.fromkeys([*read_noted_artifact_folders(data.root), listed]))
    try:
        write_text_atomically(data.root / ARTIFACTS, json.dumps({"folders": folders}, indent=1) + "\n")
    except OSError:
        return f"the dataset cannot be written to; eval finds the artifacts with --artifacts {folder}"
    inside = _lies_in_any_folder(place, (data.root, Path.cwd(), *data.roots))
    return f"eval finds them by {ARTIFACTS} of the dataset" + ("" if inside else f", with --root {place}")


def open_mbench_dataset(source: Path, roots: Sequence[Path] = (), artifacts: Sequence[Path] = ()) -> MBenchDataset:
    """The dataset in a folder; a UsageError says what a dataset looks like where it is none."""
    path = source / CARD
    if not path.is_file():
        raise UsageError(f"{source}: no {CARD} in it; a dataset of MBench has {CARD}, samples/ and models/<id>/{LIST}")
    card = read_yaml_file(path)
    dataset_id = _mapping_or_empty(card).get("dataset_id")
    setting = {name: setting for setting, name in SETTINGS.items()}.get(str(dataset_id).lower())
    if setting is None:
        raise UsageError(f"{path}: dataset_id is {dataset_id!r}; expected {' or '.join(SETTINGS.values())}")
    subsets = card.get("subsets")
    if subsets is not None and not isinstance(subsets, dict | list):
        raise UsageError(f"{path}: subsets is {str(subsets)[:60]!r}; expected names, such as `object: {{}}`")
    for folder in artifacts:
        if not folder.is_dir():
            raise UsageError(f"{folder}: there is no such folder of artifacts")
    allowed, prepared = ([folder.resolve() for folder in folders] for folders in (roots, artifacts))
    return MBenchDataset(source.resolve(), card, setting, allowed, prepared)


def _mapping_or_empty(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def is_single_path_part(value: object) -> bool:
    """Whether a value can be a part of a path: text that does not climb out of its folder."""
    name = value if isinstance(value, str) and value.isprintable() else ""
    return name not in ("", ".", "..") and not set(name) & set("/\\:")


def _lies_in_any_folder(path: Path, folders: Sequence[Path]) -> bool:
    """Whether a path lies in one of some folders, as it is written or after following links."""
    if any(path.is_relative_to(folder) for folder in folders):
        return True
    real = Path(os.path.realpath(path))
    return any(real.is_relative_to(folder) for folder in folders)
