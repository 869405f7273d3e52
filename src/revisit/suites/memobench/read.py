"""Cases from a tree of generated clips beside the dataset, from the dataset itself, or from a plain folder of clips.

Every clip of the sheets is expected once per model, in splits of which somebody made a clip; what nobody made is
yielded as missing, so that coverage counts it. The dataset as the source is judged as the model `gt`. In a plain folder
without marks, phases are unknown (docs/memobench.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from revisit.core import Case, Clip, Rejected, UsageError
from revisit.media import VIDEO_SUFFIXES, natural_order
from revisit.suites.clips import option_folder, read_targets
from revisit.suites.memobench.artifacts import folders_of
from revisit.suites.memobench.cases import ClipContext, frame_rate, make_case
from revisit.suites.memobench.clip_categories import read_categories
from revisit.suites.memobench.ground_truth import FOLDERS, MemoBenchDataset, TrueClip, dataset_root, open_dataset
from revisit.suites.memobench.layouts import ClipLocation, clips_in, count_frames, find_clip, kinds_in_order, trees_in
from revisit.suites.memobench.metadata import FEWEST_FRAMES, SHEETS, Marks, find_metadata, read_marks, read_prompts
from revisit.suites.memobench.names import ClipName, parse_clip, scene_name
from revisit.suites.memobench.wording import read_wording

GROUND_TRUTH = "gt"
PLAIN = re.compile(r"(?P<clip>.+?_\d{1,6})_(?P<model>.+)")
BANKS = "vqa_questions"  # the folder of the dataset with the questions


def recognises(source: Path) -> bool:
    """Whether this is the dataset, or holds trees with its two splits; a plain folder has to be called memobench."""
    if not source.is_dir():
        return False
    if dataset_root(source) == source:
        return True
    trees = [source, *(entry for entry in source.iterdir() if entry.is_dir())]
    return any(clips_in(tree) for tree in trees if (tree / "Synthetic").is_dir() or (tree / "Real").is_dir())


def read(
    source: Path, roots: Sequence[Path] = (), *, only: str | None = None, **options: str
) -> Iterator[Case | Rejected]:
    """Cases of all models in `source`, and what is missing or cannot be used; `only` of some clips or scenes."""
    names = None if only is None else {_plain_name(part) for part in only.split(",") if part.strip()}
    entries = (entry for entry in _all_cases(source, **options) if names is None or _is_wanted(entry, names))
    first = next(entries, None)
    if first is not None:
        yield first
    elif names is not None:
        raise UsageError(f"--option only={only}: there is no clip and no scene of that name in {source}")
    yield from entries


def _plain_name(text: str) -> str:
    """A clip's id or a scene, whichever way it is spelled."""
    name = parse_clip(text.strip())
    return name.id if name is not None else scene_name(text.strip())


def _is_wanted(entry: Case | Rejected, names: set[str]) -> bool:
    clip = entry.id.partition("@")[0].rpartition("/")[2]
    return clip in names or (bool(entry.condition) and entry.condition in names)


def _all_cases(
    source: Path,
    *,
    gt: str | None = None,
    model: str | None = None,
    poses: str | None = None,
    vqa: str | None = None,
    detections: str | None = None,
    evidence: str | None = None,
    metadata: str | None = None,
    prompts: str | None = None,
    questions: str | None = None,
    wording: str | None = None,
    categories: str | None = None,
    marks: str | None = None,
    targets: str | None = None,
    prefer: str = "frames",
) -> Iterator[Case | Rejected]:
    """All cases and what is missing."""
    kinds_in_order(prefer)
    folders = folders_of({"poses": poses, "vqa_answers": vqa, "detections": detections}, evidence)
    boxes = read_targets(Path(targets).expanduser()) if targets is not None else {}
    places = [option_folder("metadata", metadata)] if metadata is not None else []
    banks = [option_folder("questions", questions)] if questions is not None else []
    own_marks = _own_marks(marks)
    words = {} if wording is None else read_wording(Path(wording).expanduser())
    strata = {} if categories is None else read_categories(Path(categories).expanduser())
    own_prompts = {} if prompts is None else read_prompts(_existing_file("prompts", prompts))

    def context(places: list[Path], banks: list[Path]) -> ClipContext:
        return ClipContext(find_metadata(places), banks, boxes, folders, words, strata, own_prompts)

    own = dataset_root(source) if source.is_dir() else None
    if own is not None:
        truth = context([*places, *_metadata_folders(own)], [*banks, own / BANKS])
        yield from _truth_cases(MemoBenchDataset(own), model or GROUND_TRUTH, truth)
        return
    plain = plain_clips(source)
    if plain:
        if gt is not None:
            raise UsageError(
                f"{source} already has the ground truth beside its clips ({{clip}}_gt.mp4); leave out --option gt"
            )
        yield from _plain_cases(plain, own_marks, context(places, banks))
        return
    trees = trees_in(source)
    if not trees:
        raise UsageError(
            f"{source}: no generated clips found; expected Synthetic/{{Scene}}/{{Scene}}_{{NNN}}/frames or "
            "Real/{NNN}/frames in it, or folders of models with these (`revisit show memobench` lists all layouts)"
        )
    if model is not None:
        if len(trees) > 1:
            raise UsageError(f"{source} holds {len(trees)} models ({', '.join(trees)}); --option model names one")
        trees = {model: next(iter(trees.values()))}
    data = None if gt is None else open_dataset(Path(gt).expanduser())
    if data is not None:
        places, banks = [*places, *_metadata_folders(data.root)], [*banks, data.root / BANKS]
    every_clip = context(places, banks)
    present = {name: clips_in(tree) for name, tree in trees.items()}
    subsets = {clip.subset for clips in present.values() for clip in clips}
    for name, tree in trees.items():
        clips_of_model = _Model(name, tree, every_clip, prefer, own_marks)
        if data is None:
            for clip in sorted(present[name]):
                yield clips_of_model.case(clip, None, None)
        else:
            yield from clips_of_model.against(data, present[name], subsets)


def _refused(clip: ClipName, model: str, reason: str, missing: bool = False) -> Rejected:
    return Rejected(f"{clip.title}@{model}", reason, model, clip.subset, clip.scene, missing)


def _unusable(data: MemoBenchDataset, subset: str, model: str) -> Iterator[Rejected]:
    """The rows of a sheet that cannot be used."""
    for what, reason in data.sheets[subset].unusable.items() if subset in data.sheets else ():
        yield Rejected(f"{subset}/{what}@{model}", reason, model, subset)


@dataclass(frozen=True)
class _Model:
    """The clips of one model and what goes with them."""

    name: str
    tree: Path
    context: ClipContext
    prefer: str
    marks: Mapping[ClipName, Marks]  # for clips that no sheet of the dataset covers

    def against(self, data: MemoBenchDataset, present: set[ClipName], subsets: set[str]) -> Iterator[Case | Rejected]:
        """Cases of the clips that the dataset expects, and what is wrong with the others."""
        for subset in [subset for subset in SHEETS if subset in subsets]:
            sheet = data.sheets.get(subset)
            own_clips = {clip for clip in present if clip.subset == subset}
            if sheet is None:
                missing = (f"there is no {SHEETS[subset]}.xlsx, so phases are unknown",)
                for clip in sorted(own_clips | {clip for clip in data.clips if clip.subset == subset}):
                    own_marks = self.marks.get(clip)
                    yield self._one(data, clip, own_marks, missing if own_marks is None else ())
                continue
            yield from _unusable(data, subset, self.name)
            for clip in sorted(sheet.marks):
                yield self._one(data, clip, sheet.marks[clip], ())
            for clip in sorted(own_clips - sheet.marks.keys() - sheet.skipped):
                if clip.id not in sheet.unusable:
                    reason = f"{clip.id} is not in {sheet.file}, so it is unknown when its object leaves and returns"
                    yield _refused(clip, self.name, reason)

    def _one(
        self, data: MemoBenchDataset, clip: ClipName, marks: Marks | None, notes: tuple[str, ...]
    ) -> Case | Rejected:
        if find_clip(self.tree, clip, self.prefer) is None:
            return _refused(clip, self.name, f"missing: no clip of {clip.id} in any layout", True)
        truth = data.clip(clip)
        if isinstance(truth, TrueClip) and marks is not None:
            truth = marks.problem(truth.frames) or truth
        if isinstance(truth, str):
            return _refused(clip, self.name, truth)
        case = self.case(clip, truth, marks, notes)
        frames = case.annotations.get("frames")
        if frames is not None and frames < FEWEST_FRAMES:
            reason = f"too short: the clip has {frames} frames, but three phases need {FEWEST_FRAMES}"
            return _refused(clip, self.name, reason)
        return case

    def case(self, name: ClipName, truth: TrueClip | None, marks: Marks | None, notes: tuple[str, ...] = ()) -> Case:
        """The case of a clip that is there."""
        location = find_clip(self.tree, name, self.prefer)
        assert location is not None
        frames = count_frames(Clip(location.path))
        clip = Clip(location.path, frame_rate(name, frames, truth) if location.path.is_dir() else None)
        all_notes = [*notes, *_location_note(location, self.tree), *(truth.notes if truth else ())]
        return make_case(name, self.name, clip, frames, truth, marks, self.context, all_notes, location.kind)


def _truth_cases(data: MemoBenchDataset, model: str, context: ClipContext) -> Iterator[Case | Rejected]:
    """The ground truth as a model; it is not compared with itself."""
    for subset in SHEETS:
        yield from _unusable(data, subset, model)
        for clip, marks, truth in data.expected(subset):
            if isinstance(truth, str):
                yield _refused(clip, model, truth)
                continue
            case = make_case(clip, model, truth.clip, truth.frames, truth, marks, context, truth.notes, "ground truth")
            yield replace(case, reference=None, align="")


def plain_clips(folder: Path) -> dict[tuple[ClipName, str], Path]:
    """(clip, model) -> file, where a folder holds `{clip}_{model}.mp4` and the ground truth as `{clip}_gt.mp4`."""
    if not folder.is_dir():
        return {}
    paths = {}
    for path in sorted(folder.iterdir(), key=natural_order):
        match = PLAIN.fullmatch(path.stem) if path.suffix.lower() in VIDEO_SUFFIXES and path.is_file() else None
        if match and (name := parse_clip(match["clip"])) is not None:
            paths[name, match["model"]] = path
    return paths if any(model == GROUND_TRUTH for _, model in paths) else {}


def _own_marks(path: str | None) -> Mapping[ClipName, Marks]:
    """The marks of a sheet of the user's own, for clips that the dataset's sheets do not cover."""
    if path is None:
        return {}
    sheet = read_marks(_existing_file("marks", path))
    if sheet.unusable:
        raise UsageError(next(iter(sheet.unusable.values())))
    return sheet.marks


def _existing_file(option: str, path: str) -> Path:
    file = Path(path).expanduser()
    if not file.is_file():
        raise UsageError(f"--option {option}={path}: there is no such file; expected a sheet as xlsx or csv")
    return file


def _plain_cases(
    clips: Mapping[tuple[ClipName, str], Path],
    own_marks: Mapping[ClipName, Marks],
    context: ClipContext,
) -> Iterator[Case | Rejected]:
    """The clips of a folder that has the ground truth among them, and marks only if the user gives some."""
    for (name, model), path in sorted(clips.items(), key=lambda item: (item[0][1], item[0][0])):
        true = clips.get((name, GROUND_TRUTH))
        frames = count_frames(Clip(path))
        truth = None
        if true is not None and (true_frames := count_frames(Clip(true))) is not None:
            truth = TrueClip(Clip(true), true_frames)
        marks = own_marks.get(name)
        problem = marks.problem(truth.frames) if marks and truth else None
        if problem is not None:
            yield _refused(name, model, problem)
            continue
        case = make_case(name, model, Clip(path), frames, truth, marks, context, (), "plain")
        yield replace(case, reference=None, align="") if model == GROUND_TRUTH else case


def _location_note(location: ClipLocation, tree: Path) -> list[str]:
    """What to say of a clip that lies in several places."""
    if not location.others:
        return []
    place, *others = (
        path.relative_to(tree).as_posix() if path.is_relative_to(tree) else path.name
        for path in (location.path, *location.others)
    )
    return [f"{place} was used ({location.kind}); also found, and not used: {', '.join(others)}"]


def metadata_of(root: Path, *first: Path) -> dict[ClipName, dict[str, str]]:
    """Clip -> subject and prompt, from the dataset's CSV files, or from folders that come first."""
    return find_metadata([*first, *_metadata_folders(root)])


def _metadata_folders(root: Path) -> list[Path]:
    """Where the dataset keeps its CSV files."""
    return [root / "sam3_metadata", root / "metadata", root, *(root / folder for folder in FOLDERS.values())]
