"""The verdict as the page shows it: an answer per question, drawn on one scale with the truth as its ceiling."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from revisit.core import METRICS
from revisit.core.text import count_and_noun, read_package_yaml
from revisit.results import Cell
from revisit.results.display import number_text, score_title
from revisit.results.look_away_counts import ASK, WHERE, LookAwayCount, LookAwayCounts
from revisit.results.question_ranking import Place, QuestionRanking
from revisit.results.verdict import Verdict
from revisit.web.templates import Context

RARER_RETURNS = read_package_yaml("revisit.report", "rarer_returns.yaml")  # a count of clips -> words before it
ROWS = 9  # models drawn in a card; the table has all of them


def verdict_content(verdict: Verdict, summary: Mapping[str, Any], floors: Collection[str] = ()) -> Context:
    """The first screen and the table below it; `floors` are baselines without memory."""
    answers = [_sort_ties_by_other_questions(answer, verdict.answers) for answer in verdict.answers]
    verdict = replace(verdict, answers=tuple(answers))
    low = [f"{score_title(metric)} ({count_and_noun(n, 'clip')})" for metric, n in verdict.low_ceilings.items()]
    repeats = [
        f"{answer.question.ask} {_capitalize_known_first_word(answer.reason)}" for answer in answers if answer.same_as
    ]
    truth_name = str((summary.get("truth") or {}).get("name", "truth"))
    return {
        "headline": _capitalize_known_first_word(verdict.headline or "Nothing could be compared"),
        "details": [_capitalize_known_first_word(text) for text in verdict.details],
        "look_away": None if verdict.look_away is None else _look_away_card(verdict.look_away),
        "notes": [
            *repeats,
            *verdict.trade_offs,
            *([f"the truth itself scores low in {', '.join(low)}"] if low else []),
        ],
        "answers": [_question_card(answer) for answer in answers if not answer.same_as],
        "table": _models_by_question_table([answer for answer in answers if answer.metric], summary, verdict.look_away),
        "floors": floors,
        "truth_name": truth_name,
    }


def _sort_ties_by_other_questions(answer: QuestionRanking, answers: Sequence[QuestionRanking]) -> QuestionRanking:
    """The same answer; models that share a rank stand as the other questions of memory rank them."""
    memory_answers = [other for other in answers if other is not answer and other.question.memory]

    def mean_rank_in_other_questions(place: Place) -> float:
        ranks = [p.rank for other in memory_answers for p in other.places if p.model == place.model]
        return sum(ranks) / len(ranks) if ranks else len(answer.places)

    places = sorted(answer.places, key=lambda place: (place.rank, mean_rank_in_other_questions(place)))
    return replace(answer, places=tuple(places))


def _capitalize_known_first_word(text: str) -> str:
    """A sentence with a capital, unless it begins with the name of a model."""
    first = text.split(" ", 1)[0]
    return f"{text[:1].upper()}{text[1:]}" if first in ("no", "none", "all", "both", "see", "the") else text


def _look_away_card(counts: LookAwayCounts) -> Context:
    """The first card: how far the clips of each model get, as bars of counts."""
    rows = [
        {"count": count, "parts": _look_away_parts(count), "tip": _look_away_tip(count)}
        for count in counts.models
        if count.asked or count.unreadable
    ]
    return {
        "ask": ASK,
        "counts": counts,
        "rows": rows[:ROWS],
        "more": max(0, len(rows) - ROWS),
        "where": f"the clips {WHERE[counts.asked_by]}" if WHERE[counts.asked_by] else "all clips",
    }


def _look_away_parts(count: LookAwayCount) -> list[tuple[str, int]]:
    """Kinds of clips with how many there are, side by side in the bar of a model; none of those there are none of."""
    kinds = {
        "back": count.returned - count.reset - count.gone - count.neither,
        "neither": count.neither,
        "lost": count.gone,
        "reset": count.reset,
        "away": count.stayed_away,
        "unclear": count.unclear,
    }
    kinds["stayed"] = count.asked - sum(kinds.values())
    kinds["unread"] = count.unreadable
    return [(kind, n) for kind, n in kinds.items() if n > 0]


def _look_away_tip(count: LookAwayCount) -> str:
    parts = [f"moves on {count.moved}", f"looks away on {count.left}", f"comes back on {count.returned}"]
    parts += [f"{words} {n}" for name, words in RARER_RETURNS.items() if (n := getattr(count, name))]
    counts = [f"{', '.join(parts)}, of {count_and_noun(count.asked, 'clip')}"] if count.asked else []
    counts += [f"{count.missing} missing"] if count.missing else []
    counts += [f"{count_and_noun(count.unreadable, 'clip')} could not be read"] if count.unreadable else []
    return "; ".join(counts)


def _question_card(answer: QuestionRanking) -> Context:
    """One question: who leads and how sure that is, and every model as a dot with its interval."""
    state, lead = _certainty_and_leaders(answer)
    card: Context = {
        "answer": answer,
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
    cells = {**{place.model: place.cell for place in answer.places[:ROWS]}, **answer.floors}
    return card | {
        "rows": list(cells.items()),
        "ceiling": answer.truth.mean if answer.truth else None,
        "ends": _axis_ends(answer),
    }


def _certainty_and_leaders(answer: QuestionRanking) -> tuple[str, list[str]]:
    """How sure the answer is, and the names in front: `sure`, `alike`, `few`, `ahead`, `open`, `alone` or `silent`."""
    if not answer.places:
        return "silent", []
    if len(answer.places) == 1:
        return "alone", [answer.places[0].model]
    best = list(answer.best)
    if len(best) == 1:
        return "sure", best
    pairs = [answer.pair_of_models(best[0], other) for other in best[1:]]
    if all(pair is not None and not pair.wins and not pair.losses for pair in pairs):
        return "alike", best
    if all(pair.p is None for pair in answer.pairs):
        return "few", best
    return ("ahead" if len(best) < len(answer.places) else "open"), best


def _axis_ends(answer: QuestionRanking) -> tuple[float, float]:
    """The worst and the best end of the metric's range; of what was measured, where the range has no end."""
    metric = METRICS[answer.metric]
    cells = [place.cell for place in answer.places] + ([answer.truth] if answer.truth else [])
    cells += list(answer.floors.values())
    values = [v for cell in cells for v in (cell.mean, *(cell.interval or ())) if v is not None]
    low = min(values, default=0.0) if metric.range[0] is None else metric.range[0]
    high = max(values, default=1.0) if metric.range[1] is None else metric.range[1]
    return (high, low) if metric.higher_is_better is False else (low, high)


def _models_by_question_table(
    answers: list[QuestionRanking], summary: Mapping[str, Any], counts: LookAwayCounts | None
) -> Context:
    """Models by question: mean, interval, coverage and place; ordered as the first question ranks them."""
    models = summary.get("models", {})
    order = [place.model for answer in answers for place in answer.places]
    rows = []
    for name in dict.fromkeys([*order, *models]):
        if name in models:
            count = None if counts is None else counts.count_of_model(name)
            tip = _look_away_tip(count) if count is not None else ""
            cells = [_model_cell(answer, name) for answer in answers]
            rows.append({"model": name, "count": count, "tip": tip, "cells": cells})
    return {"answers": answers, "rows": rows, "look_away": ASK if counts is not None else ""}


def _model_cell(answer: QuestionRanking, model: str) -> Context:
    place: Place | None = next((place for place in answer.places if place.model == model), None)
    if place is None:
        return {"cell": answer.unranked.get(model) or answer.floors.get(model) or Cell(0, 0), "place": "", "common": ""}
    span = str(place.low) if place.low == place.high else f"{place.low}–{place.high}"
    if place.high - place.low == len(answer.places) - 1:
        span = ""  # of all places, or the only one, nothing is known or to be told
    common = ""
    if place.common is not None and place.common.n < place.cell.n:
        clips = "the one clip" if answer.clips == 1 else f"the {answer.clips} clips"
        common = f"{number_text(place.common.mean)} on {clips} that all models have"
    return {
        "cell": place.cell,
        "place": span,
        "common": common,
        "best": len(answer.places) > 1 and answer.best == (model,),
    }
