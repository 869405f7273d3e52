"""Jobs of MemoBench: each clip of the dataset from its first frame, its prompt and its key-framed camera path."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from revisit.control.jobs import FRAMES, BatchRequest, Job, JobBatch, resample_relative_path
from revisit.core import Clip, MediaError
from revisit.geometry.camera_script import script_of_path
from revisit.geometry.formats import from_c2w_array, from_mapanything, parse_camera_table
from revisit.geometry.poses import InvalidPoses
from revisit.media import load_npy, load_npz
from revisit.media.frame_folder import find_frame_files
from revisit.media.text_files import read_text
from revisit.suites.memobench.ground_truth import MemoBenchDataset, TrueClip, open_memobench_dataset
from revisit.suites.memobench.metadata import SHEETS, prompt_from_metadata_or_sheet
from revisit.suites.memobench.names import SYNTHETIC, ClipName

CENTIMETRES = 0.01  # of a synthetic clip's engine, in metres


def jobs(data: Path, out: Path | None, request: BatchRequest) -> JobBatch:
    """The jobs of a dataset; clips are laid out in `out`, a folder per model."""
    request.refuse_unknown_options()
    opened = open_memobench_dataset(data)
    model_folder = (out or Path("generated/memobench")) / request.model
    left_out: list[str] = []
    all_jobs = list(_clip_jobs(opened, model_folder, request, left_out))
    words = [str(model_folder.parent), "--suite", "memobench", "--option", f"gt={data}"]
    if (data.parent / "targets.json").is_file():
        words += ["--option", f"targets={data.parent / 'targets.json'}"]
    return JobBatch(request.select_jobs(all_jobs), model_folder, words, left_out=left_out)


def _clip_jobs(data: MemoBenchDataset, model_folder: Path, request: BatchRequest, left_out: list[str]) -> Iterator[Job]:
    metadata = data.read_metadata()
    frames = request.clip_frame_count(FRAMES)
    for subset in SHEETS:
        sheet = data.marks_sheets.get(subset)
        left_out += sheet.unusable.values() if sheet else ()
        for name, marks, truth in data.iter_marks_and_truth(subset):
            if isinstance(truth, str):
                left_out.append(f"{name.title}: {truth}")
                continue
            phases = None if marks is None else marks.phases_in_clip_of_length(truth.frames, frames)
            path = None
            try:
                path = _resampled_camera_path(name, truth, frames)
            except (InvalidPoses, MediaError) as error:
                left_out.append(f"{name.title}: its clip is made without a camera path, because {error}")
            yield Job(
                id=name.title,
                out=model_folder / name.subset / name.scene / name.id / "video.mp4",
                suite="memobench",
                sample=name.id,
                subset=name.subset,
                condition=name.scene or name.subset,
                frames=frames,
                fps=request.frame_rate,
                prompt=prompt_from_metadata_or_sheet(metadata.get(name, {}), marks),
                image=_first_frame_of_clip(truth.clip) if request.first_frame else None,
                path=path,
                camera="" if path is None else script_of_path(path, phases or ()),
                annotations={} if phases is None else {"phases": list(phases)},
                **request.size_model_and_seed,
            )


def _first_frame_of_clip(clip: Clip) -> Path | Clip:
    return find_frame_files(clip.path).paths[0] if clip.path.is_dir() else Clip(clip.path, count=1)


def _resampled_camera_path(name: ClipName, truth: TrueClip, frames: int) -> np.ndarray | None:
    if truth.poses is None:
        return None
    if truth.poses.suffix == ".csv":
        poses = parse_camera_table(read_text(truth.poses))
    elif truth.poses.suffix == ".npz":
        poses = from_mapanything(load_npz(truth.poses))
    else:
        poses = from_c2w_array(load_npy(truth.poses))
    path = resample_relative_path(poses.c2w, frames)
    if name.subset == SYNTHETIC:
        path[:, :3, 3] *= CENTIMETRES
    return path
