"""The command `revisit`."""

from __future__ import annotations

import atexit
import contextlib
import errno
import gc
import io
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import typer

from revisit._version import __version__
from revisit.cli.benchmarks import OpenGroup, names_of_own_suites
from revisit.cli.help import Commands

PANELS = {  # commands by the heading they stand under, and the module and function of each
    "Everyday": {
        "demo": "world.demo", "eval": "eval_.eval_", "report": "report.report", "view": "report.view",
        "compare": "compare.compare", "trend": "compare.trend", "list": "show.list_", "show": "show.show",
    },
    "Data": {
        "generate": "generate.generate", "check": "generate.check", "build": "build.app", "import": "build.import_app",
        "describe": "build.describe",
    },
    "People and judges": {
        "annotate": "labels.annotate", "agree": "labels.agree", "align": "labels.align", "labels": "labels.app",
        "judge": "judge.app",
    },
    "Benchmarks": {"leaderboard": "leaderboard.leaderboard", "bundle": "bundle.app"},  # and those of the suites
    "Machine": {
        "doctor": "doctor.doctor", "verify": "doctor.verify", "weights": "weights.app", "cache": "cache.app",
        "plan": "eval_.plan",
    },
    "Laboratory": {
        "audit": "audit.app", "world": "world.app", "camera": "camera.app", "figure": "report.figure",
        "table": "leaderboard.table",
    },
}  # fmt: skip
MOVED = {  # old names, which still work, and what they are now
    "verdict": "show",
    "cite": "show --bibtex",
    "models": "show --models",
    "score": "eval --rescore --no-report",
    "sweep": "audit sweep",
    "camera run": "generate",
    "poses": "camera poses",
}
RENAMED_OPTIONS = {"camera run": {"--model": "--generator"}, "sweep": {"-o": "--option"}}


class MainGroup(OpenGroup):
    """All commands, in panels."""

    own: ClassVar[Mapping[str, str]] = {name: place for panel in PANELS.values() for name, place in panel.items()}

    def command_names_by_panel(self, ctx: Any) -> Mapping[str, Sequence[str]]:
        names = self.list_commands(ctx)
        further = [name for name in names if name not in self.own]  # of suites and plugins
        return {title: [*(further if title == "Benchmarks" else ()), *panel] for title, panel in PANELS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        words = _replace_moved_command(args)
        if words and self.get_command(ctx, words[0]) is None and words[0] in names_of_own_suites():
            ctx.fail(
                f"the suite {words[0]} has no commands of its own: `revisit eval DATA --suite {words[0]}` evaluates "
                f"it, and `revisit show {words[0]}` says what it reads"
            )
        return super().resolve_command(ctx, words)


def _replace_moved_command(words: list[str]) -> list[str]:
    """A command line with the new name of a command that was moved, and a note about it."""
    for old, new in MOVED.items():
        length = len(old.split())
        if words[:length] != old.split():
            continue
        typer.echo(f"note: `revisit {old}` is now `revisit {new}`", err=True)
        options = RENAMED_OPTIONS.get(old, {})
        remaining = [word.split("=", 1) for word in words[length:]]
        return [*new.split(), *("=".join([options.get(first, first), *value]) for first, *value in remaining)]
    return words


app = Commands(
    "How well does a video world model remember? From a folder of videos to a report.",
    cls=MainGroup,
    name="revisit",
    epilog="Most commands take --json. Exit codes: 0 done, 1 finished with failures or rejected entries, "
    "2 wrong usage, 3 something is missing, 130 interrupted (the same command resumes).",
)


def _print_version_and_exit(flag: bool) -> None:
    if flag:
        typer.echo(f"revisit {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: bool = typer.Option(
        False, "--version", callback=_print_version_and_exit, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """How well does a video world model remember? From a folder of videos to a report."""


def run() -> None:
    """Entry point: known errors are one line; anything else is a bug and shows where."""
    atexit.register(gc.freeze)  # Python would look for cycles in all records once more before it ends
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # arrows and names that the encoding of the terminal lacks
    try:
        app()
        sys.stdout.flush()
    except BrokenPipeError:
        _redirect_stdout_to_null()
        sys.exit(0)  # whoever read our output had enough
    except OSError as error:  # a full disk, a folder that may not be written to: no fault of the code
        _redirect_stdout_to_null()
        where = f"{error.filename}: " if error.filename else ""
        what = " (free some, and run the same command again)" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        _print_error(f"{where}{error.strerror or type(error).__name__}{what}")
        sys.exit(1)
    except Exception as error:
        from revisit.core.errors import RevisitError  # here, because it brings numpy, which --help can do without

        if not isinstance(error, RevisitError):
            raise
        _print_error(str(error))
        sys.exit(error.exit_code)


def _print_error(sentence: str) -> None:
    with contextlib.suppress(OSError):
        typer.echo(f"revisit: {sentence}", err=True)


def _redirect_stdout_to_null() -> None:
    """Keep Python from complaining at its end about what could not be written."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
