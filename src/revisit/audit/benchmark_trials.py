"""Benchmarks on trial: every published measure of memory and control, on models whose faults are known.

For each suite that names its measures and has a layout, each world is rendered as each model remembers it, and scored
under the protocol that computes what was published and under our corrected one:

<out>/<suite>/world_<k>/        films and runs, until all is scored
<out>/<suite>/world_<k>.json    scores of that world, which the same command does not make again
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

from revisit.audit.schema import Content
from revisit.core import METRICS, OBSERVERS, SUITES, Suite, UsageError
from revisit.core.text import read_package_yaml
from revisit.engine.parameters import default_parameters_of_plan
from revisit.engine.plan import Plan
from revisit.engine.request import Request
from revisit.engine.worker_processes import single_thread_environment
from revisit.media import save_npz
from revisit.media.files import write_text_atomically
from revisit.results import Results
from revisit.results.record_files import write_json
from revisit.results.stand_ins import stand_in_maker_and_published
from revisit.worlds.describe import public_scene_description
from revisit.worlds.layouts.common import Model
from revisit.worlds.layouts.film_orders import Layout, layout_read_by_suite, layout_suite_options
from revisit.worlds.layouts.rendering import render_layouts
from revisit.worlds.workers import Progress, StepCallback, run_in_processes

PERFECT = "perfect"
# Model -> its name on the figure; all are rendered by the failures of these names.
MODELS: Mapping[str, str] = read_package_yaml("revisit.audit", "benchmarks.yaml")["models"]
SIZE, FRAMES, WORLDS = (240, 416), 33, 12  # smaller pictures leave too few points to match
LOOKS = 8  # frames that networks of segmentation look at, instead of 32: they cost most of the time


# protocol -> measure -> model -> its mean over the clips of a world, and how many clips it could score
WorldScores = dict[str, dict[str, dict[str, Content]]]


@dataclass(frozen=True)
class TrialJob:
    """One world of one suite."""

    suite: str
    world: int
    out: Path
    set: str
    size: tuple[int, int]
    frames: int

    @property
    def scores_file(self) -> Path:
        return self.out / self.suite / f"world_{self.world:02d}.json"


def suites_on_trial(names: Sequence[str] = ()) -> list[Suite]:
    """The suites that name measures and have a layout in which models with faults can be rendered."""
    suites = [
        suite
        for suite in SUITES.values()
        if suite.memory_or_control_by_metric and layout_read_by_suite(suite.id) is not None
    ]
    for name in names:
        if SUITES[name] not in suites:
            raise UsageError(f"suite {name} names no measures of memory and control in its card, or has no layout")
    return [suite for suite in suites if not names or suite.id in names]


def trial_protocols(suite: Suite) -> list[str]:
    """The published protocol, where there is one, and the suite's first."""
    return list(dict.fromkeys([*filter(None, [suite.published_protocol]), next(iter(suite.protocols))]))


def try_benchmarks(
    out: Path,
    *,
    suites: Sequence[str] = (),
    worlds: int = WORLDS,
    set: str = "small",
    size: tuple[int, int] = SIZE,
    frames: int = FRAMES,
    workers: int | None = None,
    fresh: bool = False,
    progress: Progress | None = None,
) -> tuple[dict[str, list[WorldScores]], list[str]]:
    """Render and score what is not there yet; return the scores of every world by suite, and what failed.

    A world that fails costs only itself; the same call tries it again.
    """
    chosen = suites_on_trial(suites)
    if fresh:
        shutil.rmtree(out, ignore_errors=True)
    jobs = [TrialJob(suite.id, world, out, set, size, frames) for world in range(worlds) for suite in chosen]
    with single_thread_environment():
        ended = run_in_processes(_score_world_or_failure_text, jobs, workers, len(jobs), progress)
    scores_by_suite: dict[str, list[WorldScores]] = {suite.id: [] for suite in chosen}
    for job, scores in zip(jobs, ended, strict=True):
        if not isinstance(scores, str):
            scores_by_suite[job.suite].append(scores)
    failures = [scores for scores in ended if isinstance(scores, str)]
    return {suite: worlds_of_suite for suite, worlds_of_suite in scores_by_suite.items() if worlds_of_suite}, failures


def _score_world_or_failure_text(job: TrialJob, tell: StepCallback) -> WorldScores | str:
    """The scores of one world, or a sentence that says why there are none."""
    try:
        return _score(job, tell)
    except Exception as error:  # of rendering, a network or a metric: the other worlds go on
        why = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        sentence = f"{job.suite}, world {job.world}, failed: {why}"
        tell(sentence)
        return sentence


def _score(job: TrialJob, tell: StepCallback) -> WorldScores:
    """Render and score one world, unless that was done."""
    settings = {
        "set": job.set,
        "size": list(job.size),
        "frames": job.frames,
        "versions": measure_versions(SUITES[job.suite]),
    }
    if job.scores_file.is_file():
        content = json.loads(job.scores_file.read_text(encoding="utf-8"))
        if content["settings"] == settings:
            tell(f"{job.suite}, world {job.world}: was there")
            return content["scores"]
    suite, layout = SUITES[job.suite], layout_read_by_suite(job.suite)
    assert layout is not None
    folder = job.scores_file.with_suffix("")
    source, judge = _render_world_and_judge(job, layout, folder)
    scores: WorldScores = {}
    for protocol in trial_protocols(suite):
        request = Request(
            str(source), suite.id, job.set, protocol, tuple(suite.memory_or_control_by_metric),
            options=tuple(layout_suite_options(layout, folder / layout.id)), judge=str(judge),
        )  # fmt: skip
        request = replace(request, parameters=_fewer_frames_parameters(request.plan()))
        run = request.run(folder / f"run_{protocol}", workers=0, warned=lambda _: None)
        scores[protocol] = {
            metric: _scores_by_model(run.results, metric) for metric in suite.memory_or_control_by_metric
        }
    write_json(job.scores_file, {"settings": settings, "scores": scores})
    shutil.rmtree(folder)
    tell(f"{job.suite}, world {job.world}")
    return scores


def measure_versions(suite: Suite) -> dict[str, int]:
    """The version of each measure of a suite."""
    return {metric: METRICS[metric].version for metric in suite.memory_or_control_by_metric}


def _fewer_frames_parameters(plan: Plan) -> dict[str, dict[str, object]]:
    """Parameters by which the networks of a plan look at fewer frames, where they can."""
    return {
        id: {"at_most": LOOKS}
        for id, parameters in default_parameters_of_plan(plan).items()
        if id in OBSERVERS and OBSERVERS[id].weights and isinstance(parameters.get("at_most"), int)
    }


def _render_world_and_judge(job: TrialJob, layout: Layout, folder: Path) -> tuple[Path, Path]:
    """The films of a world by all models, and a judge that knows the scene and sees the pixels of the clips."""
    frames = max(job.frames, layout.least_frames)
    models = [Model(kind) for kind in MODELS]
    folders = render_layouts(
        folder, [layout.id], seeds=1, first_seed=job.world, size=job.size, frames=frames, models=models, workers=0
    )
    for number, order in enumerate(layout.films(job.world)):
        description = public_scene_description(order.film(job.size, frames)[1])
        save_npz(folder / "scenes" / f"{number:02d}.npz", description, compress=True)
    judge = folder / "judge.yaml"
    write_text_atomically(judge, "kind: instrumented\nscenes: scenes\n")
    return folders[layout.id] / layout.source, judge


def _scores_by_model(results: Results, metric: str) -> dict[str, Content]:
    """The scores of a measure by model."""
    scores: dict[str, Content] = {}
    for model in MODELS:
        records = results.where(model=model).records_for(metric) if metric in results.metrics else []
        values = [record.value for record in records if record.scored and record.value is not None]
        reasons = [record.reason.kind for record in records if record.reason is not None]
        scores[model] = {
            "mean": mean(values) if values else None,
            "n": len(values),
            "of": len(records),
            "why": max(reasons, key=reasons.count) if reasons else "",
            # who made the scores in the place of the published network; empty where nobody did
            "stand_in": " or ".join(
                dict.fromkeys(filter(None, (stand_in_maker_and_published(record)[0] for record in records)))
            ),
        }
    return scores
