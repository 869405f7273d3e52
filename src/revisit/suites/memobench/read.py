"""Cases from a tree of generated clips beside the dataset, from the dataset itself, or from a plain folder of clips.

- A tree per model (layouts.py) and `gt=`: every clip of the sheets is expected once per model; what nobody made is
  yielded as missing, so that coverage counts it. Only splits of which somebody made a clip are expected.
- The dataset as the source: the ground truth is judged as the model `gt`, which checks the gates and the estimator of
  camera poses on clips that are right by definition.
- A plain folder of `{clip}_{model}.mp4` with `{clip}_gt.mp4` beside them, without marks: phases are then unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from revisit.core import Case, Clip, MediaError, Rejected, Target, UsageError
from revisit.media import VIDEO_SUFFIXES, natural_order
from revisit.metrics.phase_pairs import phase_rule
from revisit.suites.folder.scan import read_targets
from revisit.suites.memobench.beside import Beside, folders_of
from revisit.suites.memobench.keyframes import FEWEST_FRAMES, key_frames, problem_of
from revisit.suites.memobench.layouts import Found, clips_in, find_clip, kinds_in_order, trees_in
from revisit.suites.memobench.names import ClipName, parse_clip
from revisit.suites.memobench.prompts import ors_prompts
from revisit.suites.memobench.questions import as_annotation, find_bank, read_bank
from revisit.suites.memobench.sheets import SHEETS, Marks, read_marks
from revisit.suites.memobench.truth import (
    FOLDERS,
    FRAME_RATES,
    Dataset,
    TrueClip,
    count_frames,
    dataset_root,
    find_metadata,
    open_dataset,
)

GROUND_TRUTH = "gt"
PLAIN = re.compile(r"(?P<clip>.+?_\d{1,6})_(?P<model>.+)")
BANKS = "vqa_questions"  # the folder of the dataset with the questions


@dataclass(frozen=True)
class Known:
    """What is known of clips besides the ground truth, whoever generated them."""

    metadata: Mapping[ClipName, Mapping[str, str]]
    banks: Sequence[Path]  # folders of questions
    boxes: Mapping[str, Any]  # targets

    def questions(self, name: ClipName, notes: list[str]) -> list[dict[str, Any]]:
        """The final questions about a clip; a file that cannot be used becomes a note."""
        path = next((path for folder in self.banks if (path := find_bank(folder, name.id)) is not None), None)
        try:
            return [] if path is None else as_annotation(read_bank(path).final)
        except MediaError as error:
            notes.append(f"its questions cannot be used: {error}")
            return []


def recognises(source: Path) -> bool:
    """Whether this is the dataset, or holds trees with its two splits; a plain folder has to be called memobench."""
    if not source.is_dir():
        return False
    if dataset_root(source) == source:
        return True
    trees = [source, *(entry for entry in source.iterdir() if entry.is_dir())]
    return any(clips_in(tree) for tree in trees if (tree / "Synthetic").is_dir() or (tree / "Real").is_dir())


def read(
    source: Path,
    roots: Sequence[Path] = (),
    *,
    gt: str | None = None,
    model: str | None = None,
    poses: str | None = None,
    vqa: str | None = None,
    detections: str | None = None,
    evidence: str | None = None,
    metadata: str | None = None,
    questions: str | None = None,
    marks: str | None = None,
    targets: str | None = None,
    prefer: str = "frames",
) -> Iterator[Case | Rejected]:
    """Cases of all models in `source`, and what is missing or cannot be used."""
    kinds_in_order(prefer)
    beside = folders_of({"poses": poses, "vqa_answers": vqa, "detections": detections}, evidence)
    boxes = read_targets(Path(targets).expanduser()) if targets is not None else {}
    places = [Path(metadata).expanduser()] if metadata is not None else []
    banks = [Path(questions).expanduser()] if questions is not None else []
    given = _given_marks(marks)
    own = dataset_root(source) if source.is_dir() else None
    if own is not None:
        data = Dataset(own)
        known = Known(find_metadata([*places, *_metadata_folders(own)]), [*banks, own / BANKS], boxes)
        yield from _truth_itself(data, model or GROUND_TRUTH, beside, known)
        return
    plain = plain_clips(source)
    if plain:
        if gt is not None:
            raise UsageError(f"{source} has the ground truth beside its clips ({{clip}}_gt.mp4); leave out --option gt")
        yield from _plain(plain, given, beside, Known(find_metadata(places), banks, boxes))
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
    data_or_none = None if gt is None else open_dataset(Path(gt).expanduser())
    places += _metadata_folders(data_or_none.root) if data_or_none else []
    banks += [data_or_none.root / BANKS] if data_or_none else []
    known = Known(find_metadata(places), banks, boxes)
    present = {name: clips_in(tree) for name, tree in trees.items()}
    subsets = {clip.subset for clips in present.values() for clip in clips}
    for name, tree in trees.items():
        made = _Model(name, tree, beside, known, prefer, given)
        if data_or_none is None:
            for clip in sorted(present[name]):
                yield made.case(clip, None, None)
        else:
            yield from made.against(data_or_none, present[name], subsets)


class _Model:
    """The clips of one model and what goes with them."""

    def __init__(
        self,
        name: str,
        tree: Path,
        beside: Beside,
        known: Known,
        prefer: str,
        given: Mapping[ClipName, Marks],
    ) -> None:
        self.name, self.tree, self.beside, self.known, self.prefer, self.given = (
            name,
            tree,
            beside,
            known,
            prefer,
            given,
        )

    def against(self, data: Dataset, present: set[ClipName], subsets: set[str]) -> Iterator[Case | Rejected]:
        """Cases of the clips that the dataset expects, and what is wrong with the others."""
        for subset in [subset for subset in SHEETS if subset in subsets]:
            sheet = data.sheets.get(subset)
            made = {clip for clip in present if clip.subset == subset}
            if sheet is None:
                missing = (f"there is no {SHEETS[subset]}.xlsx: phases are not known",)
                for clip in sorted(made | {clip for clip in data.clips if clip.subset == subset}):
                    known = self.given.get(clip)
                    yield self._one(data, clip, known, missing if known is None else ())
                continue
            for what, reason in sheet.unusable.items():
                yield Rejected(f"{subset}/{what}@{self.name}", reason, self.name, subset)
            for clip in sorted(sheet.marks):
                yield self._one(data, clip, sheet.marks[clip], ())
            for clip in sorted(made - sheet.marks.keys() - sheet.skipped):
                if clip.id not in sheet.unusable:
                    reason = f"{clip.id} is not in {sheet.file}, so nothing says when its object leaves and returns"
                    yield Rejected(f"{clip.title}@{self.name}", reason, self.name, subset, clip.scene)

    def _one(self, data: Dataset, clip: ClipName, marks: Marks | None, notes: tuple[str, ...]) -> Case | Rejected:
        def refused(reason: str, missing: bool = False) -> Rejected:
            return Rejected(f"{clip.title}@{self.name}", reason, self.name, clip.subset, clip.scene, missing)

        if find_clip(self.tree, clip, self.prefer) is None:
            return refused(f"missing: no clip of {clip.id} in any layout", True)
        truth = data.clip(clip)
        if isinstance(truth, str):
            return refused(truth)
        problem = None if marks is None else problem_of(marks.exits, marks.returns, truth.frames)
        if problem is not None:
            return refused(problem)
        case = self.case(clip, truth, marks, notes)
        frames = case.annotations.get("frames")
        if frames is not None and frames < FEWEST_FRAMES:
            return refused(f"too short: the clip has {frames} frames, and three phases need {FEWEST_FRAMES}")
        return case

    def case(self, name: ClipName, truth: TrueClip | None, marks: Marks | None, notes: tuple[str, ...] = ()) -> Case:
        """The case of a clip that is there."""
        found = find_clip(self.tree, name, self.prefer)
        assert found is not None
        frames = count_frames(Clip(found.path))
        clip = Clip(found.path, _frame_rate(name, frames, truth) if found.path.is_dir() else None)
        said = [*notes, *_choice(found, self.tree), *(truth.notes if truth else ())]
        return make_case(name, self.name, clip, frames, truth, marks, self.beside, self.known, said, found.kind)


def make_case(
    name: ClipName,
    model: str,
    clip: Clip,
    frames: int | None,
    truth: TrueClip | None,
    marks: Marks | None,
    beside: Beside,
    known: Known,
    notes: Sequence[str] = (),
    layout: str = "",
) -> Case:
    """A clip of a model with everything that is known of it."""
    facts, notes = known.metadata.get(name, {}), list(notes)
    prompt, subject = facts.get("prompt") or (marks.prompt if marks else ""), facts.get("subject", "")
    words = ors_prompts(prompt, subject, name.subset)
    annotations: dict[str, Any] = {
        "clip_number": name.number,
        "vqa_key": name.question_key,
        "subject": subject,
        "ors_prompt": words["upstream"],
        "ors_prompts": words,
        "layout": layout,
    }
    if frames is not None:
        annotations["frames"] = frames
    artifacts = beside.of(name, model, clip.path)
    phases, align = None, "stretch"
    if truth is not None:
        annotations["gt_frames"] = truth.frames
        if truth.intrinsics is not None:
            annotations["fx"], annotations["fy"] = truth.intrinsics[:2]
        if truth.poses is not None:
            artifacts["true_poses"] = truth.poses
    if truth is not None and marks is not None:
        annotations["gt_phases"] = [marks.exits, marks.returns]
        if frames is not None and frames >= FEWEST_FRAMES:
            phases = key_frames(marks.exits, marks.returns, truth.frames, frames)
            align = phase_rule(phases, (marks.exits, marks.returns))
    bank = known.questions(name, notes)
    if bank:
        annotations["questions"] = bank
    if notes:
        annotations["notes"] = notes
    return Case(
        id=f"{name.title}@{model}",
        suite="memobench",
        model=model,
        sample=name.id,
        clip=clip,
        reference=None if truth is None else truth.clip,
        align=align,
        subset=name.subset,
        condition=name.scene or name.subset,
        prompt=prompt,
        target=_target(known.boxes, name, model),
        phases=phases,
        annotations=annotations,
        artifacts=artifacts,
    )


def _truth_itself(data: Dataset, model: str, beside: Beside, known: Known) -> Iterator[Case | Rejected]:
    """The ground truth as a model; it is not compared with itself."""
    for subset in SHEETS:
        sheet = data.sheets.get(subset)
        for clip in sorted(sheet.marks if sheet else {name for name in data.clips if name.subset == subset}):
            marks = sheet.marks[clip] if sheet else None
            truth = data.clip(clip)
            problem = truth if isinstance(truth, str) else None
            if isinstance(truth, TrueClip) and marks is not None:
                problem = problem_of(marks.exits, marks.returns, truth.frames)
            if isinstance(truth, str) or problem is not None:
                yield Rejected(f"{clip.title}@{model}", str(problem), model, subset, clip.scene)
                continue
            case = make_case(
                clip, model, truth.clip, truth.frames, truth, marks, beside, known, truth.notes, "ground truth"
            )
            yield replace(case, reference=None, align="")


def plain_clips(folder: Path) -> dict[tuple[ClipName, str], Path]:
    """(clip, model) -> file, where a folder holds `{clip}_{model}.mp4` and the ground truth as `{clip}_gt.mp4`."""
    if not folder.is_dir():
        return {}
    found = {}
    for path in sorted(folder.iterdir(), key=natural_order):
        match = PLAIN.fullmatch(path.stem) if path.suffix.lower() in VIDEO_SUFFIXES and path.is_file() else None
        name = parse_clip(match["clip"]) if match else None
        if match and name is not None:
            found[name, match["model"]] = path
    return found if any(model == GROUND_TRUTH for _, model in found) else {}


def _given_marks(path: str | None) -> Mapping[ClipName, Marks]:
    """The marks of a sheet of the user's own, for clips that the dataset's sheets do not cover."""
    if path is None:
        return {}
    file = Path(path).expanduser()
    if not file.is_file():
        raise UsageError(f"--option marks={path}: there is no such file; expected a sheet as xlsx or csv")
    sheet = read_marks(file)
    if sheet.unusable:
        raise UsageError(next(iter(sheet.unusable.values())))
    return sheet.marks


def _plain(
    clips: Mapping[tuple[ClipName, str], Path],
    given: Mapping[ClipName, Marks],
    beside: Beside,
    known: Known,
) -> Iterator[Case | Rejected]:
    """The clips of a folder that has the ground truth among them, and marks only if the user gives some."""
    for (name, model), path in sorted(clips.items(), key=lambda item: (item[0][1], item[0][0])):
        true = clips.get((name, GROUND_TRUTH))
        frames = count_frames(Clip(path))
        truth = None
        if true is not None and (true_frames := count_frames(Clip(true))) is not None:
            truth = TrueClip(Clip(true), true_frames)
        marks = given.get(name)
        problem = problem_of(marks.exits, marks.returns, truth.frames) if marks and truth else None
        if problem is not None:
            yield Rejected(f"{name.title}@{model}", problem, model, name.subset, name.scene)
            continue
        case = make_case(name, model, Clip(path), frames, truth, marks, beside, known, (), "plain")
        yield replace(case, reference=None, align="") if model == GROUND_TRUTH else case


def _choice(found: Found, tree: Path) -> list[str]:
    """What to say of a clip that lies in several places."""
    if not found.others:
        return []
    others = ", ".join(_below(path, tree) for path in found.others)
    return [f"{_below(found.path, tree)} was taken ({found.kind}); also there, and not used: {others}"]


def _below(path: Path, tree: Path) -> str:
    return path.relative_to(tree).as_posix() if path.is_relative_to(tree) else path.name


def _frame_rate(name: ClipName, frames: int | None, truth: TrueClip | None) -> float | None:
    """A folder of frames has no clock; it is to last as long as its ground truth."""
    if truth is None or not frames:
        return None
    return round(frames * (truth.clip.fps or FRAME_RATES[name.subset]) / truth.frames, 4)


def _target(boxes: Mapping[str, Any], name: ClipName, model: str) -> Target | None:
    """The box that a file of targets has for the clip of a model, or for the clip."""
    titles = (name.id, f"{name.subset}_{name.id}")
    given = next((boxes[key] for key in (*(f"{t}_{model}" for t in titles), *titles) if key in boxes), None)
    if given is None:
        return None
    box: Any = given.get("box") if isinstance(given, Mapping) else None
    numbers = isinstance(box, list | tuple) and len(box) == 4 and all(isinstance(v, int | float) for v in box)
    if not (numbers and 0 <= box[0] < box[2] <= 1 and 0 <= box[1] < box[3] <= 1):
        raise UsageError(f"the target of {name.id} has the box {box!r}; expected [x0, y0, x1, y1] as fractions")
    words = str(given.get("name") or given.get("target") or "target")
    return Target(words, (float(box[0]), float(box[1]), float(box[2]), float(box[3])))


def _metadata_folders(root: Path) -> list[Path]:
    """Where the dataset keeps its CSV files."""
    return [root / "sam3_metadata", root / "metadata", root, *(root / folder for folder in FOLDERS.values())]
