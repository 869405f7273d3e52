"""`revisit mbench`: the commands of the public evaluator, with its flags and variables, on our engine.

`list-metrics`, `validate`, `eval` and `prepare` take what upstream's take; `submit` and `check-submission` make and
check the zip file of the leaderboard. Everything else that Revisit does with a run works on these runs, too.
"""

from __future__ import annotations

import os
import shlex
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from revisit.cli import camera, console
from revisit.cli.eval_ import run_evaluation
from revisit.cli.help import Commands
from revisit.cli.options import FRESH, JSON, PARAM, QUIET, WORKERS, out_option, run_option
from revisit.suites.mbench.commands_dataset import build_both_datasets, import_videos

if TYPE_CHECKING:
    from revisit.results.run import Run
    from revisit.suites.mbench.names import MemoryDimension

app = Commands("MBench: the commands of its public evaluator.")

SOURCE = typer.Argument(help="A dataset: the folder with dataset.yaml, samples/ and models/.")
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
    from revisit.core import METRICS
    from revisit.suites.mbench.names import dimensions_by_upstream_name

    rows = {
        name: {"id": d.id, "subset": d.subset, "summary": METRICS[d.id].summary}
        for name, (_, d) in dimensions_by_upstream_name().items()
    }
    width = max(map(len, rows))
    text = "\n".join(f"{name:{width}}  {row['summary']}" for name, row in rows.items())
    console.print_json_or_text(rows, text, json)


@app.command()
def validate(
    source: Path = SOURCE,
    metrics: list[str] = typer.Option(
        [], "--metrics", help="Metric names, separated by commas; all of the dataset's setting by default."
    ),
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
    from revisit.suites.mbench.check import check_dataset_items
    from revisit.suites.mbench.dataset import open_mbench_dataset
    from revisit.suites.mbench.names import named_dimensions_or_all
    from revisit.suites.mbench.read import Filter

    data = open_mbench_dataset(source, root, artifacts)
    dimensions = named_dimensions_or_all(split_commas(metrics), data.setting)
    keep = Filter.from_options(data, models, subsets, conditions, sample_ids)
    problems, items = check_dataset_items(data, keep, dimensions, limit)
    if json:
        console.print_json([asdict(problem) for problem in problems])
    else:
        console.print_lines(*(f"{'' if problem.violation else 'note: '}{problem}" for problem in problems))
    violations = sum(problem.violation for problem in problems)
    sentence = f"{violations} violations in {items} items" if violations else f"valid: {items} items checked"
    nothing = "nothing was checked: no item of these models and subsets has these metrics"
    console.print_to_stderr(sentence if items else nothing)
    raise typer.Exit(1 if violations or not items else 0)


@app.command("eval")
def evaluate_dataset(
    source: Path = SOURCE,
    metrics: list[str] = typer.Option(
        [],
        "--metrics",
        help="Metric names, separated by commas (`trigger` only asks the judge's trigger question); all by default.",
    ),
    output: Path = run_option("Run directory.", ..., "--output"),
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
    fresh: bool = FRESH,
    report: bool = typer.Option(False, "--report/--no-report", help="Also write the HTML report."),
    no_progress_bar: bool = typer.Option(False, "--no-progress-bar", help="No progress."),
    progress_every: int = typer.Option(None, hidden=True),
    quiet: bool = typer.Option(False, "--quiet", help="Print only errors."),
    log_file: Path = typer.Option(None, help="Log file; eval.log in the run by default."),
    no_log_file: bool = typer.Option(False, "--no-log-file", help="Write no log."),
    json: bool = JSON,
) -> None:
    """Score a dataset. Items that cannot be used are reported. The same command resumes; other metrics are added."""
    from revisit.core.text import split_commas
    from revisit.engine.request import Request
    from revisit.suites.mbench.dataset import open_mbench_dataset
    from revisit.suites.mbench.names import JUDGED

    data = open_mbench_dataset(source, root)
    with_trigger = bool(vlm_judge) and not ignore_trigger
    names = split_commas(metrics)
    gates, dimensions = _gates_and_dimensions(names, data.setting, with_trigger)
    if names and "trigger" not in names:
        subsets = subsets or ",".join(dict.fromkeys(dimension.subset for dimension in dimensions))
    judge = vlm_judge
    if vlm_judge == "openai-compatible":
        _refuse_other_endpoints(vlm_api_style, vlm_endpoint_path)
        judge = str(output / "judge.yaml")
        _write_judge_file(Path(judge), vlm_base_url, vlm_model, vlm_api_key, vlm_max_retries, vlm_max_tokens)
    settings_by_name = {
        "models": models,
        "subsets": subsets,
        "conditions": conditions,
        "samples": sample_ids,
        "artifacts": ",".join(str(folder.resolve()) for folder in artifacts),
        "questions": str(questions.resolve()) if questions else "",
    }
    options = [f"{name}={value}" for name, value in settings_by_name.items() if value]
    ids = [*gates, *(dimension.id for dimension in dimensions)]
    if vlm_n_frames != 8 and JUDGED & {*ids}:
        param = [*param, f"judge.frames.at_most={vlm_n_frames}"]
    request = Request.from_options(
        source, "mbench", observer_set, protocol, ids, limit, "auto", root, options, judge, param, truth=False
    )
    words = [part.replace(vlm_api_key, "[key]") if vlm_api_key else part for part in sys.argv[1:]]
    run = run_evaluation(
        request, output, quiet=quiet or no_progress_bar, command=shlex.join(["revisit", *words]), fresh=fresh,
        workers=workers, dataset_case_ids=data.all_case_ids(),
    )  # fmt: skip
    if not no_log_file:
        _write_log(run, log_file or output / "eval.log")
    if report:
        from revisit.report.write_html import write_report

        write_report(run)
    if json:
        console.print_json(run.summary)
    elif not quiet:
        _print_whole_summary(run)
    valid = ("scored", "open", "closed") if not dimensions else ("scored",)
    scored = any(record.status in valid for record in run.results.records)
    raise typer.Exit(0 if scored else 1)


def _gates_and_dimensions(
    names: list[str], setting: str, with_trigger: bool
) -> tuple[list[str], list[MemoryDimension]]:
    """The gates and dimensions that are asked; `trigger` asks whether clips of all subsets pose the test.

    It is for a machine that has the judge, and alone asks no dimension.
    """
    from revisit.core import UsageError
    from revisit.suites.mbench.names import TRIGGER, gates_of_setting, named_dimensions_or_all

    gates, metric_names = gates_of_setting(setting, with_trigger), [name for name in names if name != "trigger"]
    if "trigger" not in names:
        return gates, named_dimensions_or_all(metric_names, setting)
    if gates != [TRIGGER]:
        raise UsageError("the metric `trigger` needs a dataset of setting T and --vlm-judge, without --ignore-trigger")
    return gates, named_dimensions_or_all(metric_names, setting) if metric_names else []


def _refuse_other_endpoints(api_style: str, endpoint_path: str) -> None:
    from revisit.core import UsageError

    for option, value, allowed in (
        ("--vlm-api-style", api_style, "chat_completions"),
        ("MBENCH_VLM_ENDPOINT_PATH", endpoint_path, ENDPOINT),
    ):
        if value.lstrip("/") != allowed.lstrip("/"):
            raise UsageError(f"{option} is {value!r}; only {allowed} is supported")


def _print_whole_summary(run: Run) -> None:
    from revisit.cli.run_summary import print_file_notes, print_run_summary

    print_run_summary(run.summary, show_all=True, folder=run.path)
    print_file_notes(run.plan, run.facts["notes"])
    console.print_to_stderr(f"results: {run.path / 'metrics'}")


def _write_judge_file(path: Path, url: str, model: str, key: str, retries: int, longest: int | None) -> None:
    """The judge file of a server; the key stays in the environment."""
    import yaml

    from revisit.core import UsageError
    from revisit.media.files import write_text_atomically

    for value, name in ((url, "BASE_URL"), (model, "MODEL")):
        if not value:
            flag = f"--vlm-{name.lower().replace('_', '-')}"
            raise UsageError(f"--vlm-judge openai-compatible needs {flag}, or $MBENCH_VLM_{name}")
    if key:
        os.environ[KEY] = key
    key_env = KEY if os.environ.get(KEY) else None
    settings = {"url": url, "model": model, "tries": retries + 1, "key_env": key_env, "max_tokens": longest}
    content = {name: value for name, value in settings.items() if value is not None}
    write_text_atomically(path, yaml.safe_dump(content, sort_keys=True))


def _write_log(run: Run, path: Path) -> None:
    """Write what came of every item, one line each."""
    from revisit.media.files import write_text_atomically

    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    results = run.results
    lines = [f"{now} {run.facts['suite']} protocol {run.summary['protocol']}"]
    for record in results.records:
        outcome = record.sentence if record.value is None else f"score {record.value:.6g}"
        lines.append(f"{now} {record.case.id} {record.question} {record.status} {outcome}".rstrip())
    lines += [f"{now} {entry.id} rejected {entry.reason}" for entry in results.rejected]
    write_text_atomically(path, "".join(console.without_control_characters(line) + "\n" for line in lines))


@app.command()
def prepare(
    source: Path = SOURCE,
    producer: str = typer.Option(
        ..., help="odometry (built in, rotations only), pycolmap, da3, vggt, vggt-omega, mapanything, vipe, or command."
    ),
    output: Path = typer.Option(None, help="Folder for the artifacts; their folders in the dataset by default."),
    command: str = typer.Option("", help="For the producer `command`: a program that reads {video} and writes {npz}."),
    convention: str = camera.CONVENTION,
    python: str = camera.PYTHON,
    model: str = camera.POSE_MODEL,
    device: str = camera.DEVICE,
    frames: int = camera.POSE_FRAMES,
    timeout: float = camera.TIMEOUT,
    models: str = MODELS,
    subsets: str = SUBSETS,
    conditions: str = CONDITIONS,
    sample_ids: str = SAMPLES,
    workers: int = camera.ODOMETRY_WORKERS,
    root: list[Path] = ROOT,
    quiet: bool = QUIET,
    json: bool = JSON,
) -> None:
    """Make camera-pose artifacts for clips that have none. The same command resumes.

    `eval` and `validate` find the artifacts in --output through the dataset's artifacts.json.
    """
    from functools import partial

    from revisit.core import Clip, UsageError
    from revisit.posing.tasks import PoseTask, update_pose_files
    from revisit.suites.mbench.dataset import note_artifact_folder, open_mbench_dataset, prepared_poses_path
    from revisit.suites.mbench.read import Filter

    if (producer == "command") != bool(command):
        raise UsageError("--producer command and --command, a program that reads {video} and writes {npz}, go together")
    data = open_mbench_dataset(source, root)
    keep = Filter.from_options(data, models, subsets, conditions, sample_ids)
    estimator = camera.make_pose_estimator(
        command or producer, python, model, device, frames, convention, timeout, workers
    )
    items = [item for name in keep.models for item in data.items_of_model(name) if keep.accepts(item)]
    place_of = partial(prepared_poses_path, output) if output else partial(data.path_from_pattern, "artifact_da3")
    tasks = [
        PoseTask(f"{item.id}@{item.model}", Clip(item.video), place_of(**item.path_fields))
        for item in items
        if item.video is not None
    ]
    outcome = update_pose_files(tasks, estimator, tell=None if quiet else console.Counter("prepared"))
    console.print_to_stderr(*outcome.failed)
    if output is not None and outcome.made + outcome.kept:
        console.print_to_stderr(note_artifact_folder(data, output))
    missing = len(items) - len(tasks)
    if json:
        facts = {"made": outcome.made, "kept": outcome.kept, "failed": list(outcome.failed), "without_video": missing}
        console.print_json(facts)
    console.print_to_stderr(
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
    from revisit.results.stand_ins import list_stand_ins
    from revisit.suites.mbench import submission
    from revisit.suites.mbench.dataset import open_mbench_dataset

    path = out or Path(f"{model}.zip")
    finished_run = RunFolder(run)
    if finished_run.facts["suite"] != "mbench" or model not in finished_run.summary["models"]:
        submission.submission_content(finished_run.summary, model, name, link)  # says what is wrong
    request = finished_run.facts.get("request") or {}
    source = dataset or Path(str(request.get("source")))
    if not source.is_dir():
        raise UsageError(f"{source}: the dataset of this run is missing; say where it is with --dataset")
    roots = [Path(folder) for folder in request.get("roots", ())]
    data, results = open_mbench_dataset(source, roots), finished_run.results
    partial = submission.partial_run_reason(data, finished_run.facts, finished_run.plan, results, model)
    if partial:
        raise UsageError(f"{model} cannot be submitted, because the run is partial: {partial}")
    content = submission.submission_content(finished_run.summary, model, name, link)
    if replacements := list_stand_ins(results.where(model=model)):
        sentences = "; ".join(one.sentence for one in replacements)
        raise UsageError(f"{model} cannot be submitted, because the leaderboard takes no stand-ins: {sentences}")
    submission.write_submission_zip(run, path, content, model, data.setting)
    console.print_to_stderr(*submission.protocol_and_maker_lines(finished_run.plan, data.setting))
    console.print_json_or_text({"file": str(path), **content}, str(path), json)


@app.command("check-submission")
def check_submission(path: Path = typer.Argument(help="The submission's zip file."), json: bool = JSON) -> None:
    """List what is wrong with a submission. Exit code 1 if there is anything."""
    from revisit.suites.mbench.submission import submission_problems

    faults = submission_problems(path)
    if json:
        console.print_json({"file": str(path), "valid": not faults, "problems": list(faults)})
    else:
        console.print_lines(*faults)
    console.print_to_stderr(f"{len(faults)} problems" if faults else "valid")
    raise typer.Exit(1 if faults else 0)


COMMANDS = {"build mbench": build_both_datasets, "mbench": app, "import mbench": import_videos}
