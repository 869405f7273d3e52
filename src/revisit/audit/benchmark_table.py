"""The scorers' table: for each published measure, what it gives models with known faults, and whether that is right.

The unit is a world: scores of a model are means over the films of a world, and every model is compared with the perfect
one in the same worlds. Of each model that a measure is asked about, the table says one of four things.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

import revisit
from revisit.audit.benchmark_trials import MODELS, PERFECT, WorldScores, versions
from revisit.core import METRICS, SUITES
from revisit.results.display import number
from revisit.stats.intervals import mean_interval

WORSE, SAME, BETTER, ABSTAINS = "worse", "same", "better", "not scored"
WORDS = {
    WORSE: "scores worse than the perfect model",
    SAME: "cannot be told from the perfect model",
    BETTER: "scores better than the perfect model",
    ABSTAINS: "is not scored in half of the worlds or more",
}
# A measure of memory is not asked whose camera obeys, and one of control not what becomes of the target.
ASKED = {
    "memory": ("frozen_camera", "partial_return", "state_reset", "vanish", "constant", "noise"),
    "control": ("frozen_camera", "opposite_camera", "partial_return", "constant", "noise"),
}
EQUAL = 1e-9


class TrialCell(TypedDict):
    """What a measure gives a model."""

    mean: float | None
    interval: list[float] | None  # 95 %, over worlds
    worlds: int  # with a score
    difference: list[float] | None  # perfect minus this model, so that above 0 is right: mean, and interval over worlds
    verdict: str  # "" where the measure is not asked about this model
    why: str  # the kind of reason where it is not scored


class MeasureRow(TypedDict):
    """A measure under a protocol."""

    suite: str
    benchmark: str
    measure: str
    title: str
    version: int
    kind: str  # memory or control
    protocol: str
    published: bool  # the protocol that computes what was published
    higher_is_better: bool
    cells: dict[str, TrialCell]
    perfect_first: bool | None  # None where the perfect model has no score
    stand_in: str  # who measured in the place of the published network; empty where nobody did


class ScorersContent(TypedDict):
    """The content of benchmarks.json."""

    revisit: str
    worlds: int
    set: str
    size: list[int]
    frames: int
    rows: list[MeasureRow]


def make_table(
    scores: Mapping[str, Sequence[WorldScores]], *, set: str, size: tuple[int, int], frames: int
) -> ScorersContent:
    """The table of the scores of all worlds."""
    rows = []
    for suite_id, worlds in scores.items():
        suite = SUITES[suite_id]
        for kind in ASKED:
            for metric in (metric for metric, of in suite.measures.items() if of == kind):
                for protocol in worlds[0]:
                    rows.append(_row(suite_id, metric, kind, protocol, worlds))
    count = max(map(len, scores.values()))
    return {
        "revisit": revisit.__version__, "worlds": count, "set": set, "size": list(size), "frames": frames, "rows": rows,
    }  # fmt: skip


def _row(suite_id: str, metric: str, kind: str, protocol: str, worlds: Sequence[WorldScores]) -> MeasureRow:
    suite, card = SUITES[suite_id], METRICS[metric]
    higher = card.higher_is_better is not False
    values = {model: [world[protocol][metric][model]["mean"] for world in worlds] for model in MODELS}
    reasons = {model: [world[protocol][metric][model]["why"] for world in worlds] for model in MODELS}
    # A fault that no film of the measure's cases can show was not tried: a state is not reset where nothing happens.
    tried = {model: any(world[protocol][metric][model]["of"] for world in worlds) for model in MODELS}
    cells = {
        model: _cell(values[model], values[PERFECT], reasons[model], higher, tried[model] and model in ASKED[kind])
        for model in MODELS
    }
    verdicts = [cell["verdict"] for cell in cells.values() if cell["verdict"]]
    scored = cells[PERFECT]["worlds"] > 0
    first = all(verdict in (WORSE, ABSTAINS) for verdict in verdicts) if scored else None
    return {
        "suite": suite_id, "benchmark": suite.title, "measure": metric, "title": card.title,
        "version": versions(suite)[metric], "kind": kind, "protocol": protocol,
        "published": protocol == suite.published_protocol, "higher_is_better": higher, "cells": cells,
        "perfect_first": first, "stand_in": worlds[0][protocol][metric][PERFECT]["stand_in"],
    }  # fmt: skip


def _cell(
    values: Sequence[float | None], perfect: Sequence[float | None], reasons: Sequence[str], higher: bool, asked: bool
) -> TrialCell:
    known = [value for value in values if value is not None]
    pairs = [(best, value) for best, value in zip(perfect, values, strict=True) if None not in (best, value)]
    differences = [(best - value) * (1 if higher else -1) for best, value in pairs]  # type: ignore[operator]
    interval = mean_interval(known, list(range(len(known)))) if len(known) > 1 else None
    spread = _difference(differences)
    posed = sum(value is not None for value in perfect)
    verdict = ""
    if asked and posed:
        verdict = ABSTAINS if 2 * len(differences) < posed or spread is None else _verdict(spread)
    why = [reason for reason in reasons if reason]
    return {
        "mean": sum(known) / len(known) if known else None,
        "interval": None if interval is None else list(interval),
        "worlds": len(known),
        "difference": spread,
        "verdict": verdict,
        "why": max(why, key=why.count) if why else "",
    }


def _difference(differences: Sequence[float]) -> list[float] | None:
    """Mean difference with its interval; of differences that are all alike, the interval is that number."""
    if not differences:
        return None
    middle = sum(differences) / len(differences)
    if max(differences) - min(differences) < EQUAL or len(differences) == 1:
        return [middle, middle, middle]
    interval = mean_interval(differences, list(range(len(differences))))
    return [middle, *(interval or (middle, middle))]


def _verdict(difference: Sequence[float]) -> str:
    _, low, high = difference
    return WORSE if low > EQUAL else BETTER if high < -EQUAL else SAME


def as_text(content: ScorersContent) -> str:
    """The table for a terminal: a line per measure and protocol."""
    lines = [f"{content['worlds']} worlds, observers {content['set']}; perfect model first?"]
    for row in content["rows"]:
        if row["perfect_first"] is None:
            told = f"no score ({row['cells'][PERFECT]['why'] or 'not asked'})"
        else:
            wrong = [MODELS[model] for model, cell in row["cells"].items() if cell["verdict"] in (SAME, BETTER)]
            told = "yes" if row["perfect_first"] else f"no: {', '.join(wrong)}"
        lines.append(f"{row['benchmark']:<10} {row['protocol']:<10} {row['title']:<28} {told}")
    return "\n".join(lines)


def rounded(value: object) -> object:
    """The table with four digits, as it is kept for the documentation."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, Mapping):
        return {name: rounded(item) for name, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list | tuple) else value


def markdown(content: ScorersContent) -> str:
    """The table with intervals over worlds; in bold what is no worse than the perfect model."""
    head = ["benchmark", "measure", "protocol", "perfect first?", *MODELS.values()]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in content["rows"]:
        arrow = "↑" if row["higher_is_better"] else "↓"
        first = "no score" if row["perfect_first"] is None else "yes" if row["perfect_first"] else "**no**"
        cells = [cell_text(cell) for cell in row["cells"].values()]
        lines.append(
            f"| {' | '.join([row['benchmark'], row['title'] + ' ' + arrow, row['protocol'], first, *cells])} |"
        )
    return "\n".join(lines)


def cell_text(cell: TrialCell) -> str:
    """A score with its interval; a dash where there is none."""
    if cell["mean"] is None:
        return "–"
    text = number(cell["mean"])
    if cell["interval"] is not None:
        low, high = (number(end, cell["mean"]) for end in cell["interval"])
        text += f" [{low}, {high}]"
    return f"**{text}**" if cell["verdict"] in (SAME, BETTER) else text
