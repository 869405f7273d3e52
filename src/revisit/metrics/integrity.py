"""Integrity: is the picture stable from frame to frame, and from the first frame to the last?

WRBench's visual integrity (eq. 3, 11-13) is the worse of the similarity of the whole first and last frames, and a low
percentile over time of a low percentile over patches of how well patches of neighbouring sampled frames find each
other. `wr_integrity` reads a network's tokens, `visual_integrity_lite` classical descriptors: their numbers, and those
of two networks, are not to be compared. Patches that hold padding do not count.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np

from revisit.core import InvalidEvidence, PublishedMaker, Score, Series, Unscored, metric, per_second
from revisit.evidence.appearance import IntegrityTokens, PatchFeatures
from revisit.evidence.frames import FrameFacts
from revisit.metrics.rows import nearest_rows, unit_vectors


def best_patch_cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Best cosine of every patch of `a` in `b` and of every patch of `b` in `a`, clipped to 0-1."""
    cosines = a.reshape(-1, a.shape[-1]).astype(np.float32) @ b.reshape(-1, b.shape[-1]).astype(np.float32).T
    return np.clip(np.concatenate([cosines.max(axis=1), cosines.max(axis=0)]), 0, 1)


@metric(
    id="visual_integrity_lite", version=1, title="Visual integrity (classical descriptors)", unit="score",
    range=(0, 1), higher_is_better=True, needs=(PatchFeatures, FrameFacts), suites=("folder", "wrbench"),
    paper="arXiv:2606.20545 eq. 3, 11-13 (on DINOv2 tokens)",
    responds_to=("scene cut", "collapse of the picture", "ends in another place"),
    blind_to=("frozen camera", "object replaced by one that looks alike", "slow drift between neighbouring frames"),
)  # fmt: skip
def visual_integrity(
    features: PatchFeatures, facts: FrameFacts, *, rate: float = 3.0, at_most: int = 24, percentile: float = 20.0
) -> Score | Unscored:
    """min(cos(first, last), P20 over time of P20 over patches of the best cosines between sampled neighbours)."""
    for name, vectors in (("tokens", features.tokens), ("whole", features.whole)):
        lengths = np.linalg.norm(np.asarray(vectors, dtype=np.float32), axis=-1)
        if lengths.size and np.abs(lengths - 1).max() > 0.02:
            raise InvalidEvidence(
                f"PatchFeatures.{name} must be unit vectors; lengths range from {lengths.min():.3g} to "
                f"{lengths.max():.3g}. Divide each by its length"
            )
    if len(features.index) < 2:
        return Unscored("too_short", "at least two frames are needed for a comparison")
    frames = frames_at_rate(features.index, facts.fps, rate, at_most)
    return temporal_integrity_score(features, features.tokens, features.whole, frames, percentile)


def temporal_integrity_score(
    evidence: PatchFeatures | IntegrityTokens,
    patch_tokens: np.ndarray,
    frame_tokens: np.ndarray,
    frames: np.ndarray,
    percentile: float,
) -> Score:
    """The score of unit descriptors of patches, (N, ..., D), and of whole frames, at those nearest to some frames."""
    valid = evidence.valid if isinstance(evidence, IntegrityTokens) else None
    rows = np.unique(nearest_rows(evidence.index, frames))
    ends = float(np.clip(frame_tokens[rows[0]].astype(float) @ frame_tokens[rows[-1]].astype(float), 0, 1))
    patches = {row: patch_tokens[row] if valid is None else patch_tokens[row][valid[row]] for row in rows.tolist()}
    likeness = [best_patch_cosines(patches[i], patches[j]) for i, j in pairwise(rows.tolist())]
    local = np.array([np.percentile(one, percentile) for one in likeness])
    neighbours = float(np.percentile(local, percentile))
    units = Series(frame=evidence.index[rows[1:]], other=evidence.index[rows[:-1]], value=local)
    facts = {"first_to_last": ends, "neighbours": neighbours, "sampled_frames": len(rows)}
    return Score(min(ends, neighbours), units=units, facts=facts)


def frames_at_rate(index: np.ndarray, fps: float, rate: float, at_most: int) -> np.ndarray:
    """So many frames a second of a clip that ends with the last of some frames."""
    if not np.isfinite(fps):
        raise InvalidEvidence(f"FrameFacts.fps is {fps}; expected a number above zero")
    return per_second(rate, at_most=at_most).pick(int(index[-1]) + 1, fps)


@metric(
    id="wr_integrity", version=1, title="Visual integrity", unit="score", range=(0, 1), higher_is_better=True,
    needs=(IntegrityTokens, FrameFacts), suites=("folder", "wrbench"), paper="arXiv:2606.20545 eq. 3, 11-13",
    upstream="D2", published_by=(PublishedMaker("DINOv2", "described_by", ("dinov2",)),),
    responds_to=("scene cut", "collapse of the picture", "ends in another place"),
    blind_to=("frozen camera", "object replaced by one that looks alike", "slow drift between neighbouring frames"),
)  # fmt: skip
def wr_integrity(
    patches: IntegrityTokens, facts: FrameFacts, *, rate: float = 3.0, at_most: int = 24, percentile: float = 20.0
) -> Score | Unscored:
    """min(cos(first, last), P20 over time of P20 over patches of the best cosines between sampled neighbours)."""
    if patches.valid.dtype != bool:
        raise InvalidEvidence(f"IntegrityTokens.valid is {patches.valid.dtype}; each patch needs a boolean")
    if not patches.valid.any(axis=1).all():
        raise InvalidEvidence("IntegrityTokens.valid leaves no patch in some frame; each frame needs one that counts")
    if len(patches.index) < 2:
        return Unscored("too_short", "at least two frames are needed for a comparison")
    unit = partial(unit_vectors, dtype=np.float32)
    tokens, whole = unit(patches.tokens), unit(patches.whole)
    score = temporal_integrity_score(
        patches, tokens, whole, frames_at_rate(patches.index, facts.fps, rate, at_most), percentile
    )
    # The paper's check of its own choice: the mean of the patches that count in the place of the frame's own token.
    ends = unit(np.stack([tokens[row][patches.valid[row]].mean(axis=0) for row in (0, len(patches.index) - 1)]))
    likeness = float(np.clip(ends[0].astype(float) @ ends[1].astype(float), 0, 1))
    details = {
        "first_to_last_patch_mean": likeness, "with_patch_mean": min(likeness, score.facts["neighbours"]),
        "patches": int(patches.valid[0].sum()), "described_by": patches.maker,
        "middle_of_the_frame_only": patches.cropped,
    }  # fmt: skip
    return replace(score, facts={**score.facts, **details})
