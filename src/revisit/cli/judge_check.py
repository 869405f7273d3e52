"""`revisit judge check`: measures how reliable a judge is, with people's labels or rendered truth."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import typer

from revisit.cli import console
from revisit.cli.options import JSON, flag_option, out_option


def check_judge(
    labels: Path = typer.Argument(None, help="Labels as .csv or .jsonl (docs/judge-calibration.md)."),
    judge: str = typer.Option(
        "", help="A judge file, url or recorded answers; the instrumented judge by default with --worlds."
    ),
    worlds: Path = typer.Option(None, help="Render test clips with known truth into this folder and use their labels."),
    scenes: int = typer.Option(12, min=1, max=12, help="Number of scenes to render."),
    frames: int = typer.Option(8, min=1, help="Number of frames to show, evenly spread over the clip."),
    repeats: int = typer.Option(1, min=1, help="Ask every question this many times."),
    positions: bool = flag_option("--positions", "Also ask with the options in the other order."),
    blinded: int = typer.Option(
        None, min=0, help="Ask this often about another clip's frames, too; 1 by default with --worlds."
    ),
    out: Path = out_option("Write the report as JSON to this file."),
    json: bool = JSON,
) -> None:
    """Compare a judge's answers with people's labels or rendered truth."""
    from revisit.core import UsageError
    from revisit.engine.cache import cache_root
    from revisit.engine.judging import read_judge_frames_of_clip
    from revisit.judges.batch import JudgeClient
    from revisit.judges.budget import Budget
    from revisit.judges.calibration import CalibrationPlan, calibration_report, load_judge_labels
    from revisit.judges.protocol import Judge
    from revisit.judges.settings import ChosenJudge, judge_from_source
    from revisit.judges.store import AnswerStore, shared_answers_path
    from revisit.results.record_files import write_json

    if (labels is None) == (worlds is None):
        raise UsageError("give a file of labels, or --worlds with a folder for rendered test clips")
    if worlds is not None:
        from revisit.worlds.exam import STORIES, render_exam

        labels = render_exam(worlds, stories=STORIES[:scenes], progress=console.Counter("rendered scenes"))
    if judge:
        selection = judge_from_source(judge)
    elif worlds is not None:
        from revisit.judges.instrumented import InstrumentedJudge

        selection = ChosenJudge(InstrumentedJudge(worlds / "scenes"))
    else:
        raise UsageError("choose a judge with --judge: a judge file, the url of a server, or recorded answers")
    settings = selection.settings
    budget = Budget(settings.budget, settings.price)  # one for all rounds

    def client_of(who: Judge) -> JudgeClient:
        store = AnswerStore(shared_answers_path(cache_root(), who.facts))
        return JudgeClient(who, store, settings, budget, settings.tokens_per_image)

    plan = CalibrationPlan(repeats, positions, (1 if worlds else 0) if blinded is None else blinded)
    frames_of = partial(read_judge_frames_of_clip, at_most=frames)
    report = calibration_report(selection.judge, load_judge_labels(labels), frames_of, client_of, plan)
    if out is not None:
        write_json(out, report)
    if json:
        console.print_json(report)
    else:
        print_calibration_report(report)
    raise typer.Exit(1 if report["failed"] else 0)


def print_calibration_report(report: Mapping[str, Any]) -> None:
    """Print a calibration report."""
    counts = f"{report['clips']} clips, {report['questions']} questions"
    console.print_to_stderr(f"judge: {report['judge'].get('model')}, {counts}")
    parts = [("all", report), *report["subsets"].items()]
    rows = [_yes_no_rates_row(name, part) for name, part in parts]
    if blinded := report.get("blinded"):
        others = [("all", blinded), *blinded["subsets"].items()]
        rows += [_yes_no_rates_row(f"blinded: {name}", part) for name, part in others]
    if any("yes_no" in part for _, part in parts):
        columns = ["yes or no", "answered", "accuracy", "balanced", "precision", "recall", "F1", "kappa"]
        console.print_table(columns, rows, numbers=True)
    for name, part in parts:
        for form in ("ratings", "choices"):
            if form in part:
                values = ", ".join(f"{key.replace('_', ' ')} {_rate_text(value)}" for key, value in part[form].items())
                console.print_to_stderr(f"{form}, {name}: {values}")
    if report["unanswered"] or report["failed"]:
        console.print_to_stderr(
            f"{report['unanswered']} unanswered questions and {report['failed']} that could not be asked are left out "
            "of all rates"
        )
    if report["disputed"]:
        console.print_to_stderr(f"{report['disputed']} questions were left out: people disagree on them")
    if report["people"]:
        share = _rate_text(report["people"]["pairs_alike"])
        console.print_to_stderr(f"people agree with each other on {share} of pairs of labels")
    polarity = report["polarity"]
    if polarity["n"]:
        console.print_to_stderr(f"yes bias {polarity['yes_bias']:+.3f} (said yes {polarity['said_yes']:.3f})")
    if polarity["pairs"]:
        console.print_to_stderr(
            f"of {polarity['pairs']} questions and their opposites, both were answered yes {polarity['both_yes']} and "
            f"both no {polarity['both_no']} times"
        )
    if "position" in report:
        position = report["position"]
        console.print_to_stderr(
            f"with the options in the other order {_rate_text(position['changed'])} of the answers change; the first "
            f"option is taken in {_rate_text(position['first_share'])} (0.5 is no bias)"
        )
    if "repeats" in report:
        times, share = report["repeats"]["times"], _rate_text(report["repeats"]["always_alike"])
        console.print_to_stderr(f"asked {times} times, {share} of the questions always got the same answer")
    if "blinded" in report:
        console.print_to_stderr("blinded: about another clip's frames; 0.5 balanced is chance")


def _yes_no_rates_row(name: str, part: Mapping[str, Any]) -> list[str]:
    rates = part.get("yes_no", {})
    keys = ("accuracy", "balanced_accuracy", "precision", "recall", "f1", "kappa")
    return [name, f"{part['answered']}/{part['questions']}", *(_rate_text(rates.get(key)) for key in keys)]


def _rate_text(value: Any) -> str:
    return "–" if value is None else str(value) if isinstance(value, int) else f"{value:.3f}"
