"""`revisit annotate`: labels by people, in the browser."""

from __future__ import annotations

from pathlib import Path

import typer

from revisit.cli import console
from revisit.cli.options import flag_option, out_option


def annotate(
    runs: list[Path] = typer.Argument(help="Runs whose clips are labelled, or the folder of a project to continue."),
    task: list[str] = typer.Option(
        [], "--task", "-t", help="trigger, pairwise (default), answer, review, marks or failure."
    ),
    out: Path = out_option("Folder of the project; RUN/labels by default."),
    of: str = typer.Option("clips", help="What is shown: clips, or their references (the truth)."),
    rater: list[str] = typer.Option([], "--rater", "-r", help="Name of a rater; a link for each is printed."),
    raters: int = typer.Option(None, min=1, help="Raters of each item; by default all that --rater names, or 3."),
    agree: int = typer.Option(0, min=0, help="Stop asking once this many raters agree; 0 asks all raters."),
    sample: str = typer.Option("balanced", help="Which items first: balanced, scenes, uncertain."),
    count: int = typer.Option(None, min=1, help="Number of items per task; all by default."),
    metric: str = typer.Option(
        "", "--metric", "-m", help="With --sample uncertain: the metric whose least certain clips come first."
    ),
    dimension: list[str] = typer.Option([], "--dimension", "-d", help="Only these dimensions of pairs."),
    forms: int = typer.Option(1, min=1, help="Interleaved forms of the questions of a bank; a rater gets one."),
    per_scene: int = typer.Option(None, min=1, help="Number of questions of the bank per scene."),
    gold: Path = typer.Option(None, help="Labels whose answers are known (labels.jsonl): gold questions and examples."),
    gold_every: int = typer.Option(10, min=2, help="Every N-th item is a gold question."),
    guide: Path = typer.Option(None, help="Text with instructions for raters."),
    store: str = typer.Option("", help="A PostgreSQL connection string; an SQLite file in the project by default."),
    seed: int = typer.Option(0, help="Seed of the sample."),
    host: str = typer.Option("127.0.0.1", help="Address to listen on; addresses beyond this machine need --token."),
    port: int = typer.Option(8123, min=0, help="Port to listen on; 0 takes any free one."),
    name: list[str] = typer.Option([], help="Another name under which the server is reached."),
    token: str = typer.Option(
        "", envvar="REVISIT_TOKEN", help="Token of the page with progress and links; random by default."
    ),
    prepare: bool = flag_option("--prepare", "Make the project and print links, but do not start the server."),
    json: bool = flag_option("--json", "Print the project and its links as JSON."),
) -> None:
    """Collect labels from people in the browser. Starts a web application for raters on this machine."""
    from revisit.labels.project import RATERS, ProjectSettings
    from revisit.labels.start_project import ProjectRequest, open_and_serve_project
    from revisit.web.server import ListenAddress

    settings = ProjectSettings(
        tuple(task) or ("pairwise",), of, raters or RATERS, agree, sample, count, metric, tuple(dimension), forms,
        per_scene, gold_every, seed,
    )  # fmt: skip
    request = ProjectRequest(tuple(runs), settings, out, tuple(rater), gold, guide, store, raters)
    where, ready = ListenAddress(host, port, tuple(name)), console.Counter("clips ready")
    announce = console.print_json if json else None
    open_and_serve_project(request, where, token, prepare, typer.echo, ready, announce, console.print_to_stderr)
