"""`revisit annotate`: labels by people, in the browser."""

from __future__ import annotations

from pathlib import Path

import typer

from revisit.cli import console


def annotate(
    runs: list[Path] = typer.Argument(help="Runs whose clips are labelled, or the folder of a project to go on with."),
    task: list[str] = typer.Option(
        [], "--task", "-t", help="trigger, pairwise, answer, review, marks or failure; pairwise if not given."
    ),
    out: Path = typer.Option(None, "--out", "-o", help="Folder of the project; RUN/labels if not given."),
    of: str = typer.Option("clips", "--of", help="What is shown: clips, or their references (the truth)."),
    rater: list[str] = typer.Option([], "--rater", "-r", help="Name of a rater; a link for each is printed."),
    raters: int = typer.Option(3, min=1, help="How many raters see each item."),
    agree: int = typer.Option(0, min=0, help="Ask nobody else once so many agree; 0 asks all."),
    sample: str = typer.Option("balanced", help="Which items first: balanced, scenes, uncertain."),
    count: int = typer.Option(None, min=1, help="So many items of each task; all if not given."),
    metric: str = typer.Option(
        "", "--metric", "-m", help="For --sample uncertain: the metric whose doubts come first."
    ),
    dimension: list[str] = typer.Option([], "--dimension", "-d", help="Only these dimensions of pairs."),
    forms: int = typer.Option(1, min=1, help="Interleaved forms of the questions of a bank; a rater gets one."),
    per_scene: int = typer.Option(None, min=1, help="So many questions of the bank for each scene."),
    gold: Path = typer.Option(None, help="Labels whose answers are known (labels.jsonl): gold questions and examples."),
    gold_every: int = typer.Option(10, min=2, help="Every so manyeth item is a gold question."),
    guide: Path = typer.Option(None, help="Text with instructions for raters."),
    store: str = typer.Option("", help="A PostgreSQL connection string; an SQLite file in the project if not given."),
    seed: int = typer.Option(0, help="Of the sample."),
    host: str = typer.Option("127.0.0.1", help="Address to listen on; others than this machine need --token."),
    port: int = typer.Option(8123, min=0, help="Port to listen on; 0 takes any free one."),
    name: list[str] = typer.Option([], "--name", help="Another name under which the server is reached."),
    token: str = typer.Option(
        "", envvar="REVISIT_TOKEN", help="Of the page with progress and links; else a random one."
    ),
    prepare: bool = typer.Option(False, "--prepare", help="Make the project and print links, but do not serve."),
) -> None:
    """Ask people: start a web application for raters on this machine."""
    from revisit.labels.running import Wish, start

    wish = Wish(
        tuple(runs), tuple(task), out, of, tuple(rater), raters, agree, sample, count, metric, tuple(dimension), forms,
        per_scene, gold, gold_every, guide, store, seed,
    )  # fmt: skip
    start(wish, host, port, tuple(name), token, prepare, typer.echo, console.Counter("clips ready"))
