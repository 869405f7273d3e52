"""Camera paths from files beside a clip: its own, and the true one. Formats: docs/poses.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import observer
from revisit.evidence.camera import PoseTrack, TruePoseTrack
from revisit.media import array_shapes_in_npz, load_npz
from revisit.observers.poses import pose_format_of_file, read_poses


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
    trajectory = read_poses(path, format)
    numbered = trajectory.time_unit == "frames" and bool((trajectory.times == np.round(trajectory.times)).all())
    return {
        "frame": trajectory.times.astype(np.int64) if numbered else np.arange(len(trajectory)),
        "c2w": np.array(trajectory.c2w),
        "metres": trajectory.scale == "metres",
        "source": _stated_producer(path) or pose_format_of_file(path, format),
    }


def _stated_producer(path: Path) -> str:
    """Who made a file, where it says so: what odometry made is no pose network's, whatever the format."""
    if path.suffix != ".npz" or "producer" not in array_shapes_in_npz(path):
        return ""
    return str(load_npz(path, members=("producer",))["producer"])
