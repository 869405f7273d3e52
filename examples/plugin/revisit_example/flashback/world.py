"""Flashback's files, for `revisit world render`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from revisit.worlds.film import Film
from revisit.worlds.layouts.common import Model, Row, Tell, each_that_applies, text, video
from revisit.worlds.layouts.film_orders import Layout, Order, layout, place_of


def films(seed: int) -> list[Order]:
    """The film of a seed: a gift that stays as it is."""
    return [Order(f"gift-{seed:03d}", seed, place_of(seed), "gift", "none")]


def shoot(folder: Path, name: str, film: Film, models: Sequence[Model], seed: int, tell: Tell) -> Row:
    """Write the videos of one film that are not there."""
    for model in each_that_applies(models, film, name, tell):
        video(folder / "videos" / model.name / f"{name}.mp4", model.frames(film, seed), film.fps)
    return {"clip": name}


def index(folder: Path, rows: Sequence[Row]) -> None:
    """Write the list of clips."""
    text(folder / "flashback.txt", "".join(f"{row['clip']}\n" for row in rows))


layout(Layout("flashback", films, ("perfect", "lighting"), shoot, index, options="--suite flashback"))
