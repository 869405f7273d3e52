"""Clips whose picture is lost: black, turned to noise, or sharpened or smeared until it breaks, without recovery.

It is counted apart from memory, because such a clip often has no score of memory at all, so that no ranking shows it.
"""

from __future__ import annotations

from collections.abc import Mapping

from revisit.core import Case
from revisit.results.clip_answers import ClipAnswers
from revisit.results.display import clips_of_models_text

COLLAPSE = "time_to_collapse"  # share of the clip before its picture decays for good; 1 where it does not
MOST = 0.9  # of the frames: so many are blank in a clip that shows nothing at all
BLANK = "black", "one colour"  # what a clip shows whose picture is not there
BLANK_LATE = {"black": "goes black", "one colour": "ends in one colour"}
# fault -> what several clips do, and what one does; what is wrong from the start first
FAULTS = {
    "black": ("are black", "is black"),
    "one colour": ("show a single colour", "shows a single colour"),
    "goes black": ("go black", "goes black"),
    "ends in one colour": ("end in a single colour", "ends in a single colour"),
    "noise": ("turn to noise", "turns to noise"),
    "smeared": ("smear", "smears"),
    "sharpened": ("are over-sharpened", "is over-sharpened"),
    "collapse": ("collapse", "collapses"),
}
FaultCounts = Mapping[str, Mapping[str, tuple[int, int]]]  # fault -> model -> clips that have it, and of how many


def picture_fault_unlike_truth(results: ClipAnswers, case: Case) -> str | None:
    """The fault that the picture of a clip has and that of its truth has not; "" without one, None if nobody asked."""
    answer, truth = results.answer(case, COLLAPSE), results.truth_of(case)
    if answer is None or answer.value is None:
        return None
    ceiling = None if truth is None else results.answer(truth, COLLAPSE)
    in_truth = None if ceiling is None or ceiling.value is None else ceiling
    if "blank" in answer.facts and (in_truth is None or "blank" not in in_truth.facts):
        blank = str(answer.facts["blank"])
        return blank if answer.facts["blank_share"] >= MOST else BLANK_LATE[blank]
    if answer.value < 1 and (in_truth is None or in_truth.value == 1):
        by = str(answer.facts.get("by"))
        return by if by in FAULTS else "collapse"
    return ""


def is_blank_clip(results: ClipAnswers, case: Case) -> bool:
    """Whether a clip shows nothing from its first frame on."""
    return picture_fault_unlike_truth(results, case) in BLANK


def count_picture_faults(results: ClipAnswers) -> FaultCounts:
    """Which faults pictures have: models, with how many clips of how many that were asked, the most first."""
    counts: dict[str, dict[str, tuple[int, int]]] = {fault: {} for fault in FAULTS}
    for model, part in results.groups("model").items():
        answers = [answer for case in part.cases if (answer := picture_fault_unlike_truth(results, case)) is not None]
        for fault in {answer for answer in answers if answer}:
            counts[fault][model] = (answers.count(fault), len(answers))
    return {fault: _sort_by_share(models) for fault, models in counts.items() if models}


def picture_fault_sentences(counts: FaultCounts) -> list[str]:
    """`all 3 clips of a are black`, `2 of 5 clips of wan and 1 of 5 of svc turn to noise`, for each fault."""
    return [clips_of_models_text(models, *FAULTS[fault]) for fault, models in counts.items()]


def collapse_counts(counts: FaultCounts) -> dict[str, tuple[int, int]]:
    """Model -> clips with any of these faults, and of how many; the most first."""
    sums: dict[str, tuple[int, int]] = {}
    for models in counts.values():
        for model, (n, of) in models.items():
            sums[model] = (sums.get(model, (0, 0))[0] + n, of)
    return _sort_by_share(sums)


def _sort_by_share(counts: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1][0] / item[1][1], item[0])))
