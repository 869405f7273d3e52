"""A suite in one file: a text file that lists one video per line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import revisit


def recognises(source: Path) -> bool:
    return source.suffix == ".playlist"


def read(source: Path, roots: Sequence[Path] = ()) -> Iterator[revisit.Case | revisit.Rejected]:
    """One case per line; the model is named after the playlist."""
    for line in filter(None, source.read_text(encoding="utf-8").splitlines()):
        path = (source.parent / line).resolve()
        if not path.is_relative_to(source.parent.resolve()):
            yield revisit.Rejected(line, "it lies outside the playlist's folder")
            continue
        yield revisit.Case(line, "playlist", model=source.stem, sample=line, clip=revisit.Clip(path))


def metrics() -> list[str]:
    return revisit.metrics_of("playlist")


CARD = {"title": "A list of videos", "protocols": {"default": {}}}
PLAYLIST = revisit.suite(revisit.Suite("playlist", CARD, read, recognises, metrics, revisit.standard_summary))
