"""Responses: how signs turn into the confidence in each kind of failure, as fitted on rendered clips.

The numbers live in responses.json with where they come from; `python -m revisit.audit.fit` makes them again.
For each kind there is a logistic model: an offset and a weight per sign.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from revisit.diagnosis.kinds import KINDS, Kind


@cache
def responses() -> dict[str, Any]:
    """The content of responses.json."""
    content: dict[str, Any] = json.loads((files("revisit.diagnosis") / "responses.json").read_text(encoding="utf-8"))
    return content


def evidence_for(kind: Kind, found: Mapping[str, Mapping[str, float]]) -> dict[str, float] | None:
    """The signs that a kind is read from, 0 where unknown; None without the group that it needs."""
    if kind.needs not in found:
        return None
    known = {name: value for group in found.values() for name, value in group.items()}
    return {name: known.get(name, 0.0) for name in signs_of(kind)}


def signs_of(kind: Kind) -> list[str]:
    """The names of the signs that a kind is read from: those for it, then those against it."""
    return list(dict.fromkeys((*kind.speaks, *kind.against)))


def confidence(id: str, found: Mapping[str, Mapping[str, float]]) -> float | None:
    """How sure the fitted model is of a kind, 0 to 1; None where its signs are unknown."""
    looked_at = evidence_for(KINDS[id], found)
    if looked_at is None:
        return None
    model = responses()["kinds"][id]
    total = model["offset"] + sum(weight * looked_at.get(sign, 0.0) for sign, weight in model["weights"].items())
    return 1 / (1 + math.exp(-total))
