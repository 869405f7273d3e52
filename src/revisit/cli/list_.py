"""`revisit list`: lists suites, metrics, gates, observers, evidence, observer sets and distances."""

from __future__ import annotations

import typer

from revisit.cli import console
from revisit.cli.options import JSON

KINDS = ("suites", "metrics", "gates", "observers", "evidence", "sets", "distances")


def list_(
    kind: str = typer.Argument("metrics", help=f"One of {', '.join(KINDS)}."),
    json: bool = JSON,
) -> None:
    """List metrics, distances, gates, observers, suites or sets."""
    from revisit import catalog
    from revisit.core import UsageError
    from revisit.core.text import suggest_names

    if kind not in KINDS:
        raise UsageError(f"there is no list {kind!r}; {suggest_names(kind, KINDS)}")
    rows = catalog.list_rows_of_kind(kind)
    cells = [list(map(str, row.values())) for row in rows]
    console.print_json_or_table(rows, list(rows[0]), cells, json)
