"""`revisit show`: the verdict, citations or models of runs, or the card of a metric, gate, observer, suite or set."""

from __future__ import annotations

from pathlib import Path

import typer

from revisit.cli import console
from revisit.cli.model_facts import print_model_facts
from revisit.cli.options import ALL, JSON, out_option, refuse_others


def show(
    ctx: typer.Context,
    things: list[str] = typer.Argument(
        None, metavar="RUN|ID", help="A run directory, or the id of something that `revisit list` shows."
    ),
    show_all: bool = ALL,
    bibtex: bool = typer.Option(False, "--bibtex", help="Citations of what runs used: benchmark, metrics, networks."),
    models: bool = typer.Option(
        False,
        "--models",
        help="Facts of models, as stated and as measured in runs; without a run, all published.",
    ),
    facts: Path = typer.Option(
        None,
        metavar="YAML",
        help="With --models: a file of facts; models.yaml beside the run by default.",
    ),
    out: Path = out_option("With --bibtex: write to this file instead of the screen."),
    json: bool = JSON,
) -> None:
    """Show a run's verdict, citations or models, or a metric's card.

    The verdict says which model answers each question best, how sure that is, and where to look. A card says what a
    metric, gate, observer, suite, kind of evidence or observer set is.
    """
    from revisit.core import UsageError

    if bibtex:
        refuse_others(ctx, ("things", "bibtex", "out", "json"), "--bibtex")
        _print_citations([Path(thing) for thing in things or ()], out, json)
    elif models:
        refuse_others(ctx, ("things", "models", "facts", "json"), "--models")
        print_model_facts([Path(thing) for thing in things or ()], facts, json)
    elif len(things or ()) != 1:
        raise UsageError("show takes one run or one id; only --bibtex and --models take several runs")
    elif _is_run(things[0]):
        refuse_others(ctx, ("things", "show_all", "json"), "the verdict of a run")
        _print_verdict(Path(things[0]), show_all, json)
    else:
        refuse_others(ctx, ("things", "json"), f"{things[0]!r}, which is no run")
        _print_card(things[0], json)


def _is_run(thing: str) -> bool:
    """Whether a run directory is meant: a folder with run.json, or a path that is not the id of anything."""
    from revisit import catalog
    from revisit.core import UsageError

    if (Path(thing) / "run.json").is_file():
        return True
    try:
        catalog.card(thing)
    except UsageError:
        return Path(thing).exists() or Path(thing).name != thing
    return False


def _print_verdict(path: Path, show_all: bool, json: bool) -> None:
    from revisit.core import load_all
    from revisit.results.run import Run
    from revisit.results.verdict import load_verdict

    load_all()
    run = Run(path)
    verdict = load_verdict(run)
    if json:
        console.print_json(verdict)
    else:
        console.print_run_summary({**run.summary, "verdict": verdict}, show_all)


def _print_card(name: str, json: bool) -> None:
    from revisit import catalog

    card = catalog.card(name)
    if json:
        console.print_json(card)
    else:
        typer.echo(catalog.as_text(card))


def _print_citations(runs: list[Path], out: Path | None, json: bool) -> None:
    """Print BibTeX entries of the benchmark, the metrics with scores and the networks behind them."""
    from revisit.core import UsageError, load_all
    from revisit.results.run import Run
    from revisit.runs.citations import bibtex, citations_for

    if not runs:
        raise UsageError("--bibtex takes the runs whose references are wanted")
    load_all()
    uses_by_entry: dict[str, list[str]] = {}
    for path in runs:
        run = Run(path)
        for key, uses in citations_for(run).items():
            uses_by_entry[key] = list(dict.fromkeys([*uses_by_entry.get(key, []), *uses]))
        if judge := run.facts["protocol"].get("judge"):
            console.message(f"{path} was judged by {judge.get('model') or judge}: cite that model as its authors ask")
    if json:
        console.print_json(uses_by_entry)
        return
    console.write_or_print(bibtex(uses_by_entry), out)
