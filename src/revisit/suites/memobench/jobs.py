"""Jobs of MemoBench: each clip of the dataset from its first frame, its prompt and its key-framed camera path."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from revisit.control.jobs import FRAMES, BatchRequest, Job, JobBatch, resample_path
from revisit.core import Clip
from revisit.geometry.camera_script import script_of
from revisit.geometry.formats import from_c2w_array, from_mapanything, parse_camera_table
from revisit.geometry.poses import InvalidPoses
from revisit.media import load_npz
from revisit.media.frame_folder import frame_files
from revisit.suites.memobench.ground_truth import MemoBenchDataset, TrueClip, open_dataset
from revisit.suites.memobench.metadata import SHEETS, prompt_of
from revisit.suites.memobench.names import SYNTHETIC, ClipName
from revisit.suites.memobench.read import metadata_of

CENTIMETRES = 0.01  # of a synthetic clip's engine, in metres


def jobs(data: Path, out: Path | None, request: BatchRequest) -> JobBatch:
    """The jobs of a dataset; clips are laid out in `out`, a folder per model."""
    request.refuse_unknown_options()
    opened = open_dataset(data)
    model_folder = (out or Path("generated/memobench")) / request.model
    left_out: list[str] = []
    all_jobs = list(_clips(opened, model_folder, request, left_out))
    words = [str(model_folder.parent), "--suite", "memobench", "--option", f"gt={data}"]
    if (data.parent / "targets.json").is_file():
        words += ["--option", f"targets={data.parent / 'targets.json'}"]
    return JobBatch(request.select(all_jobs), model_folder, words, left_out=left_out)


def _clips(data: MemoBenchDataset, model_folder: Path, request: BatchRequest, left_out: list[str]) -> Iterator[Job]:
    metadata = metadata_of(data.root)
    frames = request.length(FRAMES)
    for subset in SHEETS:
        sheet = data.sheets.get(subset)
        left_out += sheet.unusable.values() if sheet else ()
        for name, marks, truth in data.expected(subset):
            if isinstance(truth, str):
                left_out.append(f"{name.title}: {truth}")
                continue
            phases = None if marks is None else marks.phases(truth.frames, frames)
            path = None
            try:
                path = _path(name, truth, frames)
            except InvalidPoses as error:
                left_out.append(f"{name.title}: its clip is made without a camera path, because {error}")
            yield Job(
                id=name.title,
                out=model_folder / name.subset / name.scene / name.id / "video.mp4",
                suite="memobench",
                sample=name.id,
                subset=name.subset,
                condition=name.scene or name.subset,
                frames=frames,
                fps=request.rate,
                prompt=prompt_of(metadata.get(name, {}), marks),
                image=_first_frame(truth.clip) if request.first_frame else None,
                path=path,
                camera="" if path is None else script_of(path, phases or ()),
                annotations={} if phases is None else {"phases": list(phases)},
                **request.clip,
            )


def _first_frame(clip: Clip) -> Path | Clip:
    return frame_files(clip.path).paths[0] if clip.path.is_dir() else Clip(clip.path, count=1)


def _path(name: ClipName, truth: TrueClip, frames: int) -> np.ndarray | None:
    if truth.poses is None:
        return None
    if truth.poses.suffix == ".csv":
        poses = parse_camera_table(truth.poses.read_text(encoding="utf-8-sig"))
    elif truth.poses.suffix == ".npz":
        poses = from_mapanything(load_npz(truth.poses))
    else:
        poses = from_c2w_array(next(iter(load_npz(truth.poses).values())))
    path = resample_path(poses.c2w, frames)
    if name.subset == SYNTHETIC:
        path[:, :3, 3] *= CENTIMETRES
    return path
