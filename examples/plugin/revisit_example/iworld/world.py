"""Films that go out and come back, as the suite reads them."""

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
    """Pan out and back without a rest, and what happens meanwhile."""
    script = "yaw:{away}:60@{half},yaw:{back}:60@{rest}"
    return [FilmOrder(f"pan-{seed:03d}", seed, place_of(seed), "gift", "both", script)]


def shoot(
    folder: Path, name: str, film: Film, models: Sequence[ReferenceModel], seed: int, tell: StepCallback
) -> IndexRow:
    """Write the videos of one film that are not there."""
    for model in each_that_applies(models, film, name, tell):
        write_video(folder / model.name / f"{name}.mp4", model.frames(film, seed), film.fps)
    return {"task": name}


def index(folder: Path, rows: Sequence[IndexRow]) -> None:
    """Write the list of tasks."""
    write_text(folder / "iworld_tasks.txt", "".join(f"{row['task']}\n" for row in rows))


register_layout(
    Layout("iworld", films, ("perfect", "frozen_camera", "partial_return"), shoot, index, options="--suite iworld")
)
