"""`revisit eval`: score a dataset or a folder of videos."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from revisit.cli import options
from revisit.cli.running import carry_out, tell


def eval_(
    source: Path = options.SOURCE,
    suite: str = options.SUITE,
    set: str = options.SET,
    protocol: str = options.PROTOCOL,
    metric: list[str] = options.METRIC,
    out: Path = typer.Option(None, help="Run directory; runs/<name of the source> by default."),
    limit: int = options.LIMIT,
    workers: int = typer.Option(None, help="Number of processes; one per core by default, 0 to use this process only."),
    executor: str = options.EXECUTOR,
    address: str = options.ADDRESS,
    fresh: bool = typer.Option(False, "--fresh", help="Discard earlier answers of this run and start again."),
    align: str = options.ALIGN,
    root: list[Path] = options.ROOT,
    option: list[str] = options.OPTION,
    judge: str = options.JUDGE,
    only: str = typer.Option(
        "", help="judge: ask only what a judge is asked, and keep the other answers of the run as they are."
    ),
    param: list[str] = options.PARAM,
    truth: bool = options.TRUTH,
    device: str = typer.Option(
        "", help="Device for networks: cpu, cuda:1, or cuda:0,cuda:1; the first GPU by default."
    ),
    precision: str = typer.Option("", help="On a GPU: float32 for everything, or float16 also for LPIPS."),
    batch: int = typer.Option(None, min=1, help="Frames per batch on a GPU; as many as fit by default."),
    limits: str = typer.Option("", help="Limits for decoding, such as frames=5000,seconds=60,memory=2G."),
    report: bool = typer.Option(True, "--report/--no-report", help="Write the HTML report at the end."),
    all: bool = typer.Option(False, "--all", help="Print every metric, part and reason, not only the verdict."),
    json: bool = typer.Option(False, "--json", help="Print the summary as JSON."),
    quiet: bool = typer.Option(False, "--quiet", help="No progress."),
) -> None:
    """Score a dataset or a folder of videos. The same command resumes."""
    from revisit.engine.executors import executor_named
    from revisit.engine.request import Request
    from revisit.media import Limits
    from revisit.networks import settings

    # Workers and the process that runs the networks inherit these.
    asked = {settings.DEVICE: device, settings.PRECISION: precision, settings.BATCH: str(batch or "")}
    os.environ.update({name: value for name, value in asked.items() if value})
    settings.check()
    request = Request.of(source, suite, set, protocol, metric, limit, align, root, option, judge, param, truth, only)
    run = carry_out(
        request,
        out or request.usual_place,
        quiet=quiet,
        fresh=fresh,
        workers=workers,
        executor=executor_named(executor, address, workers),
        limits=Limits.parse(limits),
    )
    raise typer.Exit(tell(run, report=report, all=all, json=json, quiet=quiet))
