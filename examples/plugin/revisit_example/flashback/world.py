"""Flashback's files, for `revisit world render`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from revisit.benchmark import (
    Film,
    FilmOrder,
    IndexRow,
    Layout,
    ReferenceModel,
    StepCallback,
    each_that_applies,
    place_of,
    register_layout,
    write_text,
    write_video,
)  # fmt: skip


def films(seed: int) -> list[FilmOrder]:
    """The film of a seed: a gift that stays as it is."""
    return [FilmOrder(f"gift-{seed:03d}", seed, place_of(seed), "gift", "none")]


def shoot(
    folder: Path, name: str, film: Film, models: Sequence[ReferenceModel], seed: int, tell: StepCallback
) -> IndexRow:
    """Write the videos of one film that are not there."""
    for model in each_that_applies(models, film, name, tell):
        write_video(folder / "videos" / model.name / f"{name}.mp4", model.frames(film, seed), film.fps)
    return {"clip": name}


def index(folder: Path, rows: Sequence[IndexRow]) -> None:
    """Write the list of clips."""
    write_text(folder / "flashback.txt", "".join(f"{row['clip']}\n" for row in rows))


register_layout(Layout("flashback", films, ("perfect", "lighting"), shoot, index, options="--suite flashback"))
