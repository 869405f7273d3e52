"""Evidence from files that came with a clip, without decoding frames, and tables of numbers from such files.

Camera paths: the clip's own, and the true one (docs/poses.md). Masks and descriptors of the target, from npz files.
Tables are CSV and npz files that other programs wrote: named columns, checked before they are used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import MediaError, observer
from revisit.evidence.camera import PoseTrack, TruePoseTrack
from revisit.evidence.target import ObjectFeatures, ObjectMasks
from revisit.media import array_shapes_in_npz, load_npz
from revisit.media.error_names import printable_line, raise_media_errors_naming_file
from revisit.observers.poses import read_poses_and_format

MASKS = "an npz with mask (frames, height, width), frame and maker"
OBJECT = "an npz with vector (rows, channels), frame, looked (all frames asked) and maker"
NOT_STATED = "not stated"  # who made the numbers


@observer(id="import.poses", version=2, kind="file", makes=PoseTrack, artifact="poses", sets=("lite",))
def import_poses(path: Path, *, format: str = "auto") -> PoseTrack:
    """The camera path of the clip, from its file of poses."""
    return PoseTrack(**_pose_track_fields(path, format))


@observer(id="import.true_poses", version=2, kind="file", makes=TruePoseTrack, artifact="true_poses", sets=("lite",))
def import_true_poses(path: Path, *, format: str = "auto") -> TruePoseTrack:
    """The camera path that the clip should have shown, from the dataset's file of poses."""
    return TruePoseTrack(**_pose_track_fields(path, format))


def _pose_track_fields(path: Path, format: str) -> dict[str, Any]:
    """Fields of a track. Poses timed in seconds are taken for one per frame, in order."""
    trajectory, format_name = read_poses_and_format(path, format)
    says_producer = path.suffix == ".npz" and "producer" in array_shapes_in_npz(path)
    # What odometry made is no pose network's, whatever the format.
    producer = str(load_npz(path, members=("producer",))["producer"]) if says_producer else ""
    numbered = trajectory.time_unit == "frames" and bool((trajectory.times == np.round(trajectory.times)).all())
    return {
        "frame": trajectory.times.astype(np.int64) if numbered else np.arange(len(trajectory)),
        "c2w": np.array(trajectory.c2w),
        "metres": trajectory.scale == "metres",
        "source": producer or format_name,
    }


@observer(id="import.masks", version=1, kind="file", makes=ObjectMasks, artifact="masks", sets=("lite",))
def import_masks(path: Path) -> ObjectMasks:
    """Masks of the target, from an npz file."""
    with raise_media_errors_naming_file(path):
        arrays = read_npz_with_frames(path, "mask", MASKS)
        if arrays["mask"].ndim != 3:
            raise MediaError(f"its mask has shape {arrays['mask'].shape}; expected {MASKS}")
        frame, mask = sort_by_unique_frame(arrays["frame"], arrays["mask"] > 0)
    return ObjectMasks(frame, mask, one_line_text_or_default(arrays, "maker"))


@observer(
    id="import.object_features", version=1, kind="file", makes=ObjectFeatures, artifact="object_features",
    sets=("lite",),
)  # fmt: skip
def import_object_features(path: Path) -> ObjectFeatures:
    """Descriptors of the target, from an npz file."""
    with raise_media_errors_naming_file(path):
        arrays = read_npz_with_frames(path, "vector", OBJECT)
        frame, vector = sort_by_unique_frame(arrays["frame"], finite_float_table(arrays, "vector", OBJECT))
        looked = parse_frame_numbers(np.ravel(arrays.get("looked", frame)), OBJECT)
    return ObjectFeatures(np.union1d(looked, frame), frame, vector, one_line_text_or_default(arrays, "maker"))


def parse_finite_floats(values: Sequence[Any] | np.ndarray, name: str, expected: str) -> np.ndarray:
    """The values as finite floats."""
    floats = np.empty(len(values))
    for row, value in enumerate(values):
        try:
            floats[row] = float(value)
        except (TypeError, ValueError):
            floats[row] = np.nan
        if not np.isfinite(floats[row]):
            text = printable_line(str(value), 40)
            raise MediaError(f"row {row} has {name} = {text!r}, which is not a finite number; expected {expected}")
    return floats


def parse_frame_numbers(values: Sequence[Any] | np.ndarray, expected: str) -> np.ndarray:
    """The values as frame numbers, from 0 on."""
    frames = parse_finite_floats(values, "frame", expected)
    if len(frames) and ((frames != np.rint(frames)).any() or frames.min() < 0):
        raise MediaError(
            f"frame numbers must be 0, 1, 2, …; found {frames[(frames != np.rint(frames)) | (frames < 0)][0]:g}"
        )
    return frames.astype(np.int64)


def read_npz_arrays(path: Path, needed: Sequence[str], expected: str) -> dict[str, np.ndarray]:
    """Arrays of an npz file, with the needed ones among them."""
    arrays = load_npz(path)
    if missing := [name for name in needed if name not in arrays]:
        there = ", ".join(sorted(arrays)) or "nothing"
        raise MediaError(f"it holds {there} and no {', '.join(missing)}; expected {expected}")
    return arrays


def read_npz_with_frames(path: Path, needed: str, expected: str, *more_needed: str) -> dict[str, np.ndarray]:
    """Arrays of an npz file, those that are needed among them, and `frame` numbering the rows of the first."""
    arrays = read_npz_arrays(path, (needed, *more_needed), expected)
    if "frame" not in arrays:
        arrays["frame"] = np.arange(len(np.atleast_1d(arrays[needed])))
    arrays["frame"] = parse_frame_numbers(np.ravel(arrays["frame"]), expected)
    return arrays


def sort_by_unique_frame(frame: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both in the order of the frames, each of which may be there once."""
    if len(frame) != len(values):
        raise MediaError(f"it has {len(frame)} frame numbers and {len(values)} values; each frame needs one row")
    order = np.argsort(frame, kind="stable")
    twice = np.flatnonzero(np.diff(frame[order]) == 0)
    if len(twice):
        raise MediaError(f"frame {frame[order][twice[0]]} occurs twice; each frame needs one row")
    return frame[order], values[order]


def one_line_text_or_default(source: Mapping[str, object], name: str, default: str = NOT_STATED) -> str:
    """A word or sentence of a file's own, on one line."""
    value = source.get(name)
    if isinstance(value, np.ndarray):
        value = value.item() if value.size == 1 else None
    return printable_line(str(value), 300) if value not in (None, "") else default


def finite_float_table(arrays: dict[str, np.ndarray], name: str, expected: str, axes: int = 2) -> np.ndarray:
    """An array of finite numbers, a table of (rows, channels) or one of more axes."""
    table = np.asarray(arrays[name])
    if table.ndim != axes or table.dtype.kind not in "iuf" or not np.isfinite(table).all():
        raise MediaError(f"its {name} has shape {table.shape} or values that are not finite; expected {expected}")
    return table.astype(np.float32)
