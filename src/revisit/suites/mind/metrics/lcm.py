"""lcm, long context memory: the predicted frames against the true ones, frame by frame.

Frame i of a prediction belongs to frame `mark_time` + i of the recording; both are compared as far as both go.
Squared error is on values from 0 to 1. Sizes and SSIM are those of the protocol: both pictures cover 1280 x 720, and
SSIM is that of torchmetrics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from revisit.core import Case, InvalidEvidence, Metric, Reason, Score, Series, Unscored, metric
from revisit.evidence.frames import FrameFacts
from revisit.metrics.fidelity import IDENTICAL_DB, LPIPS, MSE, PSNR, Measure, ssim_measure
from revisit.metrics.rules import is_upstream_rule
from revisit.suites.mind.metrics.selection import CHUNK, MIRROR, count_scored_frames, refuse_other_network

FAMILY = "lcm"  # the group of these metrics, by which users name it

PAPER = "MIND (arXiv 2602.08025)"
SSIM = ssim_measure("torchmetrics")
DOES_NOT_APPLY = Reason("does_not_apply", "a mirror clip has no ground truth; gsc compares it with itself")
INFINITE = Reason("unbounded", "identical frames have no finite PSNR, but upstream averages it anyway")


def score_counted_frames(
    case: Case,
    frames: FrameFacts,
    index: np.ndarray,
    other: np.ndarray,
    values: np.ndarray,
    rule: str,
    video_max_time: int | None = None,
) -> Score | Unscored:
    """Mean over the frames that count, of the first `video_max_time` where that is a number."""
    if case.condition == MIRROR:
        return Unscored(DOES_NOT_APPLY)
    true_frames = int(case.annotations["total_time"]) - int(case.annotations["mark_time"])
    sample_frames = frames.frame_count
    compared = int((index < true_frames).sum())
    looked_at = compared if video_max_time is None else min(compared, video_max_time)
    count = count_scored_frames(looked_at, rule)
    facts: dict[str, object] = {
        "sample_frames": sample_frames,
        "true_frames": true_frames,
        "compared": compared,
        "length": count,
        "fps": float(frames.fps),
    }
    if compared < min(true_frames, sample_frames):
        facts["note"] = "the ground-truth video has fewer frames than its action.json says"
    if not compared:
        return Unscored("no_overlap", "no predicted frame has a true frame to compare with", facts)
    if not count:
        sentence = f"upstream leaves out up to the last {CHUNK} frames, and there are only {looked_at}"
        return Unscored("refused", sentence, facts)
    if not np.isfinite(values[:count]).all():
        raise InvalidEvidence("a compared frame has a value that is not finite; every frame needs a number")
    units = Series(frame=index[:count], other=other[:count], value=values[:count])
    return Score(float(values[:count].mean()), units=units, facts=facts)


def psnr_score_with_identical_count(score: Score | Unscored, rule: str) -> Score | Unscored:
    """A mean PSNR with its identical frames counted; infinite upstream where there is one."""
    if isinstance(score, Unscored) or score.units is None:
        return score
    identical = int((score.units["value"] >= IDENTICAL_DB).sum())
    facts = {**score.facts, "psnr_is_capped": identical}
    if identical and is_upstream_rule(rule):
        return Unscored(INFINITE, facts=facts)
    return Score(score.value, units=score.units, facts=facts)


def measure_values(measure: Measure, comparison: Any, rule: str, params: Mapping[str, Any]) -> np.ndarray:
    """A number for each pair of frames, by the network that the rule takes."""
    if measure is LPIPS:
        refuse_other_network(comparison.net, "lpips_alex", rule)
    return measure.values(comparison, **params)


def register_memory_metric(measure: Measure, *also: str) -> Metric:
    """The metric of a measure between the predicted frames and the true ones."""

    def score_true_frames(
        case: Case,
        frames: FrameFacts,
        comparison: Any,
        *,
        rule: str = "corrected",
        video_max_time: int | None = None,
        **params: Any,
    ) -> Score | Unscored:
        values = measure_values(measure, comparison, rule, params)
        score = score_counted_frames(case, frames, comparison.index, comparison.reference, values, rule, video_max_time)
        return psnr_score_with_identical_count(score, rule) if measure is PSNR else score

    return metric(
        id=f"mind_lcm_{measure.id}", version=2, title=f"Memory: {measure.called}",
        needs=(Case, FrameFacts, measure.kind), suites=("mind",), paper=PAPER, upstream=f"lcm.avg_{measure.id}",
        responds_to=("forgotten content", "wrong camera", *also), blind_to=("what differs",), **measure.card_arguments,
        doc=f"Mean {measure.called} of the predicted frames against the true ones{measure.note}.",
    )(score_true_frames)  # fmt: skip


lcm_mse, lcm_psnr = register_memory_metric(MSE), register_memory_metric(PSNR)
lcm_ssim, lcm_lpips = register_memory_metric(SSIM, "blur"), register_memory_metric(LPIPS, "blur")
