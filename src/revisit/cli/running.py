"""Runs an evaluation for the command line, with progress and a message on Ctrl-C."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from revisit.cli import console

if TYPE_CHECKING:
    from revisit.engine.request import Request
    from revisit.results.run import Run


def carry_out(request: Request, out: Path, *, quiet: bool = False, command: str = "", **how: Any) -> Run:
    """The finished run; `how` goes to `evaluate`."""
    command = command or shlex.join(["revisit", *sys.argv[1:]])
    try:
        told = (lambda _: None) if quiet else (lambda remark: console.message(f"note: {remark}"))
        return request.run(out, told, progress=console.progress(quiet), command=command, **how)
    except KeyboardInterrupt:
        console.message("interrupted; run the same command to continue")
        raise typer.Exit(130) from None
