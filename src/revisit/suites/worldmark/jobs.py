"""Jobs of WorldMark: every picture with each of its actions, keys frame by frame and as a camera script.

The benchmark says which key is held, and not how far a model goes with it. The script goes five metres and turns ninety
degrees a key, unless options say otherwise; scores do not ask for an amount.
"""

from __future__ import annotations

from pathlib import Path

from revisit.control.jobs import BatchRequest, Job, JobBatch, split_frames
from revisit.suites.worldmark.arena import (
    SECONDS,
    TOLERANCE,
    ArenaCase,
    parse_positive_option,
    read_arena_cases,
    require_arena_folder,
)
from revisit.suites.worldmark.evidence import DEGREES, METRES, key_script


def worldmark_generation_jobs(data: Path, out: Path | None, request: BatchRequest) -> JobBatch:
    """The jobs of the inputs; clips are laid out as a delivery in `out`."""
    request.refuse_unknown_options("metres", "degrees", "seconds")
    defaults = {"metres": METRES, "degrees": DEGREES, "seconds": SECONDS}
    amounts = {
        name: parse_positive_option(name, request.suite_option(name, str(usual))) for name, usual in defaults.items()
    }
    seconds = amounts.pop("seconds")
    arena, home = require_arena_folder(data), out or Path("generated/worldmark")
    questions = list(read_arena_cases(arena))
    places = {one.id: home / one.domain / one.view / request.model / f"{one.name}.mp4" for one in questions}
    candidates = [_job_of_case(one, places[one.id], request, amounts, seconds) for one in questions]
    left_out = [f"{one.id}: there is no picture {one.image:03d}" for one in questions if one.picture is None]
    chosen = [job for job in request.select_jobs(candidates) if job.image is not None or not request.first_frame]
    words = [str(home), "--suite", "worldmark", "--option", f"arena={arena}"]
    return JobBatch(chosen, home, words, left_out=left_out if request.first_frame else (), allowed=[*places.values()])


def _job_of_case(
    arena_case: ArenaCase, out: Path, request: BatchRequest, amounts: dict[str, float], seconds: float
) -> Job:
    frames = request.clip_length(round(len(arena_case.keys) * seconds * request.frame_rate) + 1)
    counts = split_frames(frames - 1, [1.0] * len(arena_case.keys))
    return Job(
        id=arena_case.id, out=out, suite="worldmark", sample=f"{arena_case.domain}/{arena_case.image:03d}",
        fps=request.frame_rate,
        subset=f"{arena_case.view}/{arena_case.domain}", condition=arena_case.keys, prompt=arena_case.prompt,
        frames=frames, **request.size_model_and_seed,
        image=arena_case.picture if request.first_frame else None, camera=key_script(arena_case.keys, counts,
        **amounts),
        actions=tuple({"key": key} for key, count in zip(arena_case.keys, counts, strict=True) for _ in range(count)),
        tolerance=TOLERANCE, annotations={"name": arena_case.name, "action": arena_case.action},
    )  # fmt: skip
