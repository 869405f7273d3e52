"""The pages of a run: its clips by scene, each described once, for a page on disk and for one that is served.

A scene is what models can be compared on: one sample under one condition, with the truth where there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from revisit.core import SUITES, Case, UsageError, digest
from revisit.core.cases import FLOOR
from revisit.core.grouping import group_items
from revisit.engine.run_summary import CurrentResults
from revisit.report.clips import ClipEntry, Truth, short_gate_name
from revisit.report.run_content import RunContent
from revisit.report.videos import Videos
from revisit.results.ceilings import metrics_changed_by_truth
from revisit.results.display import HELD_TITLE
from revisit.results.model_facts import load_model_facts
from revisit.results.run import Run
from revisit.results.verdict import Verdict, make_verdict
from revisit.results.worst_frames import STRIKING, worst_moments
from revisit.web.templates import Context

GALLERY = 24  # moments
AT_ONCE = 48  # clips described in memory
Rows = dict[str, tuple[int, Context]]  # case id -> number of answers, and its row


class RunPages(RunContent):
    """Everything that pages say of a run.

    Clips are described when they are asked for, and only a few are kept: a run may have thousands, and the small
    pictures of each lie in memory while it is described. `rows` are those of clips that were described before.
    """

    def __init__(self, run: Run, state: CurrentResults, videos: Videos, rows: Rows | None = None) -> None:
        super().__init__(run, state, videos)
        self.rows: Rows = {} if rows is None else rows
        self._entries: dict[str, ClipEntry] = {}

    @cached_property
    def verdict(self) -> Verdict:
        """Of the results as they are now; a run of an unknown suite has no questions."""
        card = SUITES[self.plan["suite"]].card if self.plan["suite"] in SUITES else {}
        return make_verdict(self.results, card)

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
