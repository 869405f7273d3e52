"""Slices: groups of clips by event, direction, camera, action, place or kind of subject.

What a family of scenes is comes from the record's annotations (`verb`, `venue`, `outdoors`, `animal`), or is known for
the published families and our own (families.yaml). Of other families nothing is guessed: they are in no such slice.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from revisit.core import Case
from revisit.core.text import read_package_yaml
from revisit.results import Results

EVENTS = {"none": "rests", "spatial": "moves", "state_only": "changes in place", "full": "moves and changes"}
DIRECTIONS = {"LR": "left first", "RL": "right first"}
FamilyFacts = dict[str, Any]  # what is known of a family of scenes: verb, venue, outdoors, animal
SLICES: Mapping[str, str] = read_package_yaml(__package__, "slices.yaml")  # slice -> what tells clips apart


def slice_values_of_case(case: Case) -> dict[str, str]:
    """Slice -> the value that a case has in it; slices that nobody knows of are left out."""
    notes = case.annotations
    own = {name: notes[name] for name in ("verb", "venue", "outdoors", "animal") if notes.get(name) is not None}
    family = {**known_family_facts().get(str(notes.get("family") or ""), {}), **own}

    def choice_text(fact: str, yes: str, no: str) -> str:
        return "" if family.get(fact) is None else yes if family[fact] else no

    values = {
        "event": EVENTS.get(case.subset, ""),
        "direction": next((words for side, words in DIRECTIONS.items() if case.condition.endswith(f"_{side}")), ""),
        "camera": case.condition,
        "verb": family.get("verb", ""),
        "venue": family.get("venue", ""),
        "place": choice_text("outdoors", "outdoors", "indoors"),
        "actor": choice_text("animal", "animal", "human"),
    }
    return {name: str(value) for name, value in values.items() if value}


def split_results_by_slice(results: Results) -> dict[str, dict[str, Results]]:
    """Slice -> value -> its clips. Slices in which all clips have one value say nothing and are left out."""
    ids_by_value: dict[str, dict[str, set[str]]] = {name: {} for name in SLICES}
    for case in results.cases:
        for name, value in slice_values_of_case(case).items():
            ids_by_value[name].setdefault(value, set()).add(case.id)
    order = {value: k for k, value in enumerate((*EVENTS.values(), *DIRECTIONS.values()))}
    return {
        name: {
            value: results.where(id=ids)
            for value, ids in sorted(values.items(), key=lambda item: (order.get(item[0], 99), item[0]))
        }
        for name, values in ids_by_value.items()
        if len(values) > 1
    }


@cache
def known_family_facts() -> dict[str, FamilyFacts]:
    """Family -> what is known of it."""
    content = read_package_yaml(__package__, "families.yaml")
    usual = {"outdoors": False, "animal": False}
    return {family: {**usual, **facts} for part in content.values() for family, facts in part.items()}
