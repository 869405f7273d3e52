"""Named camera requests. In LR and RL the first letter is where the camera goes, the second how it comes back."""

from __future__ import annotations

from revisit.core import UsageError

FRAMES = 81

# name -> (script for an out-and-back of `half` frames each way, what it is)
PRESETS: dict[str, tuple[str, str]] = {
    "static": ("hold@{whole}", "the camera rests"),
    "yaw_LR": ("yaw:left:{degrees}@{half},yaw:right:{degrees}@{half}", "turns left, then back"),
    "yaw_RL": ("yaw:right:{degrees}@{half},yaw:left:{degrees}@{half}", "turns right, then back"),
    "pan_LR": ("truck:left:{metres}@{half},truck:right:{metres}@{half}", "moves left, then back"),
    "pan_RL": ("truck:right:{metres}@{half},truck:left:{metres}@{half}", "moves right, then back"),
    "arc_LR": (
        "yaw:right:{degrees}+truck:left:{metres}@{half},yaw:left:{degrees}+truck:right:{metres}@{half}",
        "moves left along an arc while it looks at what is ahead, then back",
    ),
    "arc_RL": (
        "yaw:left:{degrees}+truck:right:{metres}@{half},yaw:right:{degrees}+truck:left:{metres}@{half}",
        "moves right along an arc while it looks at what is ahead, then back",
    ),
    "orbit": ("yaw:left:360+truck:right:{circle}@{whole}", "once around what is ahead, one metre away"),
}


def preset(name: str, *, degrees: float = 60, metres: float = 0.5, frames: int = FRAMES) -> str:
    """The script of a preset over so many frames (an odd number, so that the way back is as long as the way out)."""
    if name not in PRESETS:
        raise UsageError(f"there is no camera preset {name!r}; there are {', '.join(PRESETS)}")
    if frames < 3 or frames % 2 == 0:
        raise UsageError(f"a preset runs over an odd number of frames from 3 on, such as 81, not {frames}")
    words = {"degrees": f"{degrees:g}", "metres": f"{metres:g}", "circle": f"{6.283185307179586:.12g}"}
    return PRESETS[name][0].format(half=(frames - 1) // 2, whole=frames - 1, **words)
