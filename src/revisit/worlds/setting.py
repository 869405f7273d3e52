"""Setting: what a kind of place is made of, before its table and target are put in."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from revisit.worlds.furniture import Palette
from revisit.worlds.layout import Layout
from revisit.worlds.light import Lamp
from revisit.worlds.shapes import Thing
from revisit.worlds.textures import Paint


@dataclass(frozen=True, eq=False)
class Setting:
    """Things by name, their light, and where the seed wants the table."""

    title: str  # how a prompt calls the place
    palette: Palette
    things: dict[str, Thing]
    lamp: Lamp
    layout: Layout
    rng: np.random.Generator  # goes on where the place left it
    underfoot: tuple[str, Paint]  # what lies under the table
    overhead: Thing = field(default_factory=Thing)
