"""Layouts: finds the clips of a model in all supported folder layouts, in a fixed order of precedence (`KINDS`).

A clip has a folder, `{Scene}/{clip}` or `{clip}`, in `Synthetic/` or `Real/` or directly in the tree of the model.
Frames come first because a video beside them is a compressed copy; `prefer=video` turns that round, as the public
evaluator does. What was ignored is reported (docs/memobench.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from revisit.core import Clip, MediaError
from revisit.datasets.clips import visible_folders
from revisit.media import IMAGE_SUFFIXES, VIDEO_SUFFIXES, frame_count_in_mp4_index, open_clip
from revisit.media.frame_folder import find_frame_files
from revisit.suites.memobench.names import REAL, SYNTHETIC, ClipName, canonical_scene_name, parse_clip_name

FOLDERS = ("frames", "samples-rgb")
KINDS = (*FOLDERS, "images", "video", "file")
PREFER = {"frames": KINDS, "video": ("video", "file", *FOLDERS, "images")}


@dataclass(frozen=True)
class ClipLocation:
    """The clip of a model, the kind of layout it lies in, and other places that hold it too."""

    path: Path
    kind: str
    others: tuple[Path, ...] = ()


def find_clip_location(tree: Path, name: ClipName, prefer: str = "frames") -> ClipLocation | None:
    """Where the tree of a model has this clip; None where it has none."""
    places = [_clip_paths_by_layout_kind(place) for place in _possible_clip_folders(tree, name)]
    candidates = [(kind, path) for kind in PREFER[prefer] for paths in places for path in paths[kind]]
    if not candidates:
        return None
    unique: dict[Path, tuple[str, Path]] = {}
    for kind, path in candidates:
        unique.setdefault(path.resolve(), (kind, path))
    (kind, path), *others = unique.values()
    return ClipLocation(path, kind, tuple(other for _, other in others))


def find_model_trees(source: Path) -> dict[str, Path]:
    """Model -> tree of its clips: the source itself, or each folder in it that is such a tree."""
    if clip_names_in_tree(source):
        return {source.resolve().name: source}
    return {folder.name: folder for folder in visible_folders(source) if clip_names_in_tree(folder)}


def _possible_clip_folders(tree: Path, name: ClipName) -> Iterator[Path]:
    """Folders that the clip may have, the documented one first."""
    scenes = dict.fromkeys((name.scene, name.bank_scene)) if name.scene else ()
    for root in (tree / name.subset, tree):
        for spelling in name.spellings:
            yield from (root / scene / spelling for scene in scenes)
            yield root / spelling


def _clip_paths_by_layout_kind(place: Path) -> dict[str, list[Path]]:
    """Kind of layout -> where the clip lies in it, of a folder that a clip may have."""
    images = {**{name: place / name for name in FOLDERS}, "images": place}
    paths = {kind: [folder] if _folder_has_images(folder) else [] for kind, folder in images.items()}
    return {**paths, "video": _existing_videos_of_stem(place / "video"), "file": _existing_videos_of_stem(place)}


def _existing_videos_of_stem(stem: Path) -> list[Path]:
    paths = (stem.with_name(stem.name + suffix) for suffix in VIDEO_SUFFIXES)
    return [path for path in paths if path.is_file()]


def _folder_has_images(folder: Path) -> bool:
    return any(entry.suffix.lower() in IMAGE_SUFFIXES for entry in _visible_entries(folder))


def clip_names_in_tree(tree: Path) -> set[ClipName]:
    """Names of all clips in the tree of a model."""
    names = set()
    for root, subset in ((tree / SYNTHETIC, SYNTHETIC), (tree / REAL, REAL), (tree, None)):
        for entry in _visible_entries(root):
            name = parse_clip_name(_file_stem_or_folder_name(entry), subset)
            if name is not None and _holds_clip(entry):
                names.add(name)
            elif entry.is_dir() and subset != REAL:
                for inner in _visible_entries(entry):
                    name = parse_clip_name(_file_stem_or_folder_name(inner), SYNTHETIC)
                    if name is not None and name.scene == canonical_scene_name(entry.name) and _holds_clip(inner):
                        names.add(name)
    return names


def _holds_clip(entry: Path) -> bool:
    if entry.is_file():
        return entry.suffix.lower() in VIDEO_SUFFIXES
    return any(paths for kind, paths in _clip_paths_by_layout_kind(entry).items() if kind != "file")


def _file_stem_or_folder_name(entry: Path) -> str:
    return entry.stem if entry.is_file() else entry.name


def _visible_entries(folder: Path) -> Iterator[Path]:
    """What lies in a folder and is not hidden; nothing where there is no such folder."""
    if folder.is_dir():
        yield from (entry for entry in folder.iterdir() if not entry.name.startswith("."))


def count_frames(clip: Clip) -> int | None:
    """Frames of a folder, or those that a video announces; None for a file that cannot be read."""
    try:
        if clip.path.is_dir():
            return len(find_frame_files(clip.path).paths)
        announced = frame_count_in_mp4_index(clip.path)
        if announced is not None:
            return announced
        with open_clip(clip, wanted=np.arange(0)) as stream:
            return stream.info.count
    except (MediaError, OSError):
        return None
