"""The table that the target gate is fitted on: features and labels of real and of simulated clips.

    python benchmarks/target/table.py OUT.jsonl --real FOLDER [--real FOLDER ...] [--worlds 20] [--forgetful 20]
        [--photographs FOLDER --composites 200] [--first 0] [--cache FOLDER] [--looks-every 4] [--workers 1]
        [--seconds 0]

Real clips are those of labelled folders, as `revisit audit --real` reads them. Simulated ones (clips.py) are rendered
worlds, more clips of these that come back without their target, and cut-outs moved over photographs: a folder of
pictures, each named after its scene. Evidence is kept in the cache, so that the same command goes on where it stopped,
and so that other features of the same evidence take seconds. A network looks at all real clips and at every so-manieth
simulated one. Scenes are observed by several workers; after so many seconds no further one is begun, and the table
holds what is there. Then:

    python benchmarks/target/target_fit.py OUT.jsonl --figures benchmarks/target/figures.json

Worlds from another `--first` number on, in a table and a cache of their own, are an exam: scenes that no fit, no
threshold and nobody has seen (`--exam` of that command).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import clips
import cv2
import numpy as np
from target_fit import Line

import revisit
from revisit.audit.labelled import read_labelled_clips
from revisit.core import OBSERVERS, digest
from revisit.engine.cache import EvidenceCache
from revisit.evidence.target import TargetLooks, TargetObservations, TargetTrack
from revisit.metrics.target_return import LAYOUT, LOOKS, clip_features_and_rule_verdict, reason_target_is_unjudgeable
from revisit.results.record_files import write_json

KINDS = {"lite.target": TargetTrack, "small.looks": TargetLooks}
# one name for each scene, whether a clip or a photograph shows it
SCENES = {
    "wrb_case_a_yaw_lr": "wrb_case_a", "wrb_case_a_yaw_rl": "wrb_case_a", "wrb_cat_drag_wan22_5b": "wrb_cat",
    "wrb_case_b_inspatio": "wrb_case_b", "7scenes_redkitchen_return": "7scenes_redkitchen",
    "demo/data/gallery/01_dog.mp4": "sam2_dog", "demo/data/gallery/03_blocks.mp4": "sam2_blocks",
    "one-by-one-person-detection.mp4": "intel_onebyone", "nordic005": "Nordic_005", "m9": "wmark_m9",
}  # fmt: skip


def scene_name(name: str) -> str:
    """The one name of a scene; photographs of the folder `clips` have it before their names."""
    name = name.removeprefix("clips_")
    return SCENES.get(name, name)


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
            given: dict[str, Any] = {} if isinstance(video, Path) else {"fps": fps}
            record = revisit.observe(video, observer, target=box, **given)
            assert isinstance(record, TargetTrack | TargetLooks)
            self.cache.save(self.key(source, clip, observer), record)
        return record


def line(source: str, clip: str, scenes: list[str], label: str, simulated: bool, *evidence: object) -> Line:
    """A line of the table."""
    track, looks = evidence
    assert isinstance(track, TargetTrack) and (looks is None or isinstance(looks, TargetLooks))
    features = {name: round(value, 3) for name, value in clip_features_and_rule_verdict(track, looks)[0].items()}
    sights = {LAYOUT: TargetObservations(track, None), LOOKS: TargetObservations(track, looks)}
    return {
        "clip": clip, "source": source, "scenes": list(dict.fromkeys(map(scene_name, scenes))), "label": label,
        "simulated": simulated,
        "features": features, "judges": [kind for kind, sight in sights.items()
        if not reason_target_is_unjudgeable(sight)],
    }  # fmt: skip


def real_lines(folders: list[Path], evidence: Evidence) -> Iterator[Line]:
    """The lines of labelled clips, those without a clear label left out."""
    for clip in read_labelled_clips(folders):
        if clip.verdict and clip.box is not None:
            made = [evidence(clip.source, clip.name, name, clip.clip, 0.0, clip.box) for name in KINDS]
            yield line(clip.source, clip.name, [SCENES.get(clip.name, clip.scene)], clip.verdict, False, *made)


@dataclass(frozen=True)
class Scene:
    """A simulated scene that is to be observed."""

    source: str  # worlds, forgetful or composites
    number: int
    photographs: Path | None
    cache: Path
    looks_every: int
    until: float  # time from which on nothing is begun

    @property
    def index(self) -> Path:
        """What is known of its clips."""
        return self.cache / "simulated" / f"{self.source}{self.number:03d}.json"

    def clips(self) -> Iterator[clips.LabelledClip]:
        """Its clips, rendered anew."""
        if self.source == "forgetful":
            return clips.forgetful_clips(self.number)
        if self.photographs is None:
            return clips.world_clips(self.number)
        pictures = ((path.stem, np.asarray(cv2.imread(str(path)))) for path in sorted(self.photographs.iterdir()))
        return clips.composite(self.number, [clips.Photograph(name, bgr[..., ::-1]) for name, bgr in pictures])


def observe(scene: Scene) -> None:
    """Evidence of all clips of a scene; what they are is kept, so that it is rendered once."""
    if scene.index.is_file() or (scene.until and time.time() > scene.until):
        return
    cv2.setNumThreads(1)
    evidence = Evidence(scene.cache)
    rows = []
    for position, clip in enumerate(scene.clips()):
        observers = list(KINDS) if (scene.number + position) % scene.looks_every == 0 else ["lite.target"]
        for name in observers:
            evidence(scene.source, clip.name, name, clip.frames, clip.fps, clip.box)
        rows.append({"clip": clip.name, "scenes": clip.scenes, "label": clip.label, "observers": observers})
    scene.index.parent.mkdir(parents=True, exist_ok=True)
    write_json(scene.index, rows)


def simulated_lines(index: Path) -> list[Line]:
    """The lines of all clips of a simulated scene that was observed."""
    source, evidence = index.stem.rstrip("0123456789"), Evidence(index.parents[1])
    lines = []
    for row in json.loads(index.read_text(encoding="utf-8")):
        made = [evidence.load(source, row["clip"], name) if name in row["observers"] else None for name in KINDS]
        shown = "worlds" if source == "forgetful" else source  # of the same worlds, and as like real clips as those
        lines.append(line(shown, row["clip"], row["scenes"], row["label"], True, *made))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--real", type=Path, action="append", default=[])
    parser.add_argument("--photographs", type=Path)
    parser.add_argument("--composites", type=int, default=0)
    parser.add_argument("--worlds", type=int, default=0)
    parser.add_argument("--forgetful", type=int, default=0, help="worlds of which clips are made that forget")
    parser.add_argument("--first", type=int, default=0, help="number of the first simulated scene")
    parser.add_argument("--cache", type=Path, default=Path("build/target"))
    parser.add_argument("--looks-every", type=int, default=4)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.0)
    given = parser.parse_args()
    if given.composites and given.photographs is None:
        parser.error("--composites needs --photographs, a folder of pictures")
    cv2.setNumThreads(1)
    until = time.time() + given.seconds if given.seconds else 0.0
    counts = {"worlds": given.worlds, "forgetful": given.forgetful, "composites": given.composites}
    folders = {"worlds": None, "forgetful": None, "composites": given.photographs}
    scenes = [
        Scene(source, given.first + position, folders[source], given.cache, given.looks_every, until)
        for position in range(max(counts.values()))
        for source, count in counts.items()
        if position < count
    ]
    with ProcessPoolExecutor(given.workers, multiprocessing.get_context("spawn")) as workers:
        list(workers.map(observe, scenes))
        simulated = workers.map(simulated_lines, sorted((given.cache / "simulated").glob("*.json")))
        with given.out.open("w", encoding="utf-8") as file:
            for rows in (real_lines(given.real, Evidence(given.cache)), *simulated):
                file.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
