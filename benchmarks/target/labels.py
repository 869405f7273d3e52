"""The table of the targets that are labelled in labels.json: their features, as table.py writes them.

    python benchmarks/target/labels.py OUT.jsonl --data FOLDER [--cache build/target] [--workers 1]

`labels.json` names for each target a clip (`folder` in the data, `clip`), the frames that count (`first` to `last`),
its box in the first of them, what became of it by eye, and from which frame on it was gone and back. All boxes and
labels were written before any run of the gate on these clips. `exam` marks scenes that stay out of every fit and every
choice: those whose name has an even first byte of SHA-256, unless a clip of the scene was part of an earlier fit.

Evidence is kept in the cache, so that the same command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import cv2
import numpy as np
import table
from target_fit import Line

from revisit.core import Clip
from revisit.media import open_clip

LABELS = Path(__file__).with_name("labels.json")


@dataclass(frozen=True)
class LabelledTarget:
    """A row of labels.json."""

    clip: str  # file name
    folder: str  # in the folder of data
    scene: str
    source: str  # whose clip it is
    first: int  # frames that count, both included
    last: int | None
    target: str
    kind: str  # what such targets have in common
    box: list[float]  # in the first frame, as fractions
    label: str
    gone: int | None  # first frame without it, by eye
    back: int | None  # first frame in which it is back
    note: str
    exam: bool

    @property
    def name(self) -> str:
        """A name that no other target has."""
        return f"{Path(self.clip).stem}: {self.target}"


def read_targets(path: Path = LABELS) -> list[LabelledTarget]:
    """The labelled targets."""
    return [LabelledTarget(**row) for row in json.loads(path.read_text(encoding="utf-8"))]


def labelled_line(target: LabelledTarget, data: Path, cache: Path) -> Line:
    """A target's line of the table, from evidence that is made where the cache lacks it."""
    cv2.setNumThreads(1)
    evidence, folder = table.Evidence(cache), target.folder.split("/")[-1]
    path = data / target.folder / target.clip
    records = [evidence.load(folder, target.name, name) for name in table.KINDS]
    if None in records:
        video: Path | np.ndarray = path
        fps = 0.0
        if target.first or target.last is not None:
            video, fps = frames_of(path, target.first, target.last)
        x0, y0, x1, y1 = target.box
        records = [evidence(folder, target.name, name, video, fps, (x0, y0, x1, y1)) for name in table.KINDS]
    line = table.line(folder, target.name, [target.scene], target.label, False, *records)
    return {**line, "owner": target.source, "kind": target.kind, "exam": target.exam}


def frames_of(path: Path, first: int, last: int | None) -> tuple[np.ndarray, float]:
    """The frames from the first to the last one, and how many there are a second."""

    def wanted(count: int, fps: float) -> np.ndarray:
        return np.arange(first, count if last is None else min(last + 1, count))

    with open_clip(Clip(path), wanted=wanted) as stream:
        return np.stack([frame.rgb for frame in stream]), float(stream.info.fps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cache", type=Path, default=Path("build/target"))
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    with ProcessPoolExecutor(given.workers, multiprocessing.get_context("spawn")) as workers:
        lines = list(workers.map(partial(labelled_line, data=given.data, cache=given.cache), read_targets()))
    given.out.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
