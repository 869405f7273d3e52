"""How probable each label of the target gate is, from a clip's features (docs/target-gate.md).

Two logistic models in turn: was the target hidden, and if so, did it come back? Their weights are in
`target_model.json`, which `python benchmarks/target/target_fit.py` writes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache, partial
from importlib.resources import files
from typing import TypedDict

import numpy as np

from revisit.evidence.target import TargetLooks, TargetTrack
from revisit.metrics import target_rules as rules
from revisit.metrics.target_features import layout_features, look_features

LABELS = (rules.NEVER, rules.CAME_BACK, rules.STAYED_AWAY)
LAYOUT, LOOKS = "layout", "looks"
MODEL_FILE = "target_model.json"


class Logistic(TypedDict):
    """A logistic model."""

    offset: float
    weights: dict[str, float]


class TargetModel(TypedDict):
    """The two models of one kind of evidence, and from which probability on a label is decided."""

    hidden: Logistic
    returned: Logistic
    temperature: float  # divides both log odds: 1 where the fit is as sure as it is right
    decided: float


@cache
def target_models() -> dict[str, TargetModel]:
    """The models that come with the package, by kind of evidence."""
    return json.loads((files("revisit.metrics") / MODEL_FILE).read_text(encoding="utf-8"))["models"]


def clip_features_and_rule_verdict(
    track: TargetTrack, looks: TargetLooks | None, *, hidden_for: float = 0.3, back_for: float = 0.3
) -> tuple[dict[str, float], rules.RuleVerdict]:
    """All features of a clip, with those of a network's looks where there are any, and the verdict of the rules."""
    seconds = {"hidden_for": hidden_for, "back_for": back_for}
    verdict = rules.verdict_with_room(partial(rules.label_and_away_by_layout, track), rules.Rule(**seconds))
    features = layout_features(track, **seconds) | rules.rule_features(verdict)
    if looks is not None:
        verdict = rules.verdict_with_room(partial(rules.label_and_away_by_looks, looks), rules.LookRule(**seconds))
        features |= look_features(looks, **seconds) | rules.rule_features(verdict, "look_")
    return features, verdict


def logistic_probability(model: Logistic, features: Mapping[str, float], temperature: float = 1.0) -> float:
    """The probability that one logistic model gives."""
    total = model["offset"] + sum(weight * features[name] for name, weight in model["weights"].items())
    return float(1 / (1 + np.exp(-np.clip(total / temperature, -50, 50))))


def label_probabilities(model: TargetModel, features: Mapping[str, float]) -> dict[str, float]:
    """Label -> probability; they add up to 1."""
    hidden, returned = (
        logistic_probability(model[stage], features, model["temperature"]) for stage in ("hidden", "returned")
    )
    return dict(zip(LABELS, (1 - hidden, hidden * returned, hidden * (1 - returned)), strict=True))
