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
from revisit.datasets.clips import read_target_boxes, require_option_folder, video_files, visible_folders
from revisit.suites.memobench import layouts
from revisit.suites.memobench.cases import ClipContext, artifact_folders_from_options, make_clip_case
from revisit.suites.memobench.clip_categories import read_clip_categories
from revisit.suites.memobench.ground_truth import MemoBenchDataset, TrueClip, find_dataset_root, open_memobench_dataset
from revisit.suites.memobench.metadata import (
    FEWEST_FRAMES,
    SHEETS,
    Marks,
    find_and_read_metadata,
    read_marks_sheet,
    read_prompts_by_clip,
)
from revisit.suites.memobench.names import ClipName, canonical_scene_name, parse_clip_name
from revisit.suites.memobench.questions import read_question_wording

GROUND_TRUTH = "gt"
PLAIN = re.compile(r"(?P<clip>.+?_\d{1,6})_(?P<model>.+)")
BANKS = "vqa_questions"  # the folder of the dataset with the questions


def is_memobench_source(source: Path) -> bool:
    """Whether this is the dataset, or holds trees with its two splits; a plain folder has to be called memobench."""
    if find_dataset_root(source) == source:
        return True
    trees = [source, *visible_folders(source)]
    return any(
        layouts.clip_names_in_tree(tree) for tree in trees if (tree / "Synthetic").is_dir() or (tree / "Real").is_dir()
    )


def read(
    source: Path, roots: Sequence[Path] = (), *, only: str | None = None, **options: str
) -> Iterator[Case | Rejected]:
    """Cases of all models in `source`, and what is missing or cannot be used; `only` of some clips or scenes."""
    names = None if only is None else {_canonical_clip_or_scene(part) for part in only.split(",") if part.strip()}
    has_some = names is None
    for entry in _read_all_cases(source, **options):
        clip = entry.id.partition("@")[0].rpartition("/")[2]
        if names is None or clip in names or (entry.condition and entry.condition in names):
            has_some = True
            yield entry
    if not has_some:
        raise UsageError(f"--option only={only}: there is no clip and no scene of that name in {source}")


def _canonical_clip_or_scene(text: str) -> str:
    """A clip's id or a scene, whichever way it is spelled."""
    name = parse_clip_name(text.strip())
    return name.id if name is not None else canonical_scene_name(text.strip())


def _read_all_cases(
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
    unordered_marks: str = "reject",
) -> Iterator[Case | Rejected]:
    """All cases and what is missing; a protocol may clamp `unordered_marks`."""
    if prefer not in layouts.PREFER:
        raise UsageError(f"--option prefer takes {' or '.join(layouts.PREFER)}, not {prefer!r}")
    folders = artifact_folders_from_options({"poses": poses, "vqa_answers": vqa, "detections": detections}, evidence)
    targets_by_clip = read_target_boxes(Path(targets).expanduser()) if targets is not None else {}
    places = [require_option_folder("metadata", metadata)] if metadata is not None else []
    banks = [require_option_folder("questions", questions)] if questions is not None else []
    own_marks, ordered = _read_user_marks(marks), unordered_marks != "clamp"
    words = {} if wording is None else read_question_wording(Path(wording).expanduser())
    strata = {} if categories is None else read_clip_categories(_require_option_file("categories", categories))
    own_prompts = {} if prompts is None else read_prompts_by_clip(_require_option_file("prompts", prompts))

    def make_context(places: list[Path], banks: list[Path]) -> ClipContext:
        by_clip = find_and_read_metadata(places)
        return ClipContext(by_clip, banks, targets_by_clip, folders, words, strata, own_prompts, own_marks)

    own = find_dataset_root(source) if source.is_dir() else None
    if own is not None:
        truth = MemoBenchDataset(own, ordered)
        context = make_context([*places, *truth.metadata_folders], [*banks, own / BANKS])
        yield from _ground_truth_cases(truth, model or GROUND_TRUTH, context)
        return
    plain = find_plain_clips_with_truth(source)
    if plain:
        if gt is not None:
            raise UsageError(f"{source} has the ground truth beside its clips ({{clip}}_gt.mp4); leave out --option gt")
        yield from _cases_of_plain_clips(plain, make_context(places, banks), ordered)
        return
    trees = layouts.find_model_trees(source)
    if not trees:
        raise UsageError(
            f"{source}: no generated clips found; expected Synthetic/{{Scene}}/{{Scene}}_{{NNN}}/frames or "
            "Real/{NNN}/frames in it, or folders of models with these (`revisit show memobench` lists all layouts)"
        )
    if model is not None:
        if len(trees) > 1:
            raise UsageError(f"{source} holds {len(trees)} models ({', '.join(trees)}); --option model names one")
        trees = {model: next(iter(trees.values()))}
    data = None if gt is None else replace(open_memobench_dataset(Path(gt).expanduser()), ordered_marks=ordered)
    if data is not None:
        places, banks = [*places, *data.metadata_folders], [*banks, data.root / BANKS]
    every_clip = make_context(places, banks)
    present = {name: layouts.clip_names_in_tree(tree) for name, tree in trees.items()}
    subsets = {clip.subset for clips in present.values() for clip in clips}
    for name, tree in trees.items():
        clips_of_model = _Model(name, tree, every_clip, prefer)
        if data is None:
            yield from (clips_of_model.case_or_rejected(None, clip) for clip in sorted(present[name]))
        else:
            yield from clips_of_model.cases_of_dataset_clips(data, present[name], subsets)


def _rejected_clip(clip: ClipName, model: str, reason: str, missing: bool = False) -> Rejected:
    return Rejected(f"{clip.title}@{model}", reason, model, clip.subset, clip.scene, missing)


def _rejected_sheet_rows(data: MemoBenchDataset, subset: str, model: str) -> Iterator[Rejected]:
    """The rows of a sheet that cannot be used."""
    for what, reason in data.marks_sheets[subset].unusable.items() if subset in data.marks_sheets else ():
        yield Rejected(f"{subset}/{what}@{model}", reason, model, subset)


@dataclass(frozen=True)
class _Model:
    """The clips of one model and what goes with them."""

    name: str
    tree: Path
    context: ClipContext
    prefer: str

    def cases_of_dataset_clips(
        self, data: MemoBenchDataset, present: set[ClipName], subsets: set[str]
    ) -> Iterator[Case | Rejected]:
        """Cases of the clips that the dataset expects, and what is wrong with the others."""
        for subset in (subset for subset in SHEETS if subset in subsets):
            sheet = data.marks_sheets.get(subset)
            own_clips = {clip for clip in present if clip.subset == subset}
            if sheet is None:
                missing = (f"there is no {SHEETS[subset]}.xlsx, so phases are unknown",)
                for clip in sorted(own_clips | {clip for clip in data.clip_names if clip.subset == subset}):
                    own_marks = self.context.marks.get(clip)
                    yield self.case_or_rejected(data, clip, own_marks, missing if own_marks is None else ())
                continue
            yield from _rejected_sheet_rows(data, subset, self.name)
            for clip in sorted(sheet.marks):
                yield self.case_or_rejected(data, clip, sheet.marks[clip])
            for clip in sorted(own_clips - sheet.marks.keys() - sheet.skipped):
                if clip.id not in sheet.unusable:
                    reason = f"{clip.id} is not in {sheet.file}, so it is unknown when its object leaves and returns"
                    yield _rejected_clip(clip, self.name, reason)

    def case_or_rejected(
        self, data: MemoBenchDataset | None, name: ClipName, marks: Marks | None = None, notes: tuple[str, ...] = ()
    ) -> Case | Rejected:
        """The case of a clip, compared with the dataset where there is one."""
        location = layouts.find_clip_location(self.tree, name, self.prefer)
        if location is None:
            return _rejected_clip(name, self.name, f"missing: no clip of {name.id} in any layout", True)
        truth = None if data is None else data.true_clip_or_problem(name, marks)
        if isinstance(truth, str):
            return _rejected_clip(name, self.name, truth)
        frames = layouts.count_frames(Clip(location.path))
        if truth is not None and frames is not None and frames < FEWEST_FRAMES:
            reason = f"too short: the clip has {frames} frames, but three phases need {FEWEST_FRAMES}"
            return _rejected_clip(name, self.name, reason)
        rate = None
        if truth is not None and frames and location.path.is_dir():  # it has no clock, and is to last as long
            rate = round(frames * truth.frame_rate(name.subset) / truth.frames, 4)
        all_notes = [*notes, *_note_on_ignored_places(location, self.tree), *(truth.notes if truth else ())]
        return make_clip_case(
            name, self.name, Clip(location.path, rate), frames, truth, marks, self.context, all_notes, location.kind
        )


def _ground_truth_cases(data: MemoBenchDataset, model: str, context: ClipContext) -> Iterator[Case | Rejected]:
    """The ground truth as a model; it is not compared with itself."""
    for subset in SHEETS:
        yield from _rejected_sheet_rows(data, subset, model)
        for clip, marks, truth in data.iter_marks_and_truth(subset):
            if isinstance(truth, str):
                yield _rejected_clip(clip, model, truth)
                continue
            facts = truth.clip, truth.frames, truth, marks, context, truth.notes, "ground truth"
            yield replace(make_clip_case(clip, model, *facts), reference=None, align="")


def find_plain_clips_with_truth(folder: Path) -> dict[tuple[ClipName, str], Path]:
    """(clip, model) -> file, where a folder holds `{clip}_{model}.mp4` and the ground truth as `{clip}_gt.mp4`."""
    paths = {}
    for path in video_files(folder):
        match = PLAIN.fullmatch(path.stem)
        if match and (name := parse_clip_name(match["clip"])) is not None:
            paths[name, match["model"]] = path
    return paths if any(model == GROUND_TRUTH for _, model in paths) else {}


def _read_user_marks(path: str | None) -> Mapping[ClipName, Marks]:
    """The marks of a sheet of the user's own, for clips that the dataset's sheets do not cover."""
    if path is None:
        return {}
    sheet = read_marks_sheet(_require_option_file("marks", path))
    if sheet.unusable:
        raise UsageError(next(iter(sheet.unusable.values())))
    return sheet.marks


def _require_option_file(option: str, path: str) -> Path:
    file = Path(path).expanduser()
    if not file.is_file():
        raise UsageError(f"--option {option}={path}: there is no such file; expected a sheet as xlsx or csv")
    return file


def _cases_of_plain_clips(
    clips: Mapping[tuple[ClipName, str], Path], context: ClipContext, ordered: bool
) -> Iterator[Case | Rejected]:
    """The clips of a folder that has the ground truth among them, and marks only if the user gives some."""
    for (name, model), path in sorted(clips.items(), key=lambda item: (item[0][1], item[0][0])):
        true = clips.get((name, GROUND_TRUTH))
        frames = layouts.count_frames(Clip(path))
        truth = None
        if true is not None and (true_frames := layouts.count_frames(Clip(true))) is not None:
            truth = TrueClip(Clip(true), true_frames)
        marks = context.marks.get(name)
        problem = marks.problem_sentence(truth.frames, ordered=ordered) if marks and truth else None
        if problem is not None:
            yield _rejected_clip(name, model, problem)
            continue
        case = make_clip_case(name, model, Clip(path), frames, truth, marks, context, (), "plain")
        yield replace(case, reference=None, align="") if model == GROUND_TRUTH else case


def _note_on_ignored_places(location: layouts.ClipLocation, tree: Path) -> list[str]:
    """What to say of a clip that lies in several places."""
    if not location.others:
        return []
    place, *others = (
        path.relative_to(tree).as_posix() if path.is_relative_to(tree) else path.name
        for path in (location.path, *location.others)
    )
    return [f"{place} was used ({location.kind}); also found, and not used: {', '.join(others)}"]
