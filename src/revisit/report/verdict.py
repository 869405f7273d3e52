"""The verdict as the page shows it: an answer per question, drawn on one scale with the truth as its ceiling."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from revisit.core import METRICS
from revisit.core.text import pluralize
from revisit.report import plots
from revisit.results import Cell
from revisit.results.display import coverage_text, interval_ends_text, metric_title, number, unscored_lines
from revisit.results.look_away_counts import ASK, WHERE, LookAwayCount, LookAwayCounts
from revisit.results.question_ranking import Place, QuestionRanking
from revisit.results.verdict import Verdict
from revisit.web.templates import Context

QUESTION = "Which model remembers best?"
ROWS = 9  # models drawn in a card; the table has all of them
LOOKS_AWAY = (
    "Looks away: the camera's motion takes a quarter of the first view, or the target's place, out of the frame"
)


def verdict_view(verdict: Verdict, summary: Mapping[str, Any], floors: Collection[str] = ()) -> Context:
    """The first screen and the table below it; `floors` are baselines without memory."""
    verdict = replace(verdict, answers=tuple(_break_ties(answer, verdict.answers) for answer in verdict.answers))
    answered = [answer for answer in verdict.answers if answer.metric]
    low = [
        f"{metric_title(metric)} ({n} {'clip' if n == 1 else 'clips'})" for metric, n in verdict.low_ceilings.items()
    ]
    repeats = [f"{answer.question.ask} {_capitalized(answer.reason)}" for answer in verdict.answers if answer.same_as]
    return {
        "question": QUESTION,
        "headline": _headline(verdict),
        "details": [_capitalized(text) for text in verdict.details],
        "look_away": None if verdict.look_away is None else _look_away_card(verdict.look_away),
        "notes": [
            *repeats,
            *verdict.trade_offs,
            *([f"the truth itself scores low in {', '.join(low)}"] if low else []),
        ],
        "answers": [
            _question_card(answer, floors, _ceiling(summary)) for answer in verdict.answers if not answer.same_as
        ],
        "table": _table(answered, summary, floors, verdict.look_away),
    }


def _break_ties(answer: QuestionRanking, answers: Sequence[QuestionRanking]) -> QuestionRanking:
    """The same answer; models that share a rank stand as the other questions of memory rank them."""
    memory_answers = [other for other in answers if other is not answer and other.question.memory]

    def elsewhere(place: Place) -> float:
        ranks = [p.rank if p.model == place.model else 0 for other in memory_answers for p in other.places]
        positive = [rank for rank in ranks if rank]
        return sum(positive) / len(positive) if positive else len(answer.places)

    return replace(answer, places=tuple(sorted(answer.places, key=lambda place: (place.rank, elsewhere(place)))))


def _headline(verdict: Verdict) -> str:
    return _capitalized(verdict.headline or "Nothing could be compared")


def _capitalized(text: str) -> str:
    """A sentence with a capital, unless it begins with the name of a model."""
    first = text.split(" ", 1)[0]
    return f"{text[:1].upper()}{text[1:]}" if first in ("no", "none", "all", "see", "the") else text


def _look_away_card(counts: LookAwayCounts) -> Context:
    """The first card: how far the clips of each model get, as bars of counts."""
    rows = [
        {
            "model": count.model,
            "best": bool(count.returned),
            "text": count.text,
            "plot": _look_away_bar(count),
            "tip": _look_away_tip(count),
            "reset": count.reset,
        }
        for count in counts.models
        if count.asked or count.unreadable
    ]
    return {
        "ask": ASK,
        "lead": f"{len(counts.returning)} of {len(counts.asked)}" if rows else "",
        "rows": rows[:ROWS],
        "more": max(0, len(rows) - ROWS),
        "where": WHERE[counts.asked_by] or "that there are",
        "gone": any(count.gone for count in counts.models),
        "neither": any(count.neither for count in counts.models),
        "unread": any(count.unreadable for count in counts.models),
        "unclear": any(count.unclear for count in counts.models),
        "sentence": "" if rows else counts.sentence,
        "term": LOOKS_AWAY,
    }


def _look_away_bar(count: LookAwayCount) -> Markup:
    kinds = {
        "back": count.returned - count.reset - count.gone - count.neither,
        "neither": count.neither,
        "lost": count.gone,
        "reset": count.reset,
        "away": count.left - count.returned,
        "unclear": count.unclear,
    }
    kinds["stayed"] = count.asked - sum(kinds.values())
    kinds["unread"] = count.unreadable
    return plots.stacked_bar([(kind, n) for kind, n in kinds.items() if n > 0], height=12)


def _look_away_tip(count: LookAwayCount) -> str:
    parts = [f"moves on {count.moved}", f"looks away on {count.left}", f"comes back on {count.returned}"]
    parts += [f"to neither the first state nor the true one on {count.neither}"] if count.neither else []
    parts += (
        [f"with or without the target, which is unclear, on {count.target_unclear}"] if count.target_unclear else []
    )
    parts += [f"without the target on {count.gone}"] if count.gone else []
    parts += [f"to a world that is reset on {count.reset}"] if count.reset else []
    parts += [f"unclear on {count.unclear}"] if count.unclear else []
    counts = [f"{', '.join(parts)}, of {pluralize(count.asked, 'clip')}"] if count.asked else []
    counts += [f"{pluralize(count.unreadable, 'clip')} could not be read"] if count.unreadable else []
    return "; ".join(counts)


def _ceiling(summary: Mapping[str, Any]) -> str:
    return str((summary.get("truth") or {}).get("name", "truth"))


def _question_card(answer: QuestionRanking, floors: Collection[str], truth: str) -> Context:
    """One question: who leads and how sure that is, and every model as a dot with its interval."""
    state, lead = _leaders(answer)
    card: Context = {
        "ask": answer.question.ask,
        "memory": answer.question.memory,
        "state": state,
        "lead": lead,
        "sentence": replace(answer, left_out={}).sentence,
        "clips": sum(place.cell.n for place in answer.places),
        "rows": [],
        "more": max(0, len(answer.places) - ROWS),
        "left_out": [
            f"{model}: {n} of {of} clips" + (f", {answer.reasons[model]}" if answer.reasons.get(model) else "")
            for model, (n, of) in answer.left_out.items()
        ],
        "rarely": "with too few clips" if any(n for n, _ in answer.left_out.values()) else "without a score",
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
            "interval": interval_ends_text(cell.interval) if cell.interval else "no interval",
            "plot": plots.dot_plot(cell.mean, cell.interval, scale, ceiling),
        }
        for model, cell in [*cells_by_model.items(), *answer.floors.items()]
    ]
    if answer.truth is not None and ceiling is not None:
        dot = plots.dot_plot(ceiling, None, scale, ceiling, "truth")
        card["truth"] = {"name": truth, "text": number(ceiling), "plot": dot}
    card |= {"metric": _score_title(answer), "id": answer.metric}
    card |= {"worst": number(scale[0]), "best_end": number(scale[1])}
    return card


def _leaders(answer: QuestionRanking) -> tuple[str, list[str]]:
    """How sure the answer is, and the names in front: `sure`, `alike`, `few`, `ahead`, `open`, `alone` or `silent`."""
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
    if not all_tied and all(pair.p is None for pair in answer.pairs):
        return "few", best
    if all_tied:
        return "alike", best
    return ("ahead" if len(best) < len(answer.places) else "open"), best


def _scale(answer: QuestionRanking) -> tuple[float, float]:
    """The worst and the best end of the metric's range; of what was measured, where the range has no end."""
    metric = METRICS[answer.metric]
    cells = [place.cell for place in answer.places] + ([answer.truth] if answer.truth else [])
    cells += list(answer.floors.values())
    values = [v for cell in cells for v in (cell.mean, *(cell.interval or ())) if v is not None]
    low = min(values, default=0.0) if metric.range[0] is None else metric.range[0]
    high = max(values, default=1.0) if metric.range[1] is None else metric.range[1]
    return (high, low) if metric.higher_is_better is False else (low, high)


def _table(
    answers: list[QuestionRanking],
    summary: Mapping[str, Any],
    floors: Collection[str],
    counts: LookAwayCounts | None,
) -> Context:
    """Models by question: mean, interval, coverage and place; ordered as the first question ranks them."""
    models = summary.get("models", {})
    order = [place.model for answer in answers for place in answer.places]
    names = [name for name in dict.fromkeys([*order, *models]) if name in models]
    rows: list[Context] = []
    for name in names:
        count = None if counts is None else counts.of(name)
        away = (
            {"text": count.text, "tip": _look_away_tip(count)}
            if count is not None and (count.asked or count.unreadable)
            else None
        )
        cells = [_cell(answer, name) for answer in answers]
        rows.append({"model": name, "floor": name in floors, "look_away": away, "cells": cells})
    truths = [_cell_texts(answer.truth) if answer.truth else None for answer in answers]
    return {
        "heads": [{"ask": a.question.ask, "title": _score_title(a), "id": a.metric, "clips": a.clips} for a in answers],
        "rows": rows,
        "look_away": ASK if counts is not None else "",
        "term": LOOKS_AWAY,
        "truth": truths if any(truths) else None,
        "truth_name": _ceiling(summary),
    }


def _cell(answer: QuestionRanking, model: str) -> Context:
    place: Place | None = next((place for place in answer.places if place.model == model), None)
    if place is not None:
        span = str(place.low) if place.low == place.high else f"{place.low}–{place.high}"
        fewer = place.common is not None and place.common.n < place.cell.n
        common = (
            f"{number(place.common.mean)} on {pluralize(answer.clips, 'clip')} of all" if fewer and place.common else ""
        )
        return {**_cell_texts(place.cell), "place": span, "best": answer.best == (model,), "common": common}
    own = answer.unranked.get(model) or answer.floors.get(model) or Cell(0, 0)
    return {**_cell_texts(own), "place": "", "best": False, "common": ""}


def _cell_texts(cell: Cell) -> Context:
    return {
        "text": number(cell.mean),
        "interval": interval_ends_text(cell.interval) if cell.interval else "",
        "coverage": coverage_text(cell),
        "missing": unscored_lines(cell),
    }


def _score_title(answer: QuestionRanking) -> str:
    """What the scores are, in words."""
    return metric_title(answer.score or answer.metric)
