"""`revisit audit`: do the metrics do what they say?"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from revisit.cli import console
from revisit.cli.options import SET


def audit(
    set: str = SET,
    suite: list[str] = typer.Option(["folder"], "--suite", help="Suites whose metrics are audited (repeatable)."),
    kinds: str = typer.Option("", help="Only these failures, such as vanish,state_reset; all by default."),
    strengths: str = typer.Option(
        "0.5,1", help="Strengths of each failure; those below 1 are used in every second scene."
    ),
    seeds: int = typer.Option(4, help="Number of scenes; more scenes give more reliable figures and take longer."),
    first_seed: int = typer.Option(0, help="Number of the first scene, to use other scenes than the default ones."),
    metric: list[str] = typer.Option([], "--metric", "-m", help="Only these metrics (repeatable); all by default."),
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
    with_flips: bool = typer.Option(False, "--flips", help="With --real: also under changes nobody sees (11 times)."),
    out: Path = typer.Option(Path("runs/audit"), help="Folder for the clips, the run and the results."),
    workers: int = typer.Option(None, help="Number of processes; one per core by default, 0 to use this process only."),
    fresh: bool = typer.Option(False, "--fresh", help="Render and evaluate again from the start."),
    save_results: bool = typer.Option(
        False, "--save-results", help="Save the results in the package, for the metric cards."
    ),
    json: bool = typer.Option(False, "--json", help="Print the results as JSON."),
    quiet: bool = typer.Option(False, "--quiet", help="No progress."),
) -> None:
    """Score rendered worlds with known failures and report which metric notices which. The same command resumes."""
    from revisit.audit import run
    from revisit.audit.page import write_horizon, write_page
    from revisit.audit.text import horizon_table, matrix
    from revisit.core import GATES, METRICS, SUITES
    from revisit.core.text import parts

    for id in metric:
        if not ((real or situations) and id in GATES):
            METRICS[id]
    for id in suite:
        SUITES[id]
    grid = run.Grid(tuple(parts([kinds])), tuple(map(_number, parts([strengths]))), seeds, first_seed)
    rendered = None if quiet else console.Counter("rendered")
    found: Any
    show: Callable[[Any], str]
    how: dict[str, Any] = {"set": set, "workers": workers, "fresh": fresh, "observed": console.progress(quiet)}
    with console.resumable(out):
        if situations:
            from revisit.audit.situations import render_situations

            real = [render_situations(out / "situations", grid.scenes, fresh=fresh)]
        if real:
            from revisit.audit.real import real as against_people
            from revisit.audit.text import real_table

            found = against_people(real, out / "real", questions=metric, with_flips=with_flips, **how)
            page, show = out / "real" / "real.json", real_table
        elif steady is not None:
            from revisit.audit.steadiness import steadiness
            from revisit.audit.text import steadiness_table

            found = steadiness(steady, out / "steadiness", **how)
            page, show = out / "steadiness" / "steadiness.json", steadiness_table
        elif horizon:
            from revisit.audit.horizon import STEADY
            from revisit.audit.horizon import horizon as study

            kinds_of = grid.kinds or STEADY
            found = study(out, kinds=kinds_of, seeds=grid.scenes, metrics=metric, rendered=rendered, **how)
            page, show = write_horizon(out, found), horizon_table
        else:
            command = shlex.join(["revisit", *sys.argv[1:]])
            found = run.audit(out, grid, suites=suite, metrics=metric, rendered=rendered, command=command, **how)
            page, show = write_page(out, found), matrix
            if save_results:
                console.message(f"results for the cards: {run.save_results(found)}")
    if json:
        console.data(found)
    else:
        typer.echo(show(found))
    console.message(f"{'results' if page.suffix == '.json' else 'page'}: {page}")
    raise typer.Exit(1 if found.get("grid", {}).get("failed") else 0)


def _number(text: str) -> float:
    from revisit.core import UsageError

    try:
        return float(text)
    except ValueError:
        raise UsageError(f"--strengths takes numbers such as 0.5,1, not {text!r}") from None
