"""`revisit cite`: the citations of what a run used."""

from __future__ import annotations

from pathlib import Path

import typer


def cite(
    runs: list[Path] = typer.Argument(help="Run directories."),
    out: Path = typer.Option(None, "--out", help="Write to this file instead of the screen."),
    json: bool = typer.Option(False, "--json", help="Print what is cited for what as JSON."),
) -> None:
    """Print BibTeX entries of the benchmark, the metrics with scores and the networks behind them."""
    from revisit.cli import console
    from revisit.core import load_all
    from revisit.results.run import Run
    from revisit.runs.citations import bibtex, owed

    load_all()
    used: dict[str, list[str]] = {}
    for path in runs:
        run = Run(path)
        for key, what in owed(run).items():
            used[key] = list(dict.fromkeys([*used.get(key, []), *what]))
        if judge := run.facts["protocol"].get("judge"):
            console.message(f"{path} was judged by {judge.get('model') or judge}: cite that model as its authors ask")
    text = bibtex(used)
    if json:
        console.data(used)
    elif out is not None:
        out.write_text(text, encoding="utf-8")
        typer.echo(str(out))
    else:
        typer.echo(text, nl=False)
