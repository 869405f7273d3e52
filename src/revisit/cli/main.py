"""The command `revisit`."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import sys

import typer

from revisit import __version__
from revisit.cli import (
    annotate,
    audit,
    build,
    bundle,
    cache,
    camera,
    check,
    cite,
    compare,
    demo,
    doctor,
    eval_,
    figure,
    generate,
    import_,
    judge,
    labels,
    leaderboard,
    list_,
    models,
    plan,
    poses,
    report,
    score,
    show,
    sweep,
    table,
    verdict,
    verify,
    view,
    weights,
    world,
)
from revisit.cli.benchmarks import OpenGroup

app = typer.Typer(
    name="revisit",
    cls=OpenGroup,
    help="How well does a video world model remember? From a folder of videos to a report.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("demo")(demo.demo)
app.command("eval")(eval_.eval_)
app.command("generate")(generate.generate)
app.command("describe")(build.describe)
app.command("check")(check.check)
app.command("verdict")(verdict.verdict)
app.command("compare")(compare.compare)
app.command("trend")(compare.trend)
app.command("table")(table.table)
app.command("cite")(cite.cite)
app.command("figure")(figure.figure)
app.command("models")(models.models)
app.command("report")(report.report)
app.command("view")(view.view)
app.command("leaderboard")(leaderboard.leaderboard)
app.command("plan")(plan.plan)
app.command("score")(score.score)
app.command("list")(list_.list_)
app.command("show")(show.show)
app.command("audit")(audit.audit)
app.command("sweep")(sweep.sweep)
app.command("annotate")(annotate.annotate)
app.command("agree")(labels.agree)
app.command("align")(labels.align)
app.command("doctor")(doctor.doctor)
app.command("verify")(verify.verify)
app.command("poses")(poses.poses)
app.add_typer(bundle.app, name="bundle")
app.add_typer(import_.app, name="import")
app.add_typer(build.app, name="build")
app.add_typer(camera.app, name="camera")
app.add_typer(cache.app, name="cache")
app.add_typer(judge.app, name="judge")
app.add_typer(labels.app, name="labels")
app.add_typer(weights.app, name="weights")
app.add_typer(world.app, name="world")


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
    gc.set_threshold(100_000, 20, 100)  # records live as long as the command: looking for cycles in them finds none
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
