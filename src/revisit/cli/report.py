"""`revisit report`, `view` and `figure`: the pages of runs, as files or served to a browser, and figures for papers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from revisit.cli import console
from revisit.cli.options import JSON, RUN, flag_option, metric_option, out_option

if TYPE_CHECKING:
    from revisit.core import Case
    from revisit.results import Results
    from revisit.results.run import Run

FIGURE_KINDS = ("radar", "horizon", "correlation", "phases", "scatter", "path", "strip")
STRIP_ROWS = ("model", "condition", "seed", "subset")


def report(
    run: Path = RUN,
    by: list[str] = typer.Option(
        [],
        help="Also make a table per group of clips: by a field (subset, condition, model), an annotation, a gate's "
        "result, or a comparison such as rotation>=90 or memo_psnr<12. Commas combine groupings; repeat the option for "
        "more tables.",
    ),
    metric: list[str] = metric_option("Only these metrics in the tables of --by"),
    copy_clips: bool = flag_option("--copy-clips", "Copy the videos into the report, so that it can be shared."),
    json: bool = flag_option("--json", "Print the run's summary as JSON as well."),
) -> None:
    """Write the HTML report of a run, and tables by group of clips. Its path is printed: RUN/report/index.html."""
    from revisit.cli.run_summary import print_tables_of_parts
    from revisit.report.write_html import write_report
    from revisit.results.run import Run
    from revisit.runs.group_by import score_tables_by_group

    finished_run = Run(run)
    groups = {expression: score_tables_by_group(finished_run, expression, metric) for expression in by}
    page = write_report(finished_run, copy_clips=copy_clips, by=groups)
    if json:
        console.print_json({"report": str(page), "summary": finished_run.summary, "by": groups})
        return
    for expression, tables in groups.items():
        console.print_to_stderr(f"by {expression}")
        print_tables_of_parts(tables, finished_run.summary["metrics"])
    typer.echo(str(page))


def view(
    runs: list[Path] = typer.Argument(metavar="RUN", help="Run directories."),
    port: int = typer.Option(0, min=0, max=65535, help="The port to listen on; any free one by default."),
    json: bool = flag_option("--json", "Print the list of runs as JSON, and serve nothing."),
) -> None:
    """Show runs in a browser, also while they are still going.

    Several runs open as a list that can be filtered, and two of them beside each other. Ctrl-C ends it.
    """
    from revisit.media.cache_folders import PREVIEWS, cache_root
    from revisit.report.live_server import make_live_application, run_entries_newest_first
    from revisit.results.run import Run
    from revisit.web.server import ListenAddress, serve_until_interrupted

    if json:
        console.print_json(run_entries_newest_first([(str(path), Run(path)) for path in runs]))
        return
    app = make_live_application(runs, cache_root() / PREVIEWS)
    console.print_to_stderr("Ctrl-C ends it.")
    serve_until_interrupted(app, ListenAddress(port=port), started=lambda address: typer.echo(f"{address}/"))


def figure(
    kind: str = typer.Argument(help=f"One of {', '.join(FIGURE_KINDS)}."),
    run: Path = RUN,
    metric: list[str] = metric_option("Metrics; those of the verdict by default"),
    model: list[str] = typer.Option([], help="Only these models."),
    sample: str = typer.Option("", help="The scene of a path or strip; that of the worst moment by default."),
    rows: str = typer.Option("model", help=f"What the rows of a strip differ in: {', '.join(STRIP_ROWS)}."),
    frames: str = typer.Option("6", help="Columns of a strip: how many, or frame numbers with commas."),
    out: Path = out_option("File to write; its ending says the format. <kind>.svg by default."),
    json: bool = JSON,
) -> None:
    """Draw a figure of a run, such as a radar, path or film strip."""
    from revisit.core import UsageError
    from revisit.core.text import require_known_name, suggest_names
    from revisit.report import figures
    from revisit.results.leaderboards import headline_score_ids
    from revisit.results.run import Run
    from revisit.results.score_names import resolve_score_ids

    require_known_name(kind, FIGURE_KINDS, "figure")
    finished_run = Run(run)
    results = finished_run.results
    if unknown := [name for name in model if name not in results.models]:
        raise UsageError(f"{run} has no model {unknown[0]!r}; {suggest_names(unknown[0], results.models)}")
    suite = finished_run.facts["suite"]
    metric = resolve_score_ids(metric, results.metrics, run, suite)
    part = results.where(model=model) if model else results
    metrics = metric or headline_score_ids(results, suite)
    if kind in ("path", "strip"):
        drawing = _draw_path_or_strip(kind, part, metrics, sample, rows, frames, finished_run)
    else:
        over_time = _metrics_with_series(results, metrics)
        usual = {"phases": results.metrics, "correlation": results.metrics, "horizon": over_time}
        drawing = getattr(figures, kind)(part, metric or usual.get(kind, metrics))
    if kind == "radar" and (left_out := sorted(set(metric) - set(figures.metrics_a_radar_can_show(part, metric)))):
        console.print_to_stderr(f"not drawn, for want of scores, of a range or of a better end: {', '.join(left_out)}")
    if kind == "scatter":
        for name, of_model in part.groups("model").items():
            if all(None in [part.score(case, one) for one in metrics] for case in of_model.cases):
                console.print_to_stderr(f"not drawn: {name}: no clip has scores of both")
    out = out or Path(f"{kind}.svg")
    figures.save_figure(drawing, out)
    facts = {"file": str(out), "kind": kind, "metrics": metrics, "models": part.models}
    console.print_json_or_text(facts, str(out), json)


def _metrics_with_series(results: Results, metrics: list[str]) -> list[str]:
    """Of the verdict's metrics those with values over time; else the plainest that have."""
    candidates = [*metrics, "psnr", "motion_amount"]
    with_series = [one for one in candidates if any(len(results.series(c, one) or ()) > 8 for c in results.cases)]
    return with_series[:3] or metrics[:1]


def _draw_path_or_strip(
    kind: str, results: Results, metrics: list[str], sample: str, rows: str, frames: str, run: Run
) -> Any:
    from revisit.core import SUITES, UsageError
    from revisit.core.text import require_known_name
    from revisit.geometry.camera_script import camera_path_of_length, parse_script
    from revisit.geometry.rotations import yaw_pitch_of_rotation
    from revisit.report import figures
    from revisit.results.ceilings import held_to_truth
    from revisit.results.verdict import load_verdict, make_verdict
    from revisit.results.worst_frames import worst_moments

    moments = load_verdict(run)["moments"]
    samples = list(dict.fromkeys(case.sample for case in results.cases))
    if not samples:
        raise UsageError("the run has no clip of these models, so there is nothing to draw")
    if not sample:
        sample = next((moment["sample"] for moment in moments if moment["sample"] in samples), samples[0])
        if len(samples) > 1:
            console.print_to_stderr(f"scene {sample} is drawn; --sample draws another of the {len(samples)}")
    require_known_name(sample, samples, "scene")
    scene_cases = results.where(sample=sample).cases
    if kind == "path":

        def requested_turns(case: Case, count: int) -> Any:
            import numpy as np

            if not case.camera:
                return None
            turns = camera_path_of_length(parse_script(case.camera), count)[:, :3, :3]
            return np.stack(yaw_pitch_of_rotation(turns @ turns[0].T), axis=1)

        _print_models_without_path(results, scene_cases)
        true_clips = run.results.truth.only(lambda entry: getattr(entry, "sample", "") == sample)
        return figures.camera_path_figure(results, scene_cases, requested_turns, true_clips)
    cases = _cases_differing_only_in(scene_cases, rows)
    suite = run.summary["suite"]
    answers = make_verdict(results, SUITES[suite].card if suite in SUITES else {}).answers
    worst = worst_moments(held_to_truth(results).where(sample=sample), answers, count=len(scene_cases))
    failing = {moment.case: moment.frame for moment in worst}
    try:
        numbers = [int(part) for part in frames.split(",")]
    except ValueError:
        raise UsageError(f"--frames takes a number of columns, or frame numbers with commas, not {frames!r}") from None
    if len(numbers) == 1:
        ids = {case.id for case in cases}
        moment_frames = [one["frame"] for one in moments if one["case"] in ids and one["frame"] is not None]
        columns = figures.film_strip_columns(cases[0], max(2, numbers[0]), moment_frames)
    else:
        columns = [(f"frame {number}", number) for number in numbers]
    frame_numbers = [number for _, number in columns]
    strip_rows: list[tuple[str, str, Any, int | None]] = []
    if cases[0].reference is not None:
        truth = replace(cases[0], clip=cases[0].reference)
        strip_rows.append(("truth", "", figures.read_scaled_frames(truth, frame_numbers), None))
    for case in cases:
        pictures = figures.read_scaled_frames(case, frame_numbers)
        scores = figures.score_lines(results, case, metrics[:2])
        strip_rows.append((str(getattr(case, rows)), scores, pictures, failing.get(case.id)))
    # Of what all rows share, the scene, and the model where rows are not models.
    title = sample if rows == "model" else f"{sample}, {cases[0].model}"
    return figures.film_strip_figure(strip_rows, columns, title)


def _print_models_without_path(results: Results, cases: Sequence[Case]) -> None:
    """Name the models of which a path has no line, and why."""
    answers = {case.model: results.of(case).get("camera_path") for case in cases}
    for model in results.models:
        answer = answers.get(model)
        if answer is None or not answer.scored:
            reason = answer.reason.sentence if answer is not None and answer.reason else "camera_path was not asked"
            console.print_to_stderr(f"not drawn: {model}: {reason if model in answers else 'no clip of this scene'}")


def _cases_differing_only_in(cases: Sequence[Case], field: str) -> list[Case]:
    """Clips of one scene that differ in exactly one thing: all else is as in the first of them."""
    from revisit.core import UsageError

    if field not in STRIP_ROWS:
        raise UsageError(f"the rows of a strip differ in {', '.join(STRIP_ROWS)}, not in {field!r}")
    fixed = [name for name in (*STRIP_ROWS, "camera", "prompt") if name != field]
    first = cases[0]
    return [case for case in cases if all(getattr(case, name) == getattr(first, name) for name in fixed)]
