"""Running: jobs carried out by several workers, resumable, with provenance for every clip.

A clip is made in a folder of its own, checked, and put in its place with a record of what it was made from
(`<clip>.provenance.json`) and the job itself (`<clip>.job.json`). What is there, made from the same inputs, is kept; a
clip that is there and was made from anything else is not touched unless `replace` says so. What becomes of a job is
written down (`generation.jsonl` in the folder of the model) and never stops the batch.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from revisit._version import __version__
from revisit.control.delivery import Delivery, make_delivery
from revisit.control.generator_backends import Ended, GeneratorBackend
from revisit.control.generators import Generator
from revisit.control.jobs import Job, file_name_for_id, require_distinct_jobs
from revisit.control.payloads import FAMILIES
from revisit.control.requested_path import CameraPlan, compile_script, intrinsics
from revisit.core import Clip, MediaError, RevisitError, UsageError, digest
from revisit.core.concurrency import results_of_threads
from revisit.core.text import join_names, parse_json, require_known_name
from revisit.geometry.camera_script import parse_script
from revisit.geometry.poses import make_trajectory
from revisit.media import file_digest, frame_count_in_mp4_index, open_clip, read_clip_info, write_picture
from revisit.media.digest import digest_of_size_and_ends
from revisit.media.files import atomic_write_path, file_exists, try_lock_file, write_text_atomically

LONGEST_REASON = 1000  # characters
LOG = "generation.jsonl"
INPUTS = "inputs"  # first frames that were taken out of videos
SCRATCH_PREFIX = ".making-"
IDENTITY = {  # of a provenance: what makes a clip the same, and how it is told where it differs
    "intended": "other requested settings",
    "delivered": "another camera payload",
    "inputs": "other inputs",
    "generator": "another generator",
}
BYTES_PER_PIXEL = 0.15  # of a video of good quality, where nothing is known of the generator
ClipRecord = dict[str, Any]  # <clip>.provenance.json
# What a dense control (depth, edges, segmentation of the target view) may give away.
# none: no dense control; source_only: of the source view; endpoint_masked: of the target view, with the event's end
# masked; full_target: of the target view, so that it may show the answer.
INPUT_POLICIES = ("none", "source_only", "endpoint_masked", "full_target")


@dataclass(frozen=True)
class JobResult:
    """What became of a job: made, kept (it was there already), or how it failed."""

    id: str
    status: str  # made | kept | crashed | hung | failed | wrote nothing | wrong length | refused
    reason: str = ""
    seconds: float = 0.0
    remarks: tuple[str, ...] = ()  # what must be known of its payload or its clip
    tries: int = 1
    cost: dict[str, float | None] | None = None  # of a clip that was made now: seconds and memory of its generator

    @property
    def is_clip_there(self) -> bool:
        return self.status in ("made", "kept")


@dataclass(frozen=True)
class GenerationSettings:
    """How jobs are carried out."""

    timeout: float = 3600
    retries: int = 0  # further tries of a job that crashed, hung or made no valid clip
    replace: str = ""  # make clips anew: `own`, those that were made here from other inputs; `any`, whatever is there
    to: Generator | None = None  # whose dialect the control is told in
    command: str = ""  # for the provenance, as are the next two
    checkpoint: str = ""
    category: str = ""  # floor, of a baseline generator
    price: float | None = None  # of a clip, for the model's card
    currency: str = "USD"


def run_jobs(
    jobs: Sequence[Job],
    backends: Sequence[GeneratorBackend],
    folder: Path,
    settings: GenerationSettings,
    refused: Sequence[JobResult] = (),
) -> Iterator[JobResult]:
    """Carry out every job that has no clip yet, a worker for each backend, and tell what became of each as it ends.

    `refused` are records that could not even become jobs; they are written down, too.
    """
    require_distinct_jobs(jobs)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOG).open("a", encoding="utf-8") as log:
        if not try_lock_file(log):
            raise UsageError(f"another run is making clips in {folder}; wait for it, or choose another --out")
        for stale in folder.glob(f"{SCRATCH_PREFIX}*"):  # of a run that was killed
            shutil.rmtree(stale, ignore_errors=True)
        for result in chain(refused, _run_on_all_backends(jobs, backends, folder, settings)):
            facts = {"generator": settings.to.id if settings.to else "", **asdict(result), "at": round(time.time(), 3)}
            log.write(json.dumps(facts) + "\n")
            log.flush()
            yield result


def _run_on_all_backends(
    jobs: Sequence[Job], backends: Sequence[GeneratorBackend], folder: Path, settings: GenerationSettings
) -> Iterator[JobResult]:
    def results_of_backend(backend: GeneratorBackend, jobs: Iterator[Job]) -> Iterator[JobResult]:
        for job in jobs:
            yield run_job(job, backend, folder, settings)
        backend.close()

    try:
        yield from results_of_threads([partial(results_of_backend, backend) for backend in backends], jobs)
    finally:
        for backend in backends:
            with contextlib.suppress(Exception):
                backend.close()


def run_job(job: Job, backend: GeneratorBackend, folder: Path, settings: GenerationSettings) -> JobResult:
    """What became of one job."""
    started = time.monotonic()
    remarks: list[str] = []
    tries = 1
    try:
        ended, tries = _keep_or_make_clip(job, backend, folder, settings, remarks)
    except RevisitError as error:
        ended = Ended("refused", str(error))
    except Exception as error:  # whatever a job holds, the others go on
        ended = Ended("refused", f"this record cannot be processed: {type(error).__name__}: {error}")
    seconds, cost = round(time.monotonic() - started, 3), ended.cost.as_json() if ended.cost is not None else None
    return JobResult(job.id, ended.status, ended.reason[:LONGEST_REASON], seconds, tuple(remarks), tries, cost)


def _keep_or_make_clip(
    job: Job, backend: GeneratorBackend, folder: Path, settings: GenerationSettings, remarks: list[str]
) -> tuple[Ended, int]:
    """What became of a clip, and after how many tries."""
    require_passable_text(job)
    image = get_or_extract_first_frame(job, folder)
    plan, delivery = plan_and_delivery(job, settings.to, image)
    if delivery is not None:
        remarks += delivery.remarks()
    expected = provenance_record(job, image, plan, delivery, settings.to)
    expected |= {"category": settings.category} if settings.category else {}
    kind, words = classify_existing_clip(job.out, expected)
    if kind == "same":
        return Ended("kept", ""), 0
    if settings.replace not in {"absent": ("", "own", "any"), "own": ("own", "any"), "foreign": ("any",)}[kind]:
        sentence = f"{job.out} exists, {words}; add --replace to make it again, or choose another --out"
        return Ended("refused", sentence), 0
    for tries in range(1, 2 + settings.retries):
        ended = _try_to_make_clip(job, image, plan, delivery, backend, folder, settings, expected, remarks)
        if ended.status in ("made", "refused") or tries > settings.retries:
            break
    return ended, tries


def _try_to_make_clip(
    job: Job, image: Path | None, plan: CameraPlan | None, delivery: Delivery | None, backend: GeneratorBackend,
    folder: Path, settings: GenerationSettings, expected: ClipRecord, remarks: list[str],
) -> Ended:  # fmt: skip
    """One try at a clip: made in a folder of its own, looked at, and put in its place."""
    with tempfile.TemporaryDirectory(dir=folder, prefix=SCRATCH_PREFIX) as scratch:
        clip = Path(scratch) / job.out.name
        # What lies beside a clip tells of that clip, until another one takes its place.
        place = clip if job.out.exists() else job.out
        request = job.as_json(clip, image, _write_control_files(job, image, plan, delivery, place))
        file = Path(scratch) / "job.json"
        _write_json(file, request)
        made = backend.make(request, file, settings.timeout)
        if made.status:
            return made
        if not clip.is_file() or not clip.stat().st_size:
            return Ended("wrote nothing", f"the generator succeeded but wrote no file at {{out}}; {made.reason}")
        facts = clip_frames_fps_and_size(clip)
        for count in (frame_count_in_mp4_index(clip), facts["frames"]):
            if count not in (None, job.frames):
                return Ended("wrong length", f"the clip has {count} frames, but {job.frames} were requested")
        if "size" in facts and tuple(facts["size"]) != job.size:
            asked_for, is_ = ("x".join(map(str, size)) for size in (job.size, facts["size"]))
            remarks.append(f"the clip is {is_}, but {asked_for} was requested")
        output = {"sha256": file_digest(clip), "bytes": clip.stat().st_size, **facts}
        made_with = {"command": settings.command, "checkpoint": settings.checkpoint}
        cost = {} if made.cost is None else {"cost": made.cost.as_json()}
        if place == clip:
            _write_control_files(job, image, plan, delivery, job.out)
        # First the record, then the clip: who is stopped in between makes the clip again, and finds no stray one.
        _write_json(provenance_path(job.out), {**expected, "made_with": made_with, **cost, "output": output})
        clip.replace(job.out)
    return Ended("made", "", made.cost)


def provenance_record(
    job: Job, image: Path | None, plan: CameraPlan | None, delivery: Delivery | None, to: Generator | None
) -> ClipRecord:
    """What the record of a job's clip says, except for the clip itself. Inputs are named by their content.

    Without a card, a generator is told the plain path. A clip whose inputs may have shown the answer says nothing about
    memory.
    """
    require_known_name(job.policy, INPUT_POLICIES, "input policy")
    record: ClipRecord = {
        "record": job.id,
        "generator": to.id if to else "",
        "viewpoint_condition": to.condition if to else None,
        "intended": None if plan is None else _path_facts(plan),
        "delivered": None if delivery is None else delivery.record_facts(),
        "inputs": {
            "prompt": job.prompt,
            "seed": job.seed,
            "image_sha256": _file_digest_or_none(image),
            "video_sha256": _file_digest_or_none(job.source_video),
            "policy": job.policy,
            "enters_memory_tables": job.policy != "full_target",
        },
        "versions": {"revisit": __version__},
    }
    if job.suite:
        record["inputs"] |= {
            "segments": [asdict(segment) for segment in job.segments],
            "actions": [dict(row) for row in job.actions],
            "context": _context_digest_and_stretch(job.context),
            "frames": job.frames, "size": list(job.size), "fps": job.fps,
        }  # fmt: skip
        record["job"] = {name: getattr(job, name) for name in ("suite", "model", "sample", "condition")}
    return record


def _path_facts(plan: CameraPlan) -> dict[str, object]:
    return {
        "script": plan.script,
        "frames": len(plan),
        "fps": plan.fps,
        "size": list(plan.size),
        "convention": "OpenCV camera-to-world, first frame at the origin",
        "peak_yaw_degrees": round(plan.farthest_signed_yaw_degrees, 6),
        "path_digest": digest(plan.path.c2w.round(9).tolist(), 24),
    }


def _context_digest_and_stretch(clip: Clip | None) -> dict[str, object] | None:
    if clip is None:
        return None
    if not file_exists(clip.path):
        raise UsageError(f"{clip.path}: no such file; it is the context of the clip")
    return {"digest": digest_of_size_and_ends(clip.path), "start": clip.start, "frames": clip.count}


def _file_digest_or_none(path: Path | None) -> str | None:
    if path is None:
        return None
    if not file_exists(path):
        raise UsageError(f"{path}: no such file")
    return file_digest(path)


def plan_and_delivery(job: Job, to: Generator | None, image: Path | None) -> tuple[CameraPlan | None, Delivery | None]:
    """The path that a job asks for, and what a generator is given for it; nothing where no camera is asked for."""
    if to is not None:
        needed = {"image": image, "source_video": job.source_video}.get(to.takes)
        if to.takes != "nothing" and (needed is None or not file_exists(needed)):
            raise UsageError(f"{to.id} starts from {to.takes}, and the record names no such file: {needed}")
    plan = camera_plan_of_job(job)
    if plan is None or to is None:
        return plan, None
    picture = first_picture_size_if_needed(image, to) if image else None
    return plan, make_delivery(plan, to, prompt=job.prompt, image=str(image or ""), picture=picture)


def camera_plan_of_job(job: Job) -> CameraPlan | None:
    """The camera path of a job: its poses where it has some, else its script over its frames."""
    if job.path is not None:
        lens = np.tile(intrinsics(job.size), (len(job.path), 1, 1))
        steps = parse_script(job.camera) if job.camera else ()
        path = make_trajectory(job.path, intrinsics=lens, scale="metres")
        return CameraPlan(job.camera, steps, path, job.size, job.fps)
    return compile_script(job.camera, frames=job.frames, size=job.size, fps=job.fps) if job.camera else None


def classify_existing_clip(clip: Path, expected: ClipRecord) -> tuple[str, str]:
    """What is there, in a word and in words: absent, same (from the same inputs), own (from others) or foreign."""
    if not clip.exists() and not clip.is_symlink():
        return "absent", ""
    record = read_provenance_or_none(clip)
    if record is None:
        return "foreign", "with no record of how it was made"
    if record.get("record") != expected["record"]:
        return "foreign", f"as the clip of {record.get('record')!r}"
    try:
        if record["output"]["sha256"] != file_digest(clip):
            return "own", "changed since it was made"
    except (KeyError, TypeError, MediaError):
        return "own", "with a record that cannot be read"
    record_now = json.loads(json.dumps(expected))
    different = [words for name, words in IDENTITY.items() if record.get(name) != record_now[name]]
    return ("own", f"made with {join_names(different)}") if different else ("same", "")


def read_provenance_or_none(clip: Path) -> ClipRecord | None:
    """The record of a clip, or None."""
    try:
        record = parse_json(provenance_path(clip).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) else None


def get_or_extract_first_frame(job: Job, folder: Path) -> Path | None:
    """The picture a job starts from; where it is a frame of a video, it is taken out of it, once."""
    if not isinstance(job.image, Clip):
        return job.image
    source = job.image
    name = f"{file_name_for_id(job.id)}-{digest_of_size_and_ends(source.path)[:8]}-{source.start}.png"
    path = folder / INPUTS / name
    if not path.is_file():
        with open_clip(Clip(source.path, source.fps, source.start, 1)) as stream:
            frame = next(iter(stream), None)
        if frame is None:
            raise UsageError(f"{source.path} has no frame {source.start}, where the clip should begin")
        write_picture(path, frame.rgb)
    return path


def first_picture_size_if_needed(image: Path, to: Generator) -> tuple[int, int] | None:
    """Width and height of a first picture, where a generator's lens is told in pixels of it."""
    import cv2

    if not FAMILIES[to.payload].pictured:
        return None
    picture = cv2.imdecode(np.fromfile(image, np.uint8), cv2.IMREAD_COLOR) if file_exists(image) else None
    if picture is None:
        raise UsageError(f"{image}: the image cannot be read; its size is needed for the intrinsics")
    return picture.shape[1], picture.shape[0]


def clip_frames_fps_and_size(clip: Path) -> dict[str, Any]:
    """Frames, frame rate and size of a clip as it is, whatever was asked for; or why it cannot be opened."""
    try:
        info = read_clip_info(Clip(clip))
    except RevisitError as error:
        return {"frames": None, "problem": str(error)}
    return {"frames": info.count, "fps": round(float(info.fps), 6), "size": [info.width, info.height]}


def estimate_missing_bytes(jobs: Sequence[Job]) -> int:
    """Bytes that the clips which are not there will take, about: by those that are there, else by their size."""
    pixels = {job.id: job.frames * job.size[0] * job.size[1] for job in jobs}
    there = {job.id: job.out.stat().st_size for job in jobs if job.out.is_file()}
    rate = sum(there.values()) / sum(pixels[job_id] for job_id in there) if there else BYTES_PER_PIXEL
    return int(sum(rate * count for job_id, count in pixels.items() if job_id not in there))


def require_passable_text(job: Job) -> None:
    """Raise UsageError where a job holds what is no text, or what no command can be given."""
    if not job.id.strip() or not job.id.isprintable():
        raise UsageError(f"the id {job.id!r} is empty or has an unprintable character; choose another")
    image = job.image.path if isinstance(job.image, Clip) else job.image
    for name, value in (("prompt", job.prompt), ("image", image), ("source_video", job.source_video)):
        if "\0" in str(value or ""):
            raise UsageError(f"the {name} contains a NUL character, which cannot be passed to a command; remove it")
    texts = {"prompt": job.prompt, "camera": job.camera, "annotations": job.annotations, "id": job.id}
    for name, content in {**texts, "image": image, "segments": [segment.prompt for segment in job.segments]}.items():
        try:
            json.dumps(content, ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError as error:
            raise UsageError(f"the {name} contains a lone surrogate, which is not valid text") from error


def provenance_path(clip: Path) -> Path:
    """Where the record of a clip lies."""
    return clip.with_suffix(".provenance.json")


def _write_control_files(
    job: Job, image: Path | None, plan: CameraPlan | None, delivery: Delivery | None, clip: Path
) -> dict[str, object]:
    """The job, the payload and the path it was made from, beside a clip; what the job says of them."""
    control: dict[str, object] = {"path": None, "dialect": None, "payload": None, "line": ""}
    clip.parent.mkdir(parents=True, exist_ok=True)
    if delivery is not None:
        payload = delivery.write_files_beside(clip.with_suffix(""))
        control |= {"dialect": delivery.to.payload, "payload": str(payload.absolute())}
        control["line"] = delivery.one_line_payload
        if delivery.degrees_per_token is not None:
            control["token_degrees"] = delivery.degrees_per_token
    if plan is not None:
        path = clip.with_suffix(".target_c2w.npy")
        with atomic_write_path(path) as temporary, temporary.open("wb") as file:
            np.save(file, plan.path.c2w)
        control["path"] = str(path.absolute())
    _write_json(clip.with_suffix(".job.json"), job.as_json(job.out, image, control))
    return control


def _write_json(path: Path, content: Mapping[str, object]) -> None:
    write_text_atomically(path, json.dumps(content, indent=1, ensure_ascii=False))
