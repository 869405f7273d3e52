"""gsc, generated scene consistency: a clip that goes out and back, compared with itself in reverse (docs/mind.md).

A clip that does not move returns to everything and would win. So the change from the first frame to the middle
(`motion_mse`, values from 0 to 1) guards the score. Below 3e-4, that is 35 dB, two pictures differ no more than the
same picture compressed twice; above 1e-3, 30 dB, compression does not explain it; between them the clip is not scored
either, because an error of the return would be of the size of the motion.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from revisit.core import Case, Metric, Reason, Score, Series, Unscored, metric
from revisit.evidence.frames import FrameFacts
from revisit.metrics.fidelity import LPIPS, MSE, PSNR, Measure
from revisit.metrics.rules import is_upstream_rule
from revisit.suites.mind.evidence import DistanceFromStart
from revisit.suites.mind.metrics.lcm import PAPER, SSIM, measure_values, psnr_score_with_identical_count
from revisit.suites.mind.metrics.selection import BATCH, MIRROR

FAMILY = "gsc"  # the group of these metrics, by which users name it

DOES_NOT_APPLY = Reason("does_not_apply", "only the clips of mirror_test go out and come back the same way")


def register_return_metric(measure: Measure) -> Metric:
    """The metric of a measure: its mean over the pairs of the way out and the way back, in the order of the way out."""

    def score_return_pairs(
        case: Case,
        frames: FrameFacts,
        departure: DistanceFromStart,
        comparison: Any,
        *,
        rule: str = "corrected",
        static: float = 3e-4,
        moving: float = 1e-3,
        **params: Any,
    ) -> Score | Unscored:
        values = measure_values(measure, comparison, rule, params)
        if case.condition != MIRROR:
            return Unscored(DOES_NOT_APPLY)
        upstream = is_upstream_rule(rule)
        count = frames.frame_count
        motion = float(departure.mse[len(departure.mse) // 2]) if len(departure.mse) else 0.0
        facts = {"sample_frames": count, "length": count // 2, "motion_mse": motion, "fps": float(frames.fps)}
        if count < 2:
            return Unscored("too_short", "a return needs more than one frame", facts)
        if upstream and (count % 2 or count // 2 % BATCH == 1):
            batch = f"upstream fails on {count} frames, because its last batch holds one pair"
            odd = f"upstream needs an even number of frames; there are {count}"
            return Unscored("refused", odd if count % 2 else batch, {**facts, "refused": True})
        if not upstream and motion < max(static, moving):
            little = f"the middle frame differs from the first by only {motion:.1e}"
            at_rest = f"{little}: the camera hardly moved, so there is no return to score"
            return Unscored("at_rest", at_rest if motion < static else f"{little}, too little to score a return", facts)
        if not len(values):
            return Unscored("no_overlap", "no frame on the way out has a matching frame on the way back", facts)
        order = np.argsort(comparison.reference)
        units = Series(frame=comparison.index[order], other=comparison.reference[order], value=values[order])
        score = Score(float(values.mean()), units=units, facts=facts)
        return psnr_score_with_identical_count(score, rule) if measure is PSNR else score

    return metric(
        id=f"mind_gsc_{measure.id}", version=2, title=f"Return: {measure.called}",
        needs=(Case, FrameFacts, DistanceFromStart, measure.kind), suites=("mind",), paper=PAPER,
        upstream=f"gsc.avg_{measure.id}", responds_to=("forgotten content", "overshoot"), blind_to=("what differs",),
        doc=f"Mean {measure.called} between the way out and the way back{measure.note}.", **measure.card_arguments,
    )(score_return_pairs)  # fmt: skip


gsc_mse, gsc_psnr, gsc_ssim, gsc_lpips = map(register_return_metric, (MSE, PSNR, SSIM, LPIPS))
