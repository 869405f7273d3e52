"""Named camera requests. In LR and RL the first letter is where the camera goes, the second how it comes back.

`static`, `yaw`, `pan`, `arc` and `orbit` ask for what WRBench's presets of these names ask for; the others are ours.
"""

from __future__ import annotations

import math

from revisit.core import UsageError

FRAMES = 81

# name -> (script for an out-and-back of `out` and `back` frames, what it is)
PRESETS: dict[str, tuple[str, str]] = {
    "static": ("static@{whole}", "the camera stays still"),
    "yaw_LR": ("yaw:left:{degrees}@{out},yaw:right:{degrees}@{back}", "turns left, then back"),
    "yaw_RL": ("yaw:right:{degrees}@{out},yaw:left:{degrees}@{back}", "turns right, then back"),
    "pan_LR": ("pan:left:{metres}@{out},pan:right:{metres}@{back}", "moves left, then back"),
    "pan_RL": ("pan:right:{metres}@{out},pan:left:{metres}@{back}", "moves right, then back"),
    "arc_LR": (
        "yaw:left:{degrees}+dolly:forward:{ahead}@{out},yaw:right:{degrees}+dolly:back:{ahead}@{back}",
        "turns left while it goes ahead, then back",
    ),
    "arc_RL": (
        "yaw:right:{degrees}+dolly:forward:{ahead}@{out},yaw:left:{degrees}+dolly:back:{ahead}@{back}",
        "turns right while it goes ahead, then back",
    ),
    "orbit": (
        "yaw:left:{degrees}+pan:right:{metres}@{out},yaw:right:{degrees}+pan:left:{metres}@{back}",
        "turns left while it moves right, then back",
    ),
    "tilt_UD": ("tilt:up:{tilt}@{out},tilt:down:{tilt}@{back}", "looks up, then back"),
    "dolly_FB": ("dolly:forward:{metres}@{out},dolly:back:{metres}@{back}", "goes ahead, then back"),
    "around_LR": (
        "orbit:left:{degrees}@{out},orbit:right:{degrees}@{back}",
        "goes left around what is two metres ahead and looks at it, then back",
    ),
    "around_RL": (
        "orbit:right:{degrees}@{out},orbit:left:{degrees}@{back}",
        "goes right around what is two metres ahead and looks at it, then back",
    ),
    "circle": ("yaw:left:360+truck:right:{circle}@{steps}", "once around what is ahead, one metre away"),
}


def preset(
    name: str, *, degrees: float = 60, metres: float = 0.5, ahead: float = 1, tilt: float = 20, frames: int = FRAMES
) -> str:
    """The script of a preset over so many frames; an even number cannot be told from the script alone."""
    if name not in PRESETS:
        raise UsageError(f"unknown camera preset {name!r}; choose one of {', '.join(PRESETS)}")
    if frames < 5:
        raise UsageError(f"a preset needs at least 5 frames, such as 81, not {frames}")
    words = {"degrees": degrees, "metres": metres, "ahead": ahead, "tilt": tilt, "circle": 2 * math.pi}
    counts = {"whole": frames, "out": frames // 2, "back": frames // 2, "steps": frames - 1}
    return PRESETS[name][0].format(**counts, **{word: f"{value:.12g}" for word, value in words.items()})
