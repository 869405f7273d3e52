"""What the page says of one clip: a short row for the list, and everything for the view of its scene."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from revisit.core import METRICS, Case, Record, Series, digest
from revisit.core.text import read_package_yaml
from revisit.report.drawings import (
    first_frame_of_each_kind,
    judge_overlays,
    observer_overlays,
    phases_from_starts,
    phases_of_gate,
    read_drawable_series,
    thin_series,
)
from revisit.report.run_content import RunContent
from revisit.report.videos import GONE, Clock, FilmStrip, load_clip_clock, read_file_clock
from revisit.results.ceilings import explain_held_score
from revisit.results.display import number_text, reason_title, round_for_page
from revisit.results.file_types import Details
from revisit.web.templates import Context

# gate -> its short name, and the title and top of its series
GATE_NAMES = read_package_yaml("revisit.report", "gates.yaml")
MOST_PAIRS = 3
POINTS = 96  # of a line over time; more cannot be told apart at the width of a page
FAR = 10**9
FACTS = ("id", "model", "sample", "subset", "condition", "seed", "prompt")


class ClipEntry:
    """One clip being described."""

    def __init__(self, run: RunContent, case: Case, evidence: Mapping[str, str]) -> None:
        self.run, self.case, self.evidence = run, case, evidence
        self.records, self.held = run.results.of(case), run.held_results.of(case)
        self.anchor = digest(case.id, 10)

    @cached_property
    def film(self) -> FilmStrip | None:
        return self.run.film_strip_of(self.case.clip)

    @cached_property
    def reference_film(self) -> FilmStrip | None:
        return self.run.film_strip_of(self.case.reference) if self.case.reference else None

    @cached_property
    def clock(self) -> Clock | None:
        return load_clip_clock(self.evidence, self.run.cache)

    @cached_property
    def drawable_series(self) -> dict[str, Series]:
        return {question: s for question in (*self.run.gates, *self.run.cards) if (s := self._read_series(question))}

    def _read_series(self, question: str) -> Series | None:
        return read_drawable_series(self.run.results, self.case, question)

    @cached_property
    def first_failure_sentence(self) -> str | None:
        return next((record.sentence for record in self.records.values() if record.failed), None)

    def list_row(self) -> Context:
        """What the list of clips shows and searches."""
        diagnosis = self.run.diagnoses.get(self.case.id)
        return {
            "anchor": self.anchor,
            **{name: getattr(self.case, name) for name in FACTS},
            "target": self.case.target.name if self.case.target else self.case.target_name,
            "film": _write_strip_pictures(self.film, self.run),
            "last": self._last_frame_number(),
            "phases": [
                [kind, first, last] for lane in self._phase_lanes()[-1:] for kind, _, first, last in lane["phases"]
            ],
            "found": [finding and finding["label"] for finding in map(self._finding_content, self.run.gates)],
            "words": diagnosis["words"] if diagnosis else None,
            "scores": [self._held_score(question) for question in self.run.cards],
            "failure": self.first_failure_sentence,
        }

    def scene_view_content(self) -> Context:
        """Everything about the clip."""
        target = self.case.target
        return {
            **{name: getattr(self.case, name) for name in FACTS},
            "camera": self.case.camera,
            "target": {"name": target.name, "box": target.box} if target else None,
            "film": _write_strip_pictures(self.film, self.run),
            "video": self.run.videos.video_address(self.case.clip),
            "anchor": self.anchor,
            "truth": False,
            "clock": self.clock,
            "last": self._last_frame_number(),
            "film_note": None if self.film or self.first_failure_sentence else GONE,
            "findings": [self._finding_content(question) for question in self.run.gates],
            "diagnosis": self._diagnosis_content(),
            "lanes": self._phase_lanes(),
            "series": [self._line_plot_content(question, series) for question, series in self.drawable_series.items()],
            "hurt": self._worst_pairs_of_memory_metrics(),
            "scores": [self._score_value_and_text(question) for question in self.run.cards],
            "overlays": observer_overlays(self.evidence, self.run.cache),
            "judged": judge_overlays(self.evidence, self.run.cache, self.run.videos),
            "failure": self.first_failure_sentence,
        }

    def moment_pictures(self, metric: str, frame: int | None) -> list[Context]:
        """Two pictures: what should be there, by the truth or as it was before, and what is."""
        series = self._read_series(metric)
        other = None
        if series is not None and frame in (frames := series["frame"].astype(int).tolist()):
            other = _paired_frame(series, frames.index(frame))
        paired = metric in self.run.cards and self.run.cards[metric]["against_reference"]
        at = 0 if frame is None else frame
        if self.reference_film is not None and (other is None or paired):
            true_frame = self.reference_film.frame_at_progress(at / max(self._last_frame_number(), 1))
            true_frame = true_frame if other is None else other
            return self._pictures_of_both((self.reference_film, true_frame, "visible", "truth"), at)
        return self._side_by_side_pictures(at, other, paired)

    def _last_frame_number(self) -> int:
        """Number of the last frame: of the clip, or the last one anything is known of."""
        if self.clock:
            return int(self.clock["frames"]) - 1
        last_frames = [int(series["frame"].max()) for series in self.drawable_series.values()]
        for gate in self.run.gates:
            facts = self._facts_of_question(gate)
            last_frames += first_frame_of_each_kind(facts).values()
            listed = phases_of_gate({"phases": facts.get("phases", [])}, None, FAR)
            last_frames += [last for *_, last in listed]
        return max(last_frames, default=0)

    def _facts_of_question(self, question: str) -> Mapping[str, object]:
        return self.records[question].facts if question in self.records else {}

    def _finding_content(self, gate: str) -> Context | None:
        record = self.records.get(gate)
        if record is None or record.failed:
            return None
        seconds = [
            f"{name.removesuffix('_seconds').replace('_', ' ')} {value:.1f} s"
            for name, value in self._facts_of_question(gate).items()
            if name.endswith("_seconds") and isinstance(value, int | float) and value > 0
        ]
        return {
            "state": record.status,
            "label": finding_text(record),
            "reason": record.sentence or self._facts_of_question(gate).get("sentence", ""),
            "seconds": seconds[:2],
        }

    def _diagnosis_content(self) -> Context | None:
        """What the clip is found to show, in words, with a sentence for each finding; None where nobody asked."""
        diagnosis = self.run.diagnoses.get(self.case.id)
        if diagnosis is None:
            return None
        return {
            "words": diagnosis["words"],
            "sentences": [
                f"{entry['sentence']}: strength {entry['strength']:.2f}, confidence {entry['confidence']:.2f}"
                for entry in diagnosis["findings"]
            ],
            "frames": sorted({int(frame) for entry in diagnosis["findings"] for frame in entry["frames"]}),
        }

    def _phase_lanes(self) -> list[dict[str, Any]]:
        """Phases by who says so; the same phases are shown once."""
        lanes: list[dict[str, Any]] = []
        given = self.case.phases
        phases_by_name = [("Given", phases_from_starts(*given, self._last_frame_number()))] if given else []
        phases_by_name += [
            (
                short_gate_name(gate, title),
                phases_of_gate(self._facts_of_question(gate), self._read_series(gate), self._last_frame_number()),
            )
            for gate, title in self.run.gates.items()
        ]
        for name, phases in phases_by_name:
            equal_lane = next((lane for lane in lanes if lane["phases"] == phases), None)
            if equal_lane:
                equal_lane["name"] += f", {name.lower()}"
            elif phases:
                lanes.append({"name": name, "phases": phases})
        return lanes

    def _worst_pairs_of_memory_metrics(self) -> list[Context]:
        """The unit of each memory metric that cost it most, worst first, each pair of frames once."""
        worst: dict[tuple[int, int | None], tuple[float, Context]] = {}  # loss, and what is shown
        for metric, card in self.run.cards.items():
            series = self.drawable_series.get(metric)
            if card["group"] != "Memory" or card["higher_is_better"] is None or series is None:
                continue
            row = series.worst(card["higher_is_better"])
            if row is None or not self.records[metric].scored:
                continue
            frame, other, value = int(series["frame"][row]), _paired_frame(series, row), float(series["value"][row])
            loss = round(_distance_from_best_end(value, card), 4)
            if (frame, other) not in worst or loss > worst[frame, other][0]:
                pictures = self._side_by_side_pictures(frame, other, card["against_reference"])
                entry = {"title": card["title"], "frame": frame, "value": number_text(value), "loss": loss}
                worst[frame, other] = loss, {**entry, "pictures": pictures}
        worst_first = sorted(worst.values(), key=lambda entry: -entry[0])
        return [content for _, content in worst_first[:MOST_PAIRS]]

    def _side_by_side_pictures(self, frame: int, other: int | None, against_reference: bool) -> list[Context]:
        """The two frames side by side, in the order of reading: what it should look like, what it does look like."""
        before = (self.film, other or 0, "visible", "at the start" if other is None else "as it was")
        if other is not None and against_reference:
            before = (self.reference_film, other, "visible", "truth")
        return self._pictures_of_both(before, frame, "here" if other is None else "as it returned")

    def _pictures_of_both(
        self, before: tuple[FilmStrip | None, int, str, str], frame: int, words: str = "here"
    ) -> list[Context]:
        pair = (before, (self.film, frame, "returned", words))
        return [
            {"words": caption, "kind": kind, **self._write_nearest_picture(film, at)}
            for film, at, kind, caption in pair
        ]

    def _write_nearest_picture(self, film: FilmStrip | None, frame: int) -> Context:
        """The picture nearest to a frame, written into the report; no address where there is none."""
        if film is None:
            return {"frame": frame, "shown": None, "src": None}
        nearest = film.nearest_pictured_frame(frame)
        film.write_pictures([nearest], self.run.videos)
        return {"frame": frame, "shown": nearest, "src": film.picture_address(nearest)}

    def _line_plot_content(self, question: str, series: Series) -> Context:
        """A series with its title; those of gates and of memory come first on the page."""
        if question in self.run.cards:
            card = self.run.cards[question]
            low, high = card["range"]
            # A range such as 0-99 dB is mostly empty: only what ends at 1 is drawn on all of its range.
            limits = (low, high if card["bounded"] else None)
            main = card["group"] == "Memory"
            line = thin_series(series, limits, card["higher_is_better"], POINTS if main else POINTS // 2)
            return {"id": question, "title": card["title"], "main": main, **line}
        facts = GATE_NAMES.get(question, {})
        title, high = facts.get("series", self.run.gates[question]), facts.get("top")
        return {"id": question, "title": title, "main": True, **thin_series(series, (0.0, high), None, POINTS)}

    def _held_score(self, metric: str) -> float | None:
        """The score that counts, or None."""
        record = self.held.get(metric)
        return None if record is None or record.value is None else round_for_page(record.value, 4)

    def _score_value_and_text(self, metric: str) -> list[Any] | None:
        """[value, text] where scored, [None, reason] where not, None where it was never asked.

        The value is the one that counts; where that is not the measured one, a third entry says what was measured.
        """
        record, held = self.records.get(metric), self.held.get(metric)
        if record is None or held is None:
            return None
        if self.case.truth and record.scored and metric in METRICS and METRICS[metric].rewards_unchanged:
            best = METRICS[metric].range[1]  # the others count by their nearness to it
            return [best, number_text(best), f"measured {number_text(record.value)}, which the others are held to"]
        other = [] if held.value == record.value else [explain_held_score(held)]
        if held.scored:
            return [float(f"{held.value:.6g}"), number_text(held.value), *other]
        return [None, other[0] if other else held.sentence]


class Truth(ClipEntry):
    """The reference of a clip, where nobody scored it as a clip of its own: its video, pictures and given phases."""

    def __init__(self, run: RunContent, case: Case) -> None:
        assert case.reference is not None
        super().__init__(run, replace(case, id="", clip=case.reference, reference=None, seed=0), {})
        self.anchor = "truth"

    @cached_property
    def clock(self) -> Clock | None:
        return read_file_clock(self.case.clip)

    def scene_view_content(self) -> Context:
        """Everything about the reference; no answer is about it."""
        return {**super().scene_view_content(), "id": f"{self.case.sample}@truth", "film_note": None}


def short_gate_name(gate: str, title: str) -> str:
    """What a gate is called where there is little room."""
    return str(GATE_NAMES[gate]["short"]) if gate in GATE_NAMES else title


def finding_text(record: Record) -> str:
    """What a gate found, or the kind of reason why it found nothing."""
    return record.label or (reason_title(record.reason.kind) if record.reason else "")


def _write_strip_pictures(film: FilmStrip | None, run: RunContent) -> Context | None:
    """A dozen pictures: where they lie, and of which frames."""
    if film is None:
        return None
    frames = film.evenly_spread_frames()
    film.write_pictures(frames, run.videos)
    size = {"width": int(film.pictures.width), "height": int(film.pictures.height)}
    return {**size, "name": film.name, "frames": frames}


def _paired_frame(series: Series, row: int) -> int | None:
    """The frame that a row compares its own with, or None."""
    if "other" not in series.columns:
        return None
    other = float(series["other"][row])
    return int(other) if np.isfinite(other) and other >= 0 else None


def _distance_from_best_end(value: float, card: Details) -> float:
    """How far a value is from the good end of its range, 0 to 1; a half where the range has no ends."""
    low, high = card["range"]
    if low is None or high is None or high <= low:
        return 0.5
    share = (value - low) / (high - low)
    return float(1 - share if card["higher_is_better"] else share)
