"""`revisit eval`: score a dataset or a folder of videos."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from revisit.cli import console, options
from revisit.cli.running import run_evaluation, write_report_and_print_summary

if TYPE_CHECKING:
    from revisit.engine.request import Request


def eval_(
    ctx: typer.Context,
    source: Path = options.SOURCE,
    suite: str = options.SUITE,
    observer_set: str = options.SET,
    protocol: str = options.PROTOCOL,
    metric: list[str] = options.METRIC,
    out: Path = options.out_option("Run directory; runs/<name of the source> by default."),
    limit: int = options.LIMIT,
    workers: int = options.WORKERS,
    executor: str = options.EXECUTOR,
    address: str = options.ADDRESS,
    fresh: bool = options.FRESH,
    rescore: bool = options.flag_option("--rescore", "SOURCE is a run: score it again from the cache, decode nothing."),
    align: str = options.ALIGN,
    layout: str = options.LAYOUT,
    reference: Path = options.REFERENCE,
    root: list[Path] = options.ROOT,
    option: list[str] = options.OPTION,
    judge: str = options.JUDGE,
    only: str = typer.Option("", help="judge: ask only what a judge is asked, and keep the other answers."),
    param: list[str] = options.PARAM,
    truth: bool = options.TRUTH,
    device: str = typer.Option("", help="Device of networks: cpu, cuda:1, or cuda:0,cuda:1; the first GPU by default."),
    precision: str = typer.Option("", help="On a GPU: float32 for everything, or float16 also for LPIPS."),
    batch: int = typer.Option(None, min=1, help="Frames per batch on a GPU; as many as fit by default."),
    limits: str = typer.Option("", help="Limits for decoding, such as frames=5000,seconds=60,memory=2G."),
    report: bool = typer.Option(True, "--report/--no-report", help="Write the HTML report at the end."),
    show_all: bool = options.ALL,
    json: bool = options.JSON,
    quiet: bool = options.QUIET,
) -> None:
    """Score a dataset or a folder of videos. The same command resumes.

    After a metric or a protocol changed, `--rescore` with the run answers again in seconds.
    """
    from revisit.engine.request import Request, find_executor, rescore_run_folder, temporary_network_settings
    from revisit.media import Limits

    if rescore:
        allowed = ("source", "rescore", "report", "show_all", "json", "quiet")
        options.refuse_other_parameters(ctx, allowed, "--rescore, which takes everything from the run")
        run = rescore_run_folder(source)
        # No remark was printed before: all of them go with the summary.
        raise typer.Exit(write_report_and_print_summary(run, report=report, show_all=show_all, json=json, quiet=True))
    with temporary_network_settings(device, precision, batch):
        request = Request.from_options(
            source, suite, observer_set, protocol, metric, limit, align, root, option, judge, param, truth, only,
            layout, reference,
        )  # fmt: skip
        request = ask_for_layout(request, quiet=quiet or json)
        run = run_evaluation(
            request, out or request.default_run_folder, quiet=quiet, fresh=fresh, workers=workers,
            executor=find_executor(executor, address, workers), limits=Limits.parse(limits),
        )  # fmt: skip
    raise typer.Exit(write_report_and_print_summary(run, report=report, show_all=show_all, json=json, quiet=quiet))


def ask_for_layout(request: Request, *, quiet: bool = False) -> Request:
    """The request, with the layout that the user chose where two fit; as it was where nobody can be asked.

    Where nobody is asked, the reader's own remark names the layouts.
    """
    from revisit.engine.request import recognise_suite
    from revisit.suites.clips import MANIFEST
    from revisit.suites.folder.read import understand_layout

    source = Path(request.source)
    given = dict(option.split("=", 1) for option in request.options if "=" in option)
    plain = source.is_dir() and not (source / MANIFEST).is_file()
    if quiet or not plain or given.get("layout") or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return request
    if request.suite != "folder" and (request.suite != "auto" or recognise_suite(source).id != "folder"):
        return request
    understood = understand_layout(source, reference=given.get("reference", ""))
    choices = [reading for reading in understood.readings if reading.layout]
    if len(choices) < 2:
        return request
    console.print_to_stderr(f"{len(choices)} readings of {source.name} fit:")
    for number, reading in enumerate(choices, start=1):
        console.print_to_stderr(f"  {number}. {reading.size_text}, as {reading.layout}")
    number = 0
    while not 1 <= number <= len(choices):
        number = typer.prompt("Which one", default=1, type=int, err=True)
    chosen = choices[number - 1].layout
    console.print_to_stderr(f"--layout '{chosen}' says so next time")
    return replace(request, options=(*request.options, f"layout={chosen}"), suite="folder")
