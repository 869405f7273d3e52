"""`revisit list` and `show`: what there is, and the card of each; the verdict, citations or models of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from revisit.cli import console
from revisit.cli.options import ALL, JSON, flag_option, out_option, refuse_other_parameters

HEADS = ["model", "category", "view from", "camera", "backbone", "parameters", "stated", "measured", "cost", "source"]
KINDS = ("suites", "metrics", "gates", "observers", "evidence", "sets", "distances")


def list_(
    kind: str = typer.Argument("metrics", help=f"One of {', '.join(KINDS)}."),
    json: bool = JSON,
) -> None:
    """List metrics, distances, gates, observers, suites or sets."""
    from revisit import catalog
    from revisit.core.text import require_known_name

    require_known_name(kind, KINDS, "list")
    rows = catalog.list_rows_of_kind(kind)
    cells = [list(map(str, row.values())) for row in rows]
    console.print_json_or_table(rows, list(rows[0]), cells, json)


def show(
    ctx: typer.Context,
    things: list[str] = typer.Argument(None, metavar="RUN|ID", help="A run, or an id that `revisit list` shows."),
    show_all: bool = ALL,
    bibtex: bool = flag_option("--bibtex", "Citations of what runs used: benchmark, metrics, networks."),
    models: bool = flag_option("--models", "Facts of models, as stated and measured; without a run, all published."),
    facts: Path = typer.Option(None, metavar="YAML", help="With --models: facts; the run's models.yaml by default."),
    out: Path = out_option("With --bibtex: write to this file instead of the screen."),
    json: bool = JSON,
) -> None:
    """Show a run's verdict, citations or models, or a metric's card.

    The verdict says which model answers each question best, how sure that is, and where to look. A card says what a
    metric, gate, observer, suite, kind of evidence or observer set is.
    """
    from revisit import catalog
    from revisit.core import UsageError

    runs = [Path(thing) for thing in things or ()]
    if bibtex:
        refuse_other_parameters(ctx, ("things", "bibtex", "out", "json"), "--bibtex")
        _print_citations(runs, out, json)
    elif models:
        refuse_other_parameters(ctx, ("things", "models", "facts", "json"), "--models")
        _print_model_facts(runs, facts, json)
    elif len(runs) != 1:
        raise UsageError("show takes one run or one id; only --bibtex and --models take several runs")
    elif card := _card_unless_run(things[0]):
        refuse_other_parameters(ctx, ("things", "json"), f"{things[0]!r}, which is no run")
        console.print_json_or_text(card, catalog.card_text(card), json)
    else:
        refuse_other_parameters(ctx, ("things", "show_all", "json"), "the verdict of a run")
        _print_run_verdict(runs[0], show_all, json)


def _card_unless_run(thing: str) -> dict[str, Any] | None:
    """The card of an id; None where a run is meant: a folder with run.json, or a path that is the id of nothing."""
    from revisit import catalog
    from revisit.core import UsageError

    path = Path(thing)
    try:
        return None if (path / "run.json").is_file() else catalog.card_of_id(thing)
    except UsageError:
        if path.exists() or path.name != thing:
            return None
        raise


def _print_run_verdict(path: Path, show_all: bool, json: bool) -> None:
    from revisit.cli.run_summary import print_run_summary
    from revisit.results.run import Run
    from revisit.results.verdict import load_verdict

    run = Run(path)
    verdict = load_verdict(run)
    if json:
        console.print_json(verdict)
    else:
        print_run_summary({**run.summary, "verdict": verdict}, show_all, run.path)


def _print_citations(runs: list[Path], out: Path | None, json: bool) -> None:
    """Print BibTeX entries of the benchmark, the metrics with scores and the networks behind them."""
    from revisit.core import UsageError
    from revisit.results.run import Run
    from revisit.runs.citations import bibtex_text, citations_of_run

    if not runs:
        raise UsageError("--bibtex takes the runs whose references are wanted")
    uses_by_entry: dict[str, list[str]] = {}
    for path in runs:
        run = Run(path)
        for key, uses in citations_of_run(run).items():
            uses_by_entry[key] = list(dict.fromkeys([*uses_by_entry.get(key, []), *uses]))
        if judge := run.facts["protocol"].get("judge"):
            name = judge.get("model") or judge
            console.print_to_stderr(f"{path} was judged by {name}: cite that model as its authors ask")
    if json:
        console.print_json(uses_by_entry)
    else:
        console.write_or_print(bibtex_text(uses_by_entry), out)


def _print_model_facts(runs: Sequence[Path], file: Path | None, json: bool) -> None:
    """Print category, camera, backbone and parameters; stated and measured size, rate and length; cost."""
    from revisit.results.model_facts import load_model_facts, properties_of_first_readable_clip, published_model_facts
    from revisit.results.run import Run

    facts = load_model_facts(list(runs), file)
    clips: dict[str, Any] = {}
    for path in runs:
        for model, results in Run(path).results.groups("model").items():
            clips.setdefault(model, properties_of_first_readable_clip(results.cases[:3]))
    if not runs:
        clips = dict.fromkeys(facts.facts if file else published_model_facts().facts)
    content = {name: {**facts.facts_of(name), "measured": clip} for name, clip in clips.items()}
    cells = [[name, *_model_fact_cells(facts.facts_of(name), clip)] for name, clip in clips.items()]
    console.print_json_or_table(content, HEADS, cells, json)


def _model_fact_cells(facts: Mapping[str, Any], clip: Any) -> list[str]:
    """What the table says of a model."""
    size = facts.get("size")
    return [
        facts.get("category", ""),
        str(facts.get("viewpoint", "")).replace("_", " "),
        {None: "", True: "yes", False: "no"}[facts.get("camera")],
        facts.get("backbone", ""),
        f"{facts['parameters']:g} B" if facts.get("parameters") else "",
        _clip_format_text(size[0], size[1], facts.get("fps"), facts.get("frames")) if size else "",
        _clip_format_text(**clip) if clip else "",
        _clip_cost_text(facts.get("cost", {})),
        str(facts.get("source", "")),
    ]


def _clip_cost_text(cost: Mapping[str, Any]) -> str:
    """Seconds, memory and price of a clip, in a few words."""
    parts = [f"{cost['seconds_per_clip']:.4g} s per clip"] if "seconds_per_clip" in cost else []
    parts += [f"{cost['peak_memory_gb']:.3g} GB"] if "peak_memory_gb" in cost else []
    parts += [f"{cost['peak_gpu_memory_gb']:.3g} GB of GPU"] if "peak_gpu_memory_gb" in cost else []
    parts += [f"{cost['price_per_clip']:.4g} {cost.get('currency', '')}".strip()] if "price_per_clip" in cost else []
    return ", ".join(parts)


def _clip_format_text(width: int, height: int, fps: float | None, frames: int | None) -> str:
    """Size, rate and length of a clip: `832×480, 16 fps, 81 frames`."""
    rate = f", {fps:g} fps" if fps else ""
    length = f", {frames} frames" if frames else ""
    return f"{width}×{height}{rate}{length}"
