"""`revisit eval`: score a dataset or a folder of videos."""

from __future__ import annotations

from pathlib import Path

import typer

from revisit.cli import options
from revisit.cli.layouts import ask_for_layout
from revisit.cli.running import print_summary, run_evaluation


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
    fresh: bool = typer.Option(False, "--fresh", help="Discard earlier answers of this run and start again."),
    rescore: bool = typer.Option(
        False, "--rescore", help="SOURCE is a run: score it again from cached evidence; nothing is decoded."
    ),
    align: str = options.ALIGN,
    layout: str = options.LAYOUT,
    reference: Path = options.REFERENCE,
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
    show_all: bool = options.ALL,
    json: bool = options.JSON,
    quiet: bool = options.QUIET,
) -> None:
    """Score a dataset or a folder of videos. The same command resumes.

    After a metric or a protocol changed, `--rescore` with the run answers again in seconds.
    """
    from revisit.engine.evaluation import network_settings, rescored_run
    from revisit.engine.executors import find_executor
    from revisit.engine.request import Request
    from revisit.media import Limits

    if rescore:
        allowed = ("source", "rescore", "report", "show_all", "json", "quiet")
        options.refuse_others(ctx, allowed, "--rescore, which takes everything from the run")
        # No remark was printed before: all of them go with the summary.
        raise typer.Exit(print_summary(rescored_run(source), report=report, show_all=show_all, json=json, quiet=True))
    with network_settings(device, precision, batch):
        request = Request.of(
            source, suite, observer_set, protocol, metric, limit, align, root, option, judge, param, truth, only,
            layout, reference,
        )  # fmt: skip
        request = ask_for_layout(request, quiet=quiet or json)
        run = run_evaluation(
            request,
            out or request.default_folder,
            quiet=quiet,
            fresh=fresh,
            workers=workers,
            executor=find_executor(executor, address, workers),
            limits=Limits.parse(limits),
        )
    raise typer.Exit(print_summary(run, report=report, show_all=show_all, json=json, quiet=quiet))
