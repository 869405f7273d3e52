"""What a clip comes back to: a world that went on, one that is reset, neither of the two, or one without the target.

Where it is unclear whether the target is back, that is said instead of the first two.

The outcome of the unseen event (`event_outcome`) is d_first / (d_first + d_truth): 0 as in the first view, 1 as in the
truth, and in between for what looks like neither. So there are two bounds:

- *Reset* is an outcome up to `RESET`: at least three times as near to the first view as to the truth. A reset is the
  first view again. It is also the outcome from which a diagnosis without a target finds `state_reset`.
- *Went on* is an outcome from `WENT_ON` on: at least half again as near to the truth as to the first view. A world may
  go on further than the truth, and then differs from both: more foam, darker tea.

What the gate of the target or the diagnosis says of the clip comes first: without its target, or with the target in its
old state or in another place, no world went on. Nor does one by the outcome alone where the gate is undecided: an
emptied place may resemble the truth, as that of a candle that burns down. Then the diagnosis must deny that the object
vanished, and the gate find its return the most probable. docs/verdict.md has the measurements.
"""

from __future__ import annotations

from revisit.core import Case
from revisit.diagnosis.diagnose import Diagnosis, can_diagnose, diagnose
from revisit.results.ceilings import OUTCOME, RESET, WENT_ON
from revisit.results.clip_answers import ClipAnswers

AS_IT_SHOULD, AS_AT_FIRST, AS_NEITHER, WITHOUT_TARGET = "went on", "reset", "neither", "gone"
TARGET_UNCLEAR = "target unclear"
TARGET_GATE = "target_return"
REAPPEARANCE = "target_reappearance"  # 0 where the target's place came back into view without it
BACK, NOT_BACK = "hidden, returned", "hidden, not returned"  # labels of that gate
VANISHES = "vanish"
OTHER_STATES = frozenset({"state_reset", "state_frozen", "teleport"})  # findings that deny that the event went on


def diagnosis_of_case(results: ClipAnswers, case: Case) -> Diagnosis:
    """What a clip shows, from its answers; worked out once for all parts of a run."""
    whole = results.whole
    owner = whole if whole.of(case) is results.of(case) else results
    return owner.once(f"diagnosis of {case.id}", lambda: diagnose(results.of(case)))


def returned_state(results: ClipAnswers, case: Case) -> str | None:
    """What a clip that looked away and came back shows.

    Parameters
    ----------
    results
        All answers of a run, as they were measured.
    case
        A clip that came back.

    Returns
    -------
    str or None
        `went on`, `reset`, `neither` or `gone`; `target unclear` where only the target could tell which of the first
        two, or whether it is gone; None where nothing was to happen unseen, or nobody can tell.
    """
    diagnosis = diagnosis_of_case(results, case) if can_diagnose(results.of(case)) else None
    kinds = frozenset() if diagnosis is None else frozenset(finding.kind for finding in diagnosis.findings)
    if VANISHES in kinds or _target_is_missing_unlike_truth(results, case):
        return WITHOUT_TARGET
    outcome = results.score(case, OUTCOME)
    if outcome is None:
        return None
    if outcome <= RESET:
        # As at first and empty may look alike to the outcome: which of the two it is, only the target says.
        return TARGET_UNCLEAR if _target_return_is_unsure(results, case) else AS_AT_FIRST
    if outcome < WENT_ON or kinds & OTHER_STATES:
        return AS_NEITHER
    if _gate_misses_target_unlike_truth(results, case):
        return None
    if _target_return_is_unsure(results, case) and not _target_is_probably_back(results, case, diagnosis):
        return TARGET_UNCLEAR
    return AS_IT_SHOULD


def _target_is_probably_back(results: ClipAnswers, case: Case, diagnosis: Diagnosis | None) -> bool:
    """Whether the diagnosis denies that the object vanished, and the undecided gate leans towards its return."""
    target = results.answer(case, TARGET_GATE)
    denied = diagnosis is not None and VANISHES not in diagnosis.undecided_kinds
    return denied and target is not None and target.facts.get("guess") == BACK


def _target_is_missing_unlike_truth(results: ClipAnswers, case: Case) -> bool:
    """Whether a clip came back to the target's place without it, and its truth did not."""
    truth = results.truth_of(case)
    return results.score(case, REAPPEARANCE) == 0 and (truth is None or results.score(truth, REAPPEARANCE) != 0)


def _gate_misses_target_unlike_truth(results: ClipAnswers, case: Case) -> bool:
    """Whether the gate saw the target hide and not come back, unlike that of the truth."""
    truth = results.truth_of(case)
    answers = [None if one is None else results.answer(one, TARGET_GATE) for one in (case, truth)]
    return [answer is not None and answer.label == NOT_BACK for answer in answers] == [True, False]


def _target_return_is_unsure(results: ClipAnswers, case: Case) -> bool:
    """Whether nobody can tell if the target came back."""
    target = results.answer(case, TARGET_GATE)
    return target is not None and target.status == "unsure"
