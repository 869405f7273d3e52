"""`revisit judge`: asks a judge about a clip, measures how reliable it is, and replays its answers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from revisit.cli import console
from revisit.cli.benchmarks import OpenGroup
from revisit.cli.help import Commands
from revisit.cli.options import JSON, flag_option, out_option

if TYPE_CHECKING:
    from revisit.judges.batch import JudgeClient
    from revisit.judges.protocol import Frames

app = Commands("Ask a vision-language model about clips, and check its answers.", cls=OpenGroup)


@app.command("check")
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
    frames_of = partial(read_spread_frames, count=frames)
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


JUDGE = typer.Option(..., "--judge", help="A judge file (YAML), the url of a server, or recorded answers.")
FRAMES = typer.Option(8, "--frames", min=1, help="Number of frames to show, evenly spread over the clip.")


@app.command("models")
def list_judge_models(judge: str = JUDGE, json: bool = JSON) -> None:
    """List the models of a server. This also tests the connection and the key."""
    from revisit.judges.chat import ChatJudge
    from revisit.judges.settings import judge_from_source

    server = judge_from_source(judge).judge
    model = server.facts.get("model")
    names = server.models() if isinstance(server, ChatJudge) else []
    if json:
        console.print_json({"judge": model, "models": list(names)})
    else:
        console.print_lines(*(f"{name}  <- the judge" if name == model else name for name in names))
    if isinstance(server, ChatJudge):
        server.check()
    else:
        console.print_to_stderr(f"this judge is {model}, which is not a server")


@app.command("ask")
def ask_judge(
    clip: Path = typer.Argument(help="A video, or a folder of frames."),
    question: str = typer.Argument(help="The question."),
    judge: str = JUDGE,
    form: str = typer.Option("yes-no", help="yes-no, a range such as 1-5, or words to choose from: red,green,blue."),
    frames: int = FRAMES,
    json: bool = flag_option("--json", "Print the answer as JSON, with the raw reply and its cost."),
) -> None:
    """Ask one question about one clip."""
    from revisit.judges.questions import Question, schema_from_form

    with open_judge_client(judge) as client:
        answer = client.ask(read_spread_frames(clip, frames), [Question("asked", question, schema_from_form(form))])[0]
    if json:
        console.print_json(answer.as_json())
    elif answer.status == "answered":
        value = {True: "yes", False: "no"}.get(answer.value, answer.value) if form == "yes-no" else answer.value
        sure = "" if answer.p_yes is None else f" (probability of yes {answer.p_yes:.3f})"
        console.print_lines(f"{value}{sure}")
    else:
        console.print_to_stderr(f"{answer.status}: {answer.reason}")
    raise typer.Exit(0 if answer.status == "answered" else 1)


@app.command("replay")
def replay_judge_run(
    run: Path = typer.Argument(help="A run that asked a judge."),
    out: Path = out_option("Run directory of the replay; <run>-replay by default."),
    json: bool = JSON,
) -> None:
    """Run an evaluation again with recorded answers. No network, no cost, the same numbers."""
    from dataclasses import replace

    from revisit.cli.eval_ import write_report_and_print_summary
    from revisit.core import UsageError
    from revisit.engine.request import Request
    from revisit.results.run import Run

    earlier = Run(run)
    judge, facts = (run / "answers.jsonl").resolve(), earlier.facts["protocol"].get("judge") or {}
    if not judge.is_file():
        raise UsageError(f"{run}: this run asked no judge, so there are no answers to replay")
    folder = out or run.with_name(f"{run.name}-replay")
    if facts.get("roles"):
        folder.mkdir(parents=True, exist_ok=True)
        judge = _write_replay_judge_file(facts, judge, folder / "judge.yaml")
    replayed = replace(Request.of_run(earlier), judge=str(judge)).run(folder)
    raise typer.Exit(write_report_and_print_summary(replayed, report=False, show_all=True, json=json, quiet=True))


def _write_replay_judge_file(facts: Mapping[str, Any], answers: Path, out: Path) -> Path:
    """A judge file in which every role of a run is replayed from its recorded answers."""
    import yaml

    def replay_settings(judge: Mapping[str, Any]) -> dict[str, Any]:
        return {"kind": "replay", "path": str(answers), "model": judge.get("model", "")}

    roles = {role.removeprefix("judge."): replay_settings(judge) for role, judge in facts["roles"].items()}
    out.write_text(yaml.safe_dump({**replay_settings(facts), "roles": roles}), encoding="utf-8")
    return out.resolve()


def open_judge_client(judge: str) -> JudgeClient:
    """Somebody who asks the judge that --judge names, and keeps its answers in the cache."""
    from revisit.engine.cache import cache_root
    from revisit.judges.settings import judge_from_source
    from revisit.judges.store import AnswerStore, shared_answers_path

    selection = judge_from_source(judge)
    return selection.make_client(AnswerStore(shared_answers_path(cache_root(), selection.judge.facts)))


def read_spread_frames(clip: Path, count: int) -> Frames:
    """So many frames of a clip, evenly spread."""
    from revisit.engine.judging import read_judge_frames_of_clip

    return read_judge_frames_of_clip(clip, at_most=count)
