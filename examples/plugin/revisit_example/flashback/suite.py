"""The suite `flashback`: videos/<model>/<clip>.mp4 below a folder with a file flashback.txt that lists the clips."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from revisit import Case, Clip, Rejected, Suite, metrics_of, read_card, standard_summary, suite
from revisit.benchmark import Board, BoardColumn, RunFacts, board_of_run

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
    return metrics_of("flashback")


def boards(run: RunFacts, subset: str = "") -> list[Board]:
    """One board, with the benchmark's own name for its column."""
    return [board_of_run(run, (BoardColumn("flashback_light", "Light", decimals=3),), subset)]


FLASHBACK = suite(
    Suite("flashback", read_card(__package__), read, recognises, metrics, standard_summary, boards=boards)
)
