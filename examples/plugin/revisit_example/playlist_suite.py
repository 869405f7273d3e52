"""A suite in one file: a text file that lists one video per line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from revisit.core import METRICS, Case, Clip, Rejected, Suite, suite
from revisit.results import Results


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


def summarise(results: Results) -> dict[str, Any]:
    """The folder suite's tables serve as they are."""
    from revisit.suites.folder.summary import summarise as tables

    return tables(results)


PLAYLIST = suite(
    Suite("playlist", {"title": "A list of videos", "protocols": {"default": {}}}, read, recognises, metrics, summarise)
)
