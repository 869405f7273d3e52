"""Arguments and options that several commands share, so that each means one thing."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import typer

RUN = typer.Argument(metavar="RUN", help="A run directory.")

SOURCE = typer.Argument(help="A folder of videos, a manifest.jsonl, or a benchmark's dataset folder.")
SUITE = typer.Option("auto", help="Suite of the source; auto recognises it by its layout.")
SET = typer.Option("lite", "--set", metavar="SET", help="Observer set: a name of `revisit list sets`, or a YAML file.")
PROTOCOL = typer.Option(None, help="Protocol of the suite; its first one by default.")


def flag_option(name: str, help: str) -> Any:
    """An option that is given or not."""
    return typer.Option(False, name, help=help)


def metric_option(help: str) -> Any:
    """`-m, --metric`: several may be separated by commas, in every command."""
    return typer.Option(
        [], "--metric", "-m", help=f"{help} (repeatable, or separated by commas).", callback=_split_commas_callback
    )


def _split_commas_callback(values: list[str] | None) -> list[str]:
    from revisit.core.text import split_commas

    return split_commas(values or ())


METRIC = metric_option("Only these metrics or groups such as lcm; all by default")
LIMIT = typer.Option(None, help="At most this many cases, spread evenly over models; the result is marked as partial.")
ALIGN = typer.Option("auto", help="How a reference is aligned: auto, index, time or stretch.")
ROOT = typer.Option([], "--root", help="A further folder that paths in the manifest may point to.")
OPTION = typer.Option(
    [], "--option", metavar="NAME=VALUE", help="An option of the suite (repeatable); `revisit show SUITE` lists them."
)
LAYOUT = typer.Option(
    "", metavar="PATTERN", help="Parts of a path, such as '{scene}/{model}.mp4'; also {seed}, {step} and *."
)
REFERENCE = typer.Option(None, metavar="DIR", help="Folder with the true videos, by their scenes' names.")
PARAM = typer.Option(
    [],
    "--param",
    "-p",
    metavar="ID.NAME=VALUE",
    help="A parameter of a metric, gate, evidence or observer, instead of the protocol's (repeatable).",
)
EXECUTOR = typer.Option("local", help="Who observes the clips: local (processes of this machine) or ray (a cluster).")
ADDRESS = typer.Option("", help="Address of the Ray cluster, such as auto or ray://host:10001; a new one by default.")
TRUTH = typer.Option(True, "--truth/--no-truth", help="Score each reference, too, as a row of its own.")
JUDGE = typer.Option("", help="Judge of questions about clips: a YAML file, the url of a server, or recorded answers.")
WORKERS = typer.Option(None, help="Number of processes; one per core by default, 0 to use this process only.")
ALL = flag_option("--all", "Print every metric, part and reason, not only the verdict.")
FRESH = flag_option("--fresh", "Discard earlier answers of this run and start again.")
QUIET = flag_option("--quiet", "No progress.")
JSON = flag_option("--json", "Print JSON.")
OWN_GENERATORS = typer.Option(None, "--generators", metavar="YAML", help="A file with your own generators.")


def out_option(help: str, default: Path | None = None, *, required: bool = False) -> Any:
    """`-o, --out PATH`: where a command writes."""
    initial = ... if required else default
    return typer.Option(initial, "--out", "-o", metavar="PATH", help=help, callback=_path_unless_suite_option)


def run_option(help: str, default: Any = None, name: str = "--run") -> Any:
    """`--run, --out PATH`: the run of a benchmark's own command; messages about runs speak of --out."""
    return typer.Option(default, name, "--out", metavar="PATH", help=help)


def _path_unless_suite_option(path: Path | None) -> Path | None:
    """Refuse `-o gt=data`: -o was short for --option once, and a folder of that name is not what was meant."""
    name, equals, _ = str(path).partition("=")
    if equals:
        from revisit.core import SUITES, UsageError

        if any(name in suite.options for suite in SUITES.values()):
            raise UsageError(f"-o is the path to write to; an option of a suite is given as --option {path}")
    return path


def is_given_on_command_line(ctx: typer.Context, name: str) -> bool:
    """Whether the user gave a parameter."""
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def refuse_other_parameters(ctx: typer.Context, allowed: Collection[str], purpose: str) -> None:
    """Raise UsageError where a parameter was given that does not go with what was asked for."""
    from revisit.core import UsageError

    for param in ctx.command.params:
        if param.name not in allowed and is_given_on_command_line(ctx, str(param.name)):
            raise UsageError(f"{param.opts[0]} does not go with {purpose}")
