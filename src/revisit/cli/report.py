"""`revisit report`: writes the HTML report of a run, and tables by group of clips."""

from __future__ import annotations

from pathlib import Path

import typer

from revisit.cli import console
from revisit.cli.options import RUN, flag_option, metric_option


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
