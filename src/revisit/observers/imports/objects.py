"""Masks and descriptors of the target, from npz files that other programs wrote."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from revisit.core import MediaError, observer
from revisit.evidence.target import ObjectFeatures, ObjectMasks
from revisit.media.error_names import raise_media_errors_naming_file
from revisit.observers.imports.tables import (
    finite_float_table,
    label_or_default,
    parse_frame_numbers,
    read_npz_with_frames,
    sort_by_frame,
)

MASKS = "an npz with mask (frames, height, width), frame and maker"
OBJECT = "an npz with vector (rows, channels), frame, looked (all frames asked) and maker"


@observer(id="import.masks", version=1, kind="file", makes=ObjectMasks, artifact="masks", sets=("lite",))
def import_masks(path: Path) -> ObjectMasks:
    """Masks of the target, from an npz file."""
    with raise_media_errors_naming_file(path):
        arrays = read_npz_with_frames(path, "mask", MASKS)
        if arrays["mask"].ndim != 3:
            raise MediaError(f"its mask has shape {arrays['mask'].shape}; expected {MASKS}")
        frame, mask = sort_by_frame(arrays["frame"], arrays["mask"] > 0)
    return ObjectMasks(frame, mask, label_or_default(arrays, "maker"))


@observer(
    id="import.object_features", version=1, kind="file", makes=ObjectFeatures, artifact="object_features",
    sets=("lite",),
)  # fmt: skip
def import_object_features(path: Path) -> ObjectFeatures:
    """Descriptors of the target, from an npz file."""
    with raise_media_errors_naming_file(path):
        arrays = read_npz_with_frames(path, "vector", OBJECT)
        frame, vector = sort_by_frame(arrays["frame"], finite_float_table(arrays, "vector", OBJECT))
        looked = parse_frame_numbers(np.ravel(arrays.get("looked", frame)), OBJECT)
    return ObjectFeatures(np.union1d(looked, frame), frame, vector, label_or_default(arrays, "maker"))
