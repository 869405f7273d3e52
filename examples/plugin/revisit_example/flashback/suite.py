"""The suite `flashback`: videos/<model>/<clip>.mp4 below a folder with a file flashback.txt that lists the clips."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from revisit.core import METRICS, Case, Clip, Rejected
from revisit.core.suites import Suite, read_card, suite
from revisit.results.leaderboards import Board, Column, RunFacts, board_of_run
from revisit.results.tables import standard_summary

LIST = "flashback.txt"


def recognises(source: Path) -> bool:
    return (source / LIST).is_file()


def read(source: Path, roots: Sequence[Path] = ()) -> Iterator[Case | Rejected]:
    """A case per model and clip of the list."""
    clips = (source / LIST).read_text(encoding="utf-8").split()
    for folder in sorted((source / "videos").iterdir()):
        for clip in clips:
            id, path = f"{clip}@{folder.name}", folder / f"{clip}.mp4"
            if path.is_file():
                yield Case(id=id, suite="flashback", model=folder.name, sample=clip, clip=Clip(path))
            else:
                yield Rejected(id, "there is no such video", missing=True)


def metrics() -> list[str]:
    return [id for id in METRICS if "flashback" in METRICS[id].suites]


def boards(run: RunFacts, subset: str = "") -> list[Board]:
    """One board, with the benchmark's own name for its column."""
    return [board_of_run(run, (Column("flashback_light", "Light", decimals=3),), subset)]


FLASHBACK = suite(
    Suite("flashback", read_card(__package__), read, recognises, metrics, standard_summary, boards=boards)
)
