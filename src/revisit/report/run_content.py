"""What pages draw from: the answers of a run, cards of its metrics, titles of its gates, videos and pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from revisit.core import GATES, OBSERVERS, Case, Clip, evidence_id
from revisit.engine.cache import EvidenceCache
from revisit.engine.run_summary import CurrentResults
from revisit.report.videos import FilmStrip, Videos, load_film_strip
from revisit.results.ceilings import held_to_truth
from revisit.results.display import HEADINGS, direction_arrow, stand_in_suffix_text, table_heading_of_score
from revisit.results.file_types import CaseEntry
from revisit.results.results import Results
from revisit.results.run import Run
from revisit.results.score_names import find_metric_of_score

DIRECTIONS = {True: "higher is better", False: "lower is better", None: "describes, neither good nor bad"}


class RunContent:
    """A run, with what the pages of its clips show of it."""

    def __init__(self, run: Run, state: CurrentResults, videos: Videos) -> None:
        self.run, self.videos = run, videos
        self.results, self.summary, self.diagnoses = state.results, state.summary, state.diagnosis.get("cases", {})
        self.facts, self.plan = run.facts, run.plan
        self.planned = {entry["id"]: entry for entry in self.plan["cases"]}
        self.cache = EvidenceCache(Path(self.facts["cache"]))
        self._evidence = _evidence_keys_by_path(self.plan["cases"])
        self.cards = metric_cards(self.summary, self.facts)
        self.gates = gate_titles(self.plan)

    @cached_property
    def held_results(self) -> Results:
        """The same answers with the scores that count: held to the truth."""
        return held_to_truth(self.results)

    def film_strip_of(self, clip: Clip) -> FilmStrip | None:
        return load_film_strip(self._evidence.get(str(clip.path), {}), self.cache)


def _evidence_keys_by_path(planned: Iterable[CaseEntry]) -> dict[str, Mapping[str, str]]:
    """Path of a clip or reference -> keys of the evidence there is of it."""
    references = {e["reference"]["path"]: e.get("reference_evidence", {}) for e in planned if e["reference"]}
    return {**references, **{entry["clip"]["path"]: entry.get("evidence", {}) for entry in planned}}


def metric_cards(summary: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """A card per metric of the summary, in the order of the table; what is not installed here says so."""
    observers = facts["protocol"]["observers"]
    cards: dict[str, dict[str, Any]] = {}
    for metric_id, column in summary.get("metrics", {}).items():
        metric = find_metric_of_score(metric_id)
        description = metric.description if metric else "The code of this metric is not installed here."
        needs = ["case" if kind is Case else evidence_id(kind) for kind in metric.needs] if metric else []
        cards[metric_id] = {
            "id": metric_id,
            "group": table_heading_of_score(metric_id),
            "title": column["title"] + stand_in_suffix_text(column),
            **{name: column[name] for name in ("unit", "range", "version", "higher_is_better")},
            "protocol": ", ".join(column["protocol"]),
            "arrow": direction_arrow(column["higher_is_better"]),
            "direction": DIRECTIONS[column["higher_is_better"]],
            "span": range_text(column["range"]),
            # Values that end at 1 read as parts of a whole, and can be drawn as a bar.
            "bounded": column["range"][0] is not None and column["range"][1] == 1,
            # A docstring without the line breaks that only fit it into the source.
            "description": [" ".join(paragraph.split()) for paragraph in description.split("\n\n")],
            "needs": needs,
            **{name: list(getattr(metric, name, ())) for name in ("gates", "responds_to", "blind_to")},
            "gate_titles": [GATES[gate].title for gate in metric.gates if gate in GATES] if metric else [],
            "paper": metric.paper if metric else "",
            "against_reference": any(_is_reference_comparison(observers.get(need)) for need in needs),
            "sampling": [f"{need}: {observers[need]['frames']}" for need in needs if need in observers],
        }
    return dict(sorted(cards.items(), key=lambda item: HEADINGS.index(item[1]["group"])))


def range_text(limits: Sequence[float | None]) -> str:
    """A range in words: 0 to 1, 0 and more."""
    low, high = limits
    if low is None and high is None:
        return "any number"
    if high is None:
        return f"{low:g} and more"
    return f"up to {high:g}" if low is None else f"{low:g} to {high:g}"


def _is_reference_comparison(observer: Mapping[str, Any] | None) -> bool:
    """Whether this observer compares a clip with its reference, so that `other` is a frame of the reference."""
    return observer is not None and observer["observer"] in OBSERVERS and OBSERVERS[observer["observer"]].pairs


def gate_titles(plan: Mapping[str, Any]) -> dict[str, str]:
    """Titles of the gates of a plan, by id."""
    return {gate: GATES[gate].title if gate in GATES else gate.replace("_", " ") for gate in plan["gates"]}
