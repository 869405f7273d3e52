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

from revisit.core import Clip, MediaError, UsageError
from revisit.media import IMAGE_SUFFIXES, VIDEO_SUFFIXES, announced_frames, natural_order, open_clip
from revisit.media.frame_folder import frame_files
from revisit.suites.memobench.names import QUESTION_SCENES, REAL, SYNTHETIC, ClipName, parse_clip, scene_name

FOLDERS = ("frames", "samples-rgb")
KINDS = (*FOLDERS, "images", "video", "file")
PREFER = {"frames": KINDS, "video": ("video", "file", *FOLDERS, "images")}


@dataclass(frozen=True)
class ClipLocation:
    """The clip of a model, the kind of layout it lies in, and other places that hold it too."""

    path: Path
    kind: str
    others: tuple[Path, ...] = ()


def find_clip(tree: Path, name: ClipName, prefer: str = "frames") -> ClipLocation | None:
    """Where the tree of a model has this clip; None where it has none."""
    places = [_clip_paths(place) for place in _places(tree, name)]
    candidates = [(kind, path) for kind in kinds_in_order(prefer) for paths in places for path in paths[kind]]
    unique = list({path.resolve(): (kind, path) for kind, path in reversed(candidates)}.values())[::-1]
    if not unique:
        return None
    (kind, path), *others = unique
    return ClipLocation(path, kind, tuple(other for _, other in others))


def kinds_in_order(prefer: str) -> tuple[str, ...]:
    """The kinds of layout in order of precedence."""
    if prefer not in PREFER:
        raise UsageError(f"--option prefer takes {' or '.join(PREFER)}, not {prefer!r}")
    return PREFER[prefer]


def clips_in(tree: Path) -> set[ClipName]:
    """Names of all clips in the tree of a model."""
    return set(_clips_in(tree)) if tree.is_dir() else set()


def trees_in(source: Path) -> dict[str, Path]:
    """Model -> tree of its clips: the source itself, or each folder in it that is such a tree."""
    if not source.is_dir():
        return {}
    if next(_clips_in(source), None) is not None:
        return {source.resolve().name: source}
    folders = [entry for entry in _entries(source) if entry.is_dir()]
    return {folder.name: folder for folder in folders if next(_clips_in(folder), None) is not None}


def _places(tree: Path, name: ClipName) -> Iterator[Path]:
    """Folders that the clip may have, the documented one first."""
    scenes = [*dict.fromkeys((name.scene, QUESTION_SCENES.get(name.scene, name.scene)))] if name.scene else []
    for root in (tree / name.subset, tree):
        for spelling in name.spellings:
            yield from (root / scene / spelling for scene in scenes)
            yield root / spelling


def _clip_paths(place: Path) -> dict[str, list[Path]]:
    """Kind of layout -> where the clip lies in it, of a folder that a clip may have."""
    images = {**{name: place / name for name in FOLDERS}, "images": place}
    paths = {kind: [folder] if _has_images(folder) else [] for kind, folder in images.items()}
    return {**paths, "video": _videos(place / "video"), "file": _videos(place)}


def _videos(stem: Path) -> list[Path]:
    paths = (stem.with_name(stem.name + suffix) for suffix in VIDEO_SUFFIXES)
    return [path for path in paths if path.is_file()]


def _has_images(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    return any(entry.suffix.lower() in IMAGE_SUFFIXES and not entry.name.startswith(".") for entry in folder.iterdir())


def _clips_in(tree: Path) -> Iterator[ClipName]:
    for root, subset in ((tree / SYNTHETIC, SYNTHETIC), (tree / REAL, REAL), (tree, None)):
        for entry in _entries(root):
            name = parse_clip(_stem(entry), subset)
            if name is not None and _holds_clip(entry):
                yield name
            elif entry.is_dir() and subset != REAL:
                for inner in _entries(entry):
                    name = parse_clip(_stem(inner), SYNTHETIC)
                    if name is not None and name.scene == scene_name(entry.name) and _holds_clip(inner):
                        yield name


def _holds_clip(entry: Path) -> bool:
    if entry.is_file():
        return entry.suffix.lower() in VIDEO_SUFFIXES
    return any(paths for kind, paths in _clip_paths(entry).items() if kind != "file")


def _stem(entry: Path) -> str:
    return entry.stem if entry.is_file() else entry.name


def _entries(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted((entry for entry in folder.iterdir() if not entry.name.startswith(".")), key=natural_order)


def count_frames(clip: Clip) -> int | None:
    """Frames of a folder, or those that a video announces; None for a file that cannot be read."""
    try:
        if clip.path.is_dir():
            return len(frame_files(clip.path).paths)
        announced = announced_frames(clip.path)
        if announced is not None:
            return announced
        with open_clip(clip, wanted=np.arange(0)) as stream:
            return stream.info.count
    except (MediaError, OSError):
        return None
