"""Package: a folder of generated videos and a list of assignments → the entry of a model in a dataset.

An assignment names a subset, a sample and a condition, one JSON object per line; the list of another model is one. The
videos are linked, hard-linked or copied to their places and the list of the model is written. Doing it again changes
nothing; after more videos were generated it adds them, and takes anew what was generated anew. Assignments without a
video stay on the list, so that coverage counts them.
"""

from __future__ import annotations

import filecmp
import os
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from revisit.core import UsageError
from revisit.core.text import parse_numbered_json_lines
from revisit.media.files import atomic_write_path, write_json_lines
from revisit.suites.mbench.dataset import LIST, NEEDED, MBenchDataset, is_single_path_part
from revisit.suites.mbench.names import SETTINGS

MODES = ("link", "hardlink", "copy")
# Where a video may lie in the folder, the first that exists; {sample_id} alone only where it has one condition.
PATTERNS = (
    "{subset}/{sample_id}/{condition_id}/video.mp4",
    "outputs/{subset}/{sample_id}/{condition_id}/video.mp4",
    "{subset}/{sample_id}/{condition_id}.mp4",
    "{subset}/{sample_id}_{condition_id}.mp4",
    "{subset}_{sample_id}_{condition_id}.mp4",
    "{sample_id}/{condition_id}.mp4",
    "{sample_id}_{condition_id}.mp4",
)
ALONE = ("{subset}/{sample_id}.mp4", "{sample_id}.mp4")


def add_model_to_dataset(
    data: MBenchDataset, model: str, videos: Path, assignments: Path, mode: str = "link", pattern: str = ""
) -> tuple[int, int, list[str]]:
    """Make or complete the entry of a model.

    Returns how many videos were placed (that were not there, or were there in another version), how many were kept, and
    the items without a video.
    """
    if mode not in MODES:
        raise UsageError(f"unknown mode {mode!r}; choose one of {', '.join(MODES)}")
    if not is_single_path_part(model):
        raise UsageError(f"{model!r} cannot be a model's name, because it becomes a folder's name")
    if not videos.is_dir():
        raise UsageError(f"{videos}: there is no such folder of videos")
    rows = read_assignments(assignments, data)
    conditions = Counter((row["subset"], row["sample_id"]) for row in rows)
    model_folder = data.root / "models" / model
    rows_by_item = read_model_list_by_item(model_folder / LIST)
    placed = kept = 0
    missing = []
    for row in rows:
        item_id = ":".join(row.values())
        place = data.path_from_pattern("output_video", model_id=model, **row)
        single = conditions[row["subset"], row["sample_id"]] == 1
        source = _find_video_by_patterns(videos, row, [pattern] if pattern else [*PATTERNS, *(ALONE if single else ())])
        if source is not None and place_video_if_changed(source, place, mode):
            placed += 1
        elif source is not None or place.is_file():
            kept += 1
        else:
            missing.append(item_id)
        line = model_list_row(data.root, data.setting, model, row, place)
        rows_by_item[item_id] = {**rows_by_item.get(item_id, {}), **line}
    write_json_lines(model_folder / LIST, rows_by_item.values())
    return placed, kept, missing


def read_assignments(path: Path, data: MBenchDataset) -> list[dict[str, str]]:
    """Subset, sample and condition of every line, each item once."""
    if not path.is_file():
        raise UsageError(f"{path}: there is no such list of assignments")
    rows = {}
    for number, content in parse_numbered_json_lines(path.read_text(encoding="utf-8-sig")):
        fields = content if isinstance(content, dict) else {}
        row = {name: str(fields[name]) for name in NEEDED if is_single_path_part(fields.get(name))}
        if len(row) < len(NEEDED) or row["subset"] not in data.subsets:
            subsets = ", ".join(data.subsets)
            raise UsageError(f"{path}:{number}: expected subset ({subsets}), sample_id and condition_id as names")
        rows[tuple(row.values())] = row
    return list(rows.values())


def place_video_if_changed(source: Path, destination: Path, mode: str) -> bool:
    """Bring a video to its place; whether anything had to be done."""
    if destination.exists():
        own = not destination.is_symlink()
        if destination.samefile(source):
            at_home = own and destination.resolve() == source.resolve()  # the video already lies where it belongs
            if at_home or (mode == "hardlink" and own) or (mode == "link" and not own):
                return False
        elif mode == "copy" and own and destination.is_file() and filecmp.cmp(source, destination, shallow=False):
            return False
    with atomic_write_path(destination) as temporary:
        temporary.unlink(missing_ok=True)
        if mode == "link":
            temporary.symlink_to(source.resolve())
        elif mode == "hardlink":
            try:
                os.link(source.resolve(), temporary)
            except OSError as error:
                raise UsageError(f"{source} cannot be hard-linked ({error.strerror}); choose link or copy") from None
        else:
            shutil.copyfile(source, temporary)
    return True


def _find_video_by_patterns(videos: Path, row: Mapping[str, str], patterns: Sequence[str]) -> Path | None:
    for pattern in patterns:
        try:
            path = videos / pattern.format(**row)
        except (KeyError, IndexError, ValueError):
            raise UsageError(f"{pattern!r}: patterns may hold {{subset}}, {{sample_id}}, {{condition_id}}") from None
        if path.is_file():
            return path
    return None


def model_list_row(root: Path, setting: str, model: str, row: Mapping[str, str], place: Path) -> dict[str, object]:
    """The line of a model's list for a clip: `row` has its subset, sample and condition."""
    model_folder = root / "models" / model
    path = place.relative_to(model_folder) if place.is_relative_to(model_folder) else place.relative_to(root)
    return {
        "item_id": ":".join(row[name] for name in NEEDED),
        "dataset_id": SETTINGS[setting],
        **row,
        "model_id": model,
        "media": {"videos": [{"path": path.as_posix(), "role": "generated"}]},
    }


def read_model_list_by_item(path: Path) -> dict[str, dict[str, object]]:
    """Lines that the list of the model already has, by item; of an item that is there twice the last one."""
    rows: dict[str, dict[str, object]] = {}
    for _, row in parse_numbered_json_lines(path.read_text(encoding="utf-8-sig")) if path.is_file() else ():
        if isinstance(row, dict) and set(NEEDED) <= row.keys():
            rows[":".join(str(row[name]) for name in NEEDED)] = row
    return rows
