"""`revisit mbench`: the commands of the public evaluator, with its flags and variables, on our engine.

`list-metrics`, `validate`, `eval` and `prepare` take what upstream's take; `submit` and `check-submission` make and
check the zip file of the leaderboard. Everything else that Revisit does with a run works on these runs, too.
"""

from __future__ import annotations

from pathlib import Path

import typer

from revisit.cli import camera, console
from revisit.cli.help import Commands
from revisit.cli.options import JSON, QUIET, out_option
from revisit.suites.mbench import commands_options as options
from revisit.suites.mbench.commands_dataset import build_both_datasets, import_videos
from revisit.suites.mbench.commands_eval import evaluate_dataset

app = Commands("MBench: the commands of its public evaluator.")


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
    source: Path = options.SOURCE,
    metrics: list[str] = options.METRICS,
    models: str = options.MODELS,
    subsets: str = options.SUBSETS,
    conditions: str = options.CONDITIONS,
    sample_ids: str = options.SAMPLES,
    limit: int = typer.Option(None, min=1, help="At most this many items per model and subset."),
    root: list[Path] = options.ROOT,
    artifacts: list[Path] = options.ARTIFACTS,
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
    for problem in problems if not json else ():
        typer.echo(console.without_control_characters(f"{'' if problem.violation else 'note: '}{problem}"))
    violations = sum(problem.violation for problem in problems)
    sentence = f"{violations} violations in {items} items" if violations else f"valid: {items} items checked"
    nothing = "nothing was checked: no item of these models and subsets has these metrics"
    console.print_to_stderr(sentence if items else nothing)
    raise typer.Exit(1 if violations or not items else 0)


app.command("eval")(evaluate_dataset)


@app.command()
def prepare(
    source: Path = options.SOURCE,
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
    models: str = options.MODELS,
    subsets: str = options.SUBSETS,
    conditions: str = options.CONDITIONS,
    sample_ids: str = options.SAMPLES,
    workers: int = camera.ODOMETRY_WORKERS,
    root: list[Path] = options.ROOT,
    quiet: bool = QUIET,
    json: bool = JSON,
) -> None:
    """Make camera-pose artifacts for clips that have none. The same command resumes.

    `eval` and `validate` find the artifacts in --output through the dataset's artifacts.json.
    """
    from functools import partial

    from revisit.core import Clip, UsageError
    from revisit.posing.tasks import PoseTask, write_missing_pose_files
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
    outcome = write_missing_pose_files(tasks, estimator, tell=None if quiet else console.Counter("prepared"))
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
    console.print_to_stderr(*submission.maker_lines(finished_run.plan, data.setting))
    console.print_json_or_text({"file": str(path), **content}, str(path), json)


@app.command("check-submission")
def check_submission(path: Path = typer.Argument(help="The submission's zip file."), json: bool = JSON) -> None:
    """List what is wrong with a submission. Exit code 1 if there is anything."""
    from revisit.suites.mbench.submission import submission_problems

    faults = submission_problems(path)
    if json:
        console.print_json({"file": str(path), "valid": not faults, "problems": list(faults)})
    for problem in faults if not json else ():
        typer.echo(console.without_control_characters(problem))
    console.print_to_stderr(f"{len(faults)} problems" if faults else "valid")
    raise typer.Exit(1 if faults else 0)


COMMANDS = {"build mbench": build_both_datasets, "mbench": app, "import mbench": import_videos}
