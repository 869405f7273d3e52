"""Kinds: the failures that a diagnosis knows, what it says of each, and which signs speak for and against it.

Ids and titles are those of the failures that the built-in worlds inject. To add a kind, add a row and fit again.
Signs that may speak against a kind are few on purpose: what real models always do a little, such as another
contrast, must not silence a finding.
"""

from __future__ import annotations

from dataclasses import dataclass

from revisit.diagnosis.signs import CAMERA, CLIP, LOOK, TARGET

CAMERA_SIGNS = ("stands", "never left", "less of a turn", "not as far", "late", "ends short", "strays", "cut")
PICTURE_SIGNS = ("other place", "melts", "stylised", "soft", "other light", "unsteady", "cut")
TARGET_SIGNS = (
    "gone", "recoloured", "other pattern", "other outline", "as at first", "as last seen", "moved aside", "doubled",
    "other place", "melts", "stylised", "soft", "other light", "unsteady", "strays", "ends off",
    "ends short", "not as far",
)  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """A failure: its title, the words of a finding, and the signs it is read from."""

    title: str
    says: str
    needs: str  # a group of signs, without which it cannot be told
    speaks: tuple[str, ...]  # the signs that may speak for it
    against: tuple[str, ...]  # the signs that may only speak against it; 0 where they are unknown
    shown_by: str  # the metric that grows with its strength, and whose frames show it
    full: tuple[float, float]  # that metric's value without the failure, and at full strength
    memory: bool = False  # asked only of a clip that looked away


KINDS: dict[str, Kind] = {
    "frozen_camera": Kind("camera frozen", "the camera stopped on its way out",
        CAMERA, ("stands", "never left", "not as far"), CAMERA_SIGNS, "camera_standstill", (0.0, 1.0)),
    "timid_camera": Kind("camera timid", "the camera made only part of its turn",
        CAMERA, ("less of a turn", "not as far"), CAMERA_SIGNS, "camera_scale", (1.0, 0.25)),
    "camera_drift": Kind("camera drifts", "the camera left its path",
        CAMERA, ("strays", "ends off"), (*CAMERA_SIGNS, "other place", "melts"),
        "camera_strays", (0.0, 0.05), memory=True),
    "late_return": Kind("camera returns late", "the camera came back late",
        CAMERA, ("late",), CAMERA_SIGNS, "return_delay", (0.0, 0.45), memory=True),
    "partial_return": Kind("camera returns in part", "the camera came back only part of the way",
        CAMERA, ("ends short", "ends off"), CAMERA_SIGNS, "return_shortfall", (0.0, 1.0), memory=True),
    "vanish": Kind("object vanishes", "the target was gone",
        TARGET, ("gone", "evenly", "changed"), TARGET_SIGNS, "target_faded", (0.0, 1.0), memory=True),
    "colour_drift": Kind("identity drifts: colour", "the target had other colours",
        TARGET, ("recoloured", "changed"), TARGET_SIGNS, "target_colour", (0.0, 45.0), memory=True),
    "texture_drift": Kind("identity drifts: texture", "the target had another pattern",
        TARGET, ("other pattern", "changed"), TARGET_SIGNS, "target_pattern", (0.0, 0.5), memory=True),
    "shape_drift": Kind("identity drifts: shape", "the target had another shape",
        TARGET, ("other outline", "changed"), TARGET_SIGNS, "target_pattern", (0.0, 1.0), memory=True),
    "state_reset": Kind("state reset", "the state was reset",
        TARGET, ("as at first", "changed"), TARGET_SIGNS, "first_state", (0.0, 1.0), memory=True),
    "state_frozen": Kind("state frozen", "the state stayed as it was last seen",
        TARGET, ("as last seen", "changed"), TARGET_SIGNS, "last_state", (0.0, 1.0), memory=True),
    "teleport": Kind("wrong place", "the target was in another place",
        TARGET, ("moved aside", "changed"), TARGET_SIGNS, "target_elsewhere", (0.0, 1.2), memory=True),
    "duplicate": Kind("duplicated", "there was a second target",
        TARGET, ("doubled",), TARGET_SIGNS, "target_doubled", (0.0, 0.9), memory=True),
    "background": Kind("background hallucinated", "the place was different",
        LOOK, ("other place",), (*PICTURE_SIGNS, "ends short", "not as far", "strays"),
        "place_departure", (0.0, 0.8), memory=True),
    "lighting": Kind("lighting drifts", "the light was different",
        LOOK, ("other light", "darker", "fainter colours"), (*PICTURE_SIGNS, "ends short", "not as far"),
        "light_departure", (0.0, 35.0), memory=True),
    "style": Kind("style drifts", "the style was different",
        LOOK, ("stylised", "other style"), (*PICTURE_SIGNS, "ends short", "not as far"),
        "style_departure", (0.0, 0.35), memory=True),
    "flicker": Kind("flicker", "the light flickers",
        CLIP, ("unsteady",), (), "unsteady_light", (0.0, 30.0)),
    "cut": Kind("cut", "the clip cuts away",
        CLIP, ("cut",), (), "cut_away", (0.0, 0.5)),
    "blur": Kind("blur", "the picture is blurred",
        LOOK, ("soft",), PICTURE_SIGNS, "sharpness_departure", (0.0, 0.7)),
    "collapse": Kind("collapse", "the picture decays",
        LOOK, ("melts",), (*PICTURE_SIGNS, "ends short", "not as far"), "structure_decay", (0.0, 0.6)),
}  # fmt: skip
