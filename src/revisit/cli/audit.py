"""`revisit audit`: do the metrics do what they say? `revisit audit sweep`: does a parameter change the ranking?"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import NoReturn

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
    strengths: str = typer.Option("0.5,1", help="Strengths of each failure; those below 1 in every second scene."),
    seeds: int = typer.Option(4, help="Number of scenes; more scenes give more reliable figures and take longer."),
    first_seed: int = typer.Option(0, help="Number of the first scene, to use other scenes than the default ones."),
    metric: list[str] = options.metric_option("Only these metrics; all by default"),
    horizon: bool = options.flag_option("--horizon", "Instead: scores over growing hidden intervals."),
    steady: Path = typer.Option(
        None, metavar="SOURCE", help="Instead: how often invisible changes of these clips alter verdicts."
    ),
    real: list[Path] = typer.Option(
        [], metavar="DIR", help="Instead: verdicts on labelled clips against people's (repeatable)."
    ),
    situations: bool = options.flag_option(
        "--situations", "Instead: verdicts on rendered scenes that fool gates; takes --seeds."
    ),
    benchmarks: bool = options.flag_option(
        "--benchmarks", "Instead: published measures on known faults; --set small by default."
    ),
    worlds: int = typer.Option(12, help="With --benchmarks: number of rendered worlds, for the intervals."),
    with_flips: bool = options.flag_option("--flips", "With --real: also under changes nobody sees (11 times)."),
    out: Path = options.out_option("Folder for the clips, the run and the results.", Path("runs/audit")),
    workers: int = options.WORKERS,
    fresh: bool = options.flag_option("--fresh", "Render and evaluate again from the start."),
    save_results: bool = options.flag_option("--save-results", "Save the results in the package, for metric cards."),
    json: bool = options.JSON,
    quiet: bool = options.QUIET,
) -> None:
    """Audit the metrics, unless a command of the group was named."""
    from revisit.audit import horizon as intervals
    from revisit.audit import page, run, steadiness, text
    from revisit.audit import real as real_clips
    from revisit.audit.schema import AuditOptions
    from revisit.audit.situations import render_situations
    from revisit.core import GATES, METRICS, SUITES
    from revisit.core.text import split_commas

    if command := ctx.invoked_subcommand:
        options.refuse_other_parameters(ctx, (), f"`audit {command}`; options of that command go after its name")
        return
    if benchmarks:
        chosen = suite if options.is_given_on_command_line(ctx, "suite") else []
        name = observer_set if options.is_given_on_command_line(ctx, "observer_set") else "small"
        _audit_published_measures_and_exit(out / "benchmarks", chosen, worlds, name, workers, fresh, json, quiet)
    for name in metric:  # a name that there is not is refused, and the nearest is named
        (GATES if (real or situations) and name in GATES else METRICS)[name]
    for name in suite:
        SUITES[name]
    grid = run.AuditGrid(
        tuple(split_commas([kinds])), tuple(map(_parse_strength, split_commas([strengths]))), seeds, first_seed
    )
    counter = None if quiet else console.Counter("rendered")
    settings = AuditOptions(observer_set, metric, workers, fresh, counter, console.make_progress_display(quiet))
    with console.exit_on_interrupt(out):
        if situations:
            real = [render_situations(out / "situations", grid.scene_seeds, fresh=fresh)]
        if real:
            findings = real_clips.audit_real_clips(real, out / "real", with_flips=with_flips, options=settings)
            file, table = out / "real" / "real.json", text.real_table(findings)
        elif steady is not None:
            findings = steadiness.audit_steadiness(steady, out / "steadiness", settings)
            file, table = out / "steadiness" / "steadiness.json", text.steadiness_table(findings)
        elif horizon:
            findings = intervals.audit_horizon(out, grid.kinds or intervals.STEADY, grid.scene_seeds, settings)
            file, table = page.write_horizon_page(out, findings), text.horizon_table(findings)
        else:
            command = shlex.join(["revisit", *sys.argv[1:]])
            findings = run.run_audit(out, grid, suite, settings, command)
            file, table = page.write_audit_page(out, findings), text.audit_text(findings)
            if save_results:
                console.print_to_stderr(f"results for the cards: {run.save_card_results(findings)}")
    console.print_json_or_text(findings, table, json)
    console.print_to_stderr(f"{'results' if file.suffix == '.json' else 'page'}: {file}")
    lacking = findings.get("grid", findings)  # an audit of the grid counts what failed, the others name it
    raise typer.Exit(1 if lacking.get("failed") or lacking.get("unread") else 0)


def _audit_published_measures_and_exit(
    out: Path, suites: list[str], worlds: int, set: str, workers: int | None, fresh: bool, json: bool, quiet: bool
) -> NoReturn:  # fmt: skip
    """What published measures give models with known faults: table, figure and page."""
    from revisit.audit.benchmark_trials import (
        FRAMES,
        SIZE,
        draw_figure,
        make_trial_table,
        table_as_text,
        try_benchmarks,
    )
    from revisit.core import UsageError
    from revisit.results.record_files import write_json

    if worlds < 2:
        raise UsageError(f"intervals over worlds need at least 2 of them, not {worlds}; give --worlds 12")
    with console.exit_on_interrupt(out):
        scores, failures = try_benchmarks(
            out, suites=suites, worlds=worlds, set=set, workers=workers, fresh=fresh,
            progress=None if quiet else console.Counter("worlds scored"),
        )  # fmt: skip
    console.print_to_stderr(*failures)
    if not scores:
        raise typer.Exit(1)
    content = make_trial_table(scores, set=set, size=SIZE, frames=FRAMES)
    write_json(out / "benchmarks.json", content)
    console.print_json_or_text(content, table_as_text(content), json)
    try:
        console.print_to_stderr(f"figure: {draw_figure(content, out / 'benchmarks.png')}")
    except ModuleNotFoundError:
        console.print_to_stderr("no figure: pip install 'revisit-bench[figures]'")
    console.print_to_stderr(f"results: {out / 'benchmarks.json'}")
    raise typer.Exit(1 if failures else 0)


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
    from revisit.audit.page import write_sweep_page
    from revisit.audit.text import sweep_table
    from revisit.engine.request import Request
    from revisit.results.record_files import write_json
    from revisit.results.run import Run

    if (source / "run.json").is_file():
        request = Request.of_run(Run(source))
        request = replace(request, metrics=tuple(metric) or request.metrics, limit=limit or request.limit)
    else:
        request = Request.from_options(
            source, suite, observer_set, protocol, metric, limit, align, root, option, truth=False
        )
    folder = out or Path("runs") / f"sweep-{source.resolve().stem if source.is_file() else source.resolve().name}"
    parameters = [sweeping.parse_parameter(text) for text in param]
    earlier = sweeping.sweeps_of_other_parameters(folder, source, parameters)
    sweeps = []
    for parameter in parameters:
        with console.exit_on_interrupt(folder):
            display = console.make_progress_display(quiet)
            scores = sweeping.sweep_parameter(
                request.plan, parameter, folder / str(parameter), workers=workers, progress=display
            )
        sweeps.append({"source": str(source.resolve()), **scores})
        if not json:
            typer.echo(sweep_table(scores))
    write_json(folder / "sweep.json", [*earlier, *sweeps])
    console.print_to_stderr(f"page: {write_sweep_page(folder, [*earlier, *sweeps])}")
    if json:
        console.print_json(sweeps)


def _parse_strength(text: str) -> float:
    from revisit.core import UsageError

    try:
        return float(text)
    except ValueError:
        raise UsageError(f"--strengths takes numbers such as 0.5,1, not {text!r}") from None
