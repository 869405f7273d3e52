"""`revisit doctor`: checks whether everything that an evaluation needs is installed."""

from __future__ import annotations

import typer

from revisit.cli import console
from revisit.cli.options import JSON


def doctor(json: bool = JSON) -> None:
    """Check the installation: libraries, decoders, GPU, weights. Also cache, disk, memory and plugins."""
    from revisit.engine.doctor import check_installation

    rows = check_installation()
    content = [dict(zip(("name", "state", "finding"), row, strict=True)) for row in rows]
    marks = {"ok": "ok", "note": "–", "bad": "BAD"}
    cells = [[name, marks[state], finding] for name, state, finding in rows]
    console.print_json_or_table(content, ["check", "state", "finding"], cells, json)
    raise typer.Exit(3 if any(state == "bad" for _, state, _ in rows) else 0)
