"""`revisit show`: shows the card of a metric, gate, observer, suite, kind of evidence or set."""

from __future__ import annotations

import typer

from revisit.cli import console


def show(
    id: str = typer.Argument(help="A metric, gate, observer, suite, kind of evidence or set."),
    json: bool = typer.Option(False, "--json", help="Print as JSON."),
) -> None:
    """Show the card of a metric, gate, observer, suite, kind of evidence or observer set."""
    from revisit import catalog

    card = catalog.card(id)
    if json:
        console.data(card)
        return
    typer.echo(catalog.as_text(card))
