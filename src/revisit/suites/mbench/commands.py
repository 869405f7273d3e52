"""`revisit mbench`: the commands of the public evaluator, with its flags and variables, on our engine.

`list-metrics`, `validate`, `eval` and `prepare` take what upstream's take; `submit` and `check-submission` make and
check the zip file of the leaderboard. Everything else that Revisit does with a run works on these runs, too.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from revisit.cli import console
from revisit.cli import judge as judging
from revisit.cli.help import Commands
from revisit.cli.options import JSON, PARAM, QUIET, WORKERS, out_option
from revisit.cli.poses import CONVENTION, DEVICE, FRAMES, MODEL, ODOMETRY_WORKERS, PYTHON, TIMEOUT, make_estimator
from revisit.cli.running import run_evaluation

if TYPE_CHECKING:
    from revisit.results.run import Run
    from revisit.suites.mbench.names import MemoryDimension

app = Commands("MBench: the commands of its public evaluator.")

SOURCE = typer.Argument(help="A dataset: the folder with dataset.yaml, samples/ and models/.")
METRICS = typer.Option(
    [], "--metrics", help="Metric names, separated by commas; all of the dataset's setting by default."
)
EVAL_METRICS = typer.Option(
    [],
    "--metrics",
    help="Metric names, separated by commas (`trigger` only asks the judge's trigger question); all by default.",
)
MODELS = typer.Option("", "--models", help="Only these models, separated by commas.")
SUBSETS = typer.Option("", "--subsets", help="Only these subsets, separated by commas.")
CONDITIONS = typer.Option("", "--conditions", help="Only these conditions, separated by commas.")
SAMPLES = typer.Option("", "--sample-ids", help="Only these samples, separated by commas.")
ROOT = typer.Option([], "--root", help="A further folder that paths in the lists may point to.")
ARTIFACTS = typer.Option(
    [], "--artifacts", help="The folder that `prepare --output` wrote, if it is not found automatically."
)
KEY = "MBENCH_VLM_API_KEY"
ENDPOINT = "/chat/completions"


@app.command("list-metrics")
def list_metrics(json: bool = JSON) -> None:
    """List the 23 metrics and what each measures."""
    from revisit.core import METRICS as KNOWN
    from revisit.suites.mbench.names import upstream_names

    rows = {
        name: {"id": d.id, "subset": d.subset, "summary": KNOWN[d.id].summary}
        for name, (_, d) in upstream_names().items()
    }
    if json:
        console.print_json(rows)
        return
    width = max(map(len, rows))
    for name, row in rows.items():
        typer.echo(console.clean_text(f"{name:{width}}  {row['summary']}"))


@app.command()
def validate(
    source: Path = SOURCE,
    metrics: list[str] = METRICS,
    models: str = MODELS,
    subsets: str = SUBSETS,
    conditions: str = CONDITIONS,
    sample_ids: str = SAMPLES,
    limit: int = typer.Option(None, min=1, help="At most this many items per model and subset."),
    root: list[Path] = ROOT,
    artifacts: list[Path] = ARTIFACTS,
    json: bool = JSON,
) -> None:
    """List what the dataset lacks for metrics, with file and line. Exit code 1 if there is anything."""
    from dataclasses import asdict

    from revisit.core.text import split_commas
    from revisit.suites.mbench.check import check
    from revisit.suites.mbench.dataset import open_dataset
    from revisit.suites.mbench.names import choose_dimensions
    from revisit.suites.mbench.read import Filter

    data = open_dataset(source, root, artifacts)
    dimensions = choose_dimensions(split_commas(metrics), data.setting)
    keep = Filter.of(data, models, subsets, conditions, sample_ids)
    checked = check(data, keep, dimensions, limit)
    if json:
        console.print_json([asdict(problem) for problem in checked.problems])
    else:
        for problem in checked.problems:
            typer.echo(console.clean_text(f"{'' if problem.violation else 'note: '}{problem}"))
    if not checked.items:
        console.message("nothing was checked: no item of these models and subsets has these metrics")
    elif checked.violations:
        console.message(f"{checked.violations} violations in {checked.items} items")
    else:
        console.message(f"valid: {checked.items} items checked")
    raise typer.Exit(1 if checked.violations or not checked.items else 0)


@app.command("eval")
def eval_(
    source: Path = SOURCE,
    metrics: list[str] = EVAL_METRICS,
    output: Path = typer.Option(..., "--output", help="Run directory."),
    models: str = MODELS,
    subsets: str = SUBSETS,
    conditions: str = CONDITIONS,
    sample_ids: str = SAMPLES,
    limit: int = typer.Option(None, min=1, help="At most this many items, spread over models, subsets and conditions."),
    vlm_judge: str = typer.Option("", help="openai-compatible, or a value of --judge of `revisit eval`."),
    vlm_base_url: str = typer.Option("", envvar="MBENCH_VLM_BASE_URL", help="URL of the server, including /v1."),
    vlm_api_key: str = typer.Option("", help=f"Key of the server; better set in ${KEY}.", show_default=False),
    vlm_model: str = typer.Option("", envvar="MBENCH_VLM_MODEL", help="Name of the judge's model."),
    vlm_n_frames: int = typer.Option(8, min=1, help="Number of frames shown to the judge."),
    vlm_max_retries: int = typer.Option(3, min=0, help="How often a failed question is retried."),
    vlm_max_tokens: int = typer.Option(None, min=1, envvar="MBENCH_VLM_MAX_TOKENS", help="Longest reply."),
    vlm_api_style: str = typer.Option("chat_completions", envvar="MBENCH_VLM_API_STYLE", help="chat_completions."),
    vlm_endpoint_path: str = typer.Option(
        ENDPOINT, envvar="MBENCH_VLM_ENDPOINT_PATH", help="Path of the server's endpoint."
    ),
    workers: int = WORKERS,
    questions: Path = typer.Option(
        None, help="YAML or JSON file with the wording of the judge's questions, by question id."
    ),
    ignore_trigger: bool = typer.Option(
        False, "--ignore-trigger", help="Do not ask the judge whether a clip poses the test."
    ),
    protocol: str = typer.Option(None, help="corrected (default), paper or readme."),
    param: list[str] = PARAM,
    observer_set: str = typer.Option("lite", "--set", metavar="SET", help="Observer set."),
    root: list[Path] = ROOT,
    artifacts: list[Path] = ARTIFACTS,
    fresh: bool = typer.Option(False, "--fresh", help="Discard earlier answers of this run."),
    report: bool = typer.Option(False, "--report/--no-report", help="Also write the HTML report."),
    no_progress_bar: bool = typer.Option(False, "--no-progress-bar", help="No progress."),
    progress_every: int = typer.Option(None, hidden=True),
    quiet: bool = typer.Option(False, "--quiet", help="Print only errors."),
    log_file: Path = typer.Option(None, help="Log file; eval.log in the run by default."),
    no_log_file: bool = typer.Option(False, "--no-log-file", help="Write no log."),
    json: bool = JSON,
) -> None:
    """Score a dataset. Items that cannot be used are reported. The same command resumes; other metrics are added."""
    from dataclasses import replace

    from revisit.core.text import split_commas
    from revisit.engine.request import Request, merge_parameters
    from revisit.suites.mbench.dataset import open_dataset
    from revisit.suites.mbench.names import JUDGED

    data = open_dataset(source, root)
    gates, dimensions, asked_subsets = _questions(split_commas(metrics), data.setting, bool(vlm_judge), ignore_trigger)
    judge = vlm_judge
    if vlm_judge == "openai-compatible":
        _only(vlm_api_style, "chat_completions", "--vlm-api-style")
        _only(vlm_endpoint_path, ENDPOINT, "MBENCH_VLM_ENDPOINT_PATH")
        judge = str(output / "judge.yaml")
        _write_judge_file(Path(judge), vlm_base_url, vlm_model, vlm_api_key, vlm_max_retries, vlm_max_tokens)
    settings_by_name = {
        "models": models,
        "subsets": subsets or asked_subsets,
        "conditions": conditions,
        "samples": sample_ids,
        "artifacts": ",".join(str(folder.resolve()) for folder in artifacts),
        "questions": str(questions.resolve()) if questions else "",
    }
    options = [f"{name}={value}" for name, value in settings_by_name.items() if value]
    ids = [*gates, *(dimension.id for dimension in dimensions)]
    request = Request.of(
        source, "mbench", observer_set, protocol, ids, limit, "auto", root, options, judge, param, truth=False
    )
    if vlm_n_frames != 8 and JUDGED & {*ids}:
        request = replace(
            request, parameters=merge_parameters({"judge.frames": {"at_most": vlm_n_frames}}, request.parameters)
        )
    run = run_evaluation(
        request,
        output,
        quiet=quiet or no_progress_bar,
        command=_command_without_key(vlm_api_key),
        fresh=fresh,
        workers=workers,
        adds=data.ids(),
    )
    if not no_log_file:
        _write_log(run, log_file or output / "eval.log")
    _print_outcome(run, report, json, quiet)
    valid = ("scored", "open", "closed") if not dimensions else ("scored",)
    scored = any(record.status in valid for record in run.results.records)
    raise typer.Exit(0 if scored else 1)


def _print_outcome(run: Run, report: bool, json: bool, quiet: bool) -> None:
    """Write the page where it is asked for, and print the summary."""
    if report:
        from revisit.report.write_html import write_report

        write_report(run)
    if json:
        console.print_json(run.summary)
    elif not quiet:
        console.print_run_summary(run.summary, show_all=True)
        console.print_notes(run.plan, run.facts["notes"])
        console.message(f"results: {run.path / 'metrics'}")


@app.command()
def prepare(
    source: Path = SOURCE,
    producer: str = typer.Option(
        ..., help="odometry (built in, rotations only), pycolmap, da3, vggt, vggt-omega, mapanything, vipe, or command."
    ),
    output: Path = typer.Option(None, help="Folder for the artifacts; their folders in the dataset by default."),
    command: str = typer.Option("", help="For the producer `command`: a program that reads {video} and writes {npz}."),
    convention: str = CONVENTION,
    python: str = PYTHON,
    model: str = MODEL,
    device: str = DEVICE,
    frames: int = FRAMES,
    timeout: float = TIMEOUT,
    models: str = MODELS,
    subsets: str = SUBSETS,
    conditions: str = CONDITIONS,
    sample_ids: str = SAMPLES,
    workers: int = ODOMETRY_WORKERS,
    root: list[Path] = ROOT,
    quiet: bool = QUIET,
    json: bool = JSON,
) -> None:
    """Make camera-pose artifacts for clips that have none. The same command resumes.

    `eval` and `validate` find the artifacts in --output through the dataset's artifacts.json.
    """
    from revisit.core import Clip, UsageError
    from revisit.posing.tasks import PoseTask, estimate
    from revisit.suites.mbench.dataset import DatasetProblem, note_artifacts, open_dataset
    from revisit.suites.mbench.read import Filter

    if (producer == "command") != bool(command):
        raise UsageError(
            "--producer command needs --command, a program that reads {video} and writes {npz}, and the reverse"
        )
    data = open_dataset(source, root)
    keep = Filter.of(data, models, subsets, conditions, sample_ids)
    estimator = make_estimator(command or producer, python, model, device, frames, convention, timeout, workers)
    entries = [entry for name in keep.models for entry in data.items(name)]
    items = [entry for entry in entries if not isinstance(entry, DatasetProblem) and keep.takes(entry)]
    tasks = [
        PoseTask(f"{item.id}@{item.model}", Clip(item.video), data.poses_of(item, output))
        for item in items
        if item.video is not None
    ]
    outcome = estimate(tasks, estimator, tell=None if quiet else console.Counter("prepared"))
    for line in outcome.failed:
        console.message(line)
    if output is not None and outcome.made + outcome.kept:
        console.message(note_artifacts(data, output))
    missing = len(items) - len(tasks)
    if json:
        facts = {"made": outcome.made, "kept": outcome.kept, "failed": list(outcome.failed), "without_video": missing}
        console.print_json(facts)
    console.message(
        f"{outcome.made} made, {outcome.kept} kept, {len(outcome.failed)} failed, {missing} without a video"
    )
    raise typer.Exit(1 if outcome.failed else 0)


@app.command()
def submit(
    run: Path = typer.Argument(help="A run of the suite mbench."),
    model: str = typer.Option(..., help="Name of the model in the run."),
    link: str = typer.Option(..., help="Web address of the model's description."),
    name: str = typer.Option("", help="Its name on the leaderboard; that of the run by default."),
    out: Path = out_option("The zip file; <model>.zip by default."),
    dataset: Path = typer.Option(None, help="The dataset, if it has moved since the run."),
    json: bool = JSON,
) -> None:
    """Write the zip file for the public leaderboard. It needs a run with all items of a model."""
    from revisit.core import UsageError
    from revisit.results.run import Run as RunFolder
    from revisit.results.stand_ins import stand_ins
    from revisit.suites.mbench.dataset import open_dataset
    from revisit.suites.mbench.submission import (
        maker_lines,
        partial_reason,
        submission_content,
        submission_problems,
        write_submission,
    )

    path = out or Path(f"{model}.zip")
    finished_run = RunFolder(run)
    if finished_run.facts["suite"] != "mbench" or model not in finished_run.summary["models"]:
        submission_content(finished_run.summary, model, name, link)  # says what is wrong
    source = dataset or Path(str((finished_run.facts.get("request") or {}).get("source")))
    if not source.is_dir():
        raise UsageError(
            f"{source}: the dataset of this run is missing, so its completeness cannot be checked; --dataset"
        )
    roots = [Path(folder) for folder in (finished_run.facts.get("request") or {}).get("roots", ())]
    partial = partial_reason(
        open_dataset(source, roots), finished_run.facts, finished_run.plan, finished_run.results, model
    )
    if partial:
        raise UsageError(f"{model} cannot be submitted, because the run is partial: {partial}")
    content = submission_content(finished_run.summary, model, name, link)
    if replacements := stand_ins(finished_run.results.where(model=model)):
        sentences = "; ".join(one.sentence for one in replacements)
        raise UsageError(f"{model} cannot be submitted, because the leaderboard takes no stand-ins: {sentences}")
    write_submission(run, path, content, model, finished_run.summary["mbench"]["setting"])
    faults = submission_problems(path)
    if faults:
        path.unlink()
        raise UsageError(faults[0])
    for line in maker_lines(finished_run.plan, finished_run.summary["mbench"]["setting"]):
        console.message(line)
    if json:
        console.print_json({"file": str(path), **content})
    else:
        typer.echo(str(path))


@app.command("check-submission")
def check_submission(path: Path = typer.Argument(help="The submission's zip file."), json: bool = JSON) -> None:
    """List what is wrong with a submission. Exit code 1 if there is anything."""
    from revisit.suites.mbench.submission import submission_problems

    faults = submission_problems(path)
    if json:
        console.print_json({"file": str(path), "valid": not faults, "problems": list(faults)})
    for problem in faults if not json else ():
        typer.echo(console.clean_text(problem))
    console.message(f"{len(faults)} problems" if faults else "valid")
    raise typer.Exit(1 if faults else 0)


def _questions(
    names: Sequence[str], setting: str, judged: bool, ignore_trigger: bool
) -> tuple[list[str], Sequence[MemoryDimension], str]:
    """Gates and dimensions that the names of metrics ask for, and the subsets of a dataset that they are about.

    `trigger` alone asks whether clips pose the test, of all subsets: for a machine that has the judge.
    """
    from revisit.core import UsageError
    from revisit.suites.mbench.names import MOVED, TRIGGER, choose_dimensions

    trigger_only = "trigger" in names
    if trigger_only and (setting == "A" or ignore_trigger or not judged):
        raise UsageError("the metric `trigger` needs a dataset of setting T and --vlm-judge, without --ignore-trigger")
    metric_names = [name for name in names if name != "trigger"]
    dimensions = choose_dimensions(metric_names, setting) if metric_names or not trigger_only else []
    gates = [MOVED] if setting == "A" else [TRIGGER] if judged and not ignore_trigger else []
    everywhere = trigger_only or not metric_names
    subsets = "" if everywhere else ",".join(dict.fromkeys(dimension.subset for dimension in dimensions))
    return gates, dimensions, subsets


def _only(value: str, allowed: str, name: str) -> None:
    from revisit.core import UsageError

    if value.lstrip("/") != allowed.lstrip("/"):
        raise UsageError(f"{name} is {value!r}; only {allowed} is supported")


def _write_judge_file(path: Path, url: str, model: str, key: str, retries: int, longest: int | None) -> None:
    """The judge file of a server; the key stays in the environment."""
    import yaml

    from revisit.core import UsageError
    from revisit.media.files import write_text

    for value, flag, variable in (
        (url, "--vlm-base-url", "MBENCH_VLM_BASE_URL"),
        (model, "--vlm-model", "MBENCH_VLM_MODEL"),
    ):
        if not value:
            raise UsageError(f"--vlm-judge openai-compatible needs {flag}, or ${variable}")
    if key:
        os.environ[KEY] = key
    settings: dict[str, Any] = {"url": url, "model": model, "tries": retries + 1}
    if os.environ.get(KEY):
        settings["key_env"] = KEY
    if longest is not None:
        settings["max_tokens"] = longest
    write_text(path, yaml.safe_dump(settings, sort_keys=True))


def _command_without_key(key: str) -> str:
    """The command line, without the key."""
    return shlex.join(["revisit", *(part.replace(key, "[key]") if key else part for part in sys.argv[1:])])


def _write_log(run: Run, path: Path) -> None:
    """Write what came of every item, one line each."""
    from revisit.media.files import write_text

    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    results = run.results
    lines = [f"{now} {run.facts['suite']} protocol {run.summary['protocol']}"]
    for record in results.records:
        outcome = record.sentence if record.value is None else f"score {record.value:.6g}"
        lines.append(f"{now} {record.case.id} {record.question} {record.status} {outcome}".rstrip())
    lines += [f"{now} {entry.id} rejected {entry.reason}" for entry in results.rejected]
    write_text(path, "".join(console.clean_text(line) + "\n" for line in lines))


def import_videos(
    videos: Path = typer.Argument(help="A folder of generated videos."),
    dataset: Path = typer.Option(..., help="The MBench dataset that gets the model: the folder with dataset.yaml."),
    model: str = typer.Option(..., help="Name of the model; becomes models/<name>."),
    assignments: Path = typer.Option(
        None, help="JSONL with subset, sample_id and condition_id; by default the list of the dataset's only model."
    ),
    mode: str = typer.Option("link", help="How videos are placed: link, hardlink or copy."),
    pattern: str = typer.Option(
        "", help="Path of a video, such as '{sample_id}/{condition_id}.mp4'; common layouts by default."
    ),
    json: bool = JSON,
) -> None:
    """Add a model's videos to an MBench dataset. Running it again adds new videos."""
    from dataclasses import asdict

    from revisit.core import UsageError
    from revisit.suites.mbench.dataset import LIST, open_dataset
    from revisit.suites.mbench.package import package_model

    data = open_dataset(dataset)
    if assignments is None:
        other_models = [name for name in data.models if name != model]
        if len(other_models) != 1:
            raise UsageError(f"{dataset} has {len(other_models)} other models; name a list with --assignments")
        assignments = data.root / "models" / other_models[0] / LIST
    outcome = package_model(data, model, videos, assignments, mode, pattern)
    if json:
        console.print_json(asdict(outcome))
        return
    console.message(
        f"{outcome.placed} videos placed, {outcome.kept} kept, {len(outcome.missing)} missing in "
        f"{data.root / 'models' / model}"
    )
    for item in outcome.missing[:10]:
        console.message(f"missing: {item}")
    if len(outcome.missing) > 10:
        console.message(f"... and {len(outcome.missing) - 10} more")


def build(
    videos: Path = typer.Argument(help="A folder of videos."),
    out: Path = out_option("An empty folder; MBench-A and MBench-T are made in it.", required=True),
    judge: str = judging.JUDGE,
    frames: int = judging.FRAMES,
    licence: str = typer.Option(..., "--licence", help="Of the videos, such as CC-BY-4.0; it goes onto the card."),
    source: str = typer.Option(..., help="Where the videos are from; it goes onto the card."),
    json: bool = JSON,
) -> None:
    """Choose and caption videos with a judge; write MBench-A and MBench-T."""
    from revisit.core import RevisitError, UsageError
    from revisit.suites.authoring import empty_folder, videos_in
    from revisit.suites.mbench.build import ask_about_video, write_datasets

    files = videos_in(videos)
    empty_folder(out)
    descriptions = []
    with judging.open_judge(judge) as asker:
        for video in files:
            try:
                answer = ask_about_video(asker, video, lambda path: judging.sample_frames(path, frames))
            except RevisitError as error:
                answer = str(error)
            if isinstance(answer, str):
                console.message(f"left out: {answer}")
            else:
                descriptions.append(answer)
                console.message(f"{video.name}: {answer.subset}, {answer.name}")
    if not descriptions:
        raise UsageError("no video was chosen; the reasons are above")
    places = write_datasets(out, descriptions, licence=licence, source=source)
    console.message(f"{len(descriptions)} of {len(files)} videos chosen")
    if json:
        console.print_json(
            {"chosen": len(descriptions), "videos": len(files), "datasets": [str(place) for place in places]}
        )
        return
    for place in places:
        typer.echo(f"revisit build check {place}")


COMMANDS = {"build mbench": build, "mbench": app, "import mbench": import_videos}
