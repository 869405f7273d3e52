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
from revisit.datasets.clips import first_file
from revisit.media import load_npy, load_npz
from revisit.media.frame_folder import find_frame_files
from revisit.suites.memobench import metadata
from revisit.suites.memobench.layouts import count_frames
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

    def frame_rate(self, subset: str) -> float:
        """Frames a second; those of the recordings of a split where the clip does not say so itself."""
        return self.clip.fps or FRAME_RATES[subset]


@dataclass
class MemoBenchDataset:
    """The dataset at `root`; its clips are looked at when they are first asked for."""

    root: Path
    ordered_marks: bool = True  # whether a return that is not after the exit is refused
    true_clips: dict[ClipName, TrueClip | str] = field(default_factory=dict)

    @cached_property
    def marks_sheets(self) -> Mapping[str, metadata.MarksSheet]:
        """Subset -> its sheet, where there is one; real clips only as far as a selection has them."""
        sheets = {}
        for subset, stem in metadata.SHEETS.items():
            path = metadata.find_xlsx_or_csv((self.root / FOLDERS[subset], self.root), stem)
            if path is not None:
                sheets[subset] = metadata.read_marks_sheet(path, subset)
        selection = metadata.find_xlsx_or_csv((self.root,), metadata.SELECTED)
        if REAL in sheets and selection is not None:
            available = metadata.read_available_real_clips(selection)
            sheet = sheets[REAL]
            marks = {name: row for name, row in sheet.marks.items() if name in available}
            left_out = sheet.skipped | (sheet.marks.keys() - marks.keys())
            sheets[REAL] = metadata.MarksSheet(sheet.file, marks, sheet.unusable, frozenset(left_out))
        return sheets

    @property
    def marks(self) -> dict[ClipName, metadata.Marks]:
        """The marks of all clips of the sheets."""
        return {name: one for sheet in self.marks_sheets.values() for name, one in sheet.marks.items()}

    @property
    def metadata_folders(self) -> list[Path]:
        """Where the dataset keeps its CSV files."""
        root = self.root
        return [root / "sam3_metadata", root / "metadata", root, *(root / folder for folder in FOLDERS.values())]

    def read_metadata(self, *first: Path) -> dict[ClipName, dict[str, str]]:
        """Clip -> subject and prompt, from the dataset's CSV files, or from folders that come first."""
        return metadata.find_and_read_metadata([*first, *self.metadata_folders])

    @cached_property
    def clip_names(self) -> set[ClipName]:
        """Names of the clips that have a folder in the dataset."""
        patterns = {SYNTHETIC: "*/*", REAL: "*"}
        folders = {subset: (self.root / folder).glob(patterns[subset]) for subset, folder in FOLDERS.items()}
        paths = ((subset, path) for subset, inside in folders.items() for path in inside if path.is_dir())
        return {name for subset, path in paths if (name := parse_clip_name(path.name, subset)) is not None}

    def clip_folder(self, name: ClipName) -> Path:
        """The folder of a clip, whichever way its number is written."""
        top = self.root / FOLDERS[name.subset]
        places = [top / name.scene / spelling for spelling in name.spellings]  # a real clip has no scene
        return next((place for place in places if place.is_dir()), places[0])

    def true_clip_or_problem(self, name: ClipName, marks: metadata.Marks | None = None) -> TrueClip | str:
        """What there is of a clip, or the sentence that says what is missing or wrong with its marks."""
        if name not in self.true_clips:
            read = _read_synthetic_true_clip if name.scene else _read_real_true_clip
            try:
                self.true_clips[name] = read(self.clip_folder(name), name)
            except MediaError as error:
                self.true_clips[name] = f"the ground truth of {name.id} cannot be used: {error}"
        truth = self.true_clips[name]
        if isinstance(truth, str) or marks is None:
            return truth
        return marks.problem_sentence(truth.frames, ordered=self.ordered_marks) or truth

    def iter_marks_and_truth(self, subset: str) -> Iterator[tuple[ClipName, metadata.Marks | None, TrueClip | str]]:
        """The clips of a split by its sheet, or by its folders, each with its marks, and with what is wrong with it."""
        sheet = self.marks_sheets.get(subset)
        for name in sorted(sheet.marks if sheet else {clip for clip in self.clip_names if clip.subset == subset}):
            marks = sheet.marks[name] if sheet else None
            yield name, marks, self.true_clip_or_problem(name, marks)


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
        missing = "/".join(pictures.parts[-4:])  # from the dataset's folder on
        return f"the ground truth has no {missing}; download it, or leave the clip out of the sheet"
    clip = Clip(pictures, FRAME_RATES[SYNTHETIC])
    frames = len(find_frame_files(pictures).paths)
    poses = first_file(folder / file for file in (f"{n}/poses.npy", "poses.npy", f"camera_full{n}.csv"))
    notes: list[str] = []
    lens = None
    if (path := first_file(folder / file for file in (f"{n}/intrinsics.npy", "intrinsics.npy"))) is not None:
        values = load_npy(path)
        lens = _intrinsics_of_first_frame(values, path.name, notes)
        if values.ndim > 1 and values.shape != (3, 3) and len(values) != frames:
            notes.append(f"RGB{n} has {frames} images and intrinsics.npy {len(values)} rows; the images count")
    return TrueClip(clip, frames, poses, lens, tuple(notes))


def _read_real_true_clip(folder: Path, name: ClipName) -> TrueClip | str:
    video = first_file(folder / f"{spelling}.mp4" for spelling in name.spellings)
    pictures = folder / FRAMES
    notes: list[str] = []
    if video is not None:
        clip = Clip(video)
        frames = count_frames(clip)
        if frames is None:
            return f"the ground truth {'/'.join(video.parts[-3:])} cannot be read; download it again"
        if pictures.is_dir() and (images := count_frames(Clip(pictures))) not in (None, frames):
            notes.append(f"{video.name} has {frames} frames and {FRAMES} {images} images; the video counts")
    elif pictures.is_dir():
        clip = Clip(pictures, FRAME_RATES[REAL])
        frames = len(find_frame_files(pictures).paths)
    else:
        place = "/".join(folder.parts[-2:])
        return f"the ground truth has neither {place}/{name.id}.mp4 nor {FRAMES} beside it; download it"
    poses = first_file(folder / f"raw/{spelling}_mapanything.npz" for spelling in name.spellings)
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
