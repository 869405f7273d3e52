"""The verdict as the page shows it: an answer per question, drawn on one scale with the truth as its ceiling."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from revisit.core import METRICS
from revisit.report import plots
from revisit.results import Cell
from revisit.results.display import coverage, ends, metric_title, number, unscored
from revisit.results.funnel import count_testable
from revisit.results.question_ranking import Place, QuestionRanking
from revisit.results.verdict import Verdict
from revisit.web.templates import Context

QUESTION = "Which model remembers best?"
ROWS = 9  # models drawn in a card; the table has all of them


def verdict_view(verdict: Verdict, summary: Mapping[str, Any], floors: Collection[str] = ()) -> Context:
    """The first screen and the table below it; `floors` are baselines without memory."""
    verdict = replace(verdict, answers=tuple(_ties_broken(answer, verdict.answers) for answer in verdict.answers))
    answered = [answer for answer in verdict.answers if answer.metric]
    low = [
        f"{metric_title(metric)} ({n} {'clip' if n == 1 else 'clips'})" for metric, n in verdict.low_ceilings.items()
    ]
    return {
        "question": QUESTION,
        "overall": verdict.overall,
        "headline": _headline(verdict),
        "notes": [*verdict.trade_offs, *([f"the truth itself scores low in {', '.join(low)}"] if low else [])],
        "answers": [_card(answer, floors, _ceiling(summary)) for answer in verdict.answers],
        "table": _table(answered, summary, floors),
    }


def _ties_broken(answer: QuestionRanking, answers: Sequence[QuestionRanking]) -> QuestionRanking:
    """The same answer; models that share a rank stand as the other questions of memory rank them."""
    memory_answers = [other for other in answers if other is not answer and other.question.memory]

    def elsewhere(place: Place) -> float:
        ranks = [p.rank if p.model == place.model else 0 for other in memory_answers for p in other.places]
        positive = [rank for rank in ranks if rank]
        return sum(positive) / len(positive) if positive else len(answer.places)

    return replace(answer, places=tuple(sorted(answer.places, key=lambda place: (place.rank, elsewhere(place)))))


def _headline(verdict: Verdict) -> str:
    if verdict.overall:
        return " is ahead"
    models = {place.model for answer in verdict.answers for place in answer.places}
    if len(models) == 1:
        return "One model: nothing to compare it with"
    sentence = verdict.sentence or "Nothing could be compared"
    return f"{sentence[:1].upper()}{sentence[1:]}"


def _ceiling(summary: Mapping[str, Any]) -> str:
    return str((summary.get("truth") or {}).get("name", "truth"))


def _card(answer: QuestionRanking, floors: Collection[str], truth: str) -> Context:
    """One question: who leads and how sure that is, and every model as a dot with its interval."""
    state, lead = _lead(answer)
    card: Context = {
        "ask": answer.question.ask,
        "memory": answer.question.memory,
        "state": state,
        "lead": lead,
        "sentence": replace(answer, left_out={}).sentence,
        "clips": answer.clips,
        "rows": [],
        "more": max(0, len(answer.places) - ROWS),
        "left_out": [f"{model} {n} of {of}" for model, (n, of) in answer.left_out.items()],
        "rarely": "scored too rarely" if any(n for n, _ in answer.left_out.values()) else "never scored",
    }
    if not answer.metric or not answer.places:
        return card
    scale = _scale(answer)
    ceiling = answer.truth.mean if answer.truth else None
    cells_by_model = {place.model: place.cell for place in answer.places[:ROWS]}
    card["rows"] = [
        {
            "model": model,
            "best": model in answer.best,
            "floor": model in floors,
            "text": number(cell.mean),
            "interval": ends(cell.interval) if cell.interval else "no interval",
            "plot": plots.dot(cell.mean, cell.interval, scale, ceiling),
        }
        for model, cell in [*cells_by_model.items(), *answer.floors.items()]
    ]
    if answer.truth is not None and ceiling is not None:
        dot = plots.dot(ceiling, None, scale, ceiling, "truth")
        card["truth"] = {"name": truth, "text": number(ceiling), "plot": dot}
    card |= {"metric": _shown(answer), "id": answer.metric}
    card |= {"worst": number(scale[0]), "best_end": number(scale[1])}
    return card


def _lead(answer: QuestionRanking) -> tuple[str, list[str]]:
    """How sure the answer is, and the names in front: `sure`, `alike`, `open`, `alone` or `silent`."""
    if not answer.places:
        return "silent", []
    if len(answer.places) == 1:
        return "alone", [answer.places[0].model]
    best = list(answer.best)
    if len(best) == 1:
        return "sure", best
    first = best[0]
    pairs = [answer.pair(first, other) for other in best[1:]]
    all_tied = all(pair is not None and not pair.wins and not pair.losses for pair in pairs)
    return ("alike" if all_tied else "open"), best


def _scale(answer: QuestionRanking) -> tuple[float, float]:
    """The worst and the best end of the metric's range; of what was measured, where the range has no end."""
    metric = METRICS[answer.metric]
    cells = [place.cell for place in answer.places] + ([answer.truth] if answer.truth else [])
    cells += list(answer.floors.values())
    values = [v for cell in cells for v in (cell.mean, *(cell.interval or ())) if v is not None]
    low = min(values, default=0.0) if metric.range[0] is None else metric.range[0]
    high = max(values, default=1.0) if metric.range[1] is None else metric.range[1]
    return (high, low) if metric.higher_is_better is False else (low, high)


def _table(answers: list[QuestionRanking], summary: Mapping[str, Any], floors: Collection[str]) -> Context:
    """Models by question: mean, interval, coverage and place; ordered as the first question ranks them."""
    models = summary.get("models", {})
    order = [place.model for answer in answers for place in answer.places]
    names = [name for name in dict.fromkeys([*order, *models]) if name in models]
    rows: list[Context] = []
    for name in names:
        count = count_testable(models[name].get("funnel", ()))
        cells = [_cell(answer, name, models[name].get("scores", {})) for answer in answers]
        testable = f"{count[0]} of {count[1]}" if count else "not asked"
        rows.append({"model": name, "floor": name in floors, "posed": testable, "cells": cells})
    truths = [_numbers(answer.truth) if answer.truth else None for answer in answers]
    return {
        "heads": [{"ask": a.question.ask, "title": _shown(a), "id": a.metric, "clips": a.clips} for a in answers],
        "rows": rows,
        "truth": truths if any(truths) else None,
        "truth_name": _ceiling(summary),
    }


def _cell(answer: QuestionRanking, model: str, scores: Mapping[str, Any]) -> Context:
    place: Place | None = next((place for place in answer.places if place.model == model), None)
    if place is not None:
        span = str(place.low) if place.low == place.high else f"{place.low}–{place.high}"
        return {**_numbers(place.cell), "place": span, "best": answer.best == (model,)}
    content = scores.get(answer.metric)
    own = Cell.from_json(content) if content else Cell(0, 0)
    return {**_numbers(own), "place": "", "best": False}


def _numbers(cell: Cell) -> Context:
    return {
        "text": number(cell.mean),
        "interval": ends(cell.interval) if cell.interval else "",
        "coverage": coverage(cell),
        "missing": unscored(cell),
    }


def _shown(answer: QuestionRanking) -> str:
    """What the scores are, in words: of a metric that an unchanged look would win, how near they are to the truth's."""
    return f"Near the truth: {metric_title(answer.metric)}" if answer.near_truth else metric_title(answer.metric)
