"""Integrity: does the picture hold together from frame to frame, and from its first frame to its last?

Evidence: `PatchFeatures`. Form of WRBench's visual integrity (eq. 3, 11-13): the worse of

- the likeness of the first and the last frame as wholes, and
- a low percentile over time of a low percentile over patches of how well patches of neighbouring
  sampled frames find each other.

WRBench reads DINOv2 tokens. On classical descriptors the numbers lie elsewhere, hence another metric id.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from revisit.core import InvalidEvidence, Score, Series, Unscored, metric
from revisit.evidence.appearance import PatchFeatures
from revisit.evidence.frames import FrameFacts
from revisit.metrics.rows import nearest_rows, require_rows


def validate(features: PatchFeatures) -> None:
    """Raise InvalidEvidence unless tokens and whole descriptors belong to the same frames and are unit vectors."""
    require_rows(features, tokens=(None, None, None), whole=(None,))
    for name in ("tokens", "whole"):
        lengths = np.linalg.norm(np.asarray(getattr(features, name), dtype=np.float32), axis=-1)
        if lengths.size and np.abs(lengths - 1).max() > 0.02:
            raise InvalidEvidence(
                f"PatchFeatures.{name} must be unit vectors; lengths reach from {lengths.min():.3g} to "
                f"{lengths.max():.3g}. Divide each by its length"
            )


def sample_frames(count: int, fps: float, rate: float = 3.0, at_most: int = 24) -> np.ndarray:
    """Frame numbers at `rate` per second with both ends, thinned evenly to `at_most`."""
    step = max(fps / rate, 1.0)
    frames = np.unique(np.r_[0, np.round(np.arange(0, count, step)).astype(int), count - 1])
    frames = frames[frames < count]
    if len(frames) > at_most:
        frames = frames[np.linspace(0, len(frames) - 1, at_most).astype(int)]
    return frames


def best_likeness(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Best cosine of every patch of `a` in `b` and of every patch of `b` in `a`, clipped to 0-1."""
    cosines = a.reshape(-1, a.shape[-1]).astype(np.float32) @ b.reshape(-1, b.shape[-1]).astype(np.float32).T
    return np.clip(np.concatenate([cosines.max(axis=1), cosines.max(axis=0)]), 0, 1)


@metric(
    id="visual_integrity_lite",
    version=1,
    title="Visual integrity (classical descriptors)",
    unit="score",
    range=(0, 1),
    higher_is_better=True,
    needs=(PatchFeatures, FrameFacts),
    suites=("folder", "wrbench"),
    paper="arXiv:2606.20545 eq. 3, 11-13 (on DINOv2 tokens)",
    responds_to=("scene cut", "collapse of the picture", "ends in another place"),
    blind_to=("frozen camera", "object replaced by one that looks alike", "slow drift between neighbouring frames"),
)
def visual_integrity(
    features: PatchFeatures, facts: FrameFacts, *, rate: float = 3.0, at_most: int = 24, percentile: float = 20.0
) -> Score | Unscored:
    """min(cos(first, last), P20 over time of P20 over patches of the best cosines between sampled neighbours)."""
    validate(features)
    if len(features.index) < 2:
        return Unscored("only one frame: integrity compares frames with each other")
    frames = sample_frames(int(features.index[-1]) + 1, facts.fps, rate, at_most)
    rows = np.unique(nearest_rows(features.index, frames))
    ends = float(np.clip(features.whole[rows[0]].astype(float) @ features.whole[rows[-1]].astype(float), 0, 1))
    local = np.array(
        [np.percentile(best_likeness(features.tokens[i], features.tokens[j]), percentile) for i, j in pairwise(rows)]
    )
    along = float(np.percentile(local, percentile))
    units = Series(frame=features.index[rows[1:]], other=features.index[rows[:-1]], value=local)
    return Score(
        min(ends, along), units=units,
        facts={"first_to_last": ends, "neighbours": along, "sampled_frames": len(rows)},
    )  # fmt: skip
