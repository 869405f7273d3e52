"""Jobs of WorldMark: every picture with each of its actions, keys frame by frame and as a camera script.

The benchmark says which key is held, and not how far a model goes with it. The script goes five metres and turns ninety
degrees a key, unless options say otherwise; scores do not ask for an amount.
"""

from __future__ import annotations

from pathlib import Path

from revisit.control.jobs import BatchRequest, Job, JobBatch, split_frames
from revisit.suites.worldmark.arena import SECONDS, TOLERANCE, ArenaCase, arena_root, positive_option, read_arena_cases
from revisit.suites.worldmark.evidence import DEGREES, METRES, key_script


def jobs(data: Path, out: Path | None, request: BatchRequest) -> JobBatch:
    """The jobs of the inputs; clips are laid out as a delivery in `out`."""
    request.refuse_unknown_options("metres", "degrees", "seconds")
    defaults = {"metres": METRES, "degrees": DEGREES, "seconds": SECONDS}
    amounts = {name: positive_option(name, request.option(name, str(usual))) for name, usual in defaults.items()}
    seconds = amounts.pop("seconds")
    arena, home = arena_root(data), out or Path("generated/worldmark")
    questions = list(read_arena_cases(arena))
    places = {one.id: home / one.domain / one.view / request.model / f"{one.name}.mp4" for one in questions}
    candidates = [_job(one, places[one.id], request, amounts, seconds) for one in questions]
    left_out = [f"{one.id}: there is no picture {one.image:03d}" for one in questions if one.picture is None]
    chosen = [job for job in request.select(candidates) if job.image is not None or not request.first_frame]
    words = [str(home), "--suite", "worldmark", "--option", f"arena={arena}"]
    return JobBatch(chosen, home, words, left_out=left_out if request.first_frame else (), allowed=[*places.values()])


def _job(one: ArenaCase, out: Path, request: BatchRequest, amounts: dict[str, float], seconds: float) -> Job:
    frames = request.length(round(len(one.keys) * seconds * request.rate) + 1)
    counts = split_frames(frames - 1, [1.0] * len(one.keys))
    return Job(
        id=one.id, out=out, suite="worldmark", sample=f"{one.domain}/{one.image:03d}", fps=request.rate,
        subset=f"{one.view}/{one.domain}", condition=one.keys, prompt=one.prompt, frames=frames, **request.clip,
        image=one.picture if request.first_frame else None, camera=key_script(one.keys, counts, **amounts),
        actions=tuple({"key": key} for key, count in zip(one.keys, counts, strict=True) for _ in range(count)),
        tolerance=TOLERANCE, annotations={"name": one.name, "action": one.action},
    )  # fmt: skip
