"""Ground truth: the dataset's own folders, `Synthetic_processed` and `Real_Raw`.

One rule for the number of frames of the ground truth: those of the clip that is compared, that is the images in
`RGB{n}`, or the frames that `{NNN}.mp4` announces (`FRAMES` where there is no such file). Where another file of a clip
counts differently, this is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from revisit.core import Clip, MediaError, UsageError
from revisit.media import load_npy, load_npz
from revisit.media.frame_folder import find_frame_files
from revisit.suites.memobench.layouts import count_frames
from revisit.suites.memobench.metadata import (
    SELECTED,
    SHEETS,
    Marks,
    MarksSheet,
    find_xlsx_or_csv,
    read_available_real_clips,
    read_marks_sheet,
)
from revisit.suites.memobench.names import REAL, SYNTHETIC, ClipName, parse_clip_name

FOLDERS = {SYNTHETIC: "Synthetic_processed", REAL: "Real_Raw"}
FRAME_RATES = {SYNTHETIC: 60.0, REAL: 30.0}  # of the recordings; folders of frames carry no clock
FRAMES = "FRAMES"


@dataclass(frozen=True)
class TrueClip:
    """What the dataset has of one clip."""

    clip: Clip
    frames: int
    poses: Path | None = None
    intrinsics: tuple[float, float, float, float] | None = None  # fx, fy, cx, cy of the first frame
    notes: tuple[str, ...] = ()


@dataclass
class MemoBenchDataset:
    """The dataset at `root`; its clips are looked at when they are first asked for."""

    root: Path
    ordered_marks: bool = True  # whether a return that is not after the exit is refused
    true_clips: dict[ClipName, TrueClip | str] = field(default_factory=dict)

    @cached_property
    def marks_sheets(self) -> Mapping[str, MarksSheet]:
        """Subset -> its sheet, where there is one; real clips only as far as a selection has them."""
        sheets = {}
        for subset, stem in SHEETS.items():
            path = find_xlsx_or_csv((self.root / FOLDERS[subset], self.root), stem)
            if path is not None:
                sheets[subset] = read_marks_sheet(path, subset)
        selection = find_xlsx_or_csv((self.root,), SELECTED)
        if REAL in sheets and selection is not None:
            available = read_available_real_clips(selection)
            sheet = sheets[REAL]
            marks = {name: row for name, row in sheet.marks.items() if name in available}
            left_out = sheet.skipped | (sheet.marks.keys() - marks.keys())
            sheets[REAL] = MarksSheet(sheet.file, marks, sheet.unusable, frozenset(left_out))
        return sheets

    @cached_property
    def clip_names(self) -> set[ClipName]:
        """Names of the clips that have a folder in the dataset."""
        patterns = {SYNTHETIC: "*/*", REAL: "*"}
        folders = {subset: (self.root / folder).glob(patterns[subset]) for subset, folder in FOLDERS.items()}
        names = {
            parse_clip_name(one.name, subset) for subset, inside in folders.items() for one in inside if one.is_dir()
        }
        return {name for name in names if name is not None}

    def clip_folder(self, name: ClipName) -> Path:
        """The folder of a clip, whichever way its number is written."""
        top = self.root / FOLDERS[name.subset]
        places = [top / name.scene / spelling for spelling in name.spellings]  # a real clip has no scene
        return next((place for place in places if place.is_dir()), places[0])

    def true_clip_or_problem(self, name: ClipName) -> TrueClip | str:
        """What there is of a clip, or the sentence that says what is missing."""
        if name not in self.true_clips:
            read = _read_synthetic_true_clip if name.scene else _read_real_true_clip
            try:
                self.true_clips[name] = read(self.clip_folder(name), name)
            except MediaError as error:
                self.true_clips[name] = f"the ground truth of {name.id} cannot be used: {error}"
        return self.true_clips[name]

    def iter_marks_and_truth(self, subset: str) -> Iterator[tuple[ClipName, Marks | None, TrueClip | str]]:
        """The clips of a split by its sheet, or by its folders, each with its marks, and with what is wrong with it."""
        sheet = self.marks_sheets.get(subset)
        for name in sorted(sheet.marks if sheet else {clip for clip in self.clip_names if clip.subset == subset}):
            truth, marks = self.true_clip_or_problem(name), sheet.marks[name] if sheet else None
            if isinstance(truth, TrueClip) and marks is not None:
                truth = marks.problem_sentence(truth.frames, ordered=self.ordered_marks) or truth
            yield name, marks, truth


def find_dataset_root(folder: Path) -> Path | None:
    """The folder that holds Synthetic_processed or Real_Raw: this one, its `data`, or the one above."""
    for root in (folder, folder / "data", folder.parent):
        if any((root / name).is_dir() for name in FOLDERS.values()):
            return root if root != folder.parent or folder.name in FOLDERS.values() else None
    return None


def open_memobench_dataset(folder: Path) -> MemoBenchDataset:
    """The dataset in a folder that the user named."""
    root = find_dataset_root(folder)
    if root is None:
        raise UsageError(f"{folder}: no ground truth found; expected Synthetic_processed or Real_Raw in it")
    return MemoBenchDataset(root)


def _read_synthetic_true_clip(folder: Path, name: ClipName) -> TrueClip | str:
    n = name.number
    pictures = folder / f"RGB{n}"
    if not pictures.is_dir():
        return (
            f"the ground truth has no {_path_from_dataset_folder_on(pictures)}; download it, or leave the "
            f"clip out of the sheet"
        )
    clip = Clip(pictures, FRAME_RATES[SYNTHETIC])
    frames = len(find_frame_files(pictures).paths)
    poses = _first_existing_file(folder / f"{n}/poses.npy", folder / "poses.npy", folder / f"camera_full{n}.csv")
    notes: list[str] = []
    lens = None
    if (path := _first_existing_file(folder / f"{n}/intrinsics.npy", folder / "intrinsics.npy")) is not None:
        values = load_npy(path)
        lens = _intrinsics_of_first_frame(values, path.name, notes)
        if values.ndim > 1 and values.shape != (3, 3) and len(values) != frames:
            notes.append(f"RGB{n} has {frames} images and intrinsics.npy {len(values)} rows; the images count")
    return TrueClip(clip, frames, poses, lens, tuple(notes))


def _read_real_true_clip(folder: Path, name: ClipName) -> TrueClip | str:
    video = _first_existing_file(*(folder / f"{spelling}.mp4" for spelling in name.spellings))
    pictures = folder / FRAMES
    notes: list[str] = []
    if video is not None:
        clip = Clip(video)
        frames = count_frames(clip)
        if frames is None:
            return f"the ground truth {_path_from_dataset_folder_on(video)} cannot be read; download it again"
        if pictures.is_dir() and (images := count_frames(Clip(pictures))) not in (None, frames):
            notes.append(f"{video.name} has {frames} frames and {FRAMES} {images} images; the video counts")
    elif pictures.is_dir():
        clip = Clip(pictures, FRAME_RATES[REAL])
        frames = len(find_frame_files(pictures).paths)
    else:
        expected = _path_from_dataset_folder_on(folder / f"{name.id}.mp4")
        return f"the ground truth has neither {expected} nor {FRAMES} beside it; download it"
    poses = _first_existing_file(*(folder / f"raw/{spelling}_mapanything.npz" for spelling in name.spellings))
    lens = None
    if poses is not None:
        arrays = load_npz(poses)
        if "intrinsic" in arrays:
            lens = _intrinsics_of_first_frame(arrays["intrinsic"], poses.name, notes)
    return TrueClip(clip, frames, poses, lens, tuple(notes))


def _intrinsics_of_first_frame(
    values: np.ndarray, file: str, notes: list[str]
) -> tuple[float, float, float, float] | None:
    """fx, fy, cx, cy of the first frame, from any of the shapes that occur."""
    first = values[0] if values.ndim == 3 or (values.ndim == 2 and values.shape[1] == 4) else values
    if first.shape == (3, 3):
        first = first[[0, 1, 0, 1], [0, 1, 2, 2]]
    if first.shape != (4,) or not np.isfinite(np.asarray(first, dtype=float)).all():
        notes.append(f"{file} has intrinsics of shape {values.shape}, which are ignored; expected (N, 4) or (3, 3)")
        return None
    fx, fy, cx, cy = (float(value) for value in first)
    return fx, fy, cx, cy


def _first_existing_file(*places: Path) -> Path | None:
    return next((place for place in places if place.is_file()), None)


def _path_from_dataset_folder_on(path: Path) -> str:
    """The path from the dataset's folder on."""
    parts = path.parts
    start = max((k for k, part in enumerate(parts) if part in FOLDERS.values()), default=0)
    return "/".join(parts[start:])
