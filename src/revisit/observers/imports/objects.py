"""Masks and descriptors of the target, from npz files that other programs wrote."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from revisit.core import MediaError, observer
from revisit.evidence.objects import ObjectFeatures, ObjectMasks
from revisit.media.error_names import naming_clip
from revisit.observers.imports.tables import frame_numbers, in_order, read_arrays, read_label, vectors

MASKS = "an npz with mask (frames, height, width), frame and maker"
OBJECT = "an npz with vector (rows, channels), frame, looked (all frames asked) and maker"


@observer(id="import.masks", version=1, kind="file", makes=ObjectMasks, artifact="masks", sets=("lite",))
def masks(path: Path) -> ObjectMasks:
    """Masks of the target, from an npz file."""
    with naming_clip(path):
        arrays = read_arrays(path, "mask", MASKS)
        if arrays["mask"].ndim != 3:
            raise MediaError(f"its mask has shape {arrays['mask'].shape}; expected {MASKS}")
        frame, mask = in_order(arrays["frame"], arrays["mask"] > 0)
    return ObjectMasks(frame, mask, read_label(arrays, "maker"))


@observer(
    id="import.object_features", version=1, kind="file", makes=ObjectFeatures, artifact="object_features",
    sets=("lite",),
)  # fmt: skip
def object_features(path: Path) -> ObjectFeatures:
    """Descriptors of the target, from an npz file."""
    with naming_clip(path):
        arrays = read_arrays(path, "vector", OBJECT)
        frame, vector = in_order(arrays["frame"], vectors(arrays, "vector", OBJECT))
        looked = frame_numbers(np.ravel(arrays.get("looked", frame)), OBJECT)
    return ObjectFeatures(np.union1d(looked, frame), frame, vector, read_label(arrays, "maker"))
