"""What an evaluation asks for, as options of the command."""

from __future__ import annotations

import typer

SOURCE = typer.Argument(help="A folder of videos, a manifest.jsonl, or a benchmark's dataset folder.")
SUITE = typer.Option("auto", help="Suite to read the source as; auto recognises it by its layout.")
SET = typer.Option("lite", "--set", help="Observer set: a name from `revisit list sets`, or a YAML file.")
PROTOCOL = typer.Option(None, help="Protocol of the suite; its first one by default.")
METRIC = typer.Option(
    [],
    "--metric",
    "-m",
    help="Only these metrics, or groups of them such as lcm (repeat it, or use commas); all by default.",
)
LIMIT = typer.Option(None, help="At most so many cases, spread evenly over models; marks the result partial.")
ALIGN = typer.Option("auto", help="How a reference is aligned: auto, index, time or stretch.")
ROOT = typer.Option([], "--root", help="A further folder that paths in the manifest may lead into.")
OPTION = typer.Option(
    [], "--option", "-o", help="name=value for the suite (repeat it); `revisit show SUITE` lists them."
)
PARAM = typer.Option(
    [],
    "--param",
    "-p",
    help="ID.name=value of a metric, gate, evidence or observer in the place of the protocol's (repeat it).",
)
TRUTH = typer.Option(True, "--truth/--no-truth", help="Score each reference, too, as a row of its own.")
JUDGE = typer.Option(
    "", help="Who answers questions about clips: a judge file (YAML), the url of a server, or recorded answers."
)
