"""`revisit compare` and `revisit trend`: runs, models or checkpoints beside each other, clip by clip."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from revisit.cli import console
from revisit.cli.options import JSON, metric_option, out_option

SHOWN = 3  # clips to look at, for each direction
WHAT = "Run directories, RUN:MODEL, or a run and names of its models. The first is what the others are compared with."


def compare(
    what: list[str] = typer.Argument(help=WHAT),
    metric: list[str] = metric_option("Only these metrics; those of the verdict by default"),
    by: list[str] = typer.Option([], "--by", help="Also by a part of the clips: scene, condition, 'gap>=2'."),
    show_all: bool = typer.Option(False, "--all", help="All metrics that both runs asked."),
    increments: bool = typer.Option(
        False, "--increments", help="Each model against the one that it came from (`from` in models.yaml)."
    ),
    gate: bool = typer.Option(
        False, "--gate", help="Exit with 1 if anything is worse than the first, or less was delivered."
    ),
    json: bool = JSON,
) -> None:
    """Compare runs, models or checkpoints clip by clip.

    Differences come with intervals, p corrected by Holm, and clips to look at.
    """
    from dataclasses import asdict

    from revisit.core import UsageError, load_all
    from revisit.results.compare import as_json, correct_for_all, coverage_of
    from revisit.results.compare import compare as compared
    from revisit.runs.comparability import asked_metrics, groups, match_sides, ranked_ids, read_sides, refusals

    load_all()
    entries = read_sides(what)
    if len(entries) < 2:
        raise UsageError("one model alone has nothing to be compared with; give another run, or RUN:MODEL")
    metric = _named(metric, entries)
    pairs, refused = [], {}
    for first, rivals in _increments(entries) if increments else match_sides(entries):
        for other in rivals:
            asked = list(first.facts["protocol"]["metrics"]) if show_all else asked_metrics(first.facts)
            metrics = metric or ranked_ids([first, other], asked)
            reasons = refusals(first, other, metrics)
            refused.update(
                {
                    f"{metric_id} of {first.entry.name} and {other.entry.name}": reason
                    for metric_id, reason in reasons.items()
                }
            )
            comparable = [metric_id for metric_id in metrics if metric_id not in reasons]
            pairs.append((first, other, comparable))
    counts = [len(comparable) for _, _, comparable in pairs]
    if refused and not any(counts):
        listed = "; ".join(sorted(set(refused.values())))
        raise UsageError(f"these runs cannot be subtracted: {listed}")
    results = [
        delta
        for first, other, comparable in pairs
        for delta in compared(first.entry, [other.entry], comparable, groups(first, by))
    ]
    results = correct_for_all(results)
    compared_pairs = {(delta.first, delta.second) for delta in results}
    disjoint = [
        f"{first.entry.name} and {other.entry.name}"
        for first, other, comparable in pairs
        if comparable and (first.entry.name, other.entry.name) not in compared_pairs
    ]
    coverages = [coverage_of(first.entry, other.entry) for first, other, _ in pairs]
    if not results and not (gate and any(one.problems for one in coverages)):
        raise UsageError(f"nothing to compare: no clip has a score of both {'; of both '.join(disjoint)}")
    for pair in disjoint:
        console.message(f"not compared: no clip has a score of both {pair}")
    if json:
        console.data(
            {
                "deltas": [as_json(delta) for delta in results],
                "refused": refused,
                "coverage": [{**asdict(one), "problems": one.problems} for one in coverages],
            }
        )
    else:
        _show(results, refused)
        _show_coverage(coverages)
    if gate:
        raise typer.Exit(_gate(results, coverages))


def _named(metric: list[str], sides: list[Any]) -> list[str]:
    """The metrics that were named, of those that one of the runs asked."""
    from revisit.results.metric_names import metrics_named

    asked = dict.fromkeys(id for side in sides for id in side.facts["protocol"]["metrics"])
    return metrics_named(metric, list(asked), "these runs", sides[0].facts["suite"])


def _gate(deltas: list[Any], coverages: list[Any]) -> int:
    """Say what is worse than the first, and what was not compared; the exit code."""
    from revisit.results.ceilings import counts_as_memory
    from revisit.results.display import metric_title
    from revisit.results.score_names import measured_id

    problems = [
        f"{delta.second} is worse than {delta.first} in {metric_title(delta.metric)}"
        for delta in deltas
        if delta.better == delta.first
    ]
    problems += [problem for coverage in coverages for problem in coverage.problems]
    tested = [delta for delta in deltas if delta.p is not None]
    for coverage in coverages:
        mine = [delta for delta in deltas if (delta.first, delta.second) == (coverage.first, coverage.second)]
        memory = [delta for delta in mine if counts_as_memory(measured_id(delta.metric))]
        pair = f"{coverage.first} and {coverage.second}"
        if not memory:
            problems.append(f"no metric of memory was compared between {pair}")
        elif not any(delta.p is not None for delta in memory):
            problems.append(f"no metric of memory could be tested between {pair}: {memory[0].method}")
    for problem in problems:
        console.message(f"gate: {problem}")
    console.message(f"gate: {'failed' if problems else 'passed'} ({len(tested)} of {len(deltas)} comparisons tested)")
    return 1 if problems else 0


def _increments(entries: list[Any]) -> list[tuple[Any, list[Any]]]:
    """Every model that came from another one here, beside that one."""
    from revisit.core import UsageError
    from revisit.results.model_facts import facts_for

    facts = facts_for(list(dict.fromkeys(side.run.path for side in entries)))
    names = [side.model for side in entries]
    pairs = [(facts.came_from(side.model, names), side) for side in entries]
    increments = [(next(one for one in entries if one.model == origin), [side]) for origin, side in pairs if origin]
    if not increments:
        raise UsageError("no model here says in models.yaml which of the others it came from (`from`)")
    return increments


def _show(deltas: list[Any], refused: dict[str, str]) -> None:
    from revisit.core import METRICS
    from revisit.results.display import column_head, ends, metric_title, number, signed
    from revisit.results.score_names import measured_id

    for first, second in dict.fromkeys((delta.first, delta.second) for delta in deltas):
        mine = [delta for delta in deltas if (delta.first, delta.second) == (first, second)]
        heads = [
            f"{second} against {first}, same clips",
            first,
            second,
            "difference",
            "95 %",
            "p (Holm)",
            "won : lost",
            "clips",
        ]
        rows = []
        for delta in mine:
            mark = " better" if delta.better == second else " worse" if delta.better == first else ""
            rows.append(
                [
                    column_head(delta.metric),
                    number(delta.means[0]), number(delta.means[1]), signed(delta.difference) + mark,
                    ends(delta.interval) if delta.interval else delta.method,
                    _p(delta.corrected),
                    f"{delta.wins} : {delta.losses}", f"{delta.clips} of {delta.scenes} scenes",
                ]
            )  # fmt: skip
        console.table(heads, rows, numbers=True)
        for delta in mine:
            higher = METRICS[measured_id(delta.metric)].higher_is_better is not False
            better = [look for look in delta.looks if look.difference and (look.difference > 0) == higher][:SHOWN]
            worse = [look for look in delta.looks if look.difference and (look.difference > 0) != higher][:SHOWN]
            sentences = [
                f"{word} {', '.join(map(_clip, some))}" for word, some in (("won", better), ("lost", worse)) if some
            ]
            if sentences:
                console.message(f"{metric_title(delta.metric)}: {'; '.join(sentences)}")
            for name, parts in delta.parts.items():
                rows = [
                    [part.group, signed(part.difference), ends(part.interval) if part.interval else "too few scenes",
                     f"{part.wins} : {part.losses}", str(part.clips)]
                    for part in parts
                ]  # fmt: skip
                heads = [f"{metric_title(delta.metric)} by {name}", "difference", "95 %", "won : lost", "clips"]
                console.table(heads, rows, numbers=True)
    together: dict[str, list[str]] = {}
    for what, why in refused.items():
        together.setdefault(why, []).append(what.partition(" of ")[0])
    for why, ids in together.items():
        console.message(f"not compared: {', '.join(dict.fromkeys(ids))}: {why}")
    if any(delta.seeds for delta in deltas):
        console.message("several seeds of a clip were folded into their mean")
    if not deltas:
        console.message("there is no clip that both have a score of")


def _show_coverage(coverages: list[Any]) -> None:
    """Tell how many clips were delivered, and on how many the camera left and came back, where the sides differ."""
    for coverage in coverages:
        counts = [f"{n} of {of} clips" for n, of in zip(coverage.delivered, coverage.asked, strict=True)]
        sentences = (
            [f"{coverage.second} delivered {counts[1]}, {coverage.first} {counts[0]}"] if counts[0] != counts[1] else []
        )
        if coverage.posed is not None and coverage.posed[0] != coverage.posed[1]:
            sentences.append(
                f"its camera looked away and came back on {coverage.posed[1]} clips, "
                f"that of {coverage.first} on {coverage.posed[0]}"
            )
        if sentences:
            console.message("; ".join(sentences))


def _p(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}" if value >= 0.001 else "< 0.001"


def _clip(look: Any) -> str:
    from revisit.results.display import signed

    return f"{look.sample}{' ' + look.condition if look.condition else ''} ({signed(look.difference)})"


def trend(
    what: list[str] = typer.Argument(help="Run directories or RUN:MODEL, in any order."),
    metric: list[str] = metric_option("Metrics to follow; those of the verdict by default"),
    by: str = typer.Option("step", help="step (the last number in the model's or the run's name), date, or order."),
    out: Path = out_option("Write the plot to this SVG file."),
    json: bool = JSON,
) -> None:
    """Follow a score over checkpoints, and name the one to keep.

    Only the clips that all of them have a score of count; beside them stands how many clips came back. Where there is
    nothing to follow, no plot is written and the exit code is 2.
    """
    from dataclasses import asdict

    from revisit.core import UsageError, load_all
    from revisit.report.trend import as_svg
    from revisit.results.checkpoints import choose_checkpoints
    from revisit.results.display import metric_title
    from revisit.results.trend import coverages, has_progress, trends
    from revisit.runs.comparability import asked_metrics, date_of, ranked_ids, read_sides, refusals, step_of

    load_all()
    entries = read_sides(what)
    if len(entries) < 2:
        raise UsageError("a trend needs at least two runs or models")
    if by not in ("step", "date", "order"):
        raise UsageError(f"--by takes step, date or order, not {by!r}")
    keys: list[Any] = [step_of(side) if by == "step" else date_of(side) for side in entries]
    if by == "order":
        keys = list(range(len(entries)))
    if any(key is None for key in keys):
        unknown = next(side.entry.name for side, key in zip(entries, keys, strict=True) if key is None)
        raise UsageError(f"{unknown!r} has no number in its name; --by date or --by order takes another order")
    order = sorted(range(len(entries)), key=lambda k: keys[k])
    ordered = [entries[k] for k in order]
    metrics = _named(metric, ordered) or ranked_ids(ordered, asked_metrics(ordered[0].facts))
    refused: dict[str, str] = {}
    for side in ordered[1:]:
        refused.update(refusals(ordered[0], side, metrics))
    comparable = [metric_id for metric_id in metrics if metric_id not in refused]
    if not comparable:
        raise UsageError(f"these runs cannot be put on one curve: {'; '.join(sorted(set(refused.values())))}")
    labels = [
        str(keys[k]) if by == "step" else str(keys[k])[:16] if by == "date" else entries[k].entry.name for k in order
    ]
    points = [side.entry for side in ordered]
    curves, coverage = trends(points, comparable), coverages(points)
    choices = choose_checkpoints(points, comparable, labels)
    if json:
        facts = {"points": labels, "metrics": [curve.as_json() for curve in curves], "refused": refused}
        chosen = [choice.as_json() for choice in choices]
        console.data({**facts, "coverage": [asdict(point) for point in coverage], "choices": chosen})
    else:
        _show_trend(labels, curves, coverage, choices, refused)
    if not has_progress(curves, coverage):
        names = ", ".join(metric_title(curve.metric) for curve in curves)
        raise UsageError(
            f"there is no trend: no clip has a score of {names} at every point, and coverage does not change"
            + (f"; {out} was not written" if out else "")
        )
    if out is not None:
        out.write_text(as_svg(curves, labels, coverage), encoding="utf-8")
        console.message(f"plot: {out}")


def _show_trend(
    labels: list[str], curves: list[Any], coverage: list[Any], choices: list[Any], refused: dict[str, str]
) -> None:
    """Print coverage and scores of each point, what the curves say, and which point to keep."""
    from revisit.core.grouping import group_items
    from revisit.results.display import NOTHING, cell_text, column_head, metric_title
    from revisit.results.trend import coverage_sentence

    heads = ["", "clips", "came back", *(column_head(curve.metric) for curve in curves)]
    rows = [
        [
            label,
            f"{point.delivered} of {point.asked}",
            NOTHING if point.returned is None else f"{point.returned} of {point.delivered}",
            *(cell_text(curve.cells[k]) if curve.cells else NOTHING for curve in curves),
        ]
        for k, (label, point) in enumerate(zip(labels, coverage, strict=True))
    ]
    console.table(heads, rows, numbers=True)
    if sentence := coverage_sentence(coverage):
        console.message(f"Camera: {sentence}")
    for curve in curves:
        console.message(f"{metric_title(curve.metric)}: {curve.sentence}")
    for choice in choices:
        console.message(f"which to keep, by {choice.title}: {choice.sentence}")
        if choice.progress:
            console.message(f"  {choice.progress}")
    for sentence, ids in sorted(group_items(refused, refused.__getitem__).items()):
        console.message(f"not followed: {', '.join(ids)}: {sentence}")
