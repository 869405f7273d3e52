"""`revisit view`: runs in a browser, also while they are going."""

from __future__ import annotations

from pathlib import Path

import typer

from revisit.cli import console
from revisit.cli.options import RUNS, flag


def view(
    runs: list[Path] = RUNS,
    port: int = typer.Option(0, min=0, max=65535, help="The port to listen on; any free one by default."),
    json: bool = flag("--json", "Print the list of runs as JSON, and serve nothing."),
) -> None:
    """Show runs in a browser, also while they are still going.

    Several runs open as a list that can be filtered, and two of them beside each other. Ctrl-C ends it.
    """
    from revisit.media.cache_folders import PREVIEWS, cache_root
    from revisit.report.live_server import application
    from revisit.report.run_list import run_lines
    from revisit.results.run import Run
    from revisit.web.server import ListenAddress, serve

    if json:
        console.print_json(run_lines([(str(path), Run(path)) for path in runs]))
        return
    app = application(runs, cache_root() / PREVIEWS)
    console.message("Ctrl-C ends it.")
    serve(app, ListenAddress(port=port), started=lambda address: typer.echo(f"{address}/"))
