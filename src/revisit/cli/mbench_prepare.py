"""Producers of camera-pose artifacts for `revisit mbench prepare`.

`odometry` is our own visual odometry: turns without lengths and without depth. `command` runs a program of the user's
for every clip, such as a script around a depth network, and stores what it wrote: depth as half floats, no pictures.
`pycolmap` runs structure from motion, where that package is installed.
It may write whatever `revisit import poses` reads. An artifact is written whole or not at all and names its producer
and the digest of its video, so what is there and still fits is kept.
"""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np

from revisit.core import Clip, MediaError, MissingPrerequisite, UsageError, digest
from revisit.media import announced_frames, clip_digest, load_npz, npz_shapes, open_clip, save_npz
from revisit.suites.mbench.dataset import Dataset, Item, Problem
from revisit.suites.mbench.read import Filter

PRODUCERS = ("odometry", "pycolmap", "command")
ODOMETRY = "revisit odometry 1"
NAMES = {"odometry": ODOMETRY, "pycolmap": "pycolmap"}
MOST_FRAMES = 120  # that structure from motion is given of a clip: its time grows faster than their number
Tell = Callable[[int, int, str], None]
Maker = Callable[[Path, Path], dict[str, np.ndarray]]  # (video, empty folder) -> arrays of the artifact


@dataclass(frozen=True)
class Prepared:
    """What was done."""

    made: int = 0
    kept: int = 0
    missing: int = 0  # items without a video
    failed: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Task:
    item: Item
    video: Path
    place: Path
    digest: str


def produce(
    data: Dataset,
    keep: Filter,
    producer: str,
    output: Path | None,
    *,
    command: str = "",
    convention: str = "auto",
    workers: int | None = None,
    tell: Tell | None = None,
) -> Prepared:
    """Make the artifacts of the chosen items that have none of this producer."""
    if convention not in ("auto", "w2c", "c2w"):
        raise UsageError(f"there is no convention {convention!r}; choose w2c, c2w or auto")
    if producer not in PRODUCERS:
        raise UsageError(f"there is no producer {producer!r}; there are {', '.join(PRODUCERS)}")
    if (producer == "command") != bool(command):
        raise UsageError("--producer command and --command go together: a program that reads {video} and writes {npz}")
    if command and not all(name in command for name in ("{video}", "{npz}")):
        raise UsageError(f"--command {command!r}: it needs {{video}}, the clip to read, and {{npz}}, the file to write")
    name = f"command {digest([command, convention])}" if command else NAMES[producer]
    tasks, kept, missing = [], 0, 0
    for item in _items(data, keep):
        if item.video is None:
            missing += 1
            continue
        video = clip_digest(Clip(item.video))
        place = _place(data, item, output)
        if _is_of(place, video, name):
            kept += 1
        else:
            tasks.append(_Task(item, item.video, place, video))
    if producer == "odometry":
        failed = _odometry(data, tasks, workers, tell)
    else:
        maker = by_structure() if producer == "pycolmap" else by_command(command, convention)
        failed = _each(tasks, maker, name, tell)
    return Prepared(len(tasks) - len(failed), kept, missing, tuple(failed))


def _items(data: Dataset, keep: Filter) -> list[Item]:
    found = [entry for model in keep.models for entry in data.items(model)]
    return [entry for entry in found if not isinstance(entry, Problem) and keep.takes(entry)]


def _place(data: Dataset, item: Item, output: Path | None) -> Path:
    if output is not None:
        return output / item.model / item.subset / item.sample / item.condition / "da3" / "results.npz"
    return data.place(
        "artifact_da3", model_id=item.model, subset=item.subset, sample_id=item.sample, condition_id=item.condition
    )


def _each(tasks: Sequence[_Task], make: Maker, name: str, tell: Tell | None) -> list[str]:
    """Make the artifact of each clip in a folder of its own; a sentence for each that failed."""
    failed = []
    for number, task in enumerate(tasks, start=1):
        with tempfile.TemporaryDirectory() as folder:
            try:
                _store(task, make(task.video, Path(folder)), name)
            except MediaError as error:
                failed.append(f"{task.item.id}@{task.item.model}: {error}")
        if tell is not None:
            tell(number, len(tasks), task.item.id)
    return failed


def by_command(command: str, convention: str) -> Maker:
    """Runs the user's program for a clip."""
    from revisit.observers.geometry_convert import convert

    def make(video: Path, folder: Path) -> dict[str, np.ndarray]:
        npz, ours = folder / "results.npz", folder / "ours.npz"
        parts = [part.replace("{video}", str(video)).replace("{npz}", str(npz)) for part in shlex.split(command)]
        done = subprocess.run(parts, capture_output=True, text=True, check=False)
        if done.returncode or not npz.is_file():
            said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1][:200]
            raise MediaError(f"the command ended with {done.returncode} and wrote no usable file: {said}")
        convert(npz, ours, convention=convention)
        return load_npz(ours)

    return make


def by_structure() -> Maker:
    """Runs pycolmap on evenly spread frames of a clip: poses and one lens, no depth."""
    from revisit.observers.geometry_convert import convert

    try:
        pycolmap = import_module("pycolmap")
    except ImportError:
        raise MissingPrerequisite("the producer pycolmap needs: pip install pycolmap") from None

    def make(video: Path, folder: Path) -> dict[str, np.ndarray]:
        import cv2

        images, model, ours = folder / "images", folder / "model", folder / "ours.npz"
        images.mkdir()
        model.mkdir()
        count = announced_frames(video) or MOST_FRAMES
        wanted = np.unique(np.linspace(0, count - 1, min(count, MOST_FRAMES)).round().astype(int))
        with open_clip(Clip(video), wanted=wanted) as stream:
            for frame in stream:
                cv2.imwrite(str(images / f"{frame.index:06d}.png"), frame.rgb[:, :, ::-1])
        database = folder / "database.db"
        pycolmap.extract_features(database, images, camera_mode=pycolmap.CameraMode.SINGLE)
        pycolmap.match_sequential(database)
        found = pycolmap.incremental_mapping(database, images, folder)
        if not found:
            raise MediaError("no structure was found; the clip moves too little, or shows too little texture")
        max(found.values(), key=lambda one: one.num_reg_images()).write_text(model)
        convert(model / "images.txt", ours, format="colmap", intrinsics=str(model / "cameras.txt"))
        lines = (model / "images.txt").read_text(encoding="utf-8").splitlines()
        names = sorted(line.split()[-1] for line in lines if line.endswith(".png") and not line.startswith("#"))
        return {**load_npz(ours), "frame_indices": np.array([int(Path(name).stem) for name in names])}

    return make


def _store(task: _Task, arrays: dict[str, np.ndarray], producer: str) -> None:
    """Write an artifact with where it is from; frames are numbered where there is a pose of each."""
    count = len(arrays["extrinsics"])
    if "frame_indices" not in arrays and count == announced_frames(task.video):
        arrays["frame_indices"] = np.arange(count)
    save_npz(
        task.place, {**arrays, "producer": np.array(producer), "video_digest": np.array(task.digest)}, compress=True
    )


def _is_of(path: Path, video: str, producer: str) -> bool:
    """Whether an artifact is there, whole, and made of this video by this producer."""
    try:
        if not path.is_file() or not {"video_digest", "producer"} <= npz_shapes(path).keys():
            return False
        told = load_npz(path, members=("video_digest", "producer"))
    except MediaError:
        return False
    return str(told["video_digest"]) == video and str(told["producer"]) == producer


def _odometry(data: Dataset, tasks: Sequence[_Task], workers: int | None, tell: Tell | None) -> list[str]:
    """The camera's turns as our odometry sees them, with the lens it assumes; a sentence for each clip that failed."""
    from revisit.core import Case, Suite
    from revisit.engine.cache import EvidenceCache, cache_root
    from revisit.engine.needs import ObserverSet
    from revisit.engine.plan import make_plan
    from revisit.engine.run import evaluate
    from revisit.evidence.camera import CameraPath
    from revisit.observers.geometry_convert import packed
    from revisit.observers.geometry_file import geometry_of
    from revisit.observers.sets import load_roles

    if not tasks:
        return []
    cases = [
        Case(id=f"{task.item.id}@{task.item.model}", suite="mbench", model=task.item.model, sample=task.item.sample,
             clip=Clip(task.video))
        for task in tasks
    ]  # fmt: skip
    reader = Suite("mbench", {}, lambda *_: cases, lambda _: False, tuple, lambda *_: {})
    plan = make_plan(reader, data.root, ObserverSet("lite", load_roles("lite")), metrics=["camera_path"])
    cache = EvidenceCache(cache_root())
    with tempfile.TemporaryDirectory() as folder:
        run = evaluate(plan, Path(folder), workers=workers, cache=cache)
        reasons = {record["case"]: record["reason"] for record in run.failures}
    failed = []
    for number, (task, case) in enumerate(zip(tasks, cases, strict=True), start=1):
        path = (
            cache.load(CameraPath, plan.wanted[case.id].keys.get("camera_path", "-"))
            if case.id not in reasons
            else None
        )
        if path is None:
            failed.append(f"{case.id}: {reasons.get(case.id, 'its camera could not be followed')}")
        else:
            with open_clip(case.clip, wanted=np.arange(0)) as stream:
                width, height = stream.info.width, stream.info.height
            arrays = _turns(path.rotation, path.index, path.field_of_view, width, height)
            _store(task, packed(geometry_of(arrays, "w2c"), ODOMETRY), ODOMETRY)
        if tell is not None:
            tell(number, len(tasks), task.item.id)
    return failed


def _turns(rotation: np.ndarray, index: np.ndarray, degrees: float, width: int, height: int) -> dict[str, np.ndarray]:
    """World-to-camera poses of a camera that only turns, and its lens in pixels of the video."""
    focal = width / 2 / np.tan(np.radians(degrees) / 2)
    K = np.array([[focal, 0, (width - 1) / 2], [0, focal, (height - 1) / 2], [0, 0, 1]])
    extrinsics = np.concatenate([rotation.transpose(0, 2, 1), np.zeros((len(rotation), 3, 1))], axis=2)
    intrinsics, size = np.tile(K, (len(rotation), 1, 1)), np.array([width, height])
    return {"extrinsics": extrinsics, "intrinsics": intrinsics, "frame_indices": index, "size": size}
