"""Observed camera path: from a pose file if one was given, otherwise estimated from the video.

Odometry knows rotations but no distances; a metric that needs distances has to say so.
"""

from __future__ import annotations

from revisit.core import Unscored, derived
from revisit.evidence.camera import CameraPath, ObservedCamera, PoseTrack
from revisit.metrics.camera import LEAST_RELIABLE

ODOMETRY = "odometry"


@derived(makes=ObservedCamera, needs=(), optional=(PoseTrack, CameraPath), version=3)
def derive_observed_camera(track: PoseTrack | None, path: CameraPath | None) -> ObservedCamera | Unscored:
    """The clip's camera: as its file of poses says, or else as the picture shows its turns."""
    if track is not None:
        turns, centres = track.c2w[:, :3, :3], track.c2w[:, :3, 3]
        if ODOMETRY in track.source:  # kept in a file, it still knows no ways
            return ObservedCamera(track.frame, turns, None, ODOMETRY)
        return ObservedCamera(track.frame, turns, centres, track.source)
    if path is None:
        return Unscored(
            "no_camera", "no pose file was given, and the observer set has no observer that tracks the camera"
        )
    share = float(path.reliable.mean()) if len(path.index) else 0.0
    if share < LEAST_RELIABLE:
        return Unscored(
            "not_followed",
            f"the camera could be tracked in only {share:.0%} of the frames (too little texture, or cuts); a pose "
            "file from `revisit camera poses` may help",
        )
    sure = path.reliable  # where the path was lost nobody knows where the camera looked
    field = path.field_of_view, path.field_of_view_estimated
    return ObservedCamera(path.index[sure], path.rotation[sure], None, ODOMETRY, *field)
