"""Cases: builds a case from a generated clip and everything known about it, and finds the files that belong to it.

The words that a detector is asked for the target with move ORS by a factor of ten, so they belong to the protocol
(`ors_prompt`; docs/memobench-metrics.md).

In the folder that an option names, the file of a clip lies in the folder of its model or directly there, under the
clip's name: `<folder>/<model>/<clip>.npz`, `<folder>/<clip>.npz`, `<folder>/<model>/<clip>/poses.npz`. Answers of a
judge go by the key of the question bank, `<folder>/<model>/Zen_Garden-3.csv`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from revisit.core import Case, Clip, MediaError, Target, UsageError
from revisit.core.phase_pairs import format_phase_rule
from revisit.datasets.clips import find_target, first_file, require_option_folder
from revisit.suites.memobench.clip_categories import Categories, categories_of_clip
from revisit.suites.memobench.ground_truth import TrueClip
from revisit.suites.memobench.metadata import Marks, prompt_from_metadata_or_sheet
from revisit.suites.memobench.metrics.rules import RULES, check_rule
from revisit.suites.memobench.names import ClipName, possible_bank_file_stems
from revisit.suites.memobench.question_bank import find_bank_file, questions_as_dicts, read_bank

POSE_FILES = (".npz", ".npy", ".txt", ".csv", ".json")
TABLES = (".json", ".csv", ".npz")
ANSWERS = (".csv", ".json", ".jsonl")
# What the folder `evidence` may hold, by the name of the artifact.
EVIDENCE = ("poses", "detections", "depth", "tokens", "aesthetic", "image_quality", "image_reward", "vqa_answers")


@dataclass(frozen=True)
class ClipContext:
    """What is known of clips besides the ground truth, whoever generated them."""

    metadata: Mapping[ClipName, Mapping[str, str]]
    banks: Sequence[Path]  # folders of questions
    targets: Mapping[str, Target]  # by clip, or by clip and model
    artifact_folders: Mapping[str, Path]  # artifact -> folder of files that somebody made for the clips
    wording: Mapping[str, str]  # the words of the user's own questions to a judge
    categories: Categories  # kinds of clips, from a file of the user's own
    prompts: Mapping[ClipName, str]  # that clips were made with, from such a file
    marks: Mapping[ClipName, Marks]  # from such a file, for clips that no sheet of the dataset covers

    def load_final_questions(self, name: ClipName, notes: list[str]) -> list[dict[str, object]]:
        """The final questions about a clip; a file that cannot be used becomes a note."""
        path = next(filter(None, (find_bank_file(folder, name.id) for folder in self.banks)), None)
        try:
            return [] if path is None else questions_as_dicts(read_bank(path).final)
        except MediaError as error:
            notes.append(f"its questions cannot be used: {error}")
            return []


def make_clip_case(
    name: ClipName,
    model: str,
    clip: Clip,
    frames: int | None,
    truth: TrueClip | None,
    marks: Marks | None,
    context: ClipContext,
    notes: Sequence[str] = (),
    layout: str = "",
) -> Case:
    """A clip of a model with everything that is known of it."""
    facts, notes = context.metadata.get(name, {}), list(notes)
    prompt, subject = prompt_from_metadata_or_sheet(facts, marks), facts.get("subject", "")
    # Whatever a model was told, the target is the dataset's.
    words = {rule: detector_prompt_for_rule(prompt, subject, name.subset, rule) for rule in RULES}
    annotations: dict[str, object] = {
        "clip_number": name.number,
        "vqa_key": name.question_key,
        "subject": subject,
        "ors_prompt": words["upstream"],
        "ors_prompts": words,
        "layout": layout,
        **categories_of_clip(name, prompt, context.categories),
    }
    if frames is not None:
        annotations["frames"] = frames
    artifacts = find_clip_artifacts(context.artifact_folders, name, model, clip.path)
    phases, align = None, "stretch"
    if truth is not None:
        annotations["gt_frames"] = truth.frames
        if truth.intrinsics is not None:
            annotations["fx"], annotations["fy"] = truth.intrinsics[:2]
        if truth.poses is not None:
            artifacts["true_poses"] = truth.poses
        if marks is not None:
            annotations["gt_phases"] = [marks.exits, marks.returns]
            phases = None if frames is None else marks.phases_in_clip_of_length(truth.frames, frames)
            if phases is not None:
                align = format_phase_rule(phases, (marks.exits, marks.returns))
                if not marks.are_ordered:
                    notes.append(
                        f"the sheet says that the object leaves at frame {marks.exits} and returns at {marks.returns}; "
                        "as upstream does, the return is put no earlier than two frames after the exit"
                    )
    titles = (name.id, f"{name.subset}_{name.id}")
    bank = context.load_final_questions(name, notes)
    if bank:
        annotations["questions"] = bank
        if context.wording:
            annotations["vqa_wording"] = dict(context.wording)
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
        prompt=context.prompts.get(name, prompt),
        target=find_target(context.targets, (*(f"{title}_{model}" for title in titles), *titles)),
        phases=phases,
        annotations=annotations,
        artifacts=artifacts,
    )


SEES = re.compile(r"sees ([^.,]*\(subject\)[^.,]*)", re.IGNORECASE)
UPSTREAM_SEES = re.compile(r"sees (.*?\(subject\)[^.,]*)", re.IGNORECASE)
MARK = re.compile(r"\s*\(subject\).*", re.IGNORECASE | re.DOTALL)
HANGING = re.compile(r"\s+(filled|resting|standing)$", re.IGNORECASE)  # as they occur in the dataset


def detector_prompt_for_rule(prompt: str, subject: str, split: str, rule: str = "upstream") -> str:
    """The words to ask with, from a clip's prompt and subject; `split` is Synthetic or Real."""
    pattern = UPSTREAM_SEES if check_rule(rule) == "upstream" else SEES
    clause = pattern.search(prompt) if split.lower() == "synthetic" else None
    if rule == "paper" or clause is None:
        return HANGING.sub("", subject.strip()) if rule == "corrected" else subject.strip()
    words = clause.group(1).strip()
    return MARK.sub("", words) if rule == "corrected" else words


def find_clip_artifacts(folders: Mapping[str, Path], name: ClipName, model: str, clip: Path) -> dict[str, Path]:
    """Artifact -> its file, for one clip of one model; poses may also lie beside the clip."""
    paths = {
        artifact: find_judge_answer_file(folder, model, name.id)
        if artifact == "vqa_answers"
        else first_file(_possible_artifact_files(folder, name, model, artifact))
        for artifact, folder in folders.items()
    }
    clip_folder = clip.parent if clip.name in ("frames", "samples-rgb") or clip.is_file() else clip
    if paths.get("poses") is None and clip_folder.name in name.spellings:
        paths["poses"] = first_file(clip_folder / f"poses{suffix}" for suffix in POSE_FILES)
    return {artifact: path for artifact, path in paths.items() if path is not None}


def artifact_folders_from_options(options: Mapping[str, str | None], evidence_folder: str | None) -> dict[str, Path]:
    """The folders that the options name; a folder that does not exist is refused."""
    folders: dict[str, Path] = {}
    if evidence_folder is not None:
        root = require_option_folder("evidence", evidence_folder)
        folders = {name: root / name for name in EVIDENCE if (root / name).is_dir()}
        if not folders:
            raise UsageError(f"{root}: it has no folder called {', '.join(EVIDENCE[:-1])} or {EVIDENCE[-1]}")
    for artifact, value in options.items():
        if value is not None:
            folders[artifact] = require_option_folder("vqa" if artifact == "vqa_answers" else artifact, value)
    return folders


def find_judge_answer_file(root: Path, model: str, clip: str) -> Path | None:
    """The file of answers about a clip of a model, or None.

    Looked for, first hit: `<root>/<model>/<name>` before `<root>/<name>`, where name is the bank's name of the clip
    (Zen_Garden-3, Real-7) before its folder's (ZenGarden_003, 007), as .csv before .json before .jsonl.
    """
    places = product((root / model, root), possible_bank_file_stems(clip), ANSWERS)
    return first_file(folder / f"{name}{suffix}" for folder, name, suffix in places)


def _possible_artifact_files(folder: Path, name: ClipName, model: str, artifact: str) -> Iterator[Path]:
    suffixes: Sequence[str] = POSE_FILES if artifact == "poses" else TABLES
    places = (folder / model, folder / model / name.subset, folder / name.subset, folder)
    for place, stem, suffix in product(places, name.spellings, suffixes):
        yield from (place / f"{stem}{suffix}", place / stem / f"{artifact}{suffix}")
