"""The suite `iworld`: <model>/<task>.mp4, each a clip that goes out and comes back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from revisit import Case, Clip, Suite, metrics_of, read_card, standard_summary, suite

TASKS = "iworld_tasks.txt"


def recognises(source: Path) -> bool:
    return (source / TASKS).is_file()


def read(source: Path, roots: Sequence[Path] = ()) -> Iterator[Case]:
    """A case per model and task."""
    for path in sorted(source.glob("*/*.mp4")):
        name, model = path.stem, path.parent.name
        yield Case(id=f"{name}@{model}", suite="iworld", model=model, sample=name, clip=Clip(path))


def metrics() -> list[str]:
    return metrics_of("iworld")


IWORLD = suite(Suite("iworld", read_card(__package__), read, recognises, metrics, standard_summary))
