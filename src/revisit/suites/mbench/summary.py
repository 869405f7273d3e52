"""Results → tables: dimensions by model on condition that the test is posed, with axes, total and rank.

Setting T: reliability, coverage and M-Score. Setting A: reliability alone, over clips whose camera moved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from revisit.core.cases import FLOOR
from revisit.results import Cell, Results
from revisit.results.file_types import Stage
from revisit.results.funnel import stage
from revisit.results.tables import Table, standard_summary, table
from revisit.suites.mbench.names import AXES, BY_ID, DIMENSIONS, SUBSETS, Dimension, upstream_name
from revisit.suites.mbench.ranking import COLUMNS, contribution, ranking
from revisit.suites.mbench.records import Answers, answers_of
from revisit.suites.mbench.scoring import Standing

NOTES = {
    "trigger": "M-Score x 100; intervals come from unknown triggers",
    "camera": "mean x 100 over clips whose camera moved (action: over all clips); setting A has no M-Score",
    "all": "mean x 100 over all scored clips, whether they pose the test or not",
}


def summarise(results: Results) -> dict[str, Any]:
    """The tables of the suite."""
    answers = answers_of(results)
    asked = [dimension for dimension in answers.asked() if results.lacking(dimension.id) is None]
    standings = {d.id: {model: answers.standing(model, d) for model in answers.models} for d in asked}
    ranked = ranking(answers, asked, standings)
    parts = {subset or "unknown subset": answers.counted.where(subset=subset) for subset in (*SUBSETS, "")}
    return {
        **standard_summary(
            answers.counted,
            cell=partial(_cell, answers),
            funnel=partial(_funnel, answers),
            parts=parts,
            noun="video",
        ),
        "sentences": _sentences(answers, ranked),
        "tables": _tables(answers, asked, standings, ranked),
        "mbench": {
            "setting": answers.setting,
            "rule": answers.rule,
            "dimensions": {
                d.id: {
                    "upstream": upstream_name(d, answers.setting),
                    "models": {
                        model: {**asdict(made), "m_score": made.m_score} for model, made in standings[d.id].items()
                    },
                }
                for d in asked
            },
            "ranking": ranked,
        },
    }


def _cell(answers: Answers, part: Results, id: str) -> Cell:
    """Reliability under a metric: the mean over the items that count.

    Where items count whether they pose the test or not, there is no interval: nothing may be called best then.
    """
    cell = part.cell(id)
    return replace(cell, interval=None) if answers.rule == "all" else cell


def _tables(
    answers: Answers,
    asked: Sequence[Dimension],
    standings: Mapping[str, Mapping[str, Standing]],
    ranked: Sequence[Mapping[str, Any]],
) -> list[Table]:
    order = [row["model"] for row in ranked]
    tables = []
    if asked and answers.rule == "trigger":
        for title, which in (("Reliability S", "reliability_interval"), ("Coverage C", "coverage")):
            by_model = [(m, [standings[d.id][m] for d in asked]) for m in order]
            rows = [(m, [_percent(one, getattr(one, which)) for one in made]) for m, made in by_model]
            tables.append(table(title, "x 100; intervals come from unknown triggers", [d.short for d in asked], rows))
    if asked:
        rows = []
        for row in ranked:
            made = [standings[d.id][row["model"]] for d in asked]
            cells = [_percent(one, contribution(one, answers.rule)) for one in made]
            counts = [_counted(axis, answers.setting, asked, row["left_out"]) for axis in AXES]
            counts.append({key: sum(count[key] for count in counts) for key in ("n", "of")})
            sums = [{**count, **_mean_and_interval(row[name])} for count, name in zip(counts, COLUMNS, strict=True)]
            name = row["model"] if row["rank"] is None else f"{row['rank']}. {row['model']}"
            name += f" ({FLOOR})" if row["floor"] else ""
            rows.append((name, [*cells, *sums]))
        title = "M-Score" if answers.rule == "trigger" else "Reliability"
        columns = [*(d.short for d in asked), *(f"{axis} axis" for axis in AXES), "total"]
        tables.append(table(f"{title}, MBench-{answers.setting}", NOTES[answers.rule], columns, rows))
    if answers.rule != "all" and len(ranked) > 1 and any(row["rank"] for row in ranked):
        gate = "the trigger" if answers.setting == "T" else "the camera gate"
        rows = [(row["model"], _beside(row)) for row in ranked]
        note = f"x 100; without: mean over all scored clips; up: ranks gained by {gate}"
        columns = ["total with", "rank with", "total without", "rank without", "up"]
        tables.append(table(f"Ranks with and without {gate}", note, columns, rows))
    return tables


def _beside(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The cells of a model in the table of ranks; a model that is not ranked has a dash."""
    rank, other = row["rank"], row["ungated"]["rank"]
    up = None if None in (rank, other) else other - rank
    without = row["ungated"]["total"]
    totals = [_mean_and_interval(row["order"]) if rank else {}, {} if without is None else {"mean": without}]
    ranks = [{} if value is None else {"mean": value, "text": str(value)} for value in (rank, other)]
    moved = {} if up is None else {"mean": up, "text": f"{up:+d}" if up else "0"}
    cells = [totals[0], ranks[0], totals[1], ranks[1], moved]
    return [{"n": int(bool(cell)), "of": 1, "interval": None, **cell} for cell in cells]


def _counted(axis: str, setting: str, asked: Sequence[Dimension], left_out: Sequence[str]) -> dict[str, int]:
    """How many dimensions of an axis its mean is over, of those that it has."""
    known = [d for d in asked if d.axis == axis and setting in d.averaged and d.id not in left_out]
    return {"n": len(known), "of": len([d for d in DIMENSIONS if d.axis == axis and setting in d.averaged])}


def _percent(made: Standing, interval: tuple[float, float] | None) -> dict[str, Any]:
    scaled = None if interval is None else [100 * interval[0], 100 * interval[1]]
    return {"n": made.n, "of": made.of, **_mean_and_interval(scaled)}


def _mean_and_interval(interval: Sequence[float] | None) -> dict[str, Any]:
    """The middle of an interval with its ends, or the value alone where they are one."""
    if interval is None:
        return {}
    low, high = interval
    return {"mean": (low + high) / 2, "interval": None if low == high else [low, high]}


def _sentences(answers: Answers, ranked: Sequence[Mapping[str, Any]]) -> list[str]:
    said = []
    expected, found = len(answers.results.entries), len(answers.results.cases)
    if found < expected:
        said.append(f"coverage: {found} of {expected} items have a video that can be used")
    if answers.rule == "all" and answers.setting == "T":
        said.append(
            "no judge was asked which clips pose the test: scores are raw, there is no M-Score, and no model is ranked"
        )
    unknown = sum(verdict is not None and verdict.posed is None for verdict in answers.posed.values())
    if unknown:
        who = "the judge" if answers.setting == "T" else "the camera gate"
        said.append(
            f"for {unknown} clips {who} could not say whether they pose the test; they are left out of all means"
        )
    if ranked and ranked[0]["left_out"] and ranked[0]["rank"]:
        titles = ", ".join(BY_ID[id].title.lower() for id in ranked[0]["left_out"])
        said.append(f"not every model has a value for {titles}: axes and total leave it out")
    if answers.literal and answers.setting == "A":
        for model, mine in answers.models.items():
            verdicts = [answers.posed[case.id] for case in mine.cases]
            still = sum(verdict is not None and verdict.posed is False for verdict in verdicts)
            if still > len(mine.entries) / 2:
                said.append(
                    f"the paper ranks every model: the camera of {model} stays still in {still} of {len(verdicts)} "
                    "clips"
                )
    for row in ranked:
        if row["rank"] is None and not row["floor"] and (answers.rule != "all" or answers.setting == "A"):
            said.append(f"{row['model']} is not ranked: {row['reason']}")
    return said


def _funnel(answers: Answers, part: Results) -> list[Stage]:
    readable = part.readable.cases
    stages = [stage("expected clips", part.entries), stage("all clips", part.cases), stage("readable", readable)]
    gated = any(answers.posed[case.id] is not None for case in part.cases)
    left = [case for case in readable if not gated or ((v := answers.posed[case.id]) is not None and v.posed)]
    if gated:
        stages.append(stage("test posed", left))
    scored = [case for case in left if any(record.scored for record in part.of(case).values())]
    return [*stages, stage("memory scored" if gated else "scored", scored)]
