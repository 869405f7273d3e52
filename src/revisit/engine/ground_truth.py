"""The truth as a row of its own: every reference is scored like a clip of a model, outside the contest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from revisit.core import Case, Clip
from revisit.core.cases import CEILING

TRUTH = "truth"  # the name of the row
OF_THE_TRUTH = ("true_poses",)  # files that came with a clip and say what the truth is


def with_truth(cases: Sequence[Case], ceilings: Sequence[Case] = ()) -> list[Case]:
    """The cases, and behind them the reference of each sample as a case, marked as the truth.

    A clip of the dataset that is the reference of others (`gt` beside the models) is marked instead.
    The truth has no reference: what compares with one says nothing of it. Where there is no reference at all,
    `ceilings` stand for the truth, those of the parts of the dataset that the cases are of.
    """
    references = {_stretch(case.reference) for case in cases if case.reference is not None}
    marked = [
        replace(case, truth=True) if case.reference is None and _stretch(case.clip) in references else case
        for case in cases
    ]
    there = {_stretch(case.clip) for case in marked if case.truth}
    made: dict[tuple[object, ...], Case] = {}
    for case in marked:
        if case.reference is not None and _stretch(case.reference) not in there:
            made.setdefault(_stretch(case.reference), _truth_of(case))
    taken = {case.id for case in marked}
    for stretch, case in made.items():  # a sample may have several references, each with an id of its own
        ids = (f"{case.id}#{number}" if number > 1 else case.id for number in count(1))
        id = next(id for id in ids if id not in taken)
        taken.add(id)
        made[stretch] = replace(case, id=id)
    if not references:
        parts = {(case.subset, case.condition) for case in cases}
        return [*marked, *(replace(case, truth=True) for case in ceilings if (case.subset, case.condition) in parts)]
    return [*marked, *made.values()]


def parted(cases: Sequence[Case]) -> tuple[list[Case], list[Case]]:
    """The cases of models and floors, and those that only stand for the truth."""
    mine: tuple[list[Case], list[Case]] = [], []
    for case in cases:
        mine[case.category == CEILING].append(case)
    return mine


def _truth_of(case: Case) -> Case:
    assert case.reference is not None
    place = "/".join(dict.fromkeys(filter(None, (case.subset, case.condition, case.sample))))
    return replace(
        case,
        id=f"{place}@{TRUTH}",
        model=TRUTH,
        clip=case.reference,
        reference=None,
        seed=0,
        align="",
        artifacts={name: path for name, path in case.artifacts.items() if name in OF_THE_TRUTH},
        truth=True,
    )


def _stretch(clip: Clip) -> tuple[object, ...]:
    return clip.path, clip.start, clip.count
