"""Returning: does a view look the same when it is seen again?

Frames are paired by viewpoint, not by time: on a turn away and back, frames of the way out pair with the
frames of the way back that see the same view. `ReturnPairs` keeps, for each later frame, the earlier
frame whose view it matches best among those whose view was lost in between.
`return_consistency` compares patch descriptors at corresponding positions of each pair, on a scale set by
the clip itself: 0 is the similarity of patches that do not correspond, 1 that of patches that do in neighbouring
frames.
`return_features` does the same with a network's patches, which tell places apart better and depend less on light.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from revisit.core import Score, Series, Unscored, derived, metric
from revisit.evidence.appearance import NetworkPatches, PatchFeatures
from revisit.evidence.views import ReturnPairs, ViewRelations
from revisit.metrics.overlay import warp_fractional_points
from revisit.metrics.rows import true_runs
from revisit.metrics.view_gate import AWAY, SURE, drop_uncertain_single_samples, view_states

FAMILY = "returning"  # the group of these metrics, by which users name it

NEAR = 0.35  # strip of the earlier view that may be missing in the later one: most patches still correspond
RECOVERED = 0.15  # of the width or height must have come back: more than the cues' error
LEAST_PATCHES = 8
TOP = 0.9  # quantile of the similarities of neighbouring frames that is the ceiling
LEAST_CONTRAST = 0.02  # between floor and ceiling; below it the descriptors cannot tell places apart


@derived(makes=ReturnPairs, needs=(ViewRelations,), version=1)
def return_pairs(relations: ViewRelations) -> ReturnPairs:
    """For each frame after a return, the best earlier frame of the same viewpoint, with the warp between them."""
    n = len(relations.index)
    best: dict[int, tuple[float, int, float]] = {}  # later sample -> (rank, earlier sample, gap)
    for i in range(n - 2):
        state = view_states(relations, i)
        sure = relations.confidence[i] >= SURE
        away = drop_uncertain_single_samples((state == AWAY) & (np.arange(n) > i), sure)
        with np.errstate(invalid="ignore"):
            near = relations.seen[i] & (relations.lost[i] < NEAR) & ~away
        near = drop_uncertain_single_samples(near, sure)
        for start, end in true_runs(away):
            before = np.flatnonzero(near[i:start])
            after = np.flatnonzero(near[end:])
            if not len(before) or not len(after):
                continue
            worst = float(np.nan_to_num(relations.lost[i, start:end], nan=1.0).max())
            gap = float(relations.time[end + after[0]] - relations.time[i + before[-1]])
            following = next((a for a, _ in true_runs(away) if a >= end), n)
            for j in (int(k) + end for k in after):
                if relations.lost[i, j] > worst - RECOVERED:
                    continue
                rank = float((1 - relations.lost[i, j]) * (0.5 + 0.5 * relations.confidence[i, j]))
                if j < following and rank > best.get(j, (0.0, 0, 0.0))[0]:
                    best[j] = (rank, i, gap)
    later = np.array(sorted(best), int)
    earlier = np.array([best[j][1] for j in sorted(best)], int)
    return ReturnPairs(
        i=relations.index[earlier],
        j=relations.index[later],
        gap=np.array([best[j][2] for j in sorted(best)]),
        overlap=relations.share[earlier, later],
        warp=relations.warp[earlier, later],
        confidence=relations.confidence[earlier, later],
    )


def corresponding_patch_cosines(a: np.ndarray, b: np.ndarray, warp: np.ndarray) -> np.ndarray:
    """Cosine of each patch of a with the patch of b on which it lands; patches that land outside are left out."""
    rows, columns = a.shape[:2]
    y, x = (g.ravel() for g in np.mgrid[:rows, :columns])
    to = warp_fractional_points(warp, np.stack([(x + 0.5) / columns, (y + 0.5) / rows], axis=1))
    inside = (to >= 0).all(axis=1) & (to < 1).all(axis=1)
    u, v = (to[inside] * (columns, rows)).astype(int).T
    return np.asarray((a[y[inside], x[inside]].astype(np.float32) * b[v, u].astype(np.float32)).sum(axis=1))


def similarity_floor_and_ceiling(
    index: np.ndarray, tokens: np.ndarray, relations: ViewRelations
) -> tuple[float, float] | None:
    """Similarity of patches that do not correspond, and of patches that do, in frames close to each other.

    The second is the larger of two: of the same patches of the frames closest to each other, which is high where the
    camera is slow, and of the patches that correspond in neighbouring samples by the motion between them, which holds
    where it is fast. None where no two neighbouring samples can be joined: then nothing tells how alike one place is.
    """
    gap = np.diff(index)
    closest = np.flatnonzero(gap == gap.min())
    steps = [float(np.mean(corresponding_patch_cosines(tokens[k], tokens[k + 1], np.eye(3)))) for k in closest]
    moved = _similarity_along_motion(index, tokens, relations)
    if not moved:
        return None
    flat = tokens.reshape(len(tokens), -1, tokens.shape[-1])
    # half a frame away in reading order: patches of one frame that show different things
    other = [
        float((f.astype(np.float32) * np.roll(f, len(f) // 2 + 1, axis=0).astype(np.float32)).sum(axis=1).mean())
        for f in flat
    ]
    return float(np.median(other)), max(float(np.quantile(steps, TOP)), float(np.median(moved)))


def _similarity_along_motion(index: np.ndarray, tokens: np.ndarray, relations: ViewRelations) -> list[float]:
    """Mean similarity of corresponding patches for each two neighbouring samples that a cue joins surely."""
    at = {int(frame): row for row, frame in enumerate(index)}
    values = []
    for k in range(min(len(relations.index), len(relations.warp)) - 1):
        i, j = at.get(int(relations.index[k])), at.get(int(relations.index[k + 1]))
        if i is None or j is None or not relations.seen[k, k + 1] or relations.confidence[k, k + 1] < SURE:
            continue
        similarity = corresponding_patch_cosines(tokens[i], tokens[j], relations.warp[k, k + 1])
        if len(similarity) >= LEAST_PATCHES:
            values.append(float(similarity.mean()))
    return values


@metric(
    id="return_consistency", version=3, title="Same view after return", unit="score", range=(0, 1),
    higher_is_better=True, needs=(PatchFeatures, ReturnPairs, ViewRelations), gates=("view_return",),
    suites=("folder",),
    responds_to=("content changed while away", "content replaced on return", "texture lost on return"),
    blind_to=("frozen camera", "wrong motion that ends at the right view", "changes smaller than a patch"),
    rewards_unchanged=True,
)  # fmt: skip
def return_consistency(patches: PatchFeatures, pairs: ReturnPairs, relations: ViewRelations) -> Score | Unscored:
    """Mean similarity of corresponding patches over frames of one viewpoint before and after it was lost.

    Each pair's mean cosine c becomes (c - floor) / (ceiling - floor), clipped to 0-1: floor is that of patches that do
    not correspond, ceiling that of patches that do in neighbouring frames. The facts hold the curve of that value over
    the seconds since the view was last seen, and its slope per second.
    """
    return score_return_pairs(patches, pairs, relations)


@metric(
    id="return_features", version=3, title="Same view after return (network)", unit="score", range=(0, 1),
    higher_is_better=True, needs=(NetworkPatches, ReturnPairs, ViewRelations), gates=("view_return",),
    suites=("folder",),
    responds_to=("content changed while away", "content replaced on return", "texture lost on return"),
    blind_to=("frozen camera", "wrong motion that ends at the right view", "changes smaller than a patch", "light"),
    rewards_unchanged=True,
)  # fmt: skip
def return_features(patches: NetworkPatches, pairs: ReturnPairs, relations: ViewRelations) -> Score | Unscored:
    """Mean similarity of corresponding patches, by a network, over frames of one viewpoint before and after.

    As `return_consistency`, and not to be compared with it.
    """
    score = score_return_pairs(patches, pairs, relations)
    return replace(score, facts={**score.facts, "described_by": patches.maker})


def score_return_pairs(
    patches: PatchFeatures | NetworkPatches, pairs: ReturnPairs, relations: ViewRelations
) -> Score | Unscored:
    """How alike the patches of the pairs are, between the clip's own floor and ceiling."""
    if not len(pairs):
        return Unscored("no_return", "no view left the frame and was seen again")
    if len(patches.index) < 2:
        return Unscored("not_observed", "fewer than two frames have patch descriptors, so nothing can be compared")
    at = {int(frame): row for row, frame in enumerate(patches.index)}
    scale = similarity_floor_and_ceiling(patches.index, patches.tokens, relations)
    if scale is None:
        return Unscored(
            "not_followed",
            "no neighbouring frames could be laid over each other, so nothing tells how alike one place looks here",
        )
    floor, ceiling = scale
    if ceiling - floor < LEAST_CONTRAST:
        return Unscored(
            "not_followed",
            f"the patch descriptors do not tell places apart in this clip (floor {floor:.3f}, ceiling {ceiling:.3f})",
        )
    rows, cosines = [], []
    for k in range(len(pairs)):
        i, j = (nearest_row_within_half_step(at, patches.index, int(side[k])) for side in (pairs.i, pairs.j))
        if i is None or j is None or i == j:
            continue
        similarity = corresponding_patch_cosines(patches.tokens[i], patches.tokens[j], pairs.warp[k])
        if len(similarity) >= LEAST_PATCHES:
            rows.append(k)
            cosines.append(float(similarity.mean()))
    if not rows:
        return Unscored("not_observed", "the frames of the return pairs have no patch descriptors")
    value = np.clip((np.array(cosines) - floor) / (ceiling - floor), 0, 1)
    gap = pairs.gap[rows]
    scale_facts = {"pairs": len(rows), "floor": round(floor, 4), "ceiling": round(ceiling, 4)}
    facts = scale_facts | similarity_curve_facts(gap, value)
    units = Series(frame=pairs.j[rows], other=pairs.i[rows], gap=gap, value=value)
    return Score(float(value.mean()), raw=float(np.mean(cosines)), units=units, facts=facts)


def nearest_row_within_half_step(row_by_frame: dict[int, int], index: np.ndarray, frame: int) -> int | None:
    """Row of the frame, or of the nearest sampled one within half the usual step; None when there is none."""
    if frame in row_by_frame:
        return row_by_frame[frame]
    k = int(np.abs(index - frame).argmin())
    step = float(np.median(np.diff(index))) if len(index) > 1 else 0.0
    return k if abs(int(index[k]) - frame) <= step / 2 else None


def similarity_curve_facts(gap: np.ndarray, value: np.ndarray, bins: int = 5) -> dict[str, object]:
    """Mean value in up to five equal bins of seconds since last seen, and the slope of a straight line."""
    span = float(gap.max() - gap.min())
    which = np.minimum(((gap - gap.min()) / (span or 1.0) * bins).astype(int), bins - 1)
    full = np.unique(which)
    facts: dict[str, object] = {
        "curve_seconds": [round(float(gap[which == b].mean()), 3) for b in full],
        "curve_value": [round(float(value[which == b].mean()), 4) for b in full],
    }
    if len(gap) >= 4 and len(full) >= 2:
        facts["slope_per_second"] = round(float(np.polyfit(gap, value, 1)[0]), 5)
    return facts
