"""Authoring: what all builders of datasets share: their files, and the card that every dataset gets.

A card (dataset-card.json, and DATASET.md for people) says whose the data are, how many there are, the digest of every
file, and one fingerprint of all of them, so that two people can tell whether they hold the same dataset.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import Clip, UsageError, digest
from revisit.core.text import parse_json
from revisit.datasets.clips import video_files
from revisit.media import VIDEO_SUFFIXES, file_digest, natural_order, open_clip
from revisit.media.files import write_text_atomically
from revisit.media.text_files import csv_text

CARD, READABLE = "dataset-card.json", "DATASET.md"
USER_ADDITIONS = ("models", "jobs", "inputs", "models.yaml")  # what users add to a dataset later: no part of it


Rows = Sequence[Sequence[Any]]
DatasetTable = tuple[str, Sequence[str], Rows]  # title, columns, rows


@dataclass(frozen=True)
class DatasetDescription:
    """What is in a dataset: facts by name, tables (title, columns, rows), and numbers to be drawn as histograms."""

    title: str
    facts: Mapping[str, object]
    tables: Sequence[DatasetTable] = ()
    histograms: Mapping[str, Sequence[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class DatasetTools:
    """How a suite tells its dataset from others, describes it, and finds what it could not score."""

    recognises: Callable[[Path], bool]
    describe: Callable[[Path], DatasetDescription]
    problems: Callable[[Path], list[str]]

    def problems_with_card(self, root: Path) -> list[str]:
        """What does not agree with the dataset's card, and what the suite could not score."""
        return [*card_problems(root), *self.problems(root)]


def write_dataset_card(
    root: Path, suite: str, *, title: str, licence: str, source: str, counts: Mapping[str, int]
) -> Path:
    """The card of a dataset, from the files that are there."""
    if not licence or not source:
        raise UsageError("every dataset says whose it is: give --licence (such as CC-BY-4.0) and --source")
    files = {path.relative_to(root).as_posix(): file_digest(path) for path in _dataset_files(root)}
    content = {
        "schema": 1, "suite": suite, "title": title, "licence": licence, "source": source, "counts": dict(counts),
        "fingerprint": digest(files, 32), "files": files,
    }  # fmt: skip
    write_json_file(root / CARD, content)
    lines = [f"# {title}", "", "|  |  |", "|---|---|", f"| suite | {suite} |", f"| licence | {licence} |"]
    lines += [f"| source | {source} |", *(f"| {name} | {count} |" for name, count in counts.items())]
    lines += [f"| files | {len(files)} |", f"| fingerprint | `{content['fingerprint']}` |", ""]
    lines += [f"`{CARD}` has the SHA-256 of every file; `revisit build check` compares them."]
    write_text_atomically(root / READABLE, "\n".join(lines) + "\n")
    return root / CARD


def card_problems(root: Path) -> list[str]:
    """What does not agree with the card of a dataset, as sentences."""
    try:
        card = parse_json((root / CARD).read_text(encoding="utf-8"))
        files = dict(card["files"])
    except FileNotFoundError:
        return [f"there is no {CARD} in {root}; the builders write one"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        return [f"there is no {CARD} that can be read ({error}); the builders write one"]
    sentences = [f"the card has no {name}" for name in ("licence", "source", "suite", "counts") if not card.get(name)]
    if card.get("fingerprint") != digest(files, 32):
        sentences.append("the fingerprint of the card is not that of its files")
    there = {path.relative_to(root).as_posix(): path for path in _dataset_files(root)}
    sentences += [f"{name} is on the card and not there" for name in files if name not in there]
    sentences += [f"{name} is not on the card" for name in there if name not in files]
    changed = [name for name in files if name in there and file_digest(there[name]) != files[name]]
    return [*sentences, *(f"{name} is not what it was" for name in changed)]


def _dataset_files(root: Path) -> list[Path]:
    """The files of a dataset, without its card, hidden ones, and what users add to it."""
    files = []
    for path in sorted(root.rglob("*"), key=natural_order):
        parts = path.relative_to(root).parts
        hidden = any(part.startswith(".") for part in parts)
        if parts[0] not in (*USER_ADDITIONS, CARD, READABLE) and not hidden and path.is_file():
            files.append(path)
    return files


def videos_in(folder: Path) -> list[Path]:
    """The videos directly in a folder, in natural order."""
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder of videos")
    videos = video_files(folder)
    if not videos:
        raise UsageError(f"{folder}: there is no video in it ({', '.join(VIDEO_SUFFIXES)})")
    return videos


def make_empty_folder(root: Path) -> Path:
    """A folder to build in; one that holds something else is refused."""
    if root.exists() and any(root.iterdir()):
        raise UsageError(f"{root} is not empty; a dataset is built in a folder of its own, choose another --out")
    root.mkdir(parents=True, exist_ok=True)
    return root


def read_video_frame(video: Path, number: int) -> np.ndarray:
    """One frame of a video; -1 is the last one."""
    with open_clip(
        Clip(video), wanted=lambda count, fps: np.array([number if number >= 0 else count + number])
    ) as stream:
        return next(iter(stream)).rgb


def write_json_file(path: Path, content: Any) -> None:
    """A JSON file."""
    write_text_atomically(path, json.dumps(content, indent=1, ensure_ascii=False))


def write_csv_file(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]], newline: str = "\r\n") -> None:
    """A CSV file."""
    write_text_atomically(path, csv_text(columns, rows, newline))


def value_count_table(title: str, columns: tuple[str, str], values: Iterable[object]) -> DatasetTable:
    """A table of how often each value occurs, the most frequent first."""
    return title, columns, [(str(value), count) for value, count in Counter(values).most_common()]


def least_median_most_table(title: str, numbers: Mapping[str, Sequence[float]]) -> DatasetTable:
    """A table with least, median and most of some quantities."""
    rows = []
    for name, values in numbers.items():
        ends = [f"{value:.4g}" for value in (min(values), np.median(values), max(values))] if len(values) else [""] * 3
        rows.append([name, *ends])
    return title, ("", "least", "median", "most"), rows
