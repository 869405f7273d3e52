"""Rendering: the films of layouts, shot side by side in worker processes.

Whatever is complete is kept, so the same call goes on where an earlier one stopped.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path

from revisit._version import __version__
from revisit.core import UsageError
from revisit.media.files import write_text_atomically
from revisit.worlds.layouts.common import Model, Row
from revisit.worlds.layouts.film_orders import LAYOUTS, Layout, Order, OwnFilms
from revisit.worlds.workers import Progress, StepCallback, run_in_processes

SETTINGS = "world.json"  # how a folder was rendered
FRAMES = 49
LEAST_FRAMES = 9
SIZE = (240, 416)


@dataclass(frozen=True)
class RenderJob:
    """The films of one layout in one world, or all of a layout with films of its own."""

    suite: str
    folder: Path
    orders: tuple[Order, ...]
    models: tuple[Model, ...]
    size: tuple[int, int]
    frames: int | None  # None: as long as its layout usually is
    steps: int  # of which it tells


def render_layouts(
    folder: Path,
    suites: Sequence[str],
    *,
    seeds: int = 2,
    first_seed: int = 0,
    size: tuple[int, int] = SIZE,
    frames: int | None = None,
    models: Sequence[Model] = (),
    workers: int | None = None,
    fresh: bool = False,
    progress: Progress | None = None,
) -> dict[str, Path]:
    """Write films of some seeds in the layouts of suites; return the folder of each.

    `models` are those of each suite by default. `workers` processes shoot side by side, as many as cores by default;
    0 works in this process. Layouts with films of their own (MIND: many and short) get half of the size. `frames` is
    the length of a clip: 49, or what such a layout has, by default.
    """
    unknown = [suite for suite in suites if suite not in LAYOUTS]
    if unknown:
        raise UsageError(f"unknown layout {unknown[0]!r}; choose one of {', '.join(LAYOUTS)}")
    if size[0] % 4 or size[1] % 4 or min(size) < 64:
        raise UsageError(
            f"the size must be height x width, both multiples of 4 and at least 64, not {size[0]}x{size[1]}"
        )
    if frames is not None and frames < LEAST_FRAMES:
        raise UsageError(f"a clip that leaves and returns needs at least {LEAST_FRAMES} frames, not {frames}")
    settings = {"revisit": __version__, "size": list(size), "frames": frames or FRAMES}
    _prepare_folder_for_settings(folder, suites, settings, fresh)
    scene_seeds = range(first_seed, first_seed + seeds)
    jobs = [
        job for suite in suites for job in _render_jobs(folder / suite, suite, scene_seeds, size, frames, tuple(models))
    ]
    shot = run_in_processes(_render_job_films, jobs, workers, sum(job.steps for job in jobs), progress)
    for suite in suites:
        layout = LAYOUTS[suite]
        if isinstance(layout, Layout):
            of_suite = (rows for job, rows in zip(jobs, shot, strict=True) if job.suite == suite)
            layout.index(folder / suite, list(chain.from_iterable(of_suite)))
    return {suite: folder / suite for suite in suites}


def _render_jobs(
    folder: Path, suite: str, seeds: Sequence[int], size: tuple[int, int], frames: int | None, models: tuple[Model, ...]
) -> Iterator[RenderJob]:
    layout = LAYOUTS[suite]
    if isinstance(layout, OwnFilms):
        yield RenderJob(suite, folder, (), (), (size[0] // 2, size[1] // 2), frames, layout.steps)
        return
    models_of_job = models or tuple(map(Model.parse, layout.models))
    for seed in seeds:
        for _, films in groupby(layout.films(seed), lambda order: (order.seed, order.place, order.kind)):
            orders = tuple(films)
            yield RenderJob(suite, folder, orders, models_of_job, size, frames, len(orders) * len(models_of_job))


def _prepare_folder_for_settings(
    folder: Path, suites: Sequence[str], settings: Mapping[str, object], fresh: bool
) -> None:
    """Refuse to mix clips of two kinds in one folder."""
    path = folder / SETTINGS
    if path.is_file() and fresh:
        for suite in suites:
            shutil.rmtree(folder / suite, ignore_errors=True)
    elif path.is_file() and json.loads(path.read_text(encoding="utf-8")) != settings:
        raise UsageError(
            f"{folder} was rendered with other settings ({path.name}); add --fresh to render it again, or choose "
            "another folder with --out"
        )
    write_text_atomically(path, json.dumps(settings))


def _render_job_films(job: RenderJob, tell: StepCallback) -> list[Row]:
    """Shoot the films of a job and return what the index says of each."""

    def tell_step(what: str) -> None:
        tell(f"{job.suite} {what}")

    layout = LAYOUTS[job.suite]
    if isinstance(layout, OwnFilms):
        layout.write(job.folder, job.size, tell_step, job.frames)
        return []
    rows: list[Row] = []
    for order in job.orders:
        name, film = order.film(job.size, job.frames or FRAMES)
        rows.append(layout.shoot(job.folder, name, film, job.models, order.seed, tell_step))
    return rows
