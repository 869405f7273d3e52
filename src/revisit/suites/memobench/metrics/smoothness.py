"""Motion smoothness of MemoBench: does flow carry each sampled frame into the next, before and after the absence?

    corrected, paper   100 * exp(-e / tau), e pooled over all pairs of both phases (Eq. 3)
    upstream           mean over the phases of exp(-e / tau), e pooled within each; 0 for a phase of less than 3 samples

e is the mean absolute difference of a pair (0-1), tau = 0.15. `paper` and `upstream` read the flow the wrong way round:
docs/memobench-metrics.md shows what that does. A camera that rests is perfectly smooth under every rule.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from revisit.core import Case, PublishedMaker, Score, Series, Unscored, metric
from revisit.evidence.frames import FrameFacts
from revisit.suites.memobench.evidence import WarpErrors
from revisit.suites.memobench.metrics.rules import PAPER, RETURNED, VISIBLE, Marks, check_rule, marks, percent, rounded

PHASES = {VISIBLE: 0, RETURNED: 2}  # as WarpErrors numbers them
LEAST_PAIRS = 2
SHORTEST_RETURN = 2  # frames after the first returned one, below which upstream leaves the phase out
UPSTREAM_STEP = 4


def half_open(seen: WarpErrors, hidden: int) -> WarpErrors:
    """The evidence without pairs that end on the first hidden frame, which only upstream counts as visible."""
    keep = (seen.phase != PHASES[VISIBLE]) | (seen.other < hidden)
    columns = {f.name: value[keep] for f in fields(seen) if isinstance(value := getattr(seen, f.name), np.ndarray)}
    return replace(seen, closed=False, **columns)


def smoothness(errors: np.ndarray, tau: float) -> float:
    """exp(-e / tau) of the mean error; 0 where there are too few pairs, as the public evaluator has it."""
    return float(np.exp(-np.mean(errors) / tau)) if len(errors) >= LEAST_PAIRS else 0.0


@metric(
    id="memo_motion_smoothness", version=2, title="Motion smoothness", unit="percent", range=(0, 100),
    higher_is_better=True, needs=(Case, FrameFacts, WarpErrors), suites=("memobench",), paper=f"{PAPER} eq. 3",
    upstream="TemporalScore", responds_to=("flicker", "boiling texture", "scene cut"),
    blind_to=("frozen camera", "motion that is smooth but wrong", "what happens while hidden"),
    published_by=(PublishedMaker("RAFT-large", "flow", ("raft-large",)),),
)  # fmt: skip
def motion_smoothness(
    case: Case,
    frames: FrameFacts,
    seen: WarpErrors,
    *,
    rule: str = "corrected",
    tau: float = 0.15,
    step: int = UPSTREAM_STEP,
) -> Score | Unscored:
    """100 * exp(-e / tau), with e the mean difference of sampled frames that flow should carry into each other.

    Facts: the score before it is put on 0-100 (`temporal_score`) and that of each phase; the same clip's score with
    no flow at all (`without_flow`); how far the picture moves; the step in frames and seconds, and who made the flow.
    """
    check_rule(rule)
    found = marks(case, frames)
    if isinstance(found, Unscored):
        return found
    if rule == "upstream":
        return _upstream(found, seen, tau, step)
    if rule == "paper" and seen.step != step:
        return _other_step(seen, step)
    seen = half_open(seen, found.hidden)
    errors = seen.wrong_way if rule == "paper" else seen.error
    per_phase = {name: errors[seen.phase == code] for name, code in PHASES.items()}
    facts = _facts(seen, {name: smoothness(part, tau) or None for name, part in per_phase.items()}, tau)
    for name, part in per_phase.items():
        if len(part) < LEAST_PAIRS:
            first, last = found.phase(name)
            return Unscored(
                "too_short",
                f"the {last - first + 1} frames of the {name} phase hold {len(part)} pairs that are {seen.step} frames "
                f"apart, and {LEAST_PAIRS} are needed",
                facts,
            )
    mean = float(errors.mean())
    score = float(np.exp(-mean / tau))
    return Score(percent(score, 0, 1, rule), mean, _units(seen, errors, tau), {**facts, "temporal_score": score})


def _upstream(found: Marks, seen: WarpErrors, tau: float, step: int) -> Score | Unscored:
    """The mean of the phases' own scores, a phase of few samples counting as 0."""
    if seen.step != step or not seen.closed:
        return _other_step(seen, step)
    scores = {name: smoothness(seen.wrong_way[seen.phase == code], tau) for name, code in PHASES.items()}
    if found.count - 1 - found.returned < SHORTEST_RETURN:
        scores.pop(RETURNED)
    score = rounded(float(np.mean(list(scores.values()))), 4, "upstream")  # before it is put on 0-100 and rounded again
    facts = {**_facts(seen, scores, tau), "temporal_score": score}
    mean = float(seen.wrong_way.mean()) if len(seen.index) else None
    return Score(percent(score, 0, 1, "upstream"), mean, _units(seen, seen.wrong_way, tau), facts)


def _other_step(seen: WarpErrors, step: int) -> Unscored:
    phases = "shared" if seen.closed else "not shared"
    return Unscored(
        "other_settings",
        f"the pairs are {seen.step} frames apart with boundary frames {phases}; this rule asks for {step}, "
        "and upstream for shared ones: set `step` and `closed` of the flow's observer in the protocol",
    )


def _facts(seen: WarpErrors, scores: dict[str, Any], tau: float) -> dict[str, Any]:
    pairs = {name: int((seen.phase == code).sum()) for name, code in PHASES.items()}
    facts: dict[str, Any] = {
        "by_phase": scores,
        "pairs": pairs,
        "step": seen.step,
        "seconds": seen.step / seen.fps,
        "flow": seen.maker,
        "compared_at": [seen.width, seen.height],
    }
    if len(seen.index):
        facts |= {
            "without_flow": float(np.exp(-seen.still.mean() / tau)),
            "compared_share": float(seen.compared.mean()),
            "motion": float(seen.length.mean()),
        }
    return facts


def _units(seen: WarpErrors, errors: np.ndarray, tau: float) -> Series:
    return Series(frame=seen.index, other=seen.other, value=np.exp(-errors / tau), still=np.exp(-seen.still / tau))
