"""Runs an evaluation for the command line, with progress and a message on Ctrl-C, and prints what came out."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from revisit.cli import console

if TYPE_CHECKING:
    from revisit.engine.request import Request
    from revisit.results.run import Run


def run_evaluation(request: Request, out: Path, *, quiet: bool = False, command: str = "", **settings: Any) -> Run:
    """The finished run; `settings` go to the engine."""
    from revisit.engine.cache import cache_limit_bytes_from_environment, cache_over_limit_warning, cache_root

    limit = cache_limit_bytes_from_environment()
    command = command or shlex.join(["revisit", *sys.argv[1:]])
    note = (lambda _: None) if quiet else console.print_notes
    display = console.make_progress_display(quiet)
    with console.exit_on_interrupt():
        run = request.run(out, note, console.print_to_stderr, progress=display, command=command, **settings)
    if limit is not None and (over := cache_over_limit_warning(cache_root(), limit)):
        note(over)
    return run


def write_report_and_print_summary(
    run: Run, *, report: bool = True, show_all: bool = False, json: bool = False, quiet: bool = False
) -> int:
    """Write the page and print the summary; the exit code."""
    if report:
        from revisit.report.write_html import write_report

        page = write_report(run)
    if json:
        console.print_json(run.summary)
    else:
        from revisit.cli.run_summary import print_file_notes, print_run_summary

        printed = () if quiet else run.plan["remarks"]  # before the work
        notes = [note for note in run.summary.get("notes", ()) if note not in printed]
        print_run_summary({**run.summary, "notes": notes}, show_all, run.path)
        print_file_notes(run.plan, run.facts["notes"])
    if report:
        console.print_to_stderr(f"report: {page}")
    return run.exit_code
