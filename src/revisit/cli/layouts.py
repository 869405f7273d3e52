"""Asks on a terminal how a folder is to be read, where two readings fit."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from revisit.cli import console

if TYPE_CHECKING:
    from revisit.engine.request import Request


def ask_for_layout(request: Request, *, quiet: bool = False) -> Request:
    """The request, with the layout that the user chose where two fit; as it was where nobody can be asked.

    Where nobody is asked, the reader's own remark names the layouts.
    """
    from revisit.engine.request import recognise
    from revisit.suites.clips import MANIFEST
    from revisit.suites.folder.read import understand_layout

    source = Path(request.source)
    options = dict(option.split("=", 1) for option in request.options if "=" in option)
    plain = source.is_dir() and not (source / MANIFEST).is_file()
    if quiet or not plain or options.get("layout") or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return request
    if request.suite != "folder" and (request.suite != "auto" or recognise(source).id != "folder"):
        return request
    understood = understand_layout(source, reference=options.get("reference", ""))
    choices = [reading for reading in understood.readings if reading.layout]
    if len(choices) < 2:
        return request
    console.message(f"{len(choices)} readings of {source.name} fit:")
    for number, reading in enumerate(choices, start=1):
        console.message(f"  {number}. {reading.size}, as {reading.layout}")
    number = 0
    while not 1 <= number <= len(choices):
        number = typer.prompt("Which one", default=1, type=int, err=True)
    chosen = choices[number - 1].layout
    console.message(f"--layout '{chosen}' says so next time")
    return replace(request, options=(*request.options, f"layout={chosen}"), suite="folder")
