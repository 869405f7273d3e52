"""Common: shared by all layouts: which models are written, and atomic file writing."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import numpy as np

from revisit.core import UsageError
from revisit.media import encode_mp4, save_npz
from revisit.media.files import replacing
from revisit.worlds.failures import camera_path, failure, generate
from revisit.worlds.film import Film

Tell = Callable[[str], None]
Row = Mapping[str, Any]  # what an index says of one film
WRITTEN = "docProps/core.xml"  # the part of a spreadsheet that says when it was written
HOUR = re.compile(rb">\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ<")


@dataclass(frozen=True)
class Model:
    """A reference model: perfect memory, or a failure at a strength."""

    kind: str
    strength: float = 1.0

    @classmethod
    def parse(cls, text: str) -> Model:
        """The model of a text such as vanish or vanish@0.5."""
        kind, _, strength = text.partition("@")
        failure(kind)
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


def each_that_applies(models: Iterable[Model], film: Film, name: str, tell: Tell) -> Iterator[Model]:
    """The models that have something to fail at in a film; tells of each, also of the others, when it is done."""
    for model in models:
        if failure(model.kind).applies(film):
            yield model
        tell(f"{name}: {model.name}")


def true_frames(film: Film) -> Iterator[np.ndarray]:
    """The frames as they really are."""
    return (film.truth(frame).rgb for frame in range(len(film)))


def video(path: Path, frames: Iterable[np.ndarray], fps: float) -> None:
    """Write a video where there is none."""
    if not path.is_file():
        encode_mp4(path, frames, fps)


def arrays(path: Path, **named: np.ndarray) -> None:
    """Write arrays as .npz where there are none, or one array as .npy."""
    if path.is_file():
        return
    if path.suffix == ".npz":
        save_npz(path, named, compress=True)
    else:
        with replacing(path) as temporary:
            np.save(temporary, next(iter(named.values())))


def pictures(folder: Path, name: Callable[[int], str], frames: Iterable[np.ndarray]) -> None:
    """Write frames as image files into a folder, which appears when it is complete."""
    if folder.is_dir():
        return
    temporary = folder.with_name(f".writing-{os.getpid()}-{folder.name}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    for number, rgb in enumerate(frames):
        picture(temporary / name(number), rgb)
    temporary.replace(folder)


def picture(path: Path, rgb: np.ndarray) -> None:
    """Write one image file where there is none."""
    import cv2

    if not path.is_file():
        with replacing(path) as temporary:
            quality = [cv2.IMWRITE_JPEG_QUALITY, 97] if path.suffix == ".jpg" else []
            cv2.imwrite(str(temporary), np.ascontiguousarray(rgb[..., ::-1]), quality)


def text(path: Path, content: str) -> None:
    """Write a text file; an index is small, so it is always written anew."""
    with replacing(path) as temporary:
        temporary.write_text(content, encoding="utf-8", newline="")


def json_lines(path: Path, rows: Iterable[Row]) -> None:
    """Write one JSON object per line."""
    text(path, "".join(json.dumps(row) + "\n" for row in rows))


def table(path: Path, columns: Sequence[str], rows: Iterable[Row], newline: str = "\r\n") -> None:
    """Write a CSV file of some columns, with a heading."""
    made = io.StringIO()
    writer = csv.DictWriter(made, columns, extrasaction="ignore", lineterminator=newline)
    writer.writeheader()
    writer.writerows(rows)
    text(path, made.getvalue())


def sheet(path: Path, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Write a spreadsheet of some columns, with a heading; the same bytes for the same rows."""
    from openpyxl import Workbook

    book = Workbook()
    page = book.active
    assert page is not None
    page.append(list(columns))
    for row in rows:
        page.append([row[column] for column in columns])
    dated = io.BytesIO()
    book.save(dated)
    with replacing(path) as temporary, ZipFile(dated) as parts, ZipFile(temporary, "w") as undated:
        for name in parts.namelist():
            part = parts.read(name)
            if name == WRITTEN:
                part = HOUR.sub(b">1980-01-01T00:00:00Z<", part)
            undated.writestr(ZipInfo(name), part, ZIP_DEFLATED)
