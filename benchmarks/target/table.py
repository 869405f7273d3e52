"""The table that the target gate is fitted on: features and labels of real and of simulated clips.

    python benchmarks/target/table.py OUT.jsonl --real FOLDER [--real FOLDER ...] [--worlds 20]
        [--photographs FOLDER --composites 200] [--cache FOLDER] [--looks-every 4]

Real clips are those of labelled folders, as `revisit audit --real` reads them. Simulated ones (clips.py) are rendered
worlds, and cut-outs moved over photographs: a folder of pictures, each named after its scene. Evidence is kept in the
cache, so that the same command goes on where it stopped, and so that other features of the same evidence take seconds.
A network looks at all real clips and at every so-manieth simulated one. Then:

    python -m revisit.audit.target_fit OUT.jsonl src/revisit/metrics/target_model.json benchmarks/target/figures.json
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import clips
import cv2
import numpy as np

import revisit
from revisit.audit.labelled import read_labelled
from revisit.audit.target_fit import Line
from revisit.core import OBSERVERS, digest
from revisit.engine.cache import EvidenceCache
from revisit.evidence.target import TargetLooks, TargetTrack
from revisit.metrics.target_probability import clip_features
from revisit.results.record_files import write_json

KINDS = {"lite.target": TargetTrack, "small.looks": TargetLooks}
# clips of one scene that no name tells
SAME_SCENE = {"wrb_case_a_yaw_lr": "wrb_case_a", "wrb_case_a_yaw_rl": "wrb_case_a", "wrb_cat_drag_wan22_5b": "wrb_cat"}


class Evidence:
    """Evidence by the name of a clip, from a folder where it is there."""

    def __init__(self, folder: Path) -> None:
        self.cache = EvidenceCache(folder, shared="")

    def key(self, source: str, clip: str, observer: str) -> str:
        return digest([source, clip, observer, OBSERVERS[observer].version], 32)

    def load(self, source: str, clip: str, observer: str) -> TargetTrack | TargetLooks | None:
        """What the cache has of it."""
        record = self.cache.load(KINDS[observer], self.key(source, clip, observer))
        assert record is None or isinstance(record, TargetTrack | TargetLooks)
        return record

    def __call__(
        self, source: str, clip: str, observer: str, video: Path | np.ndarray, fps: float, box: clips.Box
    ) -> TargetTrack | TargetLooks:
        record = self.load(source, clip, observer)
        if record is None:
            given = {} if isinstance(video, Path) else {"fps": fps}
            record = revisit.observe(video, observer, target=box, **given)
            assert isinstance(record, TargetTrack | TargetLooks)
            self.cache.save(self.key(source, clip, observer), record)
        return record


def line(source: str, clip: str, scenes: list[str], label: str, simulated: bool, *evidence: object) -> Line:
    """A line of the table."""
    track, looks = evidence
    assert isinstance(track, TargetTrack) and (looks is None or isinstance(looks, TargetLooks))
    features = {name: round(value, 3) for name, value in clip_features(track, looks)[0].items()}
    return {
        "clip": clip, "source": source, "scenes": scenes, "label": label, "simulated": simulated, "features": features
    }  # fmt: skip


def real_lines(folders: list[Path], evidence: Evidence) -> Iterator[Line]:
    """The lines of labelled clips, those without a clear label left out."""
    for clip in read_labelled(folders):
        if clip.verdict and clip.box is not None:
            made = [evidence(clip.source, clip.name, name, clip.clip, 0.0, clip.box) for name in KINDS]
            yield line(clip.source, clip.name, [SAME_SCENE.get(clip.name, clip.scene)], clip.verdict, False, *made)


def simulated_lines(
    source: str, number: int, films: Callable[[int], Iterator[clips.LabelledClip]], evidence: Evidence, looks_every: int
) -> Iterator[Line]:
    """The lines of all clips of a simulated scene; what they are is kept, so that it is rendered once."""
    index = evidence.cache.root / "simulated" / f"{source}{number:03d}.json"
    if not index.is_file():
        rows = []
        for position, clip in enumerate(films(number)):
            observers = list(KINDS) if (number + position) % looks_every == 0 else ["lite.target"]
            for name in observers:
                evidence(source, clip.name, name, clip.frames, clip.fps, clip.box)
            rows.append({"clip": clip.name, "scenes": clip.scenes, "label": clip.label, "observers": observers})
        write_json(index, rows)
    for row in json.loads(index.read_text(encoding="utf-8")):
        made = [evidence.load(source, row["clip"], name) if name in row["observers"] else None for name in KINDS]
        yield line(source, row["clip"], row["scenes"], row["label"], True, *made)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--real", type=Path, action="append", default=[])
    parser.add_argument("--photographs", type=Path)
    parser.add_argument("--composites", type=int, default=0)
    parser.add_argument("--worlds", type=int, default=0)
    parser.add_argument("--cache", type=Path, default=Path("build/target"))
    parser.add_argument("--looks-every", type=int, default=4)
    given = parser.parse_args()
    if given.composites and given.photographs is None:
        parser.error("--composites needs --photographs, a folder of pictures")
    cv2.setNumThreads(1)
    evidence = Evidence(given.cache)
    pictures = sorted(given.photographs.iterdir()) if given.photographs else []
    photographs = [clips.Photograph(path.stem, cv2.imread(str(path))[..., ::-1]) for path in pictures]

    def composite(number: int) -> Iterator[clips.LabelledClip]:
        return clips.composite(number, photographs)

    def numbers(source: str, count: int) -> list[int]:
        """Those asked for, and those that the cache has."""
        names = (path.stem.removeprefix(source) for path in (given.cache / "simulated").glob(f"{source}*.json"))
        return sorted({*range(count), *map(int, names)})

    with given.out.open("w", encoding="utf-8") as file:

        def write(lines: Iterator[Line]) -> None:
            for row in lines:
                file.write(json.dumps(row) + "\n")
                file.flush()

        write(real_lines(given.real, evidence))
        for number in numbers("worlds", given.worlds):
            write(simulated_lines("worlds", number, clips.world_clips, evidence, given.looks_every))
        for number in numbers("composites", given.composites):
            write(simulated_lines("composites", number, composite, evidence, given.looks_every))


if __name__ == "__main__":
    main()
