"""Kinds: the failures that a diagnosis knows, what it says of each, and how signs turn into the confidence in it.

They are listed in `kinds.yaml`. For each there is a logistic model: an offset and a weight per sign. The numbers live
in responses.json with where they come from; `python benchmarks/diagnosis_fit.py` makes them again from rendered clips.
To add a kind, add a row to kinds.yaml and fit again.
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

from revisit.core.text import read_package_yaml


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
