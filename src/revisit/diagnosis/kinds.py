"""Kinds: the failures that a diagnosis knows, what it says of each, and which signs speak for and against it.

They are listed in `kinds.yaml`. To add a kind, add a row there and fit again.
"""

from __future__ import annotations

from dataclasses import dataclass
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
