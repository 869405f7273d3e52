"""Options that all evaluation commands share."""

from __future__ import annotations

import typer

SOURCE = typer.Argument(help="A folder of videos, a manifest.jsonl, or a benchmark's dataset folder.")
SUITE = typer.Option("auto", help="Suite of the source; auto recognises it by its layout.")
SET = typer.Option("lite", "--set", help="Observer set: a name from `revisit list sets`, or a YAML file.")
PROTOCOL = typer.Option(None, help="Protocol of the suite; its first one by default.")
METRIC = typer.Option(
    [],
    "--metric",
    "-m",
    help="Only these metrics or groups such as lcm (repeatable, or separated by commas); all by default.",
)
LIMIT = typer.Option(None, help="At most this many cases, spread evenly over models; the result is marked as partial.")
ALIGN = typer.Option("auto", help="How a reference is aligned: auto, index, time or stretch.")
ROOT = typer.Option([], "--root", help="A further folder that paths in the manifest may point to.")
OPTION = typer.Option(
    [], "--option", "-o", help="name=value, an option of the suite (repeatable); `revisit show SUITE` lists them."
)
PARAM = typer.Option(
    [],
    "--param",
    "-p",
    help="ID.name=value, a parameter of a metric, gate, evidence or observer, instead of the protocol's (repeatable).",
)
EXECUTOR = typer.Option("local", help="Who observes the clips: local (processes of this machine) or ray (a cluster).")
ADDRESS = typer.Option("", help="Address of the Ray cluster, such as auto or ray://host:10001; a new one by default.")
TRUTH = typer.Option(True, "--truth/--no-truth", help="Score each reference, too, as a row of its own.")
JUDGE = typer.Option(
    "", help="Judge that answers questions about clips: a judge file (YAML), the url of a server, or recorded answers."
)
