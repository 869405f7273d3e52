"""Camera path: how far the camera turned, how far it looked away, and where it ended.

Evidence: `CameraPath`, turns relative to the first frame. Angles are degrees. The total adds the turns between
moments about a fifth of a second apart, so that the shake of single estimates does not add up.
A description, neither good nor bad: angles scale with the field of view, which is often assumed.
"""

from __future__ import annotations

import numpy as np

from revisit.core import InvalidEvidence, Score, Series, Unscored, metric
from revisit.evidence.camera import CameraPath
from revisit.geometry.rotations import angle_between_rotations, yaw_pitch_of_rotation

LEAST_RELIABLE = 0.6  # of the frames: with more gaps the sum of turns is a guess
STRIDE = 0.2  # seconds between the moments whose turns are added
NOTICEABLE = 3.0  # degrees: smaller turns have no named direction


@metric(
    id="camera_path", version=2, title="Camera turning", unit="degrees", range=(0, None), higher_is_better=None,
    needs=(CameraPath,), suites=("folder",),
    responds_to=("frozen camera", "wrong direction", "turn cut short"),
    blind_to=("content changed while away", "distance travelled"),
)  # fmt: skip
def camera_path(path: CameraPath) -> Score | Unscored:
    """Degrees turned in all, added up along the clip; samples at which the path was lost are left out.

    Facts: the largest angle from the first view and when it is reached, the angle at the end, where the camera
    pointed at that largest angle (right, left, up, down), and how much of it could be tracked.
    """
    if not np.allclose(path.rotation @ np.swapaxes(path.rotation, 1, 2), np.eye(3), atol=1e-4):
        raise InvalidEvidence("camera_path.rotation must hold rotation matrices: orthonormal, camera to world")
    if len(path.index) < 2:
        return Unscored("too_short", f"a path needs at least two frames; there are {len(path.index)}")
    reliable = float(path.reliable.mean())
    if reliable < LEAST_RELIABLE:
        return Unscored(
            "not_followed",
            f"the camera could be tracked in only {reliable:.0%} of the frames (too little texture, or cuts)",
            {"reliable_share": round(reliable, 3)},
        )
    sure = path.reliable
    index, time, rotation = path.index[sure], path.time[sure], path.rotation[sure]
    away = angle_between_rotations(np.eye(3), rotation)
    step = max(1, round(STRIDE / max(float(np.median(np.diff(path.time))), 1e-6)))
    moments = rotation[np.unique(np.r_[np.arange(0, len(away), step), len(away) - 1])]
    total = float(angle_between_rotations(moments[:-1], moments[1:]).sum())
    far = int(away.argmax())
    yaw, pitch = yaw_pitch_of_rotation(rotation)
    facts = {
        "max_angle": round(float(away[far]), 2),
        "max_angle_frame": int(index[far]),
        "end_angle": round(float(away[-1]), 2),
        "direction": turn_direction_name(float(yaw[far]), float(pitch[far])),
        "reliable_share": round(reliable, 3),
        "field_of_view": round(path.field_of_view, 1),
        "field_of_view_estimated": path.field_of_view_estimated,
    }
    units = Series(frame=index, seconds=time, value=away, yaw=yaw, pitch=pitch)
    return Score(total, raw=float(away[far]), units=units, facts=facts)


def turn_direction_name(yaw: float, pitch: float) -> str:
    """The named direction of a turn: right, left, up, down, or none."""
    if max(abs(yaw), abs(pitch)) < NOTICEABLE:
        return "none"
    if abs(yaw) >= abs(pitch):
        return "right" if yaw > 0 else "left"
    return "up" if pitch > 0 else "down"
