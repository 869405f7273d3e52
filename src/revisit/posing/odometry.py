"""The built-in visual odometry as a pose estimator: rotations only, without distances and depth."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from revisit.core import Case, Suite
from revisit.engine.cache import EvidenceCache, cache_root
from revisit.engine.dependencies import ObserverSet
from revisit.engine.plan import make_plan
from revisit.engine.run import evaluate
from revisit.evidence.camera import CameraPath
from revisit.media import open_clip
from revisit.observers.geometry_file import geometry_arrays, geometry_from_arrays
from revisit.observers.sets import load_roles
from revisit.posing.tasks import Arrays, PoseTask


@dataclass(frozen=True)
class Odometry:
    """Turns of the camera as the lite set sees them, with the lens that it assumes."""

    workers: int | None = None
    producer: str = "revisit odometry 1"

    def run(self, tasks: Sequence[PoseTask]) -> Iterator[tuple[PoseTask, Arrays | str]]:
        cases = [Case(id=task.name, suite="folder", model="-", sample=task.name, clip=task.clip) for task in tasks]
        reader = Suite("folder", {}, lambda *_: cases, lambda _: False, tuple, lambda *_: {})
        plan = make_plan(reader, Path.cwd(), ObserverSet("lite", load_roles("lite")), metrics=["camera_path"])
        with tempfile.TemporaryDirectory() as folder:
            cache = EvidenceCache(cache_root(), spare=Path(folder) / "evidence")
            run = evaluate(plan, Path(folder) / "run", workers=self.workers, cache=cache)
            reasons = {record.case.id: record.sentence for record in run.results.failures}
            keys = {case.id: plan.wanted[case.id].keys.get("camera_path") for case in plan.cases}
            paths = {id: cache.load(CameraPath, key) for id, key in keys.items() if key and id not in reasons}
        for task, case in zip(tasks, cases, strict=True):
            path = paths.get(case.id)
            if path is None:
                yield task, reasons.get(case.id, "its camera could not be tracked")
                continue
            with open_clip(task.clip, wanted=np.arange(0)) as stream:
                width, height = stream.info.width, stream.info.height
            arrays = poses_of_turning_camera(path.rotation, path.index, path.field_of_view, width, height)
            yield task, geometry_arrays(geometry_from_arrays(arrays, "w2c"), self.producer)


def poses_of_turning_camera(rotation: np.ndarray, index: np.ndarray, degrees: float, width: int, height: int) -> Arrays:
    """World-to-camera poses of a camera that only turns, and its lens in pixels of the video."""
    focal = width / 2 / np.tan(np.radians(degrees) / 2)
    K = np.array([[focal, 0, (width - 1) / 2], [0, focal, (height - 1) / 2], [0, 0, 1]])
    extrinsics = np.concatenate([rotation.transpose(0, 2, 1), np.zeros((len(rotation), 3, 1))], axis=2)
    intrinsics, size = np.tile(K, (len(rotation), 1, 1)), np.array([width, height])
    return {"extrinsics": extrinsics, "intrinsics": intrinsics, "frame_indices": index, "size": size}
