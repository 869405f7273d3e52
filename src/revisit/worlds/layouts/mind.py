"""MIND: its dataset and predictions, rendered by `worlds.mind`, whose models walk by keys instead of camera scripts."""

from __future__ import annotations

from pathlib import Path

from revisit.worlds.layouts.common import Tell
from revisit.worlds.mind import DONE, render_mind

STEPS = 8  # of which render_mind tells: two perspectives with three recordings and the mirror test


def write(folder: Path, size: tuple[int, int], tell: Tell = lambda _: None) -> Path:
    """Write the dataset and the predictions where they are not complete; return what `revisit eval` is given."""
    if (folder / DONE).is_file():
        for step in range(STEPS):
            tell(f"part {step + 1} is there")
    else:
        render_mind(folder, size=size, progress=lambda done, total, what: tell(what))
    return folder / "predictions"
