"""`revisit compare` and `revisit trend`: runs, models or checkpoints beside each other, clip by clip."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from revisit.cli import console
from revisit.cli.options import JSON, out_option

SHOWN = 3  # clips to look at, for each direction
WHAT = "Run directories, RUN:MODEL, or a run and names of its models. The first is what the others are compared with."


def compare(
    what: list[str] = typer.Argument(help=WHAT),
    metric: list[str] = typer.Option([], "--metric", "-m", help="Only these metrics; those of the verdict by default."),
    by: list[str] = typer.Option([], "--by", help="Also by a part of the clips: scene, condition, 'gap>=2'."),
    all: bool = typer.Option(False, "--all", help="All metrics that both runs asked."),
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
    from revisit.results.compare import as_json, coverage_of
    from revisit.results.compare import compare as compared
    from revisit.runs.comparability import groups, headline, matched, refusals, sides

    load_all()
    found = sides(what)
    if len(found) < 2:
        raise UsageError("one model alone has nothing to be compared with; give another run, or RUN:MODEL")
    deltas, refused = [], {}
    for first, others in _increments(found) if increments else matched(found):
        wanted = metric or (list(first.facts["protocol"]["metrics"]) if all else headline(first.facts))
        for other in others:
            why = refusals(first, other, wanted)
            refused.update({f"{id} of {first.entry.name} and {other.entry.name}": told for id, told in why.items()})
            kept = [id for id in wanted if id not in why]
            deltas.append((first, other, kept))
    asked = [len(kept) for _, _, kept in deltas]
    if refused and not any(asked):
        listed = "; ".join(sorted(set(refused.values())))
        raise UsageError(f"these runs cannot be subtracted: {listed}")
    made = [
        delta
        for first, other, kept in deltas
        for delta in compared(first.entry, [other.entry], kept, groups(first, by))
    ]
    made = _corrected(made)
    done = {(delta.first, delta.second) for delta in made}
    apart = [
        f"{first.entry.name} and {other.entry.name}"
        for first, other, kept in deltas
        if kept and (first.entry.name, other.entry.name) not in done
    ]
    coverages = [coverage_of(first.entry, other.entry) for first, other, _ in deltas]
    if not made and not (gate and any(one.problems for one in coverages)):
        raise UsageError(f"nothing to compare: no clip has a score of both {'; of both '.join(apart)}")
    for pair in apart:
        console.message(f"not compared: no clip has a score of both {pair}")
    if json:
        console.data(
            {
                "deltas": [as_json(delta) for delta in made],
                "refused": refused,
                "coverage": [{**asdict(one), "problems": one.problems} for one in coverages],
            }
        )
    else:
        _show(made, refused)
        _show_coverage(coverages)
    if gate:
        raise typer.Exit(_gate(made, coverages))


def _gate(deltas: list[Any], coverages: list[Any]) -> int:
    """Say what is worse than the first, and what was not compared; the exit code."""
    from revisit.core import METRICS
    from revisit.results.ceilings import counts_as_memory

    problems = [
        f"{delta.second} is worse than {delta.first} in {METRICS[delta.metric].title}"
        for delta in deltas
        if delta.better == delta.first
    ]
    problems += [problem for coverage in coverages for problem in coverage.problems]
    tested = [delta for delta in deltas if delta.p is not None]
    for coverage in coverages:
        mine = [delta for delta in deltas if (delta.first, delta.second) == (coverage.first, coverage.second)]
        memory = [delta for delta in mine if counts_as_memory(delta.metric)]
        pair = f"{coverage.first} and {coverage.second}"
        if not memory:
            problems.append(f"no metric of memory was compared between {pair}")
        elif not any(delta.p is not None for delta in memory):
            problems.append(f"no metric of memory could be tested between {pair}: {memory[0].method}")
    for problem in problems:
        console.message(f"gate: {problem}")
    console.message(f"gate: {'failed' if problems else 'passed'} ({len(tested)} of {len(deltas)} comparisons tested)")
    return 1 if problems else 0


def _increments(found: list[Any]) -> list[tuple[Any, list[Any]]]:
    """Every model that came from another one here, beside that one."""
    from revisit.core import UsageError
    from revisit.results.model_facts import facts_for

    known = facts_for(list(dict.fromkeys(side.run.path for side in found)))
    names = [side.model for side in found]
    pairs = [(known.came_from(side.model, names), side) for side in found]
    made = [(next(one for one in found if one.model == origin), [side]) for origin, side in pairs if origin]
    if not made:
        raise UsageError("no model here says in models.yaml which of the others it came from (`from`)")
    return made


def _corrected(deltas: list[Any]) -> list[Any]:
    """Holm's correction over everything that is shown at once."""
    from dataclasses import replace

    from revisit.stats.paired import holm

    p = iter(holm([delta.p for delta in deltas if delta.p is not None]))
    return [delta if delta.p is None else replace(delta, corrected=next(p)) for delta in deltas]


def _show(deltas: list[Any], refused: dict[str, str]) -> None:
    from revisit.core import METRICS
    from revisit.results.display import column_head, ends, number, signed

    for first, second in dict.fromkeys((delta.first, delta.second) for delta in deltas):
        mine = [delta for delta in deltas if (delta.first, delta.second) == (first, second)]
        heads = [f"{second} against {first}", first, second, "difference", "95 %", "p (Holm)", "won : lost", "clips"]
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
            higher = METRICS[delta.metric].higher_is_better is not False
            better = [look for look in delta.looks if look.difference and (look.difference > 0) == higher][:SHOWN]
            worse = [look for look in delta.looks if look.difference and (look.difference > 0) != higher][:SHOWN]
            told = [
                f"{word} {', '.join(map(_clip, some))}" for word, some in (("won", better), ("lost", worse)) if some
            ]
            if told:
                console.message(f"{METRICS[delta.metric].title}: {'; '.join(told)}")
            for name, parts in delta.parts.items():
                rows = [
                    [part.group, signed(part.difference), ends(part.interval) if part.interval else "too few scenes",
                     f"{part.wins} : {part.losses}", str(part.clips)]
                    for part in parts
                ]  # fmt: skip
                heads = [f"{METRICS[delta.metric].title} by {name}", "difference", "95 %", "won : lost", "clips"]
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
    for one in coverages:
        counts = [f"{n} of {of} clips" for n, of in zip(one.delivered, one.asked, strict=True)]
        told = [f"{one.second} delivered {counts[1]}, {one.first} {counts[0]}"] if counts[0] != counts[1] else []
        if one.posed is not None and one.posed[0] != one.posed[1]:
            told.append(
                f"its camera looked away and came back on {one.posed[1]} clips, that of {one.first} on {one.posed[0]}"
            )
        if told:
            console.message("; ".join(told))


def _p(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}" if value >= 0.001 else "< 0.001"


def _clip(look: Any) -> str:
    from revisit.results.display import signed

    return f"{look.sample}{' ' + look.condition if look.condition else ''} ({signed(look.difference)})"


def trend(
    what: list[str] = typer.Argument(help="Run directories or RUN:MODEL, in any order."),
    metric: list[str] = typer.Option([], "--metric", "-m", help="Metrics to follow; those of the verdict by default."),
    by: str = typer.Option("step", help="step (the last number in the model's or the run's name), date, or order."),
    out: Path = out_option("Write the plot to this SVG file."),
    json: bool = JSON,
) -> None:
    """Follow a score over checkpoints or dates. Only the clips that all of them have count."""
    from revisit.core import METRICS, UsageError, load_all
    from revisit.report.trend import as_svg
    from revisit.results.display import NOTHING, column_head, shown
    from revisit.results.trend import trends
    from revisit.runs.comparability import date_of, headline, refusals, sides, step_of

    load_all()
    found = sides(what)
    if len(found) < 2:
        raise UsageError("a trend needs at least two runs or models")
    if by not in ("step", "date", "order"):
        raise UsageError(f"--by takes step, date or order, not {by!r}")
    keys: list[Any] = [step_of(side) if by == "step" else date_of(side) for side in found]
    if by == "order":
        keys = list(range(len(found)))
    if any(key is None for key in keys):
        unknown = next(side.entry.name for side, key in zip(found, keys, strict=True) if key is None)
        raise UsageError(f"{unknown!r} has no number in its name; --by date or --by order takes another order")
    order = sorted(range(len(found)), key=lambda k: keys[k])
    ordered = [found[k] for k in order]
    wanted = metric or headline(ordered[0].facts)
    refused: dict[str, str] = {}
    for side in ordered[1:]:
        refused.update(refusals(ordered[0], side, wanted))
    kept = [id for id in wanted if id not in refused]
    if not kept:
        raise UsageError(f"these runs cannot be put on one curve: {'; '.join(sorted(set(refused.values())))}")
    labels = [
        str(keys[k]) if by == "step" else str(keys[k])[:16] if by == "date" else found[k].entry.name for k in order
    ]
    made = trends([side.entry for side in ordered], kept)
    if json:
        console.data({"points": labels, "metrics": [one.as_json() for one in made], "refused": refused})
    else:
        heads = ["", *(column_head(one.metric) for one in made)]
        rows = [
            [label, *(shown(one.cells[k]) if one.cells else NOTHING for one in made)] for k, label in enumerate(labels)
        ]
        console.table(heads, rows, numbers=True)
        for one in made:
            console.message(f"{METRICS[one.metric].title}: {one.sentence}")
        for why in sorted(set(refused.values())):
            ids = [id for id, told in refused.items() if told == why]
            console.message(f"not followed: {', '.join(ids)}: {why}")
    if out is not None:
        out.write_text(as_svg(made, labels), encoding="utf-8")
        console.message(f"plot: {out}")
