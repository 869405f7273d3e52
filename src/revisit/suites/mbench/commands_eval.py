"""`revisit mbench eval`: the flags and variables of the public evaluator, on our engine."""

from __future__ import annotations

import os
import shlex
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from revisit.cli import console
from revisit.cli.eval_ import run_evaluation
from revisit.cli.options import FRESH, JSON, PARAM, WORKERS, run_option
from revisit.suites.mbench.commands_options import ARTIFACTS, CONDITIONS, MODELS, ROOT, SAMPLES, SOURCE, SUBSETS

if TYPE_CHECKING:
    from revisit.results.run import Run

METRICS = typer.Option(
    [],
    "--metrics",
    help="Metric names, separated by commas (`trigger` only asks the judge's trigger question); all by default.",
)
KEY = "MBENCH_VLM_API_KEY"
ENDPOINT = "/chat/completions"


def evaluate_dataset(
    source: Path = SOURCE,
    metrics: list[str] = METRICS,
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
    from revisit.core import UsageError
    from revisit.core.text import split_commas
    from revisit.engine.request import Request
    from revisit.suites.mbench.dataset import open_mbench_dataset
    from revisit.suites.mbench.names import JUDGED, TRIGGER, gates_of_setting, named_dimensions_or_all

    data = open_mbench_dataset(source, root)
    gates = gates_of_setting(data.setting, bool(vlm_judge) and not ignore_trigger)
    names = split_commas(metrics)
    # `trigger` asks whether clips of all subsets pose the test: for a machine that has the judge.
    asks_trigger, metric_names = "trigger" in names, [name for name in names if name != "trigger"]
    if asks_trigger and gates != [TRIGGER]:
        raise UsageError("the metric `trigger` needs a dataset of setting T and --vlm-judge, without --ignore-trigger")
    dimensions = named_dimensions_or_all(metric_names, data.setting) if metric_names or not asks_trigger else []
    if metric_names and not asks_trigger:
        subsets = subsets or ",".join(dict.fromkeys(dimension.subset for dimension in dimensions))
    judge = vlm_judge
    if vlm_judge == "openai-compatible":
        for option, value, allowed in (
            ("--vlm-api-style", vlm_api_style, "chat_completions"),
            ("MBENCH_VLM_ENDPOINT_PATH", vlm_endpoint_path, ENDPOINT),
        ):
            if value.lstrip("/") != allowed.lstrip("/"):
                raise UsageError(f"{option} is {value!r}; only {allowed} is supported")
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
        workers=workers, adds=data.all_case_ids(),
    )  # fmt: skip
    if not no_log_file:
        _write_log(run, log_file or output / "eval.log")
    if report:
        from revisit.report.write_html import write_report

        write_report(run)
    if json:
        console.print_json(run.summary)
    elif not quiet:
        from revisit.cli.run_summary import print_file_notes, print_run_summary

        print_run_summary(run.summary, show_all=True, folder=run.path)
        print_file_notes(run.plan, run.facts["notes"])
        console.print_to_stderr(f"results: {run.path / 'metrics'}")
    valid = ("scored", "open", "closed") if not dimensions else ("scored",)
    scored = any(record.status in valid for record in run.results.records)
    raise typer.Exit(0 if scored else 1)


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
