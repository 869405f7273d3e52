"""Benchmarks on trial: every published measure of memory and control, on models whose faults are known.

For each suite that names its measures and has a layout, each world is rendered as each model remembers it, and scored
under the protocol that computes what was published and under our corrected one:

<out>/<suite>/world_<k>/        films and runs, until all is scored
<out>/<suite>/world_<k>.json    scores of that world, which the same command does not make again

The scorers' table says of each measure what it gives models with known faults, and whether that is right. Its unit is a
world: scores of a model are means over the films of a world, and every model is compared with the perfect one in the
same worlds. Of each model that a measure is asked about, the table says one of four things. As a figure it has measures
in rows, and models with known faults in columns.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from statistics import mean
from typing import Any

from revisit._version import __version__
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
from revisit.results.display import number_text
from revisit.results.record_files import write_json
from revisit.results.stand_ins import stand_in_maker_and_replaced
from revisit.stats.intervals import mean_interval
from revisit.worlds.describe import public_scene_description
from revisit.worlds.layouts.common import Model
from revisit.worlds.layouts.film_orders import Layout, layout_read_by_suite, layout_suite_options
from revisit.worlds.layouts.rendering import render_layouts
from revisit.worlds.workers import Progress, StepCallback, run_in_processes

TEXTS = read_package_yaml("revisit.audit", "benchmarks.yaml")
PERFECT = "perfect"
MODELS: Mapping[str, str] = TEXTS["models"]  # model -> its name on the figure; rendered by the failure of its name
ASKED: Mapping[str, Sequence[str]] = TEXTS["asked"]
LOOKS = TEXTS["verdicts"]  # on the figure
SIZE, FRAMES, WORLDS = (240, 416), 33, 12  # smaller pictures leave too few points to match
AT_MOST = 8  # frames that networks of segmentation look at, instead of 32: they cost most of the time
WORSE, SAME, BETTER, ABSTAINS = "worse", "same", "better", "not scored"
EQUAL = 1e-9
# protocol -> measure -> model -> its mean over the clips of a world, and how many clips it could score
WorldScores = dict[str, dict[str, dict[str, Content]]]
KEY = "Description"  # of the PNG: the digest of what it shows


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
    suite, layout = SUITES[job.suite], layout_read_by_suite(job.suite)
    settings = {
        "set": job.set,
        "size": list(job.size),
        "frames": job.frames,
        "versions": {metric: METRICS[metric].version for metric in suite.memory_or_control_by_metric},
    }
    if job.scores_file.is_file():
        content = json.loads(job.scores_file.read_text(encoding="utf-8"))
        if content["settings"] == settings:
            tell(f"{job.suite}, world {job.world}: was there")
            return content["scores"]
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


def _fewer_frames_parameters(plan: Plan) -> dict[str, dict[str, object]]:
    """Parameters by which the networks of a plan look at fewer frames, where they can."""
    return {
        id: {"at_most": AT_MOST}
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
                dict.fromkeys(filter(None, (stand_in_maker_and_replaced(record)[0] for record in records)))
            ),
        }
    return scores


def make_trial_table(
    scores: Mapping[str, Sequence[WorldScores]], *, set: str, size: tuple[int, int], frames: int
) -> Content:
    """The table of the scores of all worlds."""
    rows = []
    for suite_id, worlds in scores.items():
        suite = SUITES[suite_id]
        for kind in ASKED:
            for metric in (metric for metric, of in suite.memory_or_control_by_metric.items() if of == kind):
                for protocol in worlds[0]:
                    rows.append(_measure_row(suite_id, metric, kind, protocol, worlds))
    count = max(map(len, scores.values()))
    return {
        "revisit": __version__, "worlds": count, "set": set, "size": list(size), "frames": frames, "rows": rows,
    }  # fmt: skip


def _measure_row(suite_id: str, metric: str, kind: str, protocol: str, worlds: Sequence[WorldScores]) -> Content:
    suite, card = SUITES[suite_id], METRICS[metric]
    higher = card.higher_is_better is not False
    scores = {model: [world[protocol][metric][model] for world in worlds] for model in MODELS}
    cells = {model: _model_cell(scores[model], scores[PERFECT], higher, model in ASKED[kind]) for model in MODELS}
    verdicts = [cell["verdict"] for cell in cells.values() if cell["verdict"]]
    scored = cells[PERFECT]["worlds"] > 0
    first = all(verdict in (WORSE, ABSTAINS) for verdict in verdicts) if scored else None
    return {
        "suite": suite_id, "benchmark": suite.title, "measure": metric, "title": card.title,
        "version": card.version, "kind": kind, "protocol": protocol,
        "published": protocol == suite.published_protocol, "higher_is_better": higher, "cells": cells,
        "perfect_first": first,  # None where the perfect model has no score
        "stand_in": worlds[0][protocol][metric][PERFECT]["stand_in"],
    }  # fmt: skip


def _model_cell(scores: Sequence[Content], perfect_scores: Sequence[Content], higher: bool, asked: bool) -> Content:
    values, perfect = ([score["mean"] for score in of_model] for of_model in (scores, perfect_scores))
    scored = [value for value in values if value is not None]
    pairs = [(best, value) for best, value in zip(perfect, values, strict=True) if None not in (best, value)]
    differences = [(best - value) * (1 if higher else -1) for best, value in pairs]
    spread = _mean_difference_with_interval(differences)
    posed = sum(value is not None for value in perfect)
    verdict = ""
    # A fault that no film of the measure's cases can show was not tried: a state is not reset where nothing happens.
    if asked and posed and any(score["of"] for score in scores):
        verdict = ABSTAINS
        if spread is not None and 2 * len(differences) >= posed:
            verdict = WORSE if spread[1] > EQUAL else BETTER if spread[2] < -EQUAL else SAME
    why = [score["why"] for score in scores if score["why"]]
    return {
        "mean": sum(scored) / len(scored) if scored else None,
        "interval": mean_interval(scored),
        "worlds": len(scored),
        "difference": spread,  # perfect minus this model, so that above 0 is right: mean, and interval over worlds
        "verdict": verdict,  # "" where the measure is not asked about this model
        "why": max(why, key=why.count) if why else "",
    }


def _mean_difference_with_interval(differences: Sequence[float]) -> list[float] | None:
    """Mean difference with its interval; of differences that are all alike, the interval is that number."""
    if not differences:
        return None
    middle = sum(differences) / len(differences)
    alike = max(differences) - min(differences) < EQUAL
    interval = None if alike else mean_interval(differences)
    return [middle, *(interval or (middle, middle))]


def table_as_text(content: Content) -> str:
    """The table for a terminal: a line per measure and protocol."""
    lines = [f"{content['worlds']} worlds, observers {content['set']}; perfect model first?"]
    for row in content["rows"]:
        if row["perfect_first"] is None:
            answer = f"no score ({row['cells'][PERFECT]['why'] or 'not asked'})"
        else:
            wrong = [MODELS[model] for model, cell in row["cells"].items() if cell["verdict"] in (SAME, BETTER)]
            answer = "yes" if row["perfect_first"] else f"no: {', '.join(wrong)}"
        lines.append(f"{row['benchmark']:<10} {row['protocol']:<10} {row['title']:<28} {answer}")
    return "\n".join(lines)


def round_to_four_digits(value: object) -> object:
    """The table with four digits, as it is kept for the documentation."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, Mapping):
        return {name: round_to_four_digits(item) for name, item in value.items()}
    return [round_to_four_digits(item) for item in value] if isinstance(value, list | tuple) else value


def content_digest(content: Content) -> str:
    """What a figure was made from."""
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def draw_figure(content: Content, path: Path) -> Path:
    """Write the figure, and return its path."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.patches import Rectangle

    rows = [row for row in content["rows"] if row["perfect_first"] is not None]
    published = [row for row in rows if row["published"]]
    corrected = {(row["suite"], row["measure"]): row for row in rows if not row["published"]}
    height = 0.34 * len(published) + 1.5  # inches; the rest is for headings and the legend
    figure, axes = plt.subplots(1, 2, figsize=(15.5, height), sharey=True, gridspec_kw={"wspace": 0.03})
    _draw_half(axes[0], "as published", published)
    _draw_half(axes[1], "corrected", [corrected.get((row["suite"], row["measure"])) for row in published])
    labels = [
        f"{row['benchmark']}  {row['title']}{'*' if row['stand_in'] else ''} {'↑' if row['higher_is_better'] else '↓'}"
        for row in published
    ]
    axes[0].set_yticks(range(len(published)), labels, fontsize=9)
    for y in range(1, len(published)):  # a line between benchmarks, across both halves
        if published[y]["suite"] != published[y - 1]["suite"]:
            axes[0].plot([-5.2, 16.2], [y - 0.5, y - 0.5], color="#b5bac0", linewidth=0.8, clip_on=False, zorder=0)
    legend = {look["legend"]: look["colour"] for look in LOOKS.values() if "legend" in look}
    handles = [Rectangle((0, 0), 1, 1, color=colour) for colour in legend.values()]
    figure.legend(handles, legend, loc="lower center", ncol=4, frameon=False, fontsize=9)
    figure.suptitle(
        f"What published measures give models with known faults: means over {content['worlds']} rendered worlds"
        " (* by another network than the published one)",
        fontsize=12, y=0.995,
    )  # fmt: skip
    figure.subplots_adjust(left=0.255, right=0.995, top=1 - 0.95 / height, bottom=0.55 / height)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130, metadata={KEY: content_digest(content)})
    plt.close(figure)
    return path


def _draw_half(axis: Any, title: str, rows: Sequence[Content | None]) -> None:
    """One half: a cell per measure and model."""
    names = list(MODELS)
    axis.set_xlim(-0.5, len(names) - 0.5)
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.set_xticks(range(len(names)), list(MODELS.values()), fontsize=8.5, rotation=20, ha="left")
    axis.xaxis.tick_top()
    axis.tick_params(length=0)
    axis.set_title(title, fontsize=11, fontweight="bold", pad=8)
    for spine in axis.spines.values():
        spine.set_visible(False)
    for y, row in enumerate(rows):
        for x, model in enumerate(names):
            _draw_cell(axis, x, y, row, model)


def _draw_cell(axis: Any, x: int, y: int, row: Content | None, model: str) -> None:
    from matplotlib.patches import Rectangle

    if row is None:
        return
    cell = row["cells"][model]
    sign = LOOKS[cell["verdict"]]["sign"]
    colour = LOOKS["" if model == PERFECT else cell["verdict"]]["colour"]
    axis.add_patch(Rectangle((x - 0.48, y - 0.45), 0.96, 0.9, color=colour))
    text = sign if cell["mean"] is None else f"{number_text(cell['mean'])} {sign if sign in '=>' else ''}".strip()
    quiet = not cell["verdict"] and model != PERFECT
    axis.text(
        x, y, text or "–", ha="center", va="center", fontsize=7.5 if sign == "not scored" else 8.5,
        color="#a0a6ad" if quiet else "#1c2126", fontweight="bold" if model == PERFECT else "normal",
    )  # fmt: skip
