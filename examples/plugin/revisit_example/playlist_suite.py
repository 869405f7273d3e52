"""A suite in one file: a text file that lists one video per line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from revisit.core import METRICS, Case, Clip, Rejected, Suite, suite
from revisit.results.tables import standard_summary


def recognises(source: Path) -> bool:
    return source.suffix == ".playlist"


def read(source: Path, roots: Sequence[Path] = ()) -> Iterator[Case | Rejected]:
    """One case per line; the model is named after the playlist."""
    for line in filter(None, source.read_text(encoding="utf-8").splitlines()):
        path = (source.parent / line).resolve()
        if not path.is_relative_to(source.parent.resolve()):
            yield Rejected(line, "it lies outside the playlist's folder")
            continue
        yield Case(id=line, suite="playlist", model=source.stem, sample=line, clip=Clip(path))


def metrics() -> list[str]:
    return [id for id in METRICS if "playlist" in METRICS[id].suites]


PLAYLIST = suite(
    Suite(
        "playlist",
        {"title": "A list of videos", "protocols": {"default": {}}},
        read,
        recognises,
        metrics,
        standard_summary,
    )
)
