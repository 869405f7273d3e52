"""Rendering consistency of MBench: does the view return in the light and the style it was left in?

Lighting: D = mean over pairs of alpha |dL| + (1 - alpha) ||d(a, b)||, score = exp(-D / tau) (eq. 9-12); alpha and tau
are not published: 0.5 and 10 are ours. Style: ||dG|| / (||G|| + ||G'||) of Gram matrices of neighbouring frames, ||dG||
under `paper` (eq. 13), which tells of flicker and not of memory. docs/mbench-metrics.md has the decisions.
"""

from __future__ import annotations

import numpy as np

from revisit.core import Case, PublishedMaker, Score, Series, Unscored
from revisit.evidence.appearance import LabStats
from revisit.metrics.rows import nearest_rows
from revisit.suites.mbench.evidence import FoldPairs, GramDistances
from revisit.suites.mbench.metrics.rules import PAPER, check_rule, score_metric, unscored_without_pairs

AROUND = 2  # frames on either side of a frame of a pair
PARTS = 5  # segments of a text-conditioned clip, the first of which is compared with the last


@score_metric(
    id="mb_rendering_lighting", version=1, title="Lighting consistency", needs=(Case, LabStats, FoldPairs),
    paper=f"{PAPER} eq. 9-12", upstream="rendering_lighting",
    responds_to=("exposure drift", "colour drift", "lighting change"),
    blind_to=("local shadows", "light that moves while its mean stays"),
)  # fmt: skip
def rendering_lighting(
    case: Case, lab: LabStats, pairs: FoldPairs, *, alpha: float = 0.5, tau: float = 10.0
) -> Score | Unscored:
    """exp(-D / tau), with D the change of mean lightness and colour between the way out and the way back."""
    if len(lab.index) < 2:
        return Unscored("too_short", "comparing light between two segments needs at least two frames")
    if case.annotations.get("setting") == "T":
        parts = np.array_split(np.arange(len(lab.index)), PARTS)
        if not len(parts[-1]):
            return Unscored("too_short", f"{len(lab.index)} frames are too few for {PARTS} segments")
        frame, other = lab.index[parts[0][:1]], lab.index[parts[-1][:1]]
        early, late = (lab.mean[part].astype(float).mean(axis=0)[None] for part in (parts[0], parts[-1]))
        pairing = "first and last fifth"
    else:
        if not len(pairs.frame):
            return unscored_without_pairs(pairs.note)
        frame, other, pairing = pairs.frame, pairs.other, pairs.how
        early, late = (mean_lab_around_frames(lab, frames) for frames in (frame, other))
    change = late - early
    lightness, colour = np.abs(change[:, 0]), np.hypot(change[:, 1], change[:, 2])
    deviation = alpha * lightness + (1 - alpha) * colour
    mean = float(deviation.mean())
    facts = {
        "pairs": len(frame), "pairs_chosen_by": pairing, "lightness": float(change[:, 0].mean()),
        "colour": float(colour.mean()), "alpha": alpha, "tau": tau, "note": pairs.note,
    }  # fmt: skip
    units = Series(frame=frame, other=other, value=np.exp(-deviation / tau), raw=deviation)
    return Score(float(np.exp(-mean / tau)), raw=mean, units=units, facts=facts)


def mean_lab_around_frames(lab: LabStats, frames: np.ndarray) -> np.ndarray:
    """Mean CIELAB of each frame and its neighbours."""
    rows = nearest_rows(lab.index, frames)
    parts = [lab.mean[max(0, row - AROUND) : row + AROUND + 1].astype(float).mean(axis=0) for row in rows.tolist()]
    return np.stack(parts)


@score_metric(
    id="mb_rendering_style", version=1, title="Style consistency", needs=(GramDistances,), paper=f"{PAPER} eq. 13",
    upstream="rendering_style", responds_to=("style change", "flicker"),
    blind_to=("memory, except in `return_score`", "layout"),
    published_by=(PublishedMaker("VGG-19", "described_by", ("vgg19", "vgg-19")),),
)  # fmt: skip
def rendering_style(grams: GramDistances, *, rule: str = "corrected") -> Score | Unscored:
    """1 minus the mean distance of Gram matrices of neighbouring frames, between 0 and 1."""
    check_rule(rule)
    near = ~grams.fold
    if not near.any():
        return Unscored("not_observed", "no neighbouring frames were compared")
    distance = mean_gram_distances_over_layers(grams, rule)
    value = 1 - distance
    layers = grams.difference.shape[1]
    facts: dict[str, object] = {"pairs": int(near.sum()), "layers": layers, "described_by": grams.maker}
    if grams.fold.any():
        facts["return_score"] = float(np.clip(value[grams.fold].mean(), 0, 1))
    units = Series(frame=grams.frame[near], other=grams.other[near], value=value[near], raw=distance[near])
    mean = float(value[near].mean())
    return Score(float(np.clip(mean, 0, 1)), raw=float(distance[near].mean()), units=units, facts=facts)


def mean_gram_distances_over_layers(grams: GramDistances, rule: str) -> np.ndarray:
    """(P,) mean over layers of the distance of two Gram matrices."""
    difference = grams.difference.astype(float)
    if rule == "paper":
        return np.asarray(difference.mean(axis=1))
    sums = grams.norm.astype(float) + grams.other_norm
    return np.asarray(np.divide(difference, sums, out=np.zeros_like(difference), where=sums > 0).mean(axis=1))
