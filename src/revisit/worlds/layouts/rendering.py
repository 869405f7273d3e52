"""Rendering: which films each layout gets, shot side by side in worker processes.

Whatever is complete is kept, so the same call goes on where an earlier one stopped.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any

from revisit import __version__
from revisit.core import UsageError
from revisit.worlds.events import EVENTS
from revisit.worlds.film import Film, play
from revisit.worlds.layouts import folder as folder_layout
from revisit.worlds.layouts import mbench, memobench, mind, wrbench
from revisit.worlds.layouts.common import Model, Row, Tell, text
from revisit.worlds.places import make_world
from revisit.worlds.world import World

Progress = Callable[[int, int, str], None]
SETTINGS = "world.json"  # how a folder was rendered
FRAMES = 49
LEAST_FRAMES = 9
SIZE = (240, 416)


@dataclass(frozen=True)
class Order:
    """A film to be made, all by name: where and how it is played, and what it is called in its layout.

    {camera} and {action} in the name are the side to which the world turns, as WRBench and MBench write it; {away} and
    {back} in the script are the sides, {half} and {rest} the frames out and back.
    """

    name: str
    seed: int
    place: str
    kind: str
    event: str
    script: str = "yaw"

    def film(self, size: tuple[int, int], frames: int) -> tuple[str, Film]:
        """What it is called, and the film."""
        world = _world(self.seed, self.place, self.kind, EVENTS[self.event].needs_perch)
        right = world.turn == "right"
        camera, action = ("RL", "right_then_left") if right else ("LR", "left_then_right")
        away, back = ("right", "left") if right else ("left", "right")
        script = self.script.format(away=away, back=back, half=frames // 2, rest=frames - 1 - frames // 2)
        return self.name.format(camera=camera, action=action), play(world, script, self.event, size, frames=frames)


@lru_cache(maxsize=1)
def _world(seed: int, place: str, kind: str, block: bool) -> World:
    """The world of a seed; films in the same world come one after another."""
    return make_world(seed, place, kind, block=block)


# Targets with what happens to them, in turn; the first four change at once, the others while they are seen.
CAST = (
    ("gift", "both"), ("ball", "rolling"), ("rocket", "changed"), ("cup", "filling"), ("vase", "moved"),
    ("candle", "burning"), ("figure", "moved"), ("chest", "opening"), ("plant", "none"), ("snowman", "melting"),
)  # fmt: skip


def _place(seed: int) -> str:
    return "yard" if seed % 2 else "room"


def _plain(seed: int) -> list[Order]:
    kind, event = CAST[seed % len(CAST)]
    return [Order(f"{seed:03d}-{kind}-{event}", seed, _place(seed), kind, event)]


def _memobench(seed: int) -> list[Order]:
    kind, event = CAST[seed % len(CAST)]
    scene = "Yard" if seed % 2 else "Living_Room"
    synthetic = Order(f"{scene}_{seed // 2 + 1:03d}", seed, _place(seed), kind, event)
    other_kind, other_event = CAST[(seed + 3) % len(CAST)]
    real = Order(f"{seed + 7:03d}", 50 + seed, _place(seed), other_kind, other_event, "tilt")
    return [synthetic, real] if seed % 2 == 0 else [synthetic]  # as the dataset: more synthetic than real clips


def _wrbench(seed: int) -> list[Order]:
    kind, place = ("gift", "ball", "vase", "rocket")[seed % 4], _place(seed)
    script = "yaw:{away}:60@{half},yaw:{back}:60@{rest}"  # without a rest, as its cameras are asked to go
    return [
        Order(f"{place}_{seed:02d}_{kind}__{tier}__yaw60_{{camera}}", seed, place, kind, event, script)
        for tier, (_, _, event) in wrbench.TIERS.items()
    ]


def _mbench(seed: int) -> list[Order]:
    cast = {"environment": ("gift", "none"), "object": ("gift", "none"), "human": ("figure", "none"),
            "causal": CAST[1::2][seed % 5]}  # fmt: skip
    return [
        Order(f"{subset}__sample_{seed:03d}__{{action}}_3s", seed, _place(seed), kind, event)
        for subset, (kind, event) in cast.items()
    ]


def _mbench_text(seed: int) -> list[Order]:
    return [replace(order, name=order.name.replace("{action}_3s", mbench.TEXT)) for order in _mbench(seed)]


@dataclass(frozen=True)
class Layout:
    """How a benchmark's files are written, the films of a seed, and the models that show what it asks about."""

    module: ModuleType
    films: Callable[[int], list[Order]]
    models: tuple[str, ...]


LAYOUTS: dict[str, Layout | None] = {
    "folder": Layout(
        folder_layout,
        _plain,
        ("perfect", "frozen_camera", "vanish", "colour_drift", "state_reset", "state_frozen", "teleport", "duplicate",
         "background", "camera_drift", "blur"),
    ),
    "memobench": Layout(
        memobench,
        _memobench,
        ("perfect", "frozen_camera", "vanish", "colour_drift", "state_reset", "teleport", "background", "camera_drift"),
    ),
    "wrbench": Layout(
        wrbench, _wrbench, ("perfect", "frozen_camera", "partial_return", "state_reset", "teleport", "duplicate"),
    ),
    "mbench": Layout(
        mbench,
        _mbench,
        ("perfect", "frozen_camera", "texture_drift", "shape_drift", "state_reset", "background", "lighting", "style"),
    ),
    "mbench-t": Layout(
        mbench, _mbench_text, ("perfect", "frozen_camera", "texture_drift", "state_reset", "lighting"),
    ),
    "mind": None,  # its films and models are its own
}  # fmt: skip


@dataclass(frozen=True)
class Job:
    """The films of one layout in one world, or all of MIND."""

    suite: str
    folder: Path
    orders: tuple[Order, ...]
    models: tuple[Model, ...]
    size: tuple[int, int]
    frames: int | None  # None: as long as its layout usually is

    @property
    def steps(self) -> int:
        return len(self.orders) * len(self.models) if self.orders else mind.STEPS


def render(
    folder: Path,
    suites: Sequence[str] = tuple(LAYOUTS),
    *,
    seeds: int = 2,
    size: tuple[int, int] = SIZE,
    frames: int | None = None,
    models: Sequence[Model] = (),
    workers: int | None = None,
    fresh: bool = False,
    progress: Progress | None = None,
) -> dict[str, Path]:
    """Write films of the first seeds in the layouts of suites; return the folder of each.

    `models` are those of each suite by default. `workers` processes shoot side by side, as many as cores by default;
    0 works in this process. MIND, whose clips are many and short, gets half of the size. `frames` is the length of a
    clip (49 by default), in MIND of a prediction (18 by default).
    """
    unknown = [suite for suite in suites if suite not in LAYOUTS]
    if unknown:
        raise UsageError(f"there is no layout for {unknown[0]!r}; there is one for {', '.join(LAYOUTS)}")
    if size[0] % 4 or size[1] % 4 or min(size) < 64:
        raise UsageError(f"a size is height x width, both multiples of 4 and at least 64, not {size[0]}x{size[1]}")
    if frames is not None and frames < LEAST_FRAMES:
        raise UsageError(f"a clip that leaves and comes back has at least {LEAST_FRAMES} frames, not {frames}")
    settings = {"revisit": __version__, "size": list(size), "frames": frames or FRAMES}
    _same_settings(folder, suites, settings, fresh)
    jobs = [job for suite in suites for job in _jobs(folder / suite, suite, seeds, size, frames, tuple(models))]
    rows: dict[str, list[Row]] = {suite: [] for suite in suites}
    total, done = sum(job.steps for job in jobs), 0
    for told in _shot(jobs, workers):
        if isinstance(told, str):
            done += 1
            if progress is not None:
                progress(done, total, told)
        else:
            suite, shot = told
            rows[suite] += shot
    for suite in suites:
        layout = LAYOUTS[suite]
        if layout is not None:
            layout.module.index(folder / suite, rows[suite])
    return {suite: folder / suite for suite in suites}


def _jobs(
    folder: Path, suite: str, seeds: int, size: tuple[int, int], frames: int | None, models: tuple[Model, ...]
) -> Iterator[Job]:
    layout = LAYOUTS[suite]
    if layout is None:
        yield Job(suite, folder, (), (), (size[0] // 2, size[1] // 2), frames)
        return
    chosen = models or tuple(map(Model.parse, layout.models))
    for seed in range(seeds):
        for _, same in groupby(layout.films(seed), lambda order: (order.seed, order.place, order.kind)):
            yield Job(suite, folder, tuple(same), chosen, size, frames)


def _same_settings(folder: Path, suites: Sequence[str], settings: dict[str, Any], fresh: bool) -> None:
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
    text(path, json.dumps(settings))


def _shot(jobs: Sequence[Job], workers: int | None) -> Iterator[str | tuple[str, list[Row]]]:
    """A word for every step, and for every job its suite and the rows of its films, in the order of the jobs."""
    workers = min(os.cpu_count() or 1 if workers is None else workers, len(jobs))
    if workers < 2:
        for job in jobs:
            told: list[str] = []
            rows_of_job = _shoot(job, told.append)
            yield from told
            yield job.suite, rows_of_job
        return
    context = multiprocessing.get_context("spawn")  # OpenCV and libav do not survive a fork
    said = context.SimpleQueue()
    with ProcessPoolExecutor(workers, context, _begin, (said,)) as pool:
        rows = [pool.submit(_shoot_aside, job) for job in jobs]
        waiting: set[Future[list[Row]]] = set(rows)
        try:
            while waiting:
                done, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
                yield from _heard(said)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        yield from _heard(said)
        for job, future in zip(jobs, rows, strict=True):
            yield job.suite, future.result()


_said: Any = None  # a worker's line to the process that started it


def _begin(said: Any) -> None:
    import cv2

    global _said
    _said = said
    cv2.setNumThreads(1)


def _shoot_aside(job: Job) -> list[Row]:
    return _shoot(job, _said.put)


def _heard(said: Any) -> Iterator[str]:
    while not said.empty():
        yield said.get()


def _shoot(job: Job, tell: Tell) -> list[Row]:
    """Shoot the films of a job and return what the index says of each."""

    def say(what: str) -> None:
        tell(f"{job.suite} {what}")

    layout = LAYOUTS[job.suite]
    if layout is None:
        mind.write(job.folder, job.size, say, job.frames)
        return []
    rows: list[Row] = []
    for order in job.orders:
        name, film = order.film(job.size, job.frames or FRAMES)
        rows.append(layout.module.shoot(job.folder, name, film, job.models, order.seed, say))
    return rows
