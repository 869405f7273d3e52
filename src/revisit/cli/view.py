"""`revisit view`: runs in a browser, also while they are going."""

from __future__ import annotations

from pathlib import Path

import typer

from revisit.cli import console
from revisit.cli.options import RUNS, flag_option


def view(
    runs: list[Path] = RUNS,
    port: int = typer.Option(0, min=0, max=65535, help="The port to listen on; any free one by default."),
    json: bool = flag_option("--json", "Print the list of runs as JSON, and serve nothing."),
) -> None:
    """Show runs in a browser, also while they are still going.

    Several runs open as a list that can be filtered, and two of them beside each other. Ctrl-C ends it.
    """
    from revisit.media.cache_folders import PREVIEWS, cache_root
    from revisit.report.live_server import make_live_application, run_entries_newest_first
    from revisit.results.run import Run
    from revisit.web.server import ListenAddress, serve_until_interrupted

    if json:
        console.print_json(run_entries_newest_first([(str(path), Run(path)) for path in runs]))
        return
    app = make_live_application(runs, cache_root() / PREVIEWS)
    console.print_to_stderr("Ctrl-C ends it.")
    serve_until_interrupted(app, ListenAddress(port=port), started=lambda address: typer.echo(f"{address}/"))
