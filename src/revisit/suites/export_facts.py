"""What an exporter of a suite is told of the run, besides its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict


class ExportFacts(TypedDict):
    """Facts of a run that exported files may state."""

    suite: str
    protocol: str  # name:hash
    set: str
    observed_by: str
    total_cases: int
    made_by: Mapping[str, Mapping[str, str]]  # metric or gate -> observer set, and judge
    parameters: Mapping[str, Mapping[str, object]]
    finished: bool
    models: Sequence[str]
