"""Pixel fidelity of MemoBench: the clip beside the true video, as a whole and in each phase.

The score is that of the whole clip and needs no phases; the facts hold each phase and the drop from the visible to the
returned one. The paper names VGG for LPIPS and the public evaluator takes AlexNet: `paper` and `upstream` insist on
theirs. Upstream counts the frame that two phases share in both of them (docs/memobench-metrics.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from revisit.core import Case, Metric, NoScore, Score, Series, Unscored, metric
from revisit.core.phase_pairs import find_rows_of_frame_pairs, first_row_of_each_frame, frame_pairs_by_phase
from revisit.evidence.frames import FrameFacts
from revisit.metrics.fidelity import LPIPS, NO_FRAMES, PHASES, PSNR, Measure, ssim_measure
from revisit.suites.memobench.metrics import rules

NETS = {"upstream": "lpips_alex", "paper": "lpips_vgg"}


def rows_by_phase(
    case: Case, phases: rules.ClipPhases, index: np.ndarray, reference: np.ndarray, rule: str
) -> dict[str, np.ndarray]:
    """Rows of each phase; without the reference's own phases, cut from those of the whole clip."""
    closed = rule == "upstream"
    true_frames, true_phases = (case.annotations.get(name) for name in ("gt_frames", "gt_phases"))
    if true_frames and true_phases:
        maps = frame_pairs_by_phase(
            phases.count, int(true_frames), (phases.hidden, phases.returned), true_phases, closed
        )
        return {name: find_rows_of_frame_pairs(index, reference, maps[name]) for name in PHASES}
    all_rows = first_row_of_each_frame(index)
    ends = {name: phases.first_and_last_frame(name, closed) for name in PHASES}
    return {
        name: all_rows[(index[all_rows] >= first) & (index[all_rows] <= last)] for name, (first, last) in ends.items()
    }


def register_fidelity_metric(measure: Measure, *also: str) -> Metric:
    """The metric of a measure over the whole clip, with the phases in the facts."""

    def score_fidelity(
        case: Case, frames: FrameFacts, fidelity: Any, *, rule: str = "corrected", **params: Any
    ) -> Score | Unscored:
        values = measure.values(fidelity, **params)
        rules.check_rule(rule)
        if measure is LPIPS and fidelity.net != (net := NETS.get(rule, fidelity.net)):
            return Unscored("other_settings", f"the rule {rule} needs {net}, but {fidelity.net} was used")
        if not len(fidelity.index):
            return Unscored(NO_FRAMES)
        rows, note = {"all": first_row_of_each_frame(fidelity.index)}, {}
        try:
            rows |= rows_by_phase(
                case, rules.checked_clip_phases(case, frames), fidelity.index, fidelity.reference, rule
            )
        except NoScore as error:
            note = {"note": error.unscored.sentence}
        means = {name: rules.round_if_upstream_rule(values[at].mean(), 4, rule) for name, at in rows.items() if len(at)}
        visible, returned = means.get("visible"), means.get("returned")
        sign = 1 if measure.higher_is_better else -1
        facts: dict[str, object] = {
            "mean": {name: means.get(name) for name in rows},
            "frames": {name: len(at) for name, at in rows.items()},
            "drop": None if visible is None or returned is None else sign * (visible - returned),
            **measure.comparison_facts(fidelity),
            **note,
        }
        every = rows["all"]
        units = Series(frame=fidelity.index[every], other=fidelity.reference[every], value=values[every])
        return Score(means["all"], units=units, facts=facts)

    return metric(
        id=f"memo_{measure.id}", version=1, title=f"{measure.called} against the true video",
        needs=(Case, FrameFacts, measure.kind), suites=("memobench",), paper=f"{rules.PAPER} section 3.4",
        upstream=f"GT_ALL_{measure.called}", responds_to=("forgotten content", "wrong camera", *also),
        blind_to=("what differs",), **measure.card_arguments,
        doc=f"Mean {measure.called} over the whole clip; facts: each phase, and the drop from visible to returned.",
    )(score_fidelity)  # fmt: skip


memo_psnr = register_fidelity_metric(PSNR)
memo_ssim, memo_lpips = (
    register_fidelity_metric(ssim_measure("gray_border"), "blur"),
    register_fidelity_metric(LPIPS, "blur"),
)
