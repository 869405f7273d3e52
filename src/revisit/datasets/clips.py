"""Reads clips from any folder of videos, from JSONL manifests, and files of target boxes.

A manifest line is checked field by field; what cannot be used is rejected with one sentence and the
other lines are read on. Paths stay inside the manifest's folder, or inside a root the user named.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from revisit.core import Case, Clip, Rejected, Remark, Target, UsageError
from revisit.core.text import convert_read_errors, count_and_noun, did_you_mean_question, join_names, parse_json
from revisit.media import (
    ARRAY_SUFFIXES,
    IMAGE_SUFFIXES,
    VIDEO_SUFFIXES,
    is_clip_file,
    natural_order,
    why_picture_arrays_are_no_clip,
)

MANIFEST = "manifest.jsonl"
MAX_LINE = 1_000_000
SIDE_FILES = (MANIFEST, "targets.json", "models.yaml", ".job.json", ".provenance.json")  # how names of files end
UNTOLD = (".md", ".html", ".log", *ARRAY_SUFFIXES)  # nobody expects these to be read; arrays beside clips are poses
UNREAD_VIDEOS = (
    ".apng", ".mpg", ".mpeg", ".m2v", ".wmv", ".flv", ".ts", ".mts", ".ogv", ".3gp", ".y4m", ".mjpeg", ".h264",
)  # fmt: skip
UNREAD_ARRAYS = {
    ".pt": "torch", ".pth": "torch", ".safetensors": "safetensors", ".h5": "h5py", ".hdf5": "h5py", ".pkl": "pickle",
    ".zarr": "zarr",
}  # fmt: skip
MOST_NAMED = 6  # files named in a sentence
EXPECTED = """a manifest line is a JSON object such as {"id": "kitchen-01", "model": "mine", "video": "a.mp4"}"""


def find_clips(root: Path) -> Iterator[tuple[str, str, Path]]:
    """(model, sample, path) of every video file and frame folder, in natural order.

    The first folder below the root names the model; the rest of the path, without the suffix, names
    the sample. Clips directly in the root belong to one model, named after the root.
    """
    root_name = root.resolve().name
    for folders, name, path in find_clip_files(root):
        yield folders[0] if folders else root_name, "/".join([*folders[1:], name]), path


def visible_folders(folder: Path) -> list[Path]:
    """The folders in a folder that are not hidden, in natural order; none where there is no such folder."""
    return sorted((path for path in folder.glob("[!.]*") if path.is_dir()), key=natural_order)


def video_files(folder: Path) -> list[Path]:
    """The videos directly in a folder that are not hidden, in natural order; none where there is no such folder."""
    videos = (path for path in folder.glob("[!.]*") if path.suffix.lower() in VIDEO_SUFFIXES and path.is_file())
    return sorted(videos, key=natural_order)


def first_file(paths: Iterable[Path]) -> Path | None:
    """The first of these paths that is a file; None where there is none."""
    return next((path for path in paths if path.is_file()), None)


def is_frame_folder(path: Path) -> bool:
    """Whether a path is a folder of images, which is one clip."""
    return path.is_dir() and _entries_are_frames(_visible_entries_in_order(path))


def find_clip_files(folder: Path, folders: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str, Path]]:
    """(folders that it lies in, its name without an ending, path) of every clip below a folder, in natural order."""
    entries = _visible_entries_in_order(folder)
    videos = {path.stem for path, _ in entries if path.suffix.lower() in VIDEO_SUFFIXES}
    for path, entry in entries:
        if entry.is_dir():
            if entry.is_symlink():
                continue
            inside = _visible_entries_in_order(path)
            if _entries_are_frames(inside):
                yield folders, path.name, path
            elif not _is_run_folder(inside):
                yield from find_clip_files(path, (*folders, path.name))
        elif _is_clip_entry(path, entry) and not (path.suffix.lower() in ARRAY_SUFFIXES and path.stem in videos):
            yield folders, path.stem, path


def _entries_are_frames(inside: Sequence[tuple[Path, os.DirEntry[str]]]) -> bool:
    """Whether images are what a folder holds; a GIF or an array beside them is a preview or their poses."""
    clips = {path for path, entry in inside if _is_clip_entry(path, entry)}
    images = [path for path, _ in inside if path.suffix.lower() in IMAGE_SUFFIXES and path not in clips]
    side_files = all(path.suffix.lower() in (".gif", *ARRAY_SUFFIXES) for path in clips) and len(clips) < len(images)
    return bool(images) and (not clips or side_files) and not any(entry.is_dir() for _, entry in inside)


def _is_run_folder(inside: Sequence[tuple[Path, os.DirEntry[str]]]) -> bool:
    """Whether a folder is a run directory, whose pictures and arrays are no clips."""
    return {"run.json", "plan.json"} <= {path.name for path, _ in inside}


def _is_clip_entry(path: Path, entry: os.DirEntry[str]) -> bool:
    """Whether an entry of a folder is a clip: a video by its ending, an array or a WebP file by what is in it."""
    return entry.is_file() and is_clip_file(path)


def _visible_entries_in_order(folder: Path) -> list[tuple[Path, os.DirEntry[str]]]:
    """What lies in a folder and is not hidden, in natural order; an entry knows what it is without asking the disk."""
    with os.scandir(folder) as entries:
        listing = [(folder / entry.name, entry) for entry in entries if not entry.name.startswith(".")]
    return sorted(listing, key=lambda one: natural_order(one[0]))


def unread_files(root: Path) -> Iterator[Rejected | Remark]:
    """What lies below a folder and is not read: each video that cannot be is refused, other files are only named.

    Pages, logs, arrays beside clips, and what `revisit` itself writes there are not told.
    """
    other_files: list[str] = []
    for path, why in _unread_paths_with_reason(root):
        name = path.relative_to(root).as_posix()
        if why:
            model = path.relative_to(root).parts[0]
            yield Rejected(name, why, "" if model == path.name and path.suffix else model)
        else:
            other_files.append(name)
    if other_files:
        names = join_names(other_files, MOST_NAMED)
        yield Remark(f"{count_and_noun(len(other_files), 'other file')} not read, being no clip: {names}")


def _unread_paths_with_reason(folder: Path) -> Iterator[tuple[Path, str]]:
    """(path, why it should have been a clip and is none, or nothing) of what `find_clips` leaves out."""
    entries = _visible_entries_in_order(folder)
    frames = _entries_are_frames(entries)
    alone = not any(_is_clip_entry(path, entry) for path, entry in entries)  # beside clips, arrays are poses or depth
    for path, entry in entries:
        suffix = path.suffix.lower()
        if entry.is_symlink() and not path.exists():
            yield path, "it is a link to something that is not there; mend the link, or remove it"
        elif entry.is_dir():
            if entry.is_symlink():
                yield path, "it is a link to a folder, which is not followed; give the folder itself, or copy it here"
            elif _is_run_folder(_visible_entries_in_order(path)):
                yield path, ""
            else:
                yield from _unread_paths_with_reason(path)
        elif not entry.is_file():
            yield path, "it is no regular file, so nothing can be read from it"
        elif suffix in UNREAD_VIDEOS:
            yield path, f"{suffix} is not read; convert it to mp4, mkv or webm, without loss where you can"
        elif suffix in ARRAY_SUFFIXES and alone and (why := why_picture_arrays_are_no_clip(path)):
            yield path, why
        elif suffix in UNREAD_ARRAYS and alone:
            library = UNREAD_ARRAYS[suffix]
            yield path, f"{suffix} is not read; load it with {library}, and save the frames with numpy.save or as mp4"
        elif suffix in IMAGE_SUFFIXES and (frames or _is_clip_entry(path, entry)):
            continue
        elif suffix not in (*VIDEO_SUFFIXES, *UNTOLD) and not path.name.endswith(SIDE_FILES):
            yield path, ""


def read_manifest(path: Path, roots: Sequence[Path] = ()) -> Iterator[Case | Rejected]:
    """Cases of a JSONL manifest; each unusable line is a Rejected with its line number."""
    line_by_id: dict[str, int] = {}
    allowed = [path.parent.resolve(), *(root.resolve() for root in roots)]
    with convert_read_errors(path, "a manifest, a UTF-8 text with one JSON object per line"):
        text = path.read_text(encoding="utf-8-sig")
    # Not splitlines(): JSON may hold other line ends, such as U+2028, inside its strings.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path.name} line {number}"
        content: dict[str, object] = {}
        try:
            content = _parse_manifest_line(line)
            case = _manifest_case(content, allowed)
        except ValueError as error:
            yield Rejected(where, " ".join(str(error).split()), str(content.get("model", ""))[:200])
            continue
        first = line_by_id.setdefault(case.id, number)
        if first != number:
            why = f"{case.id} is already on line {first}; id, model and seed together must be unique"
            yield Rejected(where, why, case.model)
            continue
        yield case


def _parse_manifest_line(line: str) -> Any:
    if len(line) > MAX_LINE:
        raise ValueError(f"the line has {len(line)} characters; a manifest line may have at most {MAX_LINE}")
    try:
        content = parse_json(line)
    except ValueError as error:
        raise ValueError(f"not JSON ({error}); {EXPECTED}") from None
    if not isinstance(content, dict):
        raise ValueError(f"found a {type(content).__name__}; {EXPECTED}")
    return content


def _manifest_case(content: Mapping[str, object], allowed: Sequence[Path]) -> Case:
    from pydantic import ValidationError

    from revisit.datasets.manifest import ManifestEntry, first_validation_problem_and_input

    unknown = [name for name in content if name not in ManifestEntry.model_fields]
    if unknown:
        near = did_you_mean_question(unknown[0], ManifestEntry.model_fields)
        raise ValueError(f"unknown field {unknown[0]!r}; {near or 'put your own fields under annotations'}")
    try:
        entry = ManifestEntry.model_validate(content)
    except ValidationError as error:
        problem, text = first_validation_problem_and_input(error)
        raise ValueError(f"{problem} (found {text})") from None
    video = Clip(_resolve_allowed_path(entry.video, allowed), entry.fps)
    truth = None if entry.reference is None else Clip(_resolve_allowed_path(entry.reference, allowed), entry.fps)
    return entry.make_case(entry.id or Path(entry.video).stem, video, truth, entry.camera)


def _resolve_allowed_path(name: str, allowed: Sequence[Path]) -> Path:
    """The path a manifest names from the first allowed folder on, refused where it leaves all of them, or by links."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", name):
        raise ValueError(f"{name[:80]!r} is a web address; a manifest names files on this machine")
    if "\x00" in name:
        raise ValueError("a path contains a NUL character")
    try:
        path = (allowed[0] / name).resolve()
        path.is_file()
    except (OSError, RuntimeError):  # a loop of links
        raise ValueError(f"{name[:80]!r} is no path that this system takes") from None
    if not any(path.is_relative_to(root) for root in allowed):
        raise ValueError(f"{name!r} leads out of the manifest's folder; move it there, or allow its folder with --root")
    return path


def require_option_folder(option: str, value: str) -> Path:
    """The folder that an option of a suite names; one that does not exist is refused."""
    folder = Path(value).expanduser()
    if not folder.is_dir():
        raise UsageError(f"--option {option}={value}: there is no such folder")
    return folder


def read_target_boxes(path: Path) -> dict[str, Target]:
    """The targets in a JSON object that maps a file's stem or an id to a `box`, and to a `name` or `target`."""
    with convert_read_errors(path, "JSON"):
        content = parse_json(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise UsageError(f"{path}: expected an object from clip names to {{'box': [x0, y0, x1, y1]}}")
    # Names that begin with a line are remarks, and a label need not have a box.
    rows = {name: row for name, row in content.items() if not name.startswith("_")}
    rows = {name: row for name, row in rows.items() if not isinstance(row, dict) or "box" in row}
    targets = {}
    for name, row in rows.items():
        box = row["box"] if isinstance(row, dict) else None
        sides = [side for side in box if type(side) in (int, float) and 0 <= side <= 1] if isinstance(box, list) else []
        if len(sides) != 4 or box != sides:
            expected = "{'box': [x0, y0, x1, y1]} in fractions of the frame"
            raise UsageError(f"{path}: {name!r} has no box; expected {expected}")
        x0, y0, x1, y1 = map(float, sides)
        targets[name] = Target(str(row.get("name") or row.get("target") or "target"), (x0, y0, x1, y1))
    return targets


def find_target(targets: Mapping[str, Target], names: Iterable[str]) -> Target | None:
    """The target of a clip, by the first of its names that has one; a box that holds nothing is refused."""
    name = next((name for name in names if name in targets), None)
    if name is None:
        return None
    x0, y0, x1, y1 = targets[name].box
    if not (x0 < x1 and y0 < y1):
        raise UsageError(
            f"the target of {name} has the box {[x0, y0, x1, y1]}; expected [x0, y0, x1, y1] as fractions of the "
            "frame, with x0 < x1 and y0 < y1"
        )
    return targets[name]
