"""Kinds: the failures that a diagnosis knows, what it says of each, and how signs turn into the confidence in it.

They are listed in `kinds.yaml`. For each there is a logistic model: an offset and a weight per sign. The numbers live
in responses.json with where they come from; `python benchmarks/diagnosis_fit.py` makes them again from rendered clips.
To add a kind, add a row to kinds.yaml and fit again.

Signs are what the scores of one clip say about failures, each between 0 (no sign of it) and 1 (plainly there).

A sign is a score, or a number among its facts, on a scale between what a good model shows anyway and what an eye
sees at a glance; beyond either end it does not count further. Signs come in groups that are known or unknown
together: without a reference there are no signs of the camera's way, without an overlay none of the target.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Any

from revisit.core import Reason, Record
from revisit.core.text import read_package_yaml

CAMERA, LOOK, TARGET, CLIP = "camera", "look", "target", "clip"

# Of which metric a group needs a score to be known at all.
KNOWN_BY = {CAMERA: "camera_reach", LOOK: "sharpness_departure", TARGET: "target_faded", CLIP: "unsteady_light"}

# All metrics and gates that a diagnosis looks at.
READ = (
    "view_return", "target_return", "camera_moved", "camera_reach", "camera_scale", "camera_standstill",
    "camera_strays", "return_shortfall", "return_delay", "unsteady_light", "cut_away", "sharpness_departure",
    "style_departure", "structure_decay", "light_departure", "place_departure", "target_faded", "target_elsewhere",
    "target_colour", "target_pattern", "target_outline", "target_doubled", "first_state", "last_state",
    "frozen_camera", "target_reappearance", "lighting_consistency", "style_consistency", "event_outcome",
    "time_to_collapse", "edge_sharpness", "target_in_view",
)  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """A failure: its title, the words of a finding, and the signs it is read from."""

    title: str
    says: str
    needs: str  # a group of signs, without which it cannot be told
    speaks: list[str]  # the signs that may speak for it
    against: list[str]  # the signs that may only speak against it; 0 where they are unknown
    shown_by: str  # the metric that grows with its strength, and whose frames show it
    full: list[float]  # that metric's value without the failure, and at full strength
    memory: bool = False  # asked only of a clip that looked away


def _kind_from_row(row: dict[str, Any]) -> Kind:
    against = [signs if isinstance(signs, list) else [signs] for signs in row.get("against", ())]
    return Kind(**{**row, "against": [*chain(*against)]})


KINDS = {id: _kind_from_row(row) for id, row in read_package_yaml(__package__, "kinds.yaml").items()}


@cache
def load_response_models() -> dict[str, Any]:
    """The content of responses.json: under `kinds` the offset and the weights of each, and where they come from."""
    return json.loads((files("revisit.diagnosis") / "responses.json").read_text(encoding="utf-8"))


def sign_values_for_kind(kind: Kind, signs_by_group: Mapping[str, Mapping[str, float]]) -> dict[str, float] | None:
    """The signs that a kind is read from, 0 where unknown; None without the group that it needs."""
    if kind.needs not in signs_by_group:
        return None
    signs = {name: value for group in signs_by_group.values() for name, value in group.items()}
    return {name: signs.get(name, 0.0) for name in sign_names_of_kind(kind)}


def sign_names_of_kind(kind: Kind) -> list[str]:
    """The names of the signs that a kind is read from: those for it, then those against it."""
    return list(dict.fromkeys((*kind.speaks, *kind.against)))


def fitted_confidence(kind_id: str, signs_by_group: Mapping[str, Mapping[str, float]]) -> float | None:
    """How sure the fitted model is of a kind, 0 to 1; None where its signs are unknown."""
    observed = sign_values_for_kind(KINDS[kind_id], signs_by_group)
    if observed is None:
        return None
    model = load_response_models()["kinds"][kind_id]
    total = model["offset"] + sum(weight * observed.get(sign, 0.0) for sign, weight in model["weights"].items())
    return 1 / (1 + math.exp(-total))


class Scores:
    """The answers about one clip, by metric or gate."""

    def __init__(self, records: Mapping[str, Record]) -> None:
        self.records = records

    def is_scored(self, metric: str) -> bool:
        return metric in self.records and self.records[metric].scored

    def get(self, metric: str, fact: str = "", default: float = 0.0) -> float:
        """A score or one of its facts; the default where there is none."""
        if not self.is_scored(metric):
            return default
        record = self.records[metric]
        value = record.facts.get(fact) if fact else record.value
        return default if value is None else float(value)

    def facts(self, question: str) -> Mapping[str, Any]:
        """What stands behind an answer, scored or not."""
        return self.records[question].facts if question in self.records else {}

    def named_frames(self, metric: str) -> list[int]:
        """The frames that a metric names in its facts."""
        return [int(frame) for frame in self.facts(metric).get("frames") or ()]

    def gate_label(self, gate: str) -> str:
        """What a gate found, or nothing."""
        return self.records[gate].label if gate in self.records else ""

    def unscored_reason(self, question: str) -> Reason | None:
        """Why there is no score."""
        return self.records[question].reason if question in self.records else None


def ramp(value: float, low: float, high: float) -> float:
    """Where a value lies between two ends, of which either may be the larger, 0 to 1."""
    return min(max((value - low) / (high - low), 0.0), 1.0)


def read_signs(scores: Scores) -> dict[str, dict[str, float]]:
    """The signs of each group that is known."""
    groups = {CAMERA: camera_signs, LOOK: look_signs, TARGET: target_signs, CLIP: clip_signs}
    signs_by_group = {group: reader(scores) for group, reader in groups.items() if scores.is_scored(KNOWN_BY[group])}
    if TARGET in signs_by_group:
        # Where the whole place is another, or the picture decays, differences on the target say nothing of it.
        clear = 1 - max(ramp(scores.get("place_departure"), 0.3, 0.5), signs_by_group.get(LOOK, {}).get("melts", 0.0))
        signs_by_group[TARGET] = {name: sign * clear for name, sign in signs_by_group[TARGET].items()}
    return signs_by_group


def camera_signs(scores: Scores) -> dict[str, float]:
    """Signs of a camera that goes another way than the reference's."""
    reach = scores.get("camera_reach")
    short = scores.get("return_shortfall")
    not_as_far = ramp(1 - reach, 0.1, 0.35)
    stayed = ramp(1 - reach, 0.75, 0.95)
    slower = ramp(1 - scores.get("camera_scale", default=1.0), 0.1, 0.35)
    return {
        "way": reach,  # not a sign, but what closes questions
        "not as far": not_as_far,
        "never left": stayed,
        "stands": ramp(scores.get("camera_standstill"), 0.15, 0.45),
        "less of a turn": min(slower, not_as_far) * (1 - stayed),  # who stays makes no turn that could be compared
        "ends short": ramp(short, 0.15, 0.4),
        "ends off": ramp(short, 0.02, 0.1),
        "late": ramp(scores.get("return_delay"), 0.08, 0.2),
        "strays": ramp(scores.get("camera_strays"), 0.01, 0.03),
    }


def clip_signs(scores: Scores) -> dict[str, float]:
    """Signs that need no reference."""
    return {
        "unsteady": ramp(scores.get("unsteady_light"), 2.0, 8.0),
        "cut": ramp(scores.get("cut_away"), 0.0, 0.06),
    }


def look_signs(scores: Scores) -> dict[str, float]:
    """Signs of another light, style, sharpness or place than the reference's."""
    early, late = scores.get("sharpness_departure", "early"), scores.get("sharpness_departure", "late")
    style, chroma = scores.get("style_departure"), scores.get("style_departure", "chroma")
    stylised = min(ramp(style, 0.1, 0.25), ramp(chroma, 0.15, 0.35))
    softer = ramp(late - max(early, 0.0), 0.05, 0.14)
    melts = min(ramp(scores.get("structure_decay"), 0.08, 0.18), softer) * (1 - stylised)
    return {
        "other light": ramp(scores.get("light_departure"), 5.0, 14.0),
        "darker": ramp(-scores.get("light_departure", "lightness"), 5.0, 14.0),
        "other style": ramp(style, 0.1, 0.3),
        "stylised": stylised,
        "fainter colours": ramp(-chroma, 0.15, 0.4),
        "soft": ramp(scores.get("sharpness_departure"), 0.15, 0.4),
        "melts": melts,
        "other place": ramp(scores.get("place_departure"), 0.2, 0.4) * (1 - melts),
    }


def target_signs(scores: Scores) -> dict[str, float]:
    """Signs of a target that is gone, elsewhere, doubled, changed, or as it was before.

    They exclude each other in an order: what an earlier state explains is no change of looks, what is found
    elsewhere has not vanished, and only what nothing explains is a new pattern or shape.
    """
    changed = ramp(scores.get("target_faded", "change"), 0.8, 4.0)
    missing = ramp(scores.get("target_faded", "missing"), 0.08, 0.4)
    distance = scores.get("target_elsewhere", "distance")
    moved = changed * missing * ramp(scores.get("target_elsewhere", "found"), 0.3, 0.6) * ramp(distance, 0.12, 0.3)
    aside = scores.get("target_elsewhere", "aside", default=distance) / max(distance, 0.1)
    back = ramp(scores.get("target_elsewhere", "towards_first"), 0.15, 0.35) * (1 - ramp(aside, 0.35, 0.7))
    first = changed * ramp(scores.get("first_state"), 0.15, 0.4) * ramp(scores.get("first_state", "fit"), 0.5, 0.85)
    last = changed * ramp(scores.get("last_state"), 0.15, 0.4) * ramp(scores.get("last_state", "fit"), 0.5, 0.85)
    # gone explains as much as an earlier state does: then it is gone
    better = ramp(scores.get("first_state", "fit") - scores.get("target_faded", "fit"), -0.15, 0.05)
    first *= better
    stuck = ramp(scores.get("last_state", "nearer_last"), 0.45, 0.65)
    as_before = max(first, last, moved * back)
    faded = changed * ramp(scores.get("target_faded"), 0.15, 0.4) * ramp(scores.get("target_faded", "fit"), 0.4, 0.7)
    colour, lightness = scores.get("target_colour"), scores.get("target_colour", "lightness")
    hue = changed * ramp(colour, 8.0, 24.0) * ramp(colour / (colour + lightness + 1.0), 0.65, 0.85)
    pattern_loss = scores.get("target_pattern")
    outline = ramp(scores.get("target_outline", "beyond"), 0.25, 1.2)
    still_there = (1 - as_before) * (1 - moved)
    return {
        "changed": changed,
        "as at first": max(first * (1 - stuck), moved * back * (1 - last * stuck)),
        "as last seen": last * stuck,
        "moved aside": moved * (1 - back) * (1 - max(first, last)),
        "doubled": ramp(scores.get("target_doubled"), 0.25, 0.55),
        "gone": faded * still_there,
        "evenly": ramp(scores.get("target_faded", "even"), 0.2, 0.6) * changed,
        "recoloured": hue * ramp(1 - pattern_loss, 0.4, 0.8) * still_there,
        "other pattern": changed * ramp(pattern_loss, 0.02, 0.1) * (1 - outline) * still_there * (1 - hue),
        "other outline": outline * ramp(pattern_loss, 0.05, 0.3) * still_there * (1 - faded),
    }
