"""`revisit sweep`: tries a parameter at several values and checks whether the ranking of models changes."""

from __future__ import annotations

from pathlib import Path

import typer

from revisit.cli import console
from revisit.cli.options import ALIGN, LIMIT, METRIC, OPTION, PROTOCOL, ROOT, SET, SUITE


def sweep(
    source: Path = typer.Argument(help="A source as for `revisit eval`, or a run directory."),
    param: list[str] = typer.Option(
        ...,
        "--param",
        "-p",
        help="ID.name=value,value: values of a parameter of a metric, gate, evidence or observer (repeatable).",
    ),
    metric: list[str] = METRIC,
    suite: str = SUITE,
    set: str = SET,
    protocol: str = PROTOCOL,
    limit: int = LIMIT,
    align: str = ALIGN,
    root: list[Path] = ROOT,
    option: list[str] = OPTION,
    out: Path = typer.Option(None, help="Folder for the runs and results; runs/sweep-<name> by default."),
    workers: int = typer.Option(None, help="Number of processes; one per core by default, 0 to use this process only."),
    json: bool = typer.Option(False, "--json", help="Print the results as JSON."),
    quiet: bool = typer.Option(False, "--quiet", help="No progress."),
) -> None:
    """Vary a parameter and report the scores and the stability of the ranking (Kendall's tau)."""
    from dataclasses import replace

    from revisit.audit import sweep as sweeping
    from revisit.audit.page import write_sweep
    from revisit.audit.text import sweep_table
    from revisit.engine.request import Request
    from revisit.results.record_files import write_json
    from revisit.results.run import Run

    if (source / "run.json").is_file():
        request = Request.from_json(Run(source).facts["request"])
        request = replace(request, metrics=tuple(metric) or request.metrics, limit=limit or request.limit)
    else:
        request = Request.of(source, suite, set, protocol, metric, limit, align, root, option, truth=False)
    parameters = [sweeping.parse(text) for text in param]
    folder = out or Path("runs") / f"sweep-{source.resolve().stem if source.is_file() else source.resolve().name}"
    found = []
    for parameter in parameters:
        with console.resumable(folder):
            swept = sweeping.sweep(
                request.plan, parameter, folder / str(parameter), workers=workers, progress=console.progress(quiet)
            )
        found.append(swept)
        if not json:
            typer.echo(sweep_table(swept))
    write_json(folder / "sweep.json", found)
    console.message(f"page: {write_sweep(folder, found)}")
    if json:
        console.data(found)
