"""Jobs of a folder's manifest: every id once, from the first frame of its reference, for a model of the user's own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from revisit.control.job_runner import clip_frames_fps_and_size
from revisit.control.jobs import FRAMES, SIZE, BatchRequest, Job, JobBatch, file_name_for_id
from revisit.control.requested_path import compile_script
from revisit.core import Case, Clip, UsageError
from revisit.core.text import parse_json
from revisit.datasets.clips import MANIFEST, read_manifest
from revisit.media import clip_digest
from revisit.media.files import atomic_write_path, write_json_lines

REFERENCES = "references"  # the folder of true clips beside those of the models


def folder_generation_jobs(data: Path, out: Path | None, request: BatchRequest) -> JobBatch:
    """The jobs of a manifest; clips go to `out`, a folder per model, beside their references and a manifest of all."""
    request.refuse_unknown_options()
    source = data / MANIFEST if data.is_dir() else data
    if not source.is_file():
        raise UsageError(f"{source}: no such file; jobs are made from a manifest, {MANIFEST} in the folder")
    root = out or Path("generated/folder")
    model_folder = root / request.model
    left_out: list[str] = []
    all_jobs = list(_jobs_of_manifest(source, model_folder, request, left_out))
    words = [str(root), "--suite", "folder"]
    if any(job.annotations["frames"] not in (None, job.frames) for job in all_jobs):
        words += ["--align", "stretch"]  # the clips have another length than their references
    write_index = partial(_update_manifest, root)
    return JobBatch(request.select_jobs(all_jobs), model_folder, words, write_index, left_out)


def _jobs_of_manifest(source: Path, model_folder: Path, request: BatchRequest, left_out: list[str]) -> Iterator[Job]:
    yielded: set[tuple[str, int]] = set()
    for case in read_manifest(source):
        if not isinstance(case, Case):
            left_out.append(f"{case.id}: {case.reason}")
            continue
        clip_id = case.id.removesuffix(f"@{case.model}#{case.seed}")
        if (clip_id, case.seed) in yielded:  # another model's clip of the same
            continue
        yielded.add((clip_id, case.seed))
        name = f"{clip_id}#{case.seed}" if case.seed else clip_id
        truth = case.reference or case.clip
        properties = clip_frames_fps_and_size(truth.path) if truth.path.is_file() else {}
        frames = request.clip_frame_count(properties.get("frames") or FRAMES)
        size = request.size or (request.to.size if request.to else tuple(properties.get("size") or SIZE))
        path = compile_script(case.camera, frames=frames).path.c2w if case.camera else None
        yield Job(
            id=name,
            out=model_folder / f"{file_name_for_id(name)}.mp4",
            suite="folder",
            model=request.model,
            sample=case.sample,
            subset=case.subset,
            condition=case.condition,
            seed=case.seed,
            frames=frames,
            fps=request.fps or (request.to.fps if request.to else properties.get("fps") or request.frame_rate),
            size=(size[0], size[1]),
            prompt=case.prompt,
            image=Clip(truth.path, truth.fps, count=1) if request.first_frame else None,
            camera=case.camera,
            path=path,
            annotations={"line": _manifest_line_facts(case, clip_id), "frames": properties.get("frames")},
        )


def _manifest_line_facts(case: Case, clip_id: str) -> dict[str, object]:
    """What the manifest says of the clip, whoever makes it."""
    target = case.target and {"name": case.target.name, "box": list(case.target.box)}
    facts = {
        "id": clip_id, "reference": case.reference and str(case.reference.path), "prompt": case.prompt,
        "target": target, "camera": case.camera,
        "phases": case.phases and list(case.phases), "group": case.sample, "subset": case.subset,
        "condition": case.condition, "seed": case.seed, "annotations": dict(case.annotations),
    }  # fmt: skip
    return {name: value for name, value in facts.items() if value not in (None, "", {}, [])}


def _reference_within(root: Path, reference: Path) -> str:
    """The path of a reference that a manifest in `root` may name: one from elsewhere is linked there, or copied."""
    reference = reference.resolve()
    if reference.exists() and not reference.is_relative_to(root):
        name = f"{reference.stem}-{clip_digest(Clip(reference))[:12]}{reference.suffix}"
        inside = root / REFERENCES / name
        if not inside.exists():
            with atomic_write_path(inside) as whole:  # what is killed here leaves no half of a clip
                if reference.is_dir():
                    shutil.copytree(reference, whole, copy_function=_link_or_copy)
                else:
                    _link_or_copy(reference, whole)
        reference = inside
    return Path(os.path.relpath(reference, root)).as_posix()


def _link_or_copy(file: Path | str, to: Path | str) -> None:
    try:
        os.link(Path(file).resolve(), to)
    except OSError:  # another disk
        shutil.copyfile(file, to)


def _update_manifest(root: Path, jobs: Sequence[Job]) -> None:
    """The manifest of all models in the folder."""
    path = root / MANIFEST
    there = [parse_json(line) for line in path.read_text("utf-8").split("\n") if line.strip()] if path.is_file() else []
    lines = {(line["model"], line["video"]): line for line in there if (root / line["video"]).is_file()}
    for job in jobs:
        if job.out.is_file():
            line = {**job.annotations["line"], "model": job.model, "video": job.out.relative_to(root).as_posix()}
            lines[job.model, line["video"]] = line
    for line in lines.values():
        if "reference" in line:
            line["reference"] = _reference_within(root.resolve(), root / str(line["reference"]))
    write_json_lines(path, lines.values(), ascii=True)
