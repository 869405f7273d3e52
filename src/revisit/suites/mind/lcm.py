"""lcm, long context memory: the predicted frames against the true ones, frame by frame.

Frame i of a prediction belongs to frame `mark_time` + i of the recording; both are compared as far as both go.
Squared error is on values from 0 to 1. Sizes and SSIM are those of the protocol: both pictures cover 1280 x 720, and
SSIM is that of torchmetrics.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from revisit.core import Case, InvalidEvidence, Reason, Score, Series, Unscored, metric
from revisit.evidence.fidelity import FrameFidelity, PerceptualDistance
from revisit.evidence.frames import FrameFacts
from revisit.metrics.fidelity import IDENTICAL_DB, psnr_per_frame, ssim_per_frame
from revisit.suites.mind.selection import CHUNK, MIRROR, another_network, check_rule, frames_scored

DOES_NOT_APPLY = Reason("does_not_apply", "a mirror clip has no ground truth; gsc compares it with itself")
INFINITE = Reason("unbounded", "identical frames have no finite PSNR, and upstream averages it all the same")


def over_frames(
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
    sample_frames = int(frames.index[-1]) + 1 if len(frames.index) else 0
    compared = int((index < true_frames).sum())
    looked_at = compared if video_max_time is None else min(compared, video_max_time)
    count = frames_scored(looked_at, rule)
    facts: dict[str, Any] = {
        "sample_frames": sample_frames,
        "true_frames": true_frames,
        "compared": compared,
        "length": count,
        "fps": float(frames.fps),
    }
    if compared < min(true_frames, sample_frames):
        facts["note"] = "the ground-truth video has fewer frames than its action.json says"
    if not compared:
        return Unscored("no_overlap", "no predicted frame has a true frame to be compared with", facts)
    if not count:
        return Unscored(
            "refused", f"upstream leaves out the last {CHUNK} frames or fewer, and there are only {looked_at}", facts
        )
    if not np.isfinite(values[:count]).all():
        raise InvalidEvidence("a compared frame has a value that is not finite; every frame needs a number")
    units = Series(frame=index[:count], other=other[:count], value=values[:count])
    return Score(float(values[:count].mean()), units=units, facts=facts)


def psnr_score(made: Score | Unscored, rule: str) -> Score | Unscored:
    """A mean PSNR with its identical frames counted; infinite upstream where there is one."""
    if isinstance(made, Unscored) or made.units is None:
        return made
    identical = int((made.units["value"] >= IDENTICAL_DB).sum())
    facts = {**made.facts, "psnr_is_capped": identical}
    if identical and check_rule(rule):
        return Unscored(INFINITE, facts=facts)
    return Score(made.value, units=made.units, facts=facts)


@metric(
    id="mind_lcm_mse", version=2, title="Memory: squared error", unit="mse", range=(0, 1), higher_is_better=False,
    needs=(Case, FrameFacts, FrameFidelity), suites=("mind",), paper="MIND (arXiv 2602.08025)", upstream="lcm.avg_mse",
    responds_to=("forgotten content", "wrong camera"), blind_to=("what differs",),
)  # fmt: skip
def lcm_mse(
    case: Case, frames: FrameFacts, seen: FrameFidelity, *, rule: str = "corrected", video_max_time: int | None = None
) -> Score | Unscored:
    """Mean squared error of the predicted frames against the true ones, values from 0 to 1."""
    return over_frames(case, frames, seen.index, seen.reference, seen.mse / 255.0**2, rule, video_max_time)


@metric(
    id="mind_lcm_psnr", version=2, title="Memory: PSNR", unit="dB", range=(0, IDENTICAL_DB), higher_is_better=True,
    needs=(Case, FrameFacts, FrameFidelity), suites=("mind",), paper="MIND (arXiv 2602.08025)", upstream="lcm.avg_psnr",
    responds_to=("forgotten content", "wrong camera"), blind_to=("what differs",),
)  # fmt: skip
def lcm_psnr(
    case: Case, frames: FrameFacts, seen: FrameFidelity, *, rule: str = "corrected", video_max_time: int | None = None
) -> Score | Unscored:
    """Mean PSNR of the predicted frames against the true ones; 99 dB for an identical frame."""
    made = over_frames(case, frames, seen.index, seen.reference, psnr_per_frame(seen.mse), rule, video_max_time)
    return psnr_score(made, rule)


@metric(
    id="mind_lcm_ssim", version=2, title="Memory: SSIM", unit="score", range=(-1, 1), higher_is_better=True,
    needs=(Case, FrameFacts, FrameFidelity), suites=("mind",), paper="MIND (arXiv 2602.08025)", upstream="lcm.avg_ssim",
    responds_to=("forgotten content", "wrong camera", "blur"), blind_to=("what differs",),
)  # fmt: skip
def lcm_ssim(
    case: Case,
    frames: FrameFacts,
    seen: FrameFidelity,
    *,
    rule: str = "corrected",
    video_max_time: int | None = None,
    family: str = "torchmetrics",
) -> Score | Unscored:
    """Mean SSIM of the predicted frames against the true ones."""
    values = ssim_per_frame(seen, family)
    if isinstance(values, Unscored):
        return values
    return over_frames(case, frames, seen.index, seen.reference, values, rule, video_max_time)


@metric(
    id="mind_lcm_lpips", version=2, title="Memory: LPIPS", unit="distance", range=(0, None), higher_is_better=False,
    needs=(Case, FrameFacts, PerceptualDistance), suites=("mind",), paper="MIND (arXiv 2602.08025)",
    upstream="lcm.avg_lpips", responds_to=("forgotten content", "wrong camera", "blur"), blind_to=("what differs",),
)  # fmt: skip
def lcm_lpips(
    case: Case,
    frames: FrameFacts,
    seen: PerceptualDistance,
    *,
    rule: str = "corrected",
    video_max_time: int | None = None,
) -> Score | Unscored:
    """Mean LPIPS of the predicted frames against the true ones."""
    if (other := another_network(seen.net, "lpips_alex", rule)) is not None:
        return other
    return over_frames(case, frames, seen.index, seen.reference, seen.distance, rule, video_max_time)
