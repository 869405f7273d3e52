"""`revisit doctor`: checks whether everything that an evaluation needs is installed."""

from __future__ import annotations

import typer

from revisit.cli import console
from revisit.cli.options import JSON


def doctor(json: bool = JSON) -> None:
    """Check the installation: libraries, decoders, GPU, weights. Also cache, disk, memory and plugins."""
    from revisit.engine.doctor import check_installation

    results = check_installation()
    if json:
        console.print_json([check.__dict__ for check in results])
    else:
        marks = {"ok": "ok", "note": "–", "bad": "BAD"}
        console.print_table(["check", "state", "finding"], [[c.name, marks[c.state], c.finding] for c in results])
    raise typer.Exit(3 if any(check.state == "bad" for check in results) else 0)
