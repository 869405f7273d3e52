"""The pages of a run: its clips by scene, each described once, for a page on disk and for one that is served.

A scene is what models can be compared on: one sample under one condition, with the truth where there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from revisit.core import GATES, OBSERVERS, SUITES, Case, Clip, UsageError, digest, evidence_id
from revisit.core.cases import FLOOR
from revisit.core.grouping import group_items
from revisit.engine.cache import EvidenceCache
from revisit.engine.run_summary import CurrentResults
from revisit.report.clips import ClipEntry, Truth, short_gate_name
from revisit.report.videos import FilmStrip, Videos, load_film_strip
from revisit.results.ceilings import held_to_truth, metrics_changed_by_truth
from revisit.results.display import HEADINGS, HELD_TITLE, direction_arrow, stand_in_suffix_text, table_heading_of_score
from revisit.results.file_types import CaseEntry
from revisit.results.model_facts import load_model_facts
from revisit.results.results import Results
from revisit.results.run import Run
from revisit.results.score_names import find_metric_of_score
from revisit.results.verdict import Verdict, make_verdict
from revisit.results.worst_frames import STRIKING, worst_moments
from revisit.web.templates import Context

GALLERY = 24  # moments
DIRECTIONS = {True: "higher is better", False: "lower is better", None: "describes, neither good nor bad"}
AT_ONCE = 48  # clips described in memory
Rows = dict[str, tuple[int, Context]]  # case id -> number of answers, and its row


class RunPages:
    """Everything that pages say of a run.

    Clips are described when they are asked for, and only a few are kept: a run may have thousands, and the small
    pictures of each lie in memory while it is described. `rows` are those of clips that were described before.
    """

    def __init__(self, run: Run, state: CurrentResults, videos: Videos, rows: Rows | None = None) -> None:
        self.run, self.videos = run, videos
        self.results, self.summary, self.diagnoses = state.results, state.summary, state.diagnosis.get("cases", {})
        self.facts, self.plan = run.facts, run.plan
        self.planned = {entry["id"]: entry for entry in self.plan["cases"]}
        self.cache = EvidenceCache(Path(self.facts["cache"]))
        self._evidence = _evidence_keys_by_path(self.plan["cases"])
        self.cards = metric_cards(self.summary, self.facts)
        self.gates = gate_titles(self.plan)
        self.rows: Rows = {} if rows is None else rows
        self._entries: dict[str, ClipEntry] = {}

    @cached_property
    def verdict(self) -> Verdict:
        """Of the results as they are now; a run of an unknown suite has no questions."""
        card = SUITES[self.plan["suite"]].card if self.plan["suite"] in SUITES else {}
        return make_verdict(self.results, card)

    @cached_property
    def held_results(self) -> Results:
        """The same answers with the scores that count: held to the truth."""
        return held_to_truth(self.results)

    @cached_property
    def floor_models(self) -> set[str]:
        """Models that stand for no memory at all, as their clips or a models.yaml beside videos or run say."""
        model_facts = self.summary.get("models", {})
        marked = {model for model, facts in model_facts.items() if facts.get("category") == FLOOR}
        try:
            stated = load_model_facts([self.run.path])
        except UsageError:
            return marked  # `revisit show --models` and `table` name the fault; a page is not lost for it
        return marked | {model for model in self.results.models if stated.facts_of(model).get("category") == FLOOR}

    @cached_property
    def scenes(self) -> dict[str, list[Case]]:
        """The clips of each scene, by its key, in the order of the plan."""
        by_place = group_items(self.results.cases, lambda case: (case.subset, case.condition, case.sample))
        return {
            digest("\0".join(place), 10): sorted(cases, key=lambda case: (case.model, case.seed))
            for place, cases in by_place.items()
        }

    @cached_property
    def scene_key_by_case(self) -> dict[str, str]:
        """Case id -> key of its scene."""
        return {case.id: key for key, cases in self.scenes.items() for case in cases}

    def clip_entry(self, case: Case) -> ClipEntry:
        entry = self._entries.pop(case.id, None) or ClipEntry(self, case, self.planned[case.id].get("evidence", {}))
        self._entries[case.id] = entry
        while len(self._entries) > AT_ONCE:
            del self._entries[next(iter(self._entries))]
        return entry

    def film_strip_of(self, clip: Clip) -> FilmStrip | None:
        return load_film_strip(self._evidence.get(str(clip.path), {}), self.cache)

    def count_answers_with_truth(self, case: Case) -> int:
        """How many there are of a clip and of its truth, on which it depends what scores count for."""
        truth = self.results.truth_of(case)
        return len(self.results.of(case)) + (len(self.results.of(truth)) if truth is not None else 0)

    def list_row(self, case: Case) -> Context:
        """What the list shows of a clip, made once for as many answers as there are of it."""
        answers = self.count_answers_with_truth(case)
        if self.rows.get(case.id, (-1, {}))[0] != answers:
            self.rows[case.id] = answers, {**self.clip_entry(case).list_row(), "scene": self.scene_key_by_case[case.id]}
        return self.rows[case.id][1]

    def index_content(self) -> Context:
        """What the page knows of all clips before a scene is opened."""
        names = ("id", "title", "unit", "group", "arrow", "range", "bounded")
        held = metrics_changed_by_truth(self.results)
        return {
            "metrics": [
                # Those that count are held to the truth.
                {**{name: card[name] for name in names}, "title": f"{card['title']}{HELD_TITLE if id in held else ''}"}
                for id, card in self.cards.items()
            ],
            "gates": [
                {"id": gate, "title": title, "short": short_gate_name(gate, title)}
                for gate, title in self.gates.items()
            ],
            "headline": [gate for gate in dict.fromkeys(answer.metric for answer in self.verdict.answers) if gate],
            "clips": [self.list_row(case) for case in self.results.cases],
        }

    def scene_content(self, key: str) -> Context:
        """All that the view of one scene needs: the truth first, then every clip."""
        cases = self.scenes[key]
        truths: dict[tuple[Path, int, int | None], Context] = {}
        for case in cases:
            if case.reference is not None:
                place = (case.reference.path, case.reference.start, case.reference.count)
                if place not in truths:
                    own = self.results.truth_of(case)
                    entry = Truth(self, case) if own is None else self.clip_entry(own)
                    truths[place] = entry.scene_view_content()
        names = ("truth", *(f"truth {k}" for k in range(2, len(truths) + 1)))
        clips: list[Context] = [
            {**content, "model": name, "truth": True} for name, content in zip(names, truths.values(), strict=False)
        ] + [self.clip_entry(case).scene_view_content() for case in cases]
        title = cases[0].sample
        return {"key": key, "title": title, "align": self._choose_time_alignment(cases), "clips": clips}

    def _choose_time_alignment(self, cases: Sequence[Case]) -> str:
        """Which frames of clips stand beside each other: `share` of the length, `time`, or `auto` for either.

        It is as the run aligned the clips with their references.
        """
        rules = {case.align for case in cases} - {""} or {self.facts["protocol"]["align"]}
        return {"stretch": "share", "time": "time", "index": "time"}.get(min(rules), "auto")

    def worst_moment_contents(self) -> list[Context]:
        """The worst moments, each as two pictures: what should be there, and what is."""
        cases = {case.id: case for case in self.results.cases}
        gallery: list[Context] = []
        for moment in worst_moments(self.held_results, self.verdict.answers, GALLERY):
            entry = self.clip_entry(cases[moment.case])
            pictures = entry.moment_pictures("" if moment.metric in STRIKING else moment.metric, moment.frame)
            place = {"scene": self.scene_key_by_case[moment.case], "clip": entry.anchor}
            gallery.append({**vars(moment), **place, "pictures": pictures})
        return gallery


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
