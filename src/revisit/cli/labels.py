"""`revisit annotate`, `labels`, `agree` and `align`: labels by people in the browser, their files, and agreement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from revisit.cli import console
from revisit.cli.help import Commands
from revisit.cli.options import JSON, flag_option, metric_option, out_option

app = Commands("Export and import labels of people.")
STORE = typer.Option("", help="The PostgreSQL connection string of the project, if it uses one.")


@app.command("export")
def export_labels(
    source: Path = typer.Argument(help="The folder of a project, or a labels.jsonl."),
    out: Path = out_option("Folder to write to; the project's by default."),
    store: str = STORE,
    json: bool = JSON,
) -> None:
    """Write labels.jsonl, and files for other tools. Parquet, Label Studio, WRBench, MBench, targets, key frames."""
    from revisit.labels.label_files import export_files

    paths = export_files(source, out, store)
    if any(path.name == "labels.jsonl" and not path.stat().st_size for path in paths):
        console.print_to_stderr("nobody has answered yet: the files hold no labels")
    texts = [str(path) for path in paths]
    console.print_json_or_text({"files": texts}, "\n".join(texts), json)


@app.command("import")
def convert_labels(
    source: Path = typer.Argument(help="A file of labels of another tool."),
    shape: str = typer.Option(..., "--from", help="label-studio, wrbench or mbench."),
    out: Path = out_option("The labels.jsonl to write.", required=True),
    json: bool = JSON,
) -> None:
    """Convert labels of another tool into labels.jsonl."""
    from revisit.labels.label_files import import_labels

    count = import_labels(source, shape, out)
    console.print_json_or_text({"file": str(out), "labels": count}, f"{count} labels: {out}", json)


def agree(
    labels: list[Path] = typer.Argument(help="Projects, or files of labels (labels.jsonl)."),
    out: Path = out_option("Write everything as JSON to this file."),
    json: bool = JSON,
    store: str = STORE,
) -> None:
    """Measure how well raters agree, and the quality of each.

    Gwet's AC1 and AC2, Cohen, Fleiss, Krippendorff, by dimension and scene.
    """
    from dataclasses import asdict

    from revisit.labels.agreement import agreement_report
    from revisit.labels.label_files import load_labels
    from revisit.labels.tables import agreement_tables, heat_tables
    from revisit.results.record_files import write_json

    report = agreement_report(load_labels(labels, store))
    if out is not None:
        write_json(out, asdict(report))
    if json:
        console.print_json(asdict(report))
        return
    _print_nonempty_tables([*agreement_tables(report), *heat_tables(report)])
    if report.examples:
        console.print_to_stderr(f"{report.examples} answers to examples are left out of all figures")


def align(
    run: Path = typer.Argument(help="A run."),
    labels: list[Path] = typer.Argument(help="Projects, or files of labels (labels.jsonl)."),
    metric: list[str] = metric_option("DIMENSION=METRIC: a metric for a dimension, instead of the suite's own"),
    seed: int = typer.Option(0, help="Seed for the split of scenes on which tie regions are fitted."),
    json: bool = JSON,
    store: str = STORE,
) -> None:
    """Compare the metrics of a run with people's labels. Tables are in the papers' layout."""
    from revisit.labels.label_files import write_people_alignment

    report, page = write_people_alignment(run, labels, metric, seed, store)
    if json:
        console.print_json(report)
        return
    _print_nonempty_tables(report["tables"])
    console.print_to_stderr(*report["notes"])
    typer.echo(str(page))


def _print_nonempty_tables(tables: list[dict[str, Any]]) -> None:
    from revisit.cli.run_summary import print_suite_table

    for one in tables:
        if one["rows"]:
            print_suite_table(one)


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
