"""`revisit report` and `view`: the pages of runs, written as files or served to a browser."""

from __future__ import annotations

from pathlib import Path

import typer

from revisit.cli import console
from revisit.cli.options import RUN, RUNS, flag_option, metric_option


def report(
    run: Path = RUN,
    by: list[str] = typer.Option(
        [],
        help="Also make a table per group of clips: by a field (subset, condition, model), an annotation, a gate's "
        "result, or a comparison such as rotation>=90 or memo_psnr<12. Commas combine groupings; repeat the option for "
        "more tables.",
    ),
    metric: list[str] = metric_option("Only these metrics in the tables of --by"),
    copy_clips: bool = flag_option("--copy-clips", "Copy the videos into the report, so that it can be shared."),
    json: bool = flag_option("--json", "Print the run's summary as JSON as well."),
) -> None:
    """Write the HTML report of a run, and tables by group of clips. Its path is printed: RUN/report/index.html."""
    from revisit.cli.run_summary import print_tables_of_parts
    from revisit.report.write_html import write_report
    from revisit.results.run import Run
    from revisit.runs.group_by import score_tables_by_group

    finished_run = Run(run)
    groups = {expression: score_tables_by_group(finished_run, expression, metric) for expression in by}
    page = write_report(finished_run, copy_clips=copy_clips, by=groups)
    if json:
        console.print_json({"report": str(page), "summary": finished_run.summary, "by": groups})
        return
    for expression, tables in groups.items():
        console.print_to_stderr(f"by {expression}")
        print_tables_of_parts(tables, finished_run.summary["metrics"])
    typer.echo(str(page))


def view(
    runs: list[Path] = RUNS,
    port: int = typer.Option(0, min=0, max=65535, help="The port to listen on; any free one by default."),
    json: bool = flag_option("--json", "Print the list of runs as JSON, and serve nothing."),
) -> None:
    """Show runs in a browser, also while they are still going.

    Several runs open as a list that can be filtered, and two of them beside each other. Ctrl-C ends it.
    """
    from revisit.media.cache_folders import PREVIEWS, cache_root
    from revisit.report.live_server import make_live_application
    from revisit.report.run_list import run_entries_newest_first
    from revisit.results.run import Run
    from revisit.web.server import ListenAddress, serve_until_interrupted

    if json:
        console.print_json(run_entries_newest_first([(str(path), Run(path)) for path in runs]))
        return
    app = make_live_application(runs, cache_root() / PREVIEWS)
    console.print_to_stderr("Ctrl-C ends it.")
    serve_until_interrupted(app, ListenAddress(port=port), started=lambda address: typer.echo(f"{address}/"))
