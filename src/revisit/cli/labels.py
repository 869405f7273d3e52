"""`revisit labels`, `agree` and `align`: exports and imports labels, measures agreement of raters and of metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from revisit.cli import console
from revisit.cli.help import Commands
from revisit.cli.options import JSON, metric_option, out_option

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
