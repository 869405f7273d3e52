"""Pixel fidelity of MemoBench: the clip beside the true video, as a whole and in each phase.

Evidence: `FrameFidelity` and `PerceptualDistance`, with the reference aligned by phases (metrics/phase_pairs): the
whole clip onto the whole reference, and each phase onto its own. The score is that of the whole clip, and needs no
phases; where there are some, the facts hold the visible, hidden and returned one and the drop from the first to the
last of them (Table S6): positive where the return is worse.

PSNR is over all channels with a peak of 255, 99 dB for an identical frame. SSIM is of the family `gray_border`. The
paper names VGG for LPIPS and the public evaluator takes AlexNet: `paper` and `upstream` insist on theirs, `corrected`
takes the one that was observed and names it. Upstream counts the frame that two phases share in both of them.
All punish a camera that is off as hard as a wrong world: read them beside the camera's error.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from revisit.core import Case, Score, Series, Unscored, metric
from revisit.core.phase_pairs import first_rows, phase_maps, rows_of
from revisit.evidence.fidelity import FrameFidelity, PerceptualDistance
from revisit.evidence.frames import FrameFacts
from revisit.metrics.fidelity import (
    IDENTICAL_DB,
    NO_FRAMES,
    PHASES,
    psnr_per_frame,
    ssim_per_frame,
)
from revisit.suites.memobench.metrics.rules import PAPER, Marks, check_rule, marks, rounded

NETS = {"upstream": "lpips_alex", "paper": "lpips_vgg"}


def over_phases(
    case: Case,
    frames: FrameFacts,
    seen: FrameFidelity | PerceptualDistance,
    values: np.ndarray,
    rule: str,
    higher_is_better: bool = True,
) -> Score | Unscored:
    """Mean over the whole clip, with the phases' means and what is lost from the first to the last in the facts."""
    check_rule(rule)
    if not len(seen.index):
        return Unscored(NO_FRAMES)
    found = marks(case, frames)
    rows = {"all": first_rows(seen.index)}
    if isinstance(found, Marks):
        rows |= phase_rows(case, found, seen.index, seen.reference, rule)
    means = {name: rounded(values[at].mean(), 4, rule) if len(at) else None for name, at in rows.items()}
    visible, returned = means.get("visible"), means.get("returned")
    facts: dict[str, Any] = {
        "mean": means,
        "frames": {name: len(at) for name, at in rows.items()},
        "drop": None if visible is None or returned is None else (visible - returned) * (1 if higher_is_better else -1),
        "compared_at": [seen.width, seen.height],
    }
    if isinstance(found, Unscored):
        facts["note"] = found.sentence
    whole = rows["all"]
    units = Series(frame=seen.index[whole], other=seen.reference[whole], value=values[whole])
    return Score(rounded(values[whole].mean(), 4, rule), units=units, facts=facts)


def phase_rows(case: Case, found: Marks, index: np.ndarray, reference: np.ndarray, rule: str) -> dict[str, np.ndarray]:
    """Rows of each phase; without the reference's own phases, cut from those of the whole clip."""
    closed = rule == "upstream"
    true_frames, true_phases = (case.annotations.get(name) for name in ("gt_frames", "gt_phases"))
    if true_frames and true_phases:
        maps = phase_maps(found.count, int(true_frames), (found.hidden, found.returned), true_phases, closed)
        return {name: rows_of(index, reference, maps[name]) for name in PHASES}
    whole = first_rows(index)
    ends = {name: found.phase(name, closed) for name in PHASES}
    return {name: whole[(index[whole] >= first) & (index[whole] <= last)] for name, (first, last) in ends.items()}


@metric(
    id="memo_psnr", version=1, title="PSNR against the true video", unit="dB", range=(0, IDENTICAL_DB),
    higher_is_better=True, needs=(Case, FrameFacts, FrameFidelity), suites=("memobench",), paper=f"{PAPER} section 3.4",
    upstream="GT_ALL_PSNR", responds_to=("forgotten content", "wrong camera"), blind_to=("what differs",),
)  # fmt: skip
def memo_psnr(case: Case, frames: FrameFacts, seen: FrameFidelity, *, rule: str = "corrected") -> Score | Unscored:
    """Mean PSNR over the whole clip; the facts hold each phase and the drop from visible to returned."""
    return over_phases(case, frames, seen, psnr_per_frame(seen.mse), rule)


@metric(
    id="memo_ssim", version=1, title="SSIM against the true video", unit="score", range=(-1, 1), higher_is_better=True,
    needs=(Case, FrameFacts, FrameFidelity), suites=("memobench",), paper=f"{PAPER} section 3.4",
    upstream="GT_ALL_SSIM", responds_to=("forgotten content", "wrong camera", "blur"), blind_to=("what differs",),
)  # fmt: skip
def memo_ssim(
    case: Case, frames: FrameFacts, seen: FrameFidelity, *, rule: str = "corrected", family: str = "gray_border"
) -> Score | Unscored:
    """Mean SSIM over the whole clip; the facts hold each phase and the drop from visible to returned."""
    values = ssim_per_frame(seen, family)
    return values if isinstance(values, Unscored) else over_phases(case, frames, seen, values, rule)


@metric(
    id="memo_lpips", version=1, title="LPIPS against the true video", unit="distance", range=(0, None),
    higher_is_better=False, needs=(Case, FrameFacts, PerceptualDistance), suites=("memobench",),
    paper=f"{PAPER} section 3.4", upstream="GT_ALL_LPIPS", responds_to=("forgotten content", "wrong camera", "blur"),
    blind_to=("what differs",),
)  # fmt: skip
def memo_lpips(
    case: Case, frames: FrameFacts, seen: PerceptualDistance, *, rule: str = "corrected"
) -> Score | Unscored:
    """Mean LPIPS over the whole clip; the facts hold each phase, the drop from visible to returned, and the network."""
    wanted = NETS.get(check_rule(rule), seen.net)
    if seen.net != wanted:
        return Unscored("other_settings", f"the rule {rule} takes {wanted}, and {seen.net} was run")
    made = over_phases(case, frames, seen, seen.distance, rule, higher_is_better=False)
    if isinstance(made, Unscored):
        return made
    return Score(made.value, units=made.units, facts={**made.facts, "net": seen.net, "weights": seen.weights})
