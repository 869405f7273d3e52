"""The diagnosis of one clip of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from revisit.core import Case
from revisit.diagnosis.diagnose import Diagnosis, diagnose

if TYPE_CHECKING:
    from revisit.results.results import Results


def diagnosis_of_case(results: Results, case: Case) -> Diagnosis:
    """What a clip shows, from its answers; worked out once for all parts of a run."""
    whole = results.whole
    owner = whole if whole.of(case) is results.of(case) else results
    return owner.once(f"diagnosis of {case.id}", lambda: diagnose(results.of(case)))
