"""Artifact: camera poses of a clip as this project stores them: one npz without pictures.

`extrinsics` (N, 3, 4) float32 and `intrinsics` (N, 3, 3) float32 on the grid of `depth` (N, H, W) float16, which may be
left out; `frame_indices` (N,); and as text `convention`, `producer` and `video`, the digest of the clip. Pictures are
decoded from the clip when they are needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from revisit.core import MediaError, UsageError
from revisit.media import load_npz, npz_shapes, save_npz

CONVENTIONS = {"w2c": "w2c_opencv", "c2w": "c2w_opencv", "unknown": ""}


def store(
    path: Path, arrays: Mapping[str, np.ndarray], *, convention: str, producer: str, video: str, frames: int | None
) -> None:
    """Write an artifact; where it holds a pose of each of the clip's `frames`, frame numbers are added if missing."""
    count = len(arrays["extrinsics"])
    made: dict[str, np.ndarray] = {
        "extrinsics": np.asarray(arrays["extrinsics"], dtype=np.float32)[:, :3],
        "intrinsics": np.asarray(arrays["intrinsics"], dtype=np.float32),
        "producer": np.array(producer),
        "video": np.array(video),
    }
    if "depth" in arrays:
        depth = np.asarray(arrays["depth"], dtype=np.float32)
        largest = float(np.nanmax(depth)) if depth.size else 0.0
        if largest > np.finfo(np.float16).max:
            raise MediaError(f"depth reaches {largest:g}, more than a half float holds; use a larger unit")
        made["depth"] = depth.astype(np.float16)
        made["size"] = np.array(depth.shape[1:])
    if "frame_indices" in arrays:
        made["frame_indices"] = np.asarray(arrays["frame_indices"], dtype=np.int64)
    elif frames is not None and count == frames:
        made["frame_indices"] = np.arange(count)
    said = str(arrays["convention"]) if "convention" in arrays else CONVENTIONS[convention]
    if said:
        made["convention"] = np.array(said)
    save_npz(path, made, compress=True)


def is_of(path: Path, video: str, producer: str) -> bool:
    """Whether an artifact is there, whole, and made of this video by this producer."""
    try:
        shapes = npz_shapes(path) if path.is_file() else {}
        if not {"video", "producer"} <= shapes.keys():
            return False
        told = load_npz(path, members=("video", "producer"))
    except MediaError:
        return False
    return str(told["video"]) == video and str(told["producer"]) == producer


def check_convention(convention: str) -> None:
    """Refuse a convention that does not exist."""
    if convention not in CONVENTIONS:
        raise UsageError(f"there is no convention {convention!r}; there are {', '.join(CONVENTIONS)}")
