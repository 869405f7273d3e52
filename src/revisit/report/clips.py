"""One entry per clip for the page's script: findings, phases, series, the frames that hurt, scores, its video."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import Case, Series, digest
from revisit.engine.cache import EvidenceCache
from revisit.report.film import GONE, Film, Films, clock_of
from revisit.report.phases import first_frames, from_starts, phases_of
from revisit.report.series import drawn, read_series
from revisit.report.tables import finding
from revisit.report.videos import Videos
from revisit.report.words import gate_name
from revisit.results import Results
from revisit.results.rules import number
from revisit.results.run import Run

MOST_PAIRS = 3
POINTS = 64  # of a line over time; more cannot be told apart at the width of a page
FAR = 10**9
FACTS = ("id", "model", "sample", "subset", "condition", "seed", "prompt", "camera")
# What the series of a gate shows, and the top of its scale where that is known.
SIGHTS = {
    "camera_moved": ("Way of the camera", 1.0),
    "view_return": ("First view in sight", 1.0),
    "target_return": ("Signs of the target", None),
}


def clips(
    run: Run, results: Results, cards: Mapping[str, Mapping[str, Any]], gates: Mapping[str, str], videos: Videos
) -> dict[str, Any]:
    """Everything the list of clips needs; writes the pictures it shows into the report's folder."""
    cache = EvidenceCache(Path(run.facts["cache"]))
    planned = run.plan["cases"]
    known = {entry["id"]: entry for entry in planned}
    shown = {entry["reference"]["path"]: entry.get("reference_evidence", {}) for entry in planned if entry["reference"]}
    films = Films({**shown, **{entry["clip"]["path"]: entry.get("evidence", {}) for entry in planned}}, cache)
    diagnoses = run.diagnosis.get("cases", {})
    entries = [
        _Entry(
            results, case, cards, gates, films, clock_of(known[case.id], cache), videos, diagnoses.get(case.id)
        ).as_json()
        for case in results.cases
    ]
    return {
        "metrics": [
            {"id": id, **{name: card[name] for name in ("title", "unit", "group", "arrow", "range", "bounded")}}
            for id, card in cards.items()
        ],
        "gates": [{"id": id, "title": title, "short": gate_name(id, title)} for id, title in gates.items()],
        "clips": entries,
    }


class _Entry:
    """One clip being described."""

    def __init__(
        self,
        results: Results,
        case: Case,
        cards: Mapping[str, Mapping[str, Any]],
        gates: Mapping[str, str],
        films: Films,
        clock: dict[str, Any] | None,
        videos: Videos,
        diagnosed: Mapping[str, Any] | None,
    ) -> None:
        self.case, self.records, self.cards, self.gates = case, results.of(case), cards, gates
        self.videos, self.clock, self.diagnosed = videos, clock, diagnosed
        self.film = films.of(str(case.clip.path))
        self.reference_film = films.of(str(case.reference.path)) if case.reference else None
        self.series = {id: s for id in (*gates, *cards) if (s := read_series(results, case, id))}

    def as_json(self) -> dict[str, Any]:
        case = self.case
        failure = next((record.sentence for record in self.records.values() if record.failed), None)
        return {
            "anchor": f"clip-{digest(case.id, 10)}",
            **{name: getattr(case, name) for name in FACTS},
            "target": {"name": case.target.name, "box": case.target.box} if case.target else None,
            "clock": self.clock,
            "last": self._last(),
            "film": self._strip(),
            "film_note": None if self.film or failure else GONE,
            "findings": [self._finding(id) for id in self.gates],
            "diagnosis": self._diagnosis(),
            "lanes": self._lanes(),
            "series": [self._line(id, series) for id, series in self.series.items()],
            "hurt": self._hurt(),
            "scores": [self._score(id) for id in self.cards],
            "video": self._video(case.clip.path, self.film),
            "reference": self._video(case.reference.path, self.reference_film) if case.reference else None,
            "failure": failure,
        }

    def _last(self) -> int:
        """Number of the last frame: of the clip, or the last one anything is known of."""
        if self.clock:
            return int(self.clock["frames"]) - 1
        known = [int(series["frame"].max()) for series in self.series.values()]
        for id in self.gates:
            known += first_frames(self._facts(id)).values()
            known += [phase[3] for phase in phases_of({"phases": self._facts(id).get("phases", [])}, None, FAR)]
        return max(known, default=0)

    def _facts(self, id: str) -> Mapping[str, Any]:
        return self.records[id].facts if id in self.records else {}

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
        found = self.diagnosed
        if found is None:
            return None
        return {
            "words": found["words"],
            "sentences": [
                f"{entry['sentence']}: strength {entry['strength']:.2f}, confidence {entry['confidence']:.2f}"
                + (f", frames {', '.join(map(str, entry['frames'][:6]))}" if entry["frames"] else "")
                for entry in found["findings"]
            ],
        }

    def _lanes(self) -> list[dict[str, Any]]:
        """Phases by who says so; the same phases are shown once."""
        lanes: list[dict[str, Any]] = []
        given = self.case.phases
        said = [("Given", from_starts(given[0], given[1], self._last()))] if given else []
        said += [
            (gate_name(id, title), phases_of(self._facts(id), self.series.get(id), self._last()))
            for id, title in self.gates.items()
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
        for id, card in self.cards.items():
            series = self.series.get(id)
            if card["group"] != "Memory" or card["higher_is_better"] is None or series is None:
                continue
            row = series.worst(card["higher_is_better"])
            if row is None or not self.records[id].scored:
                continue
            frame, other = int(series["frame"][row]), None
            if "other" in series.columns and np.isfinite(float(series["other"][row])) and series["other"][row] >= 0:
                other = int(series["other"][row])
            value = float(series["value"][row])
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
            before = (self.reference_film, other, "visible", "in the reference")
        pair = (before, (self.film, frame, "returned", "here" if other is None else "as it returned"))
        return [{"words": words, "kind": kind, **self._picture(film, at)} for film, at, kind, words in pair]

    def _picture(self, film: Film | None, frame: int) -> dict[str, Any]:
        """The picture nearest to a frame, written into the report; no address where there is none."""
        if film is None:
            return {"frame": frame, "shown": None, "src": None}
        shown = film.nearest(frame)
        film.write([shown], self.videos.folder)
        return {"frame": frame, "shown": shown, "src": film.address(shown)}

    def _strip(self) -> dict[str, Any] | None:
        if self.film is None:
            return None
        frames = self.film.strip()
        self.film.write(frames, self.videos.folder)
        size = {"width": int(self.film.pictures.width), "height": int(self.film.pictures.height)}
        return {**size, "strip": [[frame, self.film.address(frame)] for frame in frames]}

    def _video(self, path: Path, film: Film | None) -> dict[str, Any]:
        poster = None
        if film is not None:
            film.write(film.strip()[:1], self.videos.folder)
            poster = film.address(film.strip()[0])
        return {**self.videos.place(str(path)), "poster": poster}

    def _line(self, id: str, series: Series) -> dict[str, Any]:
        """A series with its title; those of gates and of memory come first on the page."""
        if id in self.cards:
            card = self.cards[id]
            low, high = card["range"]
            # A range such as 0-99 dB is mostly empty: only what ends at 1 is drawn on all of its range.
            limits = (low, high if card["bounded"] else None)
            main = card["group"] == "Memory"
            line = drawn(series, limits, card["higher_is_better"], POINTS if main else POINTS // 2)
            return {"title": card["title"], "main": main, **line}
        title, high = SIGHTS.get(id, (self.gates[id], None))
        return {"title": title, "main": True, **drawn(series, (0.0, high), None, POINTS)}

    def _score(self, id: str) -> list[Any] | None:
        """[value, text] where scored, [None, reason] where not, None where it was never asked."""
        record = self.records.get(id)
        if record is None:
            return None
        if record.scored:
            return [float(f"{record.value:.6g}"), number(record.value)]
        return [None, record.sentence]


def _loss(value: float, card: Mapping[str, Any]) -> float:
    """How far a value is from the good end of its range, 0 to 1; a half where the range has no ends."""
    low, high = card["range"]
    if low is None or high is None or high <= low:
        return 0.5
    share = (value - low) / (high - low)
    return float(1 - share if card["higher_is_better"] else share)
