"""Geo3D consistency of MemoBench: does the depth of the scene stay alike within a phase (docs/memobench-metrics.md)?

    100 * (0.7 * mean of both phases' means + 0.3 * the smallest cosine)   (Eq. 5)

of successive maps of three frames of the visible and of the returned phase, each put on 0-1 by its own range.
"""

from __future__ import annotations

import numpy as np

from revisit.core import Case, InvalidEvidence, PublishedMaker, Score, Series, Unscored
from revisit.evidence.frames import FrameFacts
from revisit.suites.memobench.evidence import DepthMaps
from revisit.suites.memobench.metrics import rules


def successive_depth_cosines(depth: np.ndarray) -> np.ndarray:
    """Cosines of successive maps (N, height, width) after each is put on 0-1; 0 beside a map without any relief."""
    flat = np.asarray(depth, dtype=np.float64).reshape(len(depth), -1)
    low, high = flat.min(axis=1, keepdims=True), flat.max(axis=1, keepdims=True)
    scaled = (flat - low) / (high - low + 1e-8)
    unit = scaled / np.maximum(np.linalg.norm(scaled, axis=1, keepdims=True), 1e-12)
    return np.clip((unit[:-1] * unit[1:]).sum(axis=1), 0, 1)


@rules.percent_metric(
    id="memo_geo3d", version=1, title="Geo3D consistency", needs=(Case, FrameFacts, DepthMaps),
    paper=f"{rules.PAPER} eq. 5", upstream="Geo3DConsistency", responds_to=("depth collapse", "scene cut"),
    blind_to=("frozen camera", "what happens while hidden", "colour"),
    published_by=(PublishedMaker("Depth Anything V2 Small", "depth_by", ("depth-anything-v2-small",)),),
)  # fmt: skip
def geo3d_consistency(
    case: Case,
    frames: FrameFacts,
    maps: DepthMaps,
    *,
    rule: str = "corrected",
    samples: int = 3,
    alpha: float = 0.7,
) -> Score | Unscored:
    """Likeness of the depth of sampled frames within the visible and within the returned phase, 0 to 100.

    Facts: mean and minimum, both also by phase; who made the depth, and whether near things have large values.
    """
    if maps.depth.shape[1] * maps.depth.shape[2] < 2:
        raise InvalidEvidence(
            f"DepthMaps.depth has maps of {maps.depth.shape[1:]} pixels; a map needs rows and columns"
        )
    phases = rules.checked_clip_phases(case, frames)
    parts: dict[str, np.ndarray] = {}
    sampled: dict[str, np.ndarray] = {}
    for name in (rules.VISIBLE, rules.RETURNED):
        first, last = phases.first_and_last_frame(name, closed=rules.check_rule(rule) == "upstream")
        sampled[name] = rules.sampled_frames_by_rule(first, last, samples if first < last else 1, rule)
        if len(sampled[name]) < 2 and rule != "upstream":
            return Unscored("too_short", f"comparing depth needs two frames, but the {name} phase has one")
        at = rules.rows_of_frames(maps.index, sampled[name], "depth")
        parts[name] = successive_depth_cosines(maps.depth[at])
    # A phase without a pair, which only upstream gets here with, counts as 0.
    some = {name: part if len(part) else np.zeros(1) for name, part in parts.items()}
    by_phase = {name: rules.round_if_upstream_rule(part.mean(), 4, rule) for name, part in some.items()}
    mean = rules.round_if_upstream_rule(float(np.mean(list(by_phase.values()))), 4, rule)
    minimum = min(rules.round_if_upstream_rule(part.min(), 4, rule) for part in some.values())
    facts: dict[str, object] = {
        "mean": mean,
        "minimum": minimum,
        "by_phase": by_phase,
        "depth_by": maps.maker,
        "near_is_large": maps.inverse,
    }
    units = Series(
        frame=np.concatenate([sampled[name][:-1] for name in parts]),
        other=np.concatenate([sampled[name][1:] for name in parts]),
        value=np.concatenate(list(parts.values())),
    )
    return Score(rules.weighted_mean_and_worst_percent(mean, minimum, rule, alpha), mean, units, facts)
