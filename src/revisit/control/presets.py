"""Named camera requests (presets.yaml) as scripts."""

from __future__ import annotations

import math

from revisit.core import UsageError
from revisit.core.text import read_package_yaml

FRAMES = 81

PRESETS: dict[str, tuple[str, str]] = read_package_yaml("revisit.control", "presets.yaml")  # name -> script, what it is


def preset_script(name: str, *, degrees: float = 60, metres: float = 0.5, frames: int = FRAMES) -> str:
    """The script of a preset over so many frames; an even number cannot be told from the script alone."""
    if name not in PRESETS:
        raise UsageError(f"unknown camera preset {name!r}; choose one of {', '.join(PRESETS)}")
    if frames < 5:
        raise UsageError(f"a preset needs at least 5 frames, such as 81, not {frames}")
    words = {"degrees": degrees, "metres": metres, "circle": 2 * math.pi}
    counts = {"whole": frames, "out": frames // 2, "back": frames // 2, "steps": frames - 1}
    return PRESETS[name][0].format(**counts, **{word: f"{value:.12g}" for word, value in words.items()})
