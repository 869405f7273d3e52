"""Kinds: the failures that a diagnosis knows, what it says of each, and which signs it may look at.

Ids and titles are those of the failures that the built-in worlds inject. To add a kind, add a row and fit again.
"""

from __future__ import annotations

from dataclasses import dataclass

from revisit.diagnosis.signs import CAMERA, CLIP, LOOK, TARGET


@dataclass(frozen=True)
class Kind:
    """A failure: its title, the words of a finding, the signs it needs and those it looks at where they are known."""

    title: str
    says: str
    needs: str  # a group of signs
    beside: tuple[str, ...]  # further groups: what explains the same signs otherwise
    speaks: tuple[str, ...]  # the signs that may speak for it; all others of its groups may only speak against it
    shown_by: str  # the metric that grows with its strength, and whose frames show it
    full: tuple[float, float]  # that metric's value without the failure, and at full strength
    memory: bool = False  # asked only of a clip that looked away and back


KINDS: dict[str, Kind] = {
    "frozen_camera": Kind(
        "camera frozen", "the camera stopped on its way out",
        CAMERA, (CLIP,), ("stands", "never left", "not as far"),
        "camera_standstill", (0.0, 1.0),
    ),
    "timid_camera": Kind(
        "camera timid", "the camera made only part of its turn",
        CAMERA, (CLIP,), ("less of a turn", "not as far"),
        "camera_scale", (1.0, 0.25),
    ),
    "camera_drift": Kind(
        "camera drifts", "the camera strayed from its way",
        CAMERA, (CLIP, LOOK), ("strays", "ends off"),
        "camera_strays", (0.0, 0.05),
    ),
    "late_return": Kind(
        "camera returns late", "the camera came back late",
        CAMERA, (CLIP,), ("late",),
        "return_delay", (0.0, 0.45), memory=True,
    ),
    "partial_return": Kind(
        "camera returns in part", "the camera came back only in part",
        CAMERA, (CLIP,), ("ends short", "ends off"),
        "return_shortfall", (0.0, 1.0), memory=True,
    ),
    "vanish": Kind(
        "object vanishes", "the target was gone",
        TARGET, (LOOK, CLIP, CAMERA), ("gone", "evenly", "changed"),
        "target_faded", (0.0, 1.0), memory=True,
    ),
    "colour_drift": Kind(
        "identity drifts: colour", "the target had other colours",
        TARGET, (LOOK, CLIP, CAMERA), ("recoloured", "changed"),
        "target_colour", (0.0, 45.0), memory=True,
    ),
    "texture_drift": Kind(
        "identity drifts: texture", "the target had another pattern",
        TARGET, (LOOK, CLIP, CAMERA), ("other pattern", "changed"),
        "target_pattern", (0.0, 0.5), memory=True,
    ),
    "shape_drift": Kind(
        "identity drifts: shape", "the target had another shape",
        TARGET, (LOOK, CLIP, CAMERA), ("other outline", "changed"),
        "target_pattern", (0.0, 1.0), memory=True,
    ),
    "state_reset": Kind(
        "state reset", "the state was reset",
        TARGET, (LOOK, CLIP, CAMERA), ("as at first", "changed"),
        "first_state", (0.0, 1.0), memory=True,
    ),
    "state_frozen": Kind(
        "state frozen", "the state stood where it was last seen",
        TARGET, (LOOK, CLIP, CAMERA), ("as last seen", "changed"),
        "last_state", (0.0, 1.0), memory=True,
    ),
    "teleport": Kind(
        "wrong place", "the target was in another place",
        TARGET, (LOOK, CLIP, CAMERA), ("moved aside", "changed"),
        "target_elsewhere", (0.0, 1.2), memory=True,
    ),
    "duplicate": Kind(
        "duplicated", "there was a second target",
        TARGET, (LOOK, CLIP, CAMERA), ("doubled",),
        "target_doubled", (0.0, 0.9), memory=True,
    ),
    "background": Kind(
        "background hallucinated", "the place was another",
        LOOK, (CLIP, CAMERA, TARGET), ("other place", "other light"),
        "place_departure", (0.0, 0.8), memory=True,
    ),
    "lighting": Kind(
        "lighting drifts", "the light was another",
        LOOK, (CLIP, CAMERA), ("other light", "darker", "fainter colours", "other style"),
        "light_departure", (0.0, 35.0), memory=True,
    ),
    "style": Kind(
        "style drifts", "the style was another",
        LOOK, (CLIP, CAMERA), ("other style", "stronger colours", "other light"),
        "style_departure", (0.0, 0.35), memory=True,
    ),
    "flicker": Kind(
        "flicker", "the light flickers",
        CLIP, (), ("unsteady",),
        "unsteady_light", (0.0, 30.0),
    ),
    "cut": Kind(
        "cut", "the clip cuts away",
        CLIP, (), ("cut",),
        "cut_away", (0.0, 0.5),
    ),
    "blur": Kind(
        "blur", "the picture is blurred",
        LOOK, (CLIP, CAMERA), ("soft", "other style"),
        "sharpness_departure", (0.0, 0.7),
    ),
    "collapse": Kind(
        "collapse", "the picture decays",
        LOOK, (CLIP, CAMERA), ("melts", "other light", "other style"),
        "structure_decay", (0.0, 0.6),
    ),
}  # fmt: skip
