"""`revisit compare` and `revisit trend`: runs, models or checkpoints beside each other, clip by clip."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from revisit.cli import console
from revisit.cli.options import JSON, flag_option, metric_option, out_option

if TYPE_CHECKING:
    from revisit.results.compare import Coverage, Delta
    from revisit.results.trend import CheckpointChoice, PointCoverage, Trend
    from revisit.runs.comparability import Side, SideComparison

SHOWN = 3  # clips to look at, for each direction
WHAT = "Run directories, RUN:MODEL, or a run and names of its models. The first is what the others are compared with."


def compare(
    what: list[str] = typer.Argument(help=WHAT),
    metric: list[str] = metric_option("Only these metrics; those of the verdict by default"),
    by: list[str] = typer.Option([], help="Also by a part of the clips: scene, condition, 'gap>=2'."),
    show_all: bool = flag_option("--all", "All metrics that both runs asked."),
    increments: bool = flag_option("--increments", "Each model against the one it came from (`from` in models.yaml)."),
    gate: bool = flag_option(
        "--gate", "Exit with 1 if anything is worse than the first, less delivered, or memory untested."
    ),
    json: bool = JSON,
) -> None:
    """Compare runs, models or checkpoints clip by clip.

    Differences come with intervals, p corrected by Holm, and clips to look at.
    """
    from revisit.core import UsageError
    from revisit.results.compare import delta_as_json
    from revisit.runs.comparability import check_regressions, compare_sides, pair_sides, read_sides, unpaired_models

    sides = read_sides(what)
    if len(sides) < 2:
        raise UsageError("one model alone has nothing to be compared with; give another run, or RUN:MODEL")
    pairs = _pairs_of_origin_and_model(sides) if increments else pair_sides(sides)
    lost, new = ([], []) if increments else unpaired_models(sides, pairs)
    comparisons = compare_sides(pairs, _select_metrics(metric, sides), by, every_metric=show_all)
    refused = {f"{id} of {one.both_names_text}": why for one in comparisons for id, why in one.refusals.items()}
    if refused and not any(one.metrics for one in comparisons):
        raise UsageError(f"these runs cannot be subtracted: {'; '.join(sorted(set(refused.values())))}")
    deltas, coverage = [delta for one in comparisons for delta in one.deltas], [one.coverage for one in comparisons]
    disjoint = [one.both_names_text for one in comparisons if one.metrics and not one.deltas]
    verdict = check_regressions(comparisons, lost) if gate else None
    if not deltas and (verdict is None or (verdict.untested and not verdict.worse)):
        unasked = "none of the metrics that answer the suite's questions was asked; name others with -m, or add --all"
        lacking = f"no clip has a score of both {'; of both '.join(disjoint)}"
        raise UsageError(f"nothing to compare: {lacking if disjoint else unasked}")
    console.print_to_stderr(*(f"not compared: no clip has a score of both {names}" for names in disjoint))
    console.print_to_stderr(*new, *(() if gate else lost))
    if json:
        coverages = [{**asdict(one), "problems": one.problems, "warnings": one.warnings} for one in coverage]
        content = {"deltas": [delta_as_json(delta) for delta in deltas], "refused": refused, "coverage": coverages}
        content["unpaired"] = {"lost": lost, "new": new}
        if verdict is not None:
            content["gate"] = {name: getattr(verdict, name) for name in ("passed", "problems", "warnings")}
        console.print_json(content)
    else:
        for one in comparisons:
            _print_comparison(one)
        _print_comparison_notes(deltas, refused)
        _print_differing_coverage(coverage)
        if len(what) == 1 and not increments and len(sides) > 2:
            console.print_to_stderr(f"{sides[0].entry.name} is the first by name; {what[0]} MODEL ... names another")
    if verdict is not None:
        console.print_to_stderr(*(f"gate: warning: {warning}" for warning in verdict.warnings))
        console.print_to_stderr(*(f"gate: {problem}" for problem in verdict.problems))
        tested = f"{sum(delta.p is not None for delta in deltas)} of {len(deltas)} comparisons tested"
        console.print_to_stderr(f"gate: {'passed' if verdict.passed else 'failed'} ({tested})")
        raise typer.Exit(0 if verdict.passed else 1)


def _select_metrics(metric: list[str], sides: list[Side]) -> list[str]:
    """The metrics that were named, of those that one of the runs asked."""
    from revisit.results.score_names import resolve_score_ids

    metrics = dict.fromkeys(id for side in sides for id in side.facts["protocol"]["metrics"])
    return resolve_score_ids(metric, list(metrics), "these runs", sides[0].facts["suite"])


def _pairs_of_origin_and_model(sides: list[Side]) -> list[tuple[Side, Side]]:
    """Every model that came from another one here, beside that one."""
    from revisit.core import UsageError
    from revisit.results.model_facts import load_model_facts

    facts = load_model_facts(list(dict.fromkeys(side.run.path for side in sides)))
    by_model = {side.model: side for side in reversed(sides)}
    origins = [(facts.predecessor_among(side.model, list(by_model)), side) for side in sides]
    increments = [(by_model[origin], side) for origin, side in origins if origin]
    if not increments:
        raise UsageError("no model here says in models.yaml which of the others it came from (`from`)")
    return increments


def _print_comparison(comparison: SideComparison) -> None:
    """Print a table of the differences, the clips to look at, and a table for each way to split the clips."""
    from revisit.core import METRICS
    from revisit.results.display import score_title, signed_number_text
    from revisit.results.score_names import strip_held_suffix

    first, second = comparison.first.entry.name, comparison.second.entry.name
    heads = ["difference", "95 %", "p (Holm)", "won : lost", "clips"]
    if comparison.deltas:
        rows = [_delta_table_row(delta) for delta in comparison.deltas]
        console.print_table([f"{second} against {first}, same clips", first, second, *heads], rows, numbers=True)
    for delta in comparison.deltas:
        title = score_title(delta.metric)
        higher = METRICS[strip_held_suffix(delta.metric)].higher_is_better is not False
        sentences = []
        for word, sign in (("won", higher), ("lost", not higher)):
            looks = [look for look in delta.looks if look.difference and (look.difference > 0) == sign][:SHOWN]
            names = ", ".join(f"{look.name} ({signed_number_text(look.difference)})" for look in looks)
            sentences += [f"{word} {names}"] if looks else []
        if sentences:
            console.print_to_stderr(f"{title}: {'; '.join(sentences)}")
        for name, parts in delta.parts.items():
            rows = [
                [part.group, signed_number_text(part.difference), part.interval_text, f"{part.wins} : {part.losses}",
                 str(part.clips)]
                for part in parts
            ]  # fmt: skip
            console.print_table([f"{title} by {name}", *heads[:2], *heads[3:]], rows, numbers=True)


def _delta_table_row(delta: Delta) -> list[str]:
    from revisit.core.text import count_and_noun
    from revisit.results.display import number_text, score_title_with_arrow, signed_number_text

    mark = f" {delta.word}" if delta.word else ""
    return [
        score_title_with_arrow(delta.metric), number_text(delta.means[0]), number_text(delta.means[1]),
        signed_number_text(delta.difference) + mark, delta.interval_text, delta.p_text,
        f"{delta.wins} : {delta.losses}", f"{delta.clips} of {count_and_noun(delta.scenes, 'scene')}",
    ]  # fmt: skip


def _print_comparison_notes(deltas: list[Delta], refused: dict[str, str]) -> None:
    """Tell what was not compared, and why."""
    from revisit.core.grouping import group_items
    from revisit.core.text import count_and_noun

    for why, names in group_items(refused, refused.__getitem__).items():
        metrics = dict.fromkeys(name.partition(" of ")[0] for name in names)
        console.print_to_stderr(f"not compared: {', '.join(metrics)}: {why}")
    if alone := sum(delta.significant_only_uncorrected for delta in deltas):
        console.print_to_stderr(
            f"intervals are at 95 % for each difference by itself: {count_and_noun(alone, 'difference')} beyond chance "
            f"alone, but not among all {len(deltas)} that are compared (Holm)"
        )
    if any(delta.seeds for delta in deltas):
        console.print_to_stderr("several seeds of a clip were folded into their mean")
    if not deltas:
        console.print_to_stderr("there is no clip that both have a score of")


def _print_differing_coverage(coverages: list[Coverage]) -> None:
    """Tell how many clips were delivered, and on how many the camera left and came back, where the sides differ."""
    from revisit.core.text import count_and_noun

    for coverage in coverages:
        differs = coverage.delivered[0] != coverage.delivered[1] or coverage.asked[0] != coverage.asked[1]
        sentences = [coverage.delivery_text] if differs else []
        if coverage.posed is not None and coverage.posed[0] != coverage.posed[1]:
            sentences.append(
                f"the camera of {coverage.second} looked away and came back on "
                f"{count_and_noun(coverage.posed[1], 'clip')}, that of {coverage.first} on {coverage.posed[0]}"
            )
        sentences += filter(None, [coverage.collapse_text, coverage.collapse_untested, coverage.seeds_text])
        if sentences:
            console.print_to_stderr("; ".join(sentences))


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
    from revisit.core import UsageError
    from revisit.report.plots import trend_svg
    from revisit.results import trend as trends
    from revisit.results.display import score_title
    from revisit.runs import comparability

    sides = comparability.read_sides(what)
    if len(sides) < 2:
        raise UsageError("a trend needs at least two runs or models")
    labels, ordered = map(list, zip(*comparability.order_sides(sides, by), strict=True))
    metrics = _select_metrics(metric, ordered) or comparability.ranking_score_ids(
        ordered, comparability.question_metrics_of_run(ordered[0].facts)
    )
    reasons = [comparability.reasons_not_to_compare(ordered[0], side, metrics) for side in ordered[1:]]
    refused = {id: why for some in reasons for id, why in some.items()}
    comparable = [id for id in metrics if id not in refused]
    if not comparable:
        raise UsageError(f"these runs cannot be put on one curve: {'; '.join(sorted(set(refused.values())))}")
    points = [side.entry for side in ordered]
    curves, coverage = trends.score_trends(points, comparable), trends.coverage_of_points(points)
    choices = trends.choose_checkpoints(points, comparable, labels)
    if json:
        facts = {"points": labels, "metrics": [curve.as_json() for curve in curves], "refused": refused}
        chosen = [choice.as_json() for choice in choices]
        console.print_json({**facts, "coverage": [asdict(point) for point in coverage], "choices": chosen})
    else:
        _print_trend(labels, curves, coverage, choices, refused)
    if not trends.has_scores_or_coverage_change(curves, coverage):
        names = ", ".join(score_title(curve.metric) for curve in curves)
        unwritten = f"; {out} was not written" if out else ""
        lacking = f"no clip has a score of {names} at every point, and coverage does not change{unwritten}"
        raise UsageError(f"there is no trend: {lacking}")
    if out is not None:
        out.write_text(trend_svg(curves, labels, coverage), encoding="utf-8")
        console.print_to_stderr(f"plot: {out}")


def _print_trend(
    labels: list[str],
    curves: list[Trend],
    coverage: list[PointCoverage],
    choices: list[CheckpointChoice],
    refused: dict[str, str],
) -> None:
    """Print coverage and scores of each point, what the curves say, and which point to keep."""
    from revisit.core.grouping import group_items
    from revisit.core.text import join_names
    from revisit.results import trend as trends
    from revisit.results.display import NOTHING, cell_text, score_title, score_title_with_arrow

    scored = [curve for curve in curves if curve.cells]
    mean = "mean [95 %] (common/scored)" if scored else ""
    heads = [mean, "clips", "came back", *(score_title_with_arrow(curve.metric) for curve in scored)]
    rows = [
        [
            label,
            f"{point.delivered} of {point.asked}",
            NOTHING if point.returned is None else f"{point.returned} of {point.delivered}",
            *(cell_text(curve.cells[k]) for curve in scored),
        ]
        for k, (label, point) in enumerate(zip(labels, coverage, strict=True))
    ]
    console.print_table(heads, rows, numbers=True)
    sentences = [trends.lacking_clips_sentence(labels, coverage), trends.common_clips_sentence(curves)]
    console.print_to_stderr(*filter(None, sentences))
    if sentence := trends.coverage_sentence(coverage):
        console.print_to_stderr(f"Camera: {sentence}")
    console.print_to_stderr(*(f"{score_title(curve.metric)}: {curve.sentence}" for curve in scored))
    if unscored := [curve for curve in curves if not curve.cells]:
        titles = join_names([score_title(curve.metric) for curve in unscored])
        console.print_to_stderr(f"{titles}: {unscored[0].sentence}")
    _print_choices(choices)
    for sentence, ids in sorted(group_items(refused, refused.__getitem__).items()):
        console.print_to_stderr(f"not followed: {', '.join(ids)}: {sentence}")


def _print_choices(choices: list[CheckpointChoice]) -> None:
    """Print which checkpoint to keep by the first score, the verdict's foremost, and what other scores say of that."""
    from revisit.core.text import join_names

    for first in choices[:1]:
        agreeing = [choice for choice in choices[1:] if choice.decided_best == first.decided_best is not None]
        titles = join_names([choice.title for choice in agreeing])
        sentences = [first.progress_sentence, f"{first.decided_best} is also best by {titles}" if agreeing else ""]
        sentences += [f"by {choice.title}: {choice.sentence}" for choice in choices[1:] if choice not in agreeing]
        console.print_to_stderr(f"which to keep, by {first.title}: {first.sentence}")
        console.print_to_stderr(*(f"  {sentence}" for sentence in sentences if sentence))
