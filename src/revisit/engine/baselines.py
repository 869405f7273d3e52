"""Floors: clips that a stand-in made are marked, so that tables can tell them from those of models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from revisit.core import Case
from revisit.core.cases import CATEGORY
from revisit.core.text import parse_json

RECORD = ".provenance.json"  # what `revisit generate` writes beside a clip


def with_categories(cases: Sequence[Case]) -> list[Case]:
    """The cases, each with the category that the record of its clip says; most have none."""
    return [_marked(case) for case in cases]


def _marked(case: Case) -> Case:
    if CATEGORY in case.annotations or case.clip.frames is not None:
        return case
    try:
        known = parse_json(case.clip.path.with_suffix(RECORD).read_text(encoding="utf-8"))
        category = known.get(CATEGORY)
    except (OSError, ValueError, AttributeError):
        return case
    return replace(case, annotations={**case.annotations, CATEGORY: str(category)}) if category else case
