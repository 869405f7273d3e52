"""Motion smoothness of MemoBench: does flow carry each sampled frame into the next, before and after the absence?

    corrected, paper   100 * exp(-e / tau), e pooled over all pairs of both phases (Eq. 3)
    upstream           mean over the phases of exp(-e / tau), e pooled within each; 0 for a phase of less than 3 samples

e is the mean absolute difference of a pair (0-1), tau = 0.15. `paper` and `upstream` read the flow the wrong way round:
docs/memobench-metrics.md shows what that does. A camera that rests is perfectly smooth under every rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

import numpy as np

from revisit.core import Case, PublishedMaker, Score, Series, Unscored
from revisit.evidence.frames import FrameFacts
from revisit.suites.memobench.evidence import WarpErrors
from revisit.suites.memobench.metrics import rules

PHASES = {rules.VISIBLE: 0, rules.RETURNED: 2}  # as WarpErrors numbers them
LEAST_PAIRS = 2
SHORTEST_RETURN = 2  # frames after the first returned one, below which upstream leaves the phase out
UPSTREAM_STEP = 4


def drop_pairs_ending_on_hidden_frame(warps: WarpErrors, first_hidden_frame: int) -> WarpErrors:
    """The evidence without pairs that end on the first hidden frame, which only upstream counts as visible."""
    keep = (warps.phase != PHASES[rules.VISIBLE]) | (warps.other < first_hidden_frame)
    columns = {f.name: value[keep] for f in fields(warps) if isinstance(value := getattr(warps, f.name), np.ndarray)}
    return replace(warps, closed=False, **columns)


def smoothness_or_zero_if_too_few(errors: np.ndarray, tau: float) -> float:
    """exp(-e / tau) of the mean error; 0 where there are too few pairs, as the public evaluator has it."""
    return float(np.exp(-np.mean(errors) / tau)) if len(errors) >= LEAST_PAIRS else 0.0


@rules.percent_metric(
    id="memo_motion_smoothness", version=2, title="Motion smoothness", needs=(Case, FrameFacts, WarpErrors),
    paper=f"{rules.PAPER} eq. 3", upstream="TemporalScore", responds_to=("flicker", "boiling texture", "scene cut"),
    blind_to=("frozen camera", "motion that is smooth but wrong", "what happens while hidden"),
    published_by=(PublishedMaker("RAFT-large", "flow", ("raft-large",)),),
)  # fmt: skip
def motion_smoothness(
    case: Case,
    frames: FrameFacts,
    warps: WarpErrors,
    *,
    rule: str = "corrected",
    tau: float = 0.15,
    step: int = UPSTREAM_STEP,
) -> Score | Unscored:
    """100 * exp(-e / tau), with e the mean difference of sampled frames that flow should carry into each other.

    Facts: the score before it is put on 0-100 (`temporal_score`) and that of each phase; the same clip's score with
    no flow at all (`without_flow`); how far the picture moves; the step in frames and seconds, and who made the flow.
    """
    rules.check_rule(rule)
    phases = rules.checked_clip_phases(case, frames)
    if (rule != "corrected" and warps.step != step) or (rule == "upstream" and not warps.closed):
        return Unscored(
            "other_settings",
            f"the pairs are {warps.step} frames apart with boundary frames {'' if warps.closed else 'not '}shared; "
            f"this rule asks for {step}, and upstream for shared ones: set `step` and `closed` of the flow's observer "
            "in the protocol",
        )
    if rule != "upstream":
        warps = drop_pairs_ending_on_hidden_frame(warps, phases.hidden)
    errors = warps.error if rule == "corrected" else warps.wrong_way
    mean = float(errors.mean()) if len(errors) else None
    per_phase = {name: errors[warps.phase == code] for name, code in PHASES.items()}
    scores = {name: smoothness_or_zero_if_too_few(part, tau) for name, part in per_phase.items()}
    if rule == "upstream":  # the mean of the phases' own scores, before it is put on 0-100 and rounded again
        if phases.count - 1 - phases.returned < SHORTEST_RETURN:
            scores.pop(rules.RETURNED)
        score = rules.round_if_upstream_rule(float(np.mean(list(scores.values()))), 4, rule)
        facts = _smoothness_facts(warps, scores, tau)
    else:
        facts = _smoothness_facts(warps, {name: one or None for name, one in scores.items()}, tau)
        for name, part in per_phase.items():
            if len(part) < LEAST_PAIRS:
                first, last = phases.first_and_last_frame(name)
                return Unscored(
                    "too_short",
                    f"the {last - first + 1} frames of the {name} phase hold {len(part)} pairs that are {warps.step} "
                    f"frames apart, and {LEAST_PAIRS} are needed",
                    facts,
                )
        score = float(np.exp(-float(errors.mean()) / tau))
    units = Series(frame=warps.index, other=warps.other, value=np.exp(-errors / tau), still=np.exp(-warps.still / tau))
    return Score(rules.scale_to_percent(score, 0, 1, rule), mean, units, {**facts, "temporal_score": score})


def _smoothness_facts(warps: WarpErrors, scores: Mapping[str, float | None], tau: float) -> dict[str, object]:
    pairs = {name: int((warps.phase == code).sum()) for name, code in PHASES.items()}
    facts: dict[str, object] = {
        "by_phase": scores,
        "pairs": pairs,
        "step": warps.step,
        "seconds": warps.step / warps.fps,
        "flow": warps.maker,
        "compared_at": [warps.width, warps.height],
    }
    if len(warps.index):
        facts |= {
            "without_flow": float(np.exp(-warps.still.mean() / tau)),
            "compared_share": float(warps.compared.mean()),
            "motion": float(warps.length.mean()),
        }
    return facts
