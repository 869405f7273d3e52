"""The command `revisit`."""

from __future__ import annotations

import atexit
import contextlib
import errno
import gc
import os
import sys

import typer

from revisit._version import __version__
from revisit.cli.benchmarks import OpenGroup

COMMANDS = {  # and the module and function of each, in the order of the help
    "demo": "demo.demo", "eval": "eval_.eval_", "generate": "generate.generate", "describe": "build.describe",
    "check": "check.check", "verdict": "verdict.verdict", "compare": "compare.compare", "trend": "compare.trend",
    "table": "table.table", "cite": "cite.cite", "figure": "figure.figure", "models": "models.models",
    "report": "report.report", "view": "view.view", "leaderboard": "leaderboard.leaderboard", "plan": "plan.plan",
    "score": "score.score", "list": "list_.list_", "show": "show.show", "audit": "audit.audit", "sweep": "sweep.sweep",
    "annotate": "annotate.annotate", "agree": "labels.agree", "align": "labels.align", "doctor": "doctor.doctor",
    "verify": "verify.verify", "poses": "poses.poses", "bundle": "bundle.app", "import": "import_.app",
    "build": "build.app", "camera": "camera.app", "cache": "cache.app", "judge": "judge.app", "labels": "labels.app",
    "weights": "weights.app", "world": "world.app",
}  # fmt: skip


class Verbs(OpenGroup):
    """All commands."""

    own = COMMANDS


app = typer.Typer(
    name="revisit",
    cls=Verbs,
    help="How well does a video world model remember? From a folder of videos to a report.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"revisit {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """How well does a video world model remember? From a folder of videos to a report."""


def run() -> None:
    """Entry point: known errors are one line; anything else is a bug and shows where."""
    atexit.register(gc.freeze)  # Python would look for cycles in all records once more before it ends
    try:
        app()
        sys.stdout.flush()
    except BrokenPipeError:
        _write_nowhere()
        sys.exit(0)  # whoever read our output had enough
    except OSError as error:  # a full disk, a folder that may not be written to: no fault of the code
        _write_nowhere()
        where = f"{error.filename}: " if error.filename else ""
        what = " (free some, and run the same command again)" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        _tell(f"{where}{error.strerror or type(error).__name__}{what}")
        sys.exit(1)
    except Exception as error:
        from revisit.core.errors import RevisitError  # here, because it brings numpy, which --help can do without

        if not isinstance(error, RevisitError):
            raise
        _tell(str(error))
        sys.exit(error.exit_code)


def _tell(sentence: str) -> None:
    with contextlib.suppress(OSError):
        typer.echo(f"revisit: {sentence}", err=True)


def _write_nowhere() -> None:
    """Keep Python from complaining at its end about what could not be written."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
