"""MIND: its dataset and predictions, rendered by `worlds.mind`, whose models walk by keys instead of camera scripts."""

from __future__ import annotations

from pathlib import Path

from revisit.worlds.layouts.common import Tell
from revisit.worlds.mind import DONE, FUTURE, render_mind

SPACES = ((1.0, 200.0), (2.0, 100.0))  # the varied action spaces: speed and angle
STEPS = 10  # of which render_mind tells: two perspectives with four recordings and the mirror test


def write(folder: Path, size: tuple[int, int], tell: Tell = lambda _: None, frames: int | None = None) -> Path:
    """Write the dataset and the predictions where they are not complete; return what `revisit eval` is given.

    `frames` is the length of a prediction: upstream's rules need more than 100.
    """
    if (folder / DONE).is_file():
        for step in range(STEPS):
            tell(f"part {step + 1} is there")
    else:
        render_mind(
            folder, size=size, future=frames or FUTURE, spaces=SPACES, progress=lambda done, total, what: tell(what)
        )
    return folder / "predictions"
