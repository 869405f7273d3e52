"""`revisit audit`: do the metrics do what they say? `revisit audit sweep`: does a parameter change the ranking?"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import typer

from revisit.cli import console, options
from revisit.cli.help import Commands

app = Commands(
    "Test the metrics on rendered worlds with known failures. The audit scores the worlds and reports which metric "
    "notices which failure; the same command resumes.",
    invoke_without_command=True,
)


@app.callback()
def audit(
    ctx: typer.Context,
    observer_set: str = options.SET,
    suite: list[str] = typer.Option(["folder"], "--suite", help="Suites whose metrics are audited (repeatable)."),
    kinds: str = typer.Option("", help="Only these failures, such as vanish,state_reset; all by default."),
    strengths: str = typer.Option(
        "0.5,1", help="Strengths of each failure; those below 1 are used in every second scene."
    ),
    seeds: int = typer.Option(4, help="Number of scenes; more scenes give more reliable figures and take longer."),
    first_seed: int = typer.Option(0, help="Number of the first scene, to use other scenes than the default ones."),
    metric: list[str] = options.metric_option("Only these metrics; all by default"),
    horizon: bool = typer.Option(
        False, "--horizon", help="Instead of the audit, show scores over growing hidden intervals."
    ),
    steady: Path = typer.Option(
        None,
        "--steady",
        metavar="SOURCE",
        help="Instead of the audit, show how often verdicts on these clips change under invisible changes.",
    ),
    real: list[Path] = typer.Option(
        [],
        "--real",
        metavar="DIR",
        help="Instead: verdicts on labelled real clips against people's (repeat it).",
    ),
    situations: bool = typer.Option(
        False, "--situations", help="Instead: verdicts on rendered situations that fool gates; takes --seeds."
    ),
    benchmarks: bool = typer.Option(
        False,
        "--benchmarks",
        help="Instead: published measures of memory and control on models with known faults; --set small by default.",
    ),
    worlds: int = typer.Option(
        12, help="With --benchmarks: number of rendered worlds, over which intervals are taken."
    ),
    with_flips: bool = typer.Option(False, "--flips", help="With --real: also under changes nobody sees (11 times)."),
    out: Path = options.out_option("Folder for the clips, the run and the results.", Path("runs/audit")),
    workers: int = options.WORKERS,
    fresh: bool = typer.Option(False, "--fresh", help="Render and evaluate again from the start."),
    save_results: bool = typer.Option(
        False, "--save-results", help="Save the results in the package, for the metric cards."
    ),
    json: bool = options.JSON,
    quiet: bool = options.QUIET,
) -> None:
    """Audit the metrics, unless a command of the group was named."""
    from revisit.audit import run
    from revisit.core import GATES
    from revisit.core.text import split_commas

    if ctx.invoked_subcommand is not None:
        options.refuse_others(ctx, (), f"`audit {ctx.invoked_subcommand}`; options of that command go after its name")
        return
    if benchmarks:
        chosen = suite if _is_given(ctx, "suite") else []
        name = observer_set if _is_given(ctx, "observer_set") else "small"
        _audit_benchmarks(out / "benchmarks", chosen, worlds, name, workers, fresh, json, quiet)
        return
    _check_names(suite, [name for name in metric if not ((real or situations) and name in GATES)])
    grid = run.AuditGrid(
        tuple(split_commas([kinds])), tuple(map(_parse_number, split_commas([strengths]))), seeds, first_seed
    )
    rendered = None if quiet else console.Counter("rendered")
    observed = console.progress(quiet)
    settings: AuditSettings = {"set": observer_set, "workers": workers, "fresh": fresh, "observed": observed}
    with console.resumable(out):
        if situations:
            real = [_situations(out, grid, fresh)]
        if real or steady is not None:
            findings, page, as_text = _audit_clips(real, steady, out, metric, with_flips, settings)
        else:
            findings, page, as_text = _audit_worlds(out, grid, suite, metric, horizon, rendered, settings)
            if save_results and not horizon:
                console.message(f"results for the cards: {run.save_results(findings)}")
    if json:
        console.print_json(findings)
    else:
        typer.echo(as_text(findings))
    console.message(f"{'results' if page.suffix == '.json' else 'page'}: {page}")
    raise typer.Exit(1 if findings.get("grid", {}).get("failed") else 0)


def _check_names(suites: list[str], metrics: list[str]) -> None:
    """Refuse a suite or metric that there is not; the nearest is named."""
    from revisit.core import METRICS, SUITES

    for registry, names in ((METRICS, metrics), (SUITES, suites)):
        for name in names:
            registry[name]


def _is_given(ctx: typer.Context, option: str) -> bool:
    """Whether the user gave an option."""
    source = ctx.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def _audit_benchmarks(
    out: Path, suites: list[str], worlds: int, set: str, workers: int | None, fresh: bool, json: bool,
    quiet: bool,
) -> None:  # fmt: skip
    """What published measures give models with known faults: table, figure and page."""
    from revisit.audit.benchmark_figure import draw
    from revisit.audit.benchmark_table import as_text, make_table
    from revisit.audit.benchmark_trials import FRAMES, SIZE, try_benchmarks
    from revisit.core import UsageError
    from revisit.results.record_files import write_json

    if worlds < 2:
        raise UsageError(f"intervals over worlds need at least 2 of them, not {worlds}; give --worlds 12")
    with console.resumable(out):
        scores, failures = try_benchmarks(
            out, suites=suites, worlds=worlds, set=set, workers=workers, fresh=fresh,
            progress=None if quiet else console.Counter("worlds scored"),
        )  # fmt: skip
    for sentence in failures:
        console.message(sentence)
    if not scores:
        raise typer.Exit(1)
    content = make_table(scores, set=set, size=SIZE, frames=FRAMES)
    write_json(out / "benchmarks.json", content)
    if json:
        console.print_json(content)
    else:
        typer.echo(as_text(content))
    try:
        console.message(f"figure: {draw(content, out / 'benchmarks.png')}")
    except ModuleNotFoundError:
        console.message("no figure: pip install 'revisit-bench[figures]'")
    console.message(f"results: {out / 'benchmarks.json'}")
    raise typer.Exit(1 if failures else 0)


Findings = tuple[Any, Path, Callable[[Any], str]]  # the results, where they are written, and their table


class AuditSettings(TypedDict):
    """What every kind of audit is given."""

    set: str
    workers: int | None
    fresh: bool
    observed: Any  # progress of the clips


def _situations(out: Path, grid: Any, fresh: bool) -> Path:
    """Rendered situations that fool gates, with their labels."""
    from revisit.audit.situations import render_situations

    return render_situations(out / "situations", grid.scenes, fresh=fresh)


def _audit_clips(
    real: list[Path], steady: Path | None, out: Path, metrics: list[str], with_flips: bool, settings: AuditSettings
) -> Findings:
    """Verdicts on labelled clips against people's, or under changes that nobody sees."""
    if real:
        from revisit.audit.real import real as against_people
        from revisit.audit.text import real_table

        findings: Any = against_people(real, out / "real", questions=metrics, with_flips=with_flips, **settings)
        return findings, out / "real" / "real.json", real_table
    from revisit.audit.steadiness import steadiness
    from revisit.audit.text import steadiness_table

    assert steady is not None
    findings = steadiness(steady, out / "steadiness", **settings)
    return findings, out / "steadiness" / "steadiness.json", steadiness_table


def _audit_worlds(
    out: Path, grid: Any, suites: list[str], metrics: list[str], horizon: bool, rendered: Any, settings: AuditSettings
) -> Findings:
    """Which metric notices which failure; or scores over growing hidden intervals."""
    from revisit.audit import run
    from revisit.audit.page import write_horizon, write_page
    from revisit.audit.text import horizon_table, matrix

    if horizon:
        from revisit.audit.horizon import STEADY
        from revisit.audit.horizon import horizon as study

        kinds = grid.kinds or STEADY
        findings: Any = study(out, kinds=kinds, seeds=grid.scenes, metrics=metrics, rendered=rendered, **settings)
        return findings, write_horizon(out, findings), horizon_table
    command = shlex.join(["revisit", *sys.argv[1:]])
    findings = run.audit(out, grid, suites=suites, metrics=metrics, rendered=rendered, command=command, **settings)
    return findings, write_page(out, findings), matrix


@app.command()
def sweep(
    source: Path = typer.Argument(help="A source as for `revisit eval`, or a run directory."),
    param: list[str] = typer.Option(
        ...,
        "--param",
        "-p",
        metavar="ID.NAME=VALUE,VALUE",
        help="Values of a parameter of a metric, gate, evidence or observer (repeatable).",
    ),
    metric: list[str] = options.METRIC,
    suite: str = options.SUITE,
    observer_set: str = options.SET,
    protocol: str = options.PROTOCOL,
    limit: int = options.LIMIT,
    align: str = options.ALIGN,
    root: list[Path] = options.ROOT,
    option: list[str] = options.OPTION,
    out: Path = options.out_option("Folder for the runs and results; runs/sweep-<name> by default."),
    workers: int = options.WORKERS,
    json: bool = options.JSON,
    quiet: bool = options.QUIET,
) -> None:
    """Vary a parameter and check whether the ranking changes. Reports scores and Kendall's tau."""
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
        request = Request.of(source, suite, observer_set, protocol, metric, limit, align, root, option, truth=False)
    folder = out or Path("runs") / f"sweep-{source.resolve().stem if source.is_file() else source.resolve().name}"
    sweeps = []
    for parameter in [sweeping.parse(text) for text in param]:
        with console.resumable(folder):
            scores = sweeping.sweep(
                request.plan, parameter, folder / str(parameter), workers=workers, progress=console.progress(quiet)
            )
        sweeps.append(scores)
        if not json:
            typer.echo(sweep_table(scores))
    write_json(folder / "sweep.json", sweeps)
    console.message(f"page: {write_sweep(folder, sweeps)}")
    if json:
        console.print_json(sweeps)


def _parse_number(text: str) -> float:
    from revisit.core import UsageError

    try:
        return float(text)
    except ValueError:
        raise UsageError(f"--strengths takes numbers such as 0.5,1, not {text!r}") from None
