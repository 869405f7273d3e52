"""What the page says of one clip: a short row for the list, and everything for the view of its scene."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from revisit.core import METRICS, Case, Series, digest
from revisit.report.film import GONE, Film, clock_of, clock_of_file
from revisit.report.overlays import judged, overlays
from revisit.report.phases import first_frames, from_starts, phases_of
from revisit.report.series import drawn, read_series
from revisit.report.tables import finding
from revisit.report.wording import gate_name
from revisit.results.ceilings import measured
from revisit.results.display import number

if TYPE_CHECKING:
    from revisit.report.pages import Book

MOST_PAIRS = 3
POINTS = 96  # of a line over time; more cannot be told apart at the width of a page
FAR = 10**9
FACTS = ("id", "model", "sample", "subset", "condition", "seed", "prompt")
# What the series of a gate shows, and the top of its scale where that is known.
SIGHTS = {
    "camera_moved": ("Way of the camera", 1.0),
    "view_return": ("First view in sight", 1.0),
    "target_return": ("Signs of the target", None),
}


class Entry:
    """One clip being described."""

    def __init__(self, book: Book, case: Case, planned: Mapping[str, Any]) -> None:
        self.book, self.case, self.planned = book, case, planned
        self.records, self.held = book.results.of(case), book.held.of(case)
        self.anchor = digest(case.id, 10)

    @cached_property
    def film(self) -> Film | None:
        return self.book.films.of(str(self.case.clip.path))

    @cached_property
    def reference_film(self) -> Film | None:
        return self.book.films.of(str(self.case.reference.path)) if self.case.reference else None

    @cached_property
    def clock(self) -> dict[str, Any] | None:
        return clock_of(self.planned.get("evidence", {}), self.book.cache)

    @cached_property
    def series(self) -> dict[str, Series]:
        return {id: s for id in (*self.book.gates, *self.book.cards) if (s := self._one_series(id))}

    def _one_series(self, id: str) -> Series | None:
        return read_series(self.book.results, self.case, id)

    @cached_property
    def failure(self) -> str | None:
        return next((record.sentence for record in self.records.values() if record.failed), None)

    def row(self) -> dict[str, Any]:
        """What the list of clips shows and searches."""
        found = self.book.diagnoses.get(self.case.id)
        return {
            "anchor": self.anchor,
            **{name: getattr(self.case, name) for name in FACTS},
            "target": self.case.target.name if self.case.target else self.case.target_name,
            "film": self._strip(),
            "last": self._last(),
            "phases": [
                [kind, first, last] for kind, _, first, last in (self._lanes() or [{"phases": []}])[-1]["phases"]
            ],
            "found": [self._label(id) for id in self.book.gates],
            "words": found["words"] if found else None,
            "scores": [self._value(id) for id in self.book.cards],
            "failure": self.failure,
        }

    def whole(self) -> dict[str, Any]:
        """Everything about the clip."""
        case = self.case
        return {
            "anchor": self.anchor,
            "truth": False,
            **{name: getattr(case, name) for name in FACTS},
            "camera": case.camera,
            "target": {"name": case.target.name, "box": case.target.box} if case.target else None,
            "clock": self.clock,
            "last": self._last(),
            "film": self._strip(),
            "film_note": None if self.film or self.failure else GONE,
            "findings": [self._finding(id) for id in self.book.gates],
            "diagnosis": self._diagnosis(),
            "lanes": self._lanes(),
            "series": [self._line(id, series) for id, series in self.series.items()],
            "hurt": self._hurt(),
            "scores": [self._score(id) for id in self.book.cards],
            "overlays": overlays(self.planned.get("evidence", {}), self.book.cache),
            "judged": judged(self.planned.get("evidence", {}), self.book.cache, self.book.videos),
            "video": self.book.videos.place(case.clip),
            "failure": self.failure,
        }

    def moment(self, metric: str, frame: int | None) -> list[dict[str, Any]]:
        """Two pictures: what should be there, by the truth or as it was before, and what is."""
        series = self._one_series(metric)
        row = None if series is None or frame is None else _at(series, frame)
        other = None if series is None or row is None else _other(series, row)
        card = self.book.cards.get(metric, {})
        at = 0 if frame is None else frame
        if self.reference_film is not None and not (other is not None and not card.get("against_reference")):
            same = self.reference_film.at_share(at / max(self._last(), 1))
            return self._pictures((self.reference_film, same if other is None else other, "visible", "truth"), at)
        return self._pair(at, other, bool(card.get("against_reference")))

    def _last(self) -> int:
        """Number of the last frame: of the clip, or the last one anything is known of."""
        if self.clock:
            return int(self.clock["frames"]) - 1
        known = [int(series["frame"].max()) for series in self.series.values()]
        for id in self.book.gates:
            known += first_frames(self._facts(id)).values()
            known += [phase[3] for phase in phases_of({"phases": self._facts(id).get("phases", [])}, None, FAR)]
        return max(known, default=0)

    def _facts(self, id: str) -> Mapping[str, Any]:
        return self.records[id].facts if id in self.records else {}

    def _label(self, id: str) -> str | None:
        record = self.records.get(id)
        return None if record is None or record.failed else finding(record)

    def _finding(self, id: str) -> dict[str, Any] | None:
        record = self.records.get(id)
        if record is None or record.failed:
            return None
        seconds = [
            f"{name.removesuffix('_seconds').replace('_', ' ')} {value:.1f} s"
            for name, value in self._facts(id).items()
            if name.endswith("_seconds") and isinstance(value, int | float) and value > 0
        ]
        return {
            "state": record.status,
            "label": finding(record),
            "reason": record.sentence or self._facts(id).get("sentence", ""),
            "seconds": seconds[:2],
        }

    def _diagnosis(self) -> dict[str, Any] | None:
        """What the clip is found to show, in words, with a sentence for each finding; None where nobody asked."""
        found = self.book.diagnoses.get(self.case.id)
        if found is None:
            return None
        return {
            "words": found["words"],
            "sentences": [
                f"{entry['sentence']}: strength {entry['strength']:.2f}, confidence {entry['confidence']:.2f}"
                for entry in found["findings"]
            ],
            "frames": sorted({int(frame) for entry in found["findings"] for frame in entry["frames"]}),
        }

    def _lanes(self) -> list[dict[str, Any]]:
        """Phases by who says so; the same phases are shown once."""
        lanes: list[dict[str, Any]] = []
        given = self.case.phases
        said = [("Given", from_starts(given[0], given[1], self._last()))] if given else []
        said += [
            (gate_name(id, title), phases_of(self._facts(id), self._one_series(id), self._last()))
            for id, title in self.book.gates.items()
        ]
        for name, phases in said:
            same = next((lane for lane in lanes if lane["phases"] == phases), None)
            if same:
                same["name"] += f", {name.lower()}"
            elif phases:
                lanes.append({"name": name, "phases": phases})
        return lanes

    def _hurt(self) -> list[dict[str, Any]]:
        """The unit of each memory metric that cost it most, worst first, each pair of frames once."""
        found: dict[tuple[int, int | None], dict[str, Any]] = {}
        for id, card in self.book.cards.items():
            series = self.series.get(id)
            if card["group"] != "Memory" or card["higher_is_better"] is None or series is None:
                continue
            row = series.worst(card["higher_is_better"])
            if row is None or not self.records[id].scored:
                continue
            frame, other, value = int(series["frame"][row]), _other(series, row), float(series["value"][row])
            loss = _loss(value, card)
            if (frame, other) in found and found[frame, other]["loss"] >= loss:
                continue
            found[frame, other] = {
                "title": card["title"],
                "frame": frame,
                "value": number(value),
                "loss": round(loss, 4),
                "pictures": self._pair(frame, other, card["against_reference"]),
            }
        return sorted(found.values(), key=lambda entry: -entry["loss"])[:MOST_PAIRS]

    def _pair(self, frame: int, other: int | None, against_reference: bool) -> list[dict[str, Any]]:
        """The two frames side by side, in the order of reading: what it should look like, what it does look like."""
        before = (self.film, other or 0, "visible", "at the start" if other is None else "as it was")
        if other is not None and against_reference:
            before = (self.reference_film, other, "visible", "truth")
        return self._pictures(before, frame, "here" if other is None else "as it returned")

    def _pictures(
        self, before: tuple[Film | None, int, str, str], frame: int, words: str = "here"
    ) -> list[dict[str, Any]]:
        pair = (before, (self.film, frame, "returned", words))
        return [{"words": said, "kind": kind, **self._picture(film, at)} for film, at, kind, said in pair]

    def _picture(self, film: Film | None, frame: int) -> dict[str, Any]:
        """The picture nearest to a frame, written into the report; no address where there is none."""
        if film is None:
            return {"frame": frame, "shown": None, "src": None}
        shown = film.nearest(frame)
        film.write([shown], self.book.videos)
        return {"frame": frame, "shown": shown, "src": film.address(shown)}

    def _strip(self) -> dict[str, Any] | None:
        return _strip(self.film, self.book)

    def _line(self, id: str, series: Series) -> dict[str, Any]:
        """A series with its title; those of gates and of memory come first on the page."""
        if id in self.book.cards:
            card = self.book.cards[id]
            low, high = card["range"]
            # A range such as 0-99 dB is mostly empty: only what ends at 1 is drawn on all of its range.
            limits = (low, high if card["bounded"] else None)
            main = card["group"] == "Memory"
            line = drawn(series, limits, card["higher_is_better"], POINTS if main else POINTS // 2)
            return {"id": id, "title": card["title"], "main": main, **line}
        title, high = SIGHTS.get(id, (self.book.gates[id], None))
        return {"id": id, "title": title, "main": True, **drawn(series, (0.0, high), None, POINTS)}

    def _value(self, id: str) -> float | None:
        """The score that counts, or None."""
        record = self.held.get(id)
        return None if record is None or not record.scored else float(f"{record.value:.4g}")

    def _score(self, id: str) -> list[Any] | None:
        """[value, text] where scored, [None, reason] where not, None where it was never asked.

        The value is the one that counts; where that is not the measured one, a third entry says what was measured.
        """
        record, held = self.records.get(id), self.held.get(id)
        if record is None or held is None:
            return None
        if self.case.truth and record.scored and id in METRICS and METRICS[id].rewards_unchanged:
            best = METRICS[id].range[1]  # the others count by their nearness to it
            return [best, number(best), f"measured {number(record.value)}, which the others are held to"]
        other = [] if held.value == record.value else [measured(held)]
        if held.scored:
            return [float(f"{held.value:.6g}"), number(held.value), *other]
        return [None, other[0] if other else held.sentence]


class Truth:
    """The reference of a clip, where nobody scored it as a clip of its own: its video, pictures and given phases."""

    def __init__(self, book: Book, case: Case) -> None:
        assert case.reference is not None
        self.book, self.case, self.clip = book, case, case.reference
        self.film = book.films.of(str(self.clip.path))
        self.clock = clock_of_file(self.clip)

    def whole(self) -> dict[str, Any]:
        last = self.clock["frames"] - 1 if self.clock else 0
        given = self.case.phases
        lanes = [{"name": "Given", "phases": from_starts(given[0], given[1], last)}] if given else []
        return {
            **{name: getattr(self.case, name) for name in FACTS},
            "anchor": "truth",
            "id": f"{self.case.sample}@truth",
            "seed": 0,
            "camera": self.case.camera,
            "target": {"name": self.case.target.name, "box": self.case.target.box} if self.case.target else None,
            "clock": self.clock,
            "last": last,
            "film": _strip(self.film, self.book),
            "film_note": None,
            "findings": [None] * len(self.book.gates),
            "diagnosis": None,
            "lanes": lanes,
            "series": [],
            "hurt": [],
            "scores": [None] * len(self.book.cards),
            "overlays": [],
            "judged": [],
            "video": self.book.videos.place(self.clip),
            "failure": None,
        }


def _strip(film: Film | None, book: Book) -> dict[str, Any] | None:
    """A dozen pictures: where they lie, and of which frames."""
    if film is None:
        return None
    frames = film.strip()
    film.write(frames, book.videos)
    size = {"width": int(film.pictures.width), "height": int(film.pictures.height)}
    return {**size, "name": film.name, "frames": frames}


def _at(series: Series, frame: int) -> int | None:
    """The row of a frame, or None."""
    rows = np.flatnonzero(series["frame"].astype(int) == frame)
    return int(rows[0]) if len(rows) else None


def _other(series: Series, row: int) -> int | None:
    """The frame that a row compares its own with, or None."""
    if "other" not in series.columns:
        return None
    other = float(series["other"][row])
    return int(other) if np.isfinite(other) and other >= 0 else None


def _loss(value: float, card: Mapping[str, Any]) -> float:
    """How far a value is from the good end of its range, 0 to 1; a half where the range has no ends."""
    low, high = card["range"]
    if low is None or high is None or high <= low:
        return 0.5
    share = (value - low) / (high - low)
    return float(1 - share if card["higher_is_better"] else share)
