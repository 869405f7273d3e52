"""Artifacts: finds files that belong to the clips of a model, such as poses, detections and a judge's answers.

In the folder that an option names, the file of a clip lies in the folder of its model or directly there, under the
clip's name: `<folder>/<model>/<clip>.npz`, `<folder>/<clip>.npz`, `<folder>/<model>/<clip>/poses.npz`. Answers of a
judge go by the key of the question bank, `<folder>/<model>/Zen_Garden-3.csv`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

from revisit.core import UsageError
from revisit.suites.clips import existing_option_folder, first_file
from revisit.suites.memobench.names import ClipName, possible_bank_file_stems

POSE_FILES = (".npz", ".npy", ".txt", ".csv", ".json")
TABLES = (".json", ".csv", ".npz")
ANSWERS = (".csv", ".json", ".jsonl")
# What the folder `evidence` may hold, by the name of the artifact.
EVIDENCE = ("poses", "detections", "depth", "tokens", "aesthetic", "image_quality", "image_reward", "vqa_answers")


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
        root = existing_option_folder("evidence", evidence_folder)
        folders = {name: root / name for name in EVIDENCE if (root / name).is_dir()}
        if not folders:
            raise UsageError(f"{root}: it has no folder called {', '.join(EVIDENCE[:-1])} or {EVIDENCE[-1]}")
    for artifact, value in options.items():
        if value is not None:
            folders[artifact] = existing_option_folder("vqa" if artifact == "vqa_answers" else artifact, value)
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
