"""Layouts: finds the clips of a model in all supported folder layouts, in a fixed order of precedence (`KINDS`).

A clip has a folder, `{Scene}/{clip}` or `{clip}`, in `Synthetic/` or `Real/` or directly in the tree of the model.
Frames come first because a video beside them is a compressed copy; `prefer=video` turns that round, as the public
evaluator does. What was ignored is reported (docs/memobench.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from revisit.core import UsageError
from revisit.media import IMAGE_SUFFIXES, VIDEO_SUFFIXES, natural_order
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
    places = list(_places(tree, name))
    candidates: list[tuple[str, Path]] = []
    for kind in kinds_in_order(prefer):
        candidates += [(kind, path) for place in places for path in _paths_of_kind(place, kind)]
    unique = list({path.resolve(): (kind, path) for kind, path in reversed(candidates)}.values())[::-1]
    if not unique:
        return None
    kind, path = unique[0]
    return ClipLocation(path, kind, tuple(other for _, other in unique[1:]))


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
    return {entry.name: entry for entry in _folders(source) if next(_clips_in(entry), None) is not None}


def _places(tree: Path, name: ClipName) -> Iterator[Path]:
    """Folders that the clip may have, the documented one first."""
    scenes = [*dict.fromkeys((name.scene, QUESTION_SCENES.get(name.scene, name.scene)))] if name.scene else []
    for root in (tree / name.subset, tree):
        for spelling in name.spellings:
            yield from (root / scene / spelling for scene in scenes)
            yield root / spelling


def _paths_of_kind(place: Path, kind: str) -> Iterable[Path]:
    if kind in FOLDERS:
        return [place / kind] if _has_images(place / kind) else []
    if kind == "images":
        return [place] if _has_images(place) else []
    if kind == "video":
        return _videos(place / "video")
    return _videos(place)


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
    return any(path for kind in KINDS[:-1] for path in _paths_of_kind(entry, kind))


def _stem(entry: Path) -> str:
    return entry.stem if entry.is_file() else entry.name


def _entries(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted((entry for entry in folder.iterdir() if not entry.name.startswith(".")), key=natural_order)


def _folders(folder: Path) -> list[Path]:
    return [entry for entry in _entries(folder) if entry.is_dir()]
