"""`revisit worldmark`: an evaluation with the step of local memory that upstream takes, and the page's findings."""

from __future__ import annotations

from pathlib import Path

import typer

from revisit.cli import console
from revisit.cli.eval_ import run_evaluation, write_report_and_print_summary
from revisit.cli.help import Commands
from revisit.cli.options import FRESH, JSON, OPTION, QUIET, WORKERS, run_option

app = Commands("WorldMark: the command of its evaluator, and its page's findings.")


@app.command("eval")
def evaluate_deliveries(
    delivery: Path = typer.Argument(help="A folder with {real,style}/{first,third}/<model>/<image>_<action>.mp4."),
    arena: Path = typer.Option(None, help="The inputs; arena_inputs beside the clips by default."),
    protocol: str = typer.Option("upstream", help="upstream or corrected."),
    observer_set: str = typer.Option("small", "--set", metavar="SET", help="Observer set."),
    run: Path = run_option("Run directory; runs/<name of the delivery> by default."),
    option: list[str] = OPTION,
    fresh: bool = FRESH,
    workers: int = WORKERS,
    report: bool = typer.Option(False, "--report/--no-report", help="Also write the HTML report."),
    json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Evaluate deliveries: first the step of the whole folder, then everything.

    Upstream steps by the median over all clips of all models in the folder, so it is worked out in a run of its own
    (RUN-step), whose flow the second run uses again. The same command resumes.
    """
    import statistics

    from revisit.core import UsageError
    from revisit.engine.request import Request
    from revisit.results.run import Run

    place = run or Path("runs") / delivery.resolve().name
    options = [*option, *([f"arena={arena.resolve()}"] if arena is not None else [])]

    def make_request(metrics: list[str], more: list[str]) -> Request:
        told = [*options, *more]
        return Request.from_options(
            delivery, "worldmark", observer_set, protocol, metrics, None, "auto", [], told, truth=False
        )

    more = []
    if protocol == "upstream" and not any(one.startswith("step=") for one in option):
        first = place.with_name(f"{place.name}-step")
        run_evaluation(make_request(["worldmark_step"], []), first, quiet=quiet, fresh=fresh, workers=workers)
        lengths = [record.value for record in Run(first).results.scores("worldmark_step") if record.value is not None]
        if not lengths:
            raise UsageError("no clip has a flow, so there is no step to take")
        step = statistics.median(lengths)  # of the clips' own
        console.print_to_stderr(f"upstream's step in this folder: {step:.4f} pixels; another model in it changes it")
        more = [f"step={step!r}"]
    finished = run_evaluation(make_request([], more), place, quiet=quiet, fresh=fresh, workers=workers)
    raise typer.Exit(write_report_and_print_summary(finished, report=report, show_all=True, json=json))


@app.command("findings")
def print_page_findings(json: bool = JSON) -> None:
    """What the benchmark's page says of its tables, recomputed from them."""
    from revisit.suites.worldmark.summary import published_table_statistics

    values = published_table_statistics()
    if json:
        console.print_json(values)
    else:
        console.print_table(["finding", "value"], [[name, f"{value:.2f}"] for name, value in values.items()])


COMMANDS = {"worldmark": app}
