"""Common: shared by all layouts: which models are written, and atomic file writing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import UsageError
from revisit.media import encode_mp4, save_npz, write_picture
from revisit.media.files import atomic_write_path, write_json_lines, write_text_atomically
from revisit.media.text_files import csv_text, write_xlsx
from revisit.worlds.failures import camera_path, failure_of_kind, generate
from revisit.worlds.film import Film
from revisit.worlds.workers import StepCallback

Row = Mapping[str, Any]  # what an index says of one film
text, json_lines = write_text_atomically, partial(write_json_lines, ascii=True)  # as layouts of plugins know them


@dataclass(frozen=True)
class Model:
    """A reference model: perfect memory, or a failure at a strength."""

    kind: str
    strength: float = 1.0

    @classmethod
    def parse(cls, text: str) -> Model:
        """The model of a text such as vanish or vanish@0.5."""
        kind, _, strength = text.partition("@")
        failure_of_kind(kind)
        try:
            share = float(strength or 1)
        except ValueError:
            share = -1.0
        if not 0 <= share <= 1:
            raise UsageError(f"{text!r}: a strength is a number from 0 to 1, as in vanish@0.5")
        return cls(kind, share)

    @property
    def name(self) -> str:
        return self.kind if self.strength == 1 else f"{self.kind}@{self.strength:g}"

    def frames(self, film: Film, seed: int) -> Iterator[np.ndarray]:
        """What it makes of a film."""
        return generate(self.kind, film, self.strength, seed)

    def poses(self, film: Film, seed: int) -> np.ndarray:
        """Where its camera really is."""
        return camera_path(self.kind, film, self.strength, seed)


def each_that_applies(models: Iterable[Model], film: Film, name: str, tell: StepCallback) -> Iterator[Model]:
    """The models that have something to fail at in a film; tells of each, also of the others, when it is done."""
    for model in models:
        if failure_of_kind(model.kind).applies(film):
            yield model
        tell(f"{name}: {model.name}")


def true_frames(film: Film) -> Iterator[np.ndarray]:
    """The frames as they really are."""
    return (film.truth(frame).rgb for frame in range(len(film)))


def video(path: Path, frames: Iterable[np.ndarray], fps: float) -> None:
    """Write a video where there is none."""
    if not path.is_file():
        encode_mp4(path, frames, fps)


def write_missing_arrays(path: Path, **named: np.ndarray) -> None:
    """Write arrays as .npz where there are none, or one array as .npy."""
    if path.is_file():
        return
    if path.suffix == ".npz":
        save_npz(path, named, compress=True)
    else:
        with atomic_write_path(path) as temporary:
            np.save(temporary, next(iter(named.values())))


def write_missing_pictures(folder: Path, name: Callable[[int], str], frames: Iterable[np.ndarray]) -> None:
    """Write frames as image files into a folder, which appears when it is complete."""
    if folder.is_dir():
        return
    temporary = folder.with_name(f".writing-{os.getpid()}-{folder.name}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    for number, rgb in enumerate(frames):
        write_missing_picture(temporary / name(number), rgb)
    temporary.replace(folder)


def write_missing_picture(path: Path, rgb: np.ndarray) -> None:
    """Write one image file where there is none."""
    if not path.is_file():
        write_picture(path, rgb, quality=97)


def write_csv_table(path: Path, columns: Sequence[str], rows: Iterable[Row], newline: str = "\r\n") -> None:
    """Write a CSV file of some columns, with a heading."""
    write_text_atomically(path, csv_text(columns, ([row[column] for column in columns] for row in rows), newline))


def write_spreadsheet(path: Path, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Write a spreadsheet of some columns, with a heading."""
    write_xlsx(path, columns, ([row[column] for column in columns] for row in rows))
