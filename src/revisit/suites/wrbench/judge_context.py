"""What a judge is told about a case: the event, the scene, the subject, the camera and what should be in view.

Nothing of style: how a prompt wants its picture made is no part of what happens. An end is told only where the record
knows one that is not the event itself: "walks toward the bed" is progress, and no state in which a clip must end.
"""

from __future__ import annotations

import numpy as np

from revisit.core import Case, Unscored
from revisit.metrics.camera import (
    CameraRequest,
    camera_request_of_case,
    relative_yaw,
    value_farthest_from_zero,
)
from revisit.suites.wrbench.slices import known_family_facts

FRAMES = 81  # over which a script is read to say how far it turns
RESTS = "The camera is asked to rest, so that the subject should stay in view."
LEAVES = "The subject may be out of view while the camera is turned away, and may be in view again when it comes back."


def judge_context_annotations(case: Case) -> dict[str, str]:
    """Annotations for the judge's context; what is not known is left out."""
    notes, request = case.annotations, camera_request_of_case(case)
    event, expected = str(notes.get("event") or ""), str(notes.get("expected") or "")
    venue = known_family_facts().get(str(notes.get("family") or ""), {}).get("venue", "")
    pieces = {
        "event": event,
        "scene": str(notes.get("scene") or venue),
        "told_camera": "" if isinstance(request, Unscored) else _requested_camera_sentence(case, request),
        "told_visible": "" if isinstance(request, Unscored) else RESTS if request.kind == "static" else LEAVES,
        "told_ends": expected if expected != event and event else "",
    }
    anchors = notes.get("anchors")
    if anchors and pieces["scene"]:
        pieces["scene"] += ", with " + " and ".join(map(str, anchors))
    return {name: text for name, text in pieces.items() if text}


def _requested_camera_sentence(case: Case, request: CameraRequest) -> str:
    """What the camera was asked, in words."""
    if request.kind == "static":
        return "it is asked to rest."
    path = request.requested_poses(FRAMES)
    if request.kind == "yaw":
        yaw = relative_yaw(path[:, :3, :3])
        by = "" if case.annotations.get("interface") == "words" else f" by {np.abs(yaw).max():.0f} degrees"
        return f"it is asked to turn {_side_and_return(yaw, by)}."
    if request.kind == "sideways":
        return f"it is asked to move to the {_side_and_return(path[:, 0, 3])}."
    return f"it is asked to move ({case.camera})."


def _side_and_return(motion: np.ndarray, by: str = "") -> str:
    """The side to which something goes farthest, and whether it comes back from there."""
    farthest = value_farthest_from_zero(motion)
    back = " and back again" if abs(motion[-1]) < abs(farthest) / 4 else ""
    return f"{'right' if farthest > 0 else 'left'}{by}{back}"
