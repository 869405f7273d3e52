"""Loops: is the first view there again when the camera has undone its way?"""

from __future__ import annotations

import numpy as np

from revisit.core import Case, NoScore, PublishedMaker, Score, Unscored, derived, metric
from revisit.evidence.appearance import NetworkPatches, PatchFeatures
from revisit.evidence.camera import PoseTrack
from revisit.geometry.rotations import angle_between_rotations
from revisit.metrics.rules import is_upstream_rule
from revisit.suites.wbench.evidence import DreamSimDistances, FirstViewDistance
from revisit.suites.wbench.metrics.navigation import STILL_TURN, STILL_WAY
from revisit.suites.wbench.metrics.rules import CARD, find_requested_turns

GATED = 0.15  # loss of likeness on the way below which a loop counts in part
LOOKED = 10  # frames on the way
BACK = 1 / 3  # of the farthest turn and way: whoever comes no nearer has not come back
DREAMSIM = PublishedMaker("DreamSim", "likeness_by", names=("dreamsim",))


@derived(makes=FirstViewDistance, needs=(PatchFeatures,), optional=(NetworkPatches, DreamSimDistances), version=1)
def choose_first_view_distance(
    patches: PatchFeatures, network: NetworkPatches | None, dreamsim: DreamSimDistances | None
) -> FirstViewDistance:
    """DreamSim's distance where a file tells it, else 1 - cosine of a network's, or of classical descriptors."""
    if dreamsim is not None:
        return FirstViewDistance(dreamsim.index, dreamsim.distance, dreamsim.maker)
    looks, maker = (patches, "classical patches") if network is None else (network, network.maker)
    distance = 1 - looks.whole @ looks.whole[0] if len(looks.index) else np.zeros(0)
    return FirstViewDistance(looks.index, np.maximum(distance, 0), maker)


def _return_progress_and_facts(case: Case, track: PoseTrack, upstream: bool) -> tuple[float, dict[str, object]]:
    """Where the camera is back, as a share of the clip, and how near it is to where it began."""
    turns = find_requested_turns(case, track, upstream)
    angle = angle_between_rotations(track.c2w[0, :3, :3], track.c2w[:, :3, :3])
    way = np.linalg.norm(track.c2w[:, :3, 3] - track.c2w[0, :3, 3], axis=1)
    start, end = turns.last
    if upstream:
        best = start + int(np.argmin(angle[start:end]))
    else:
        moved = [one / one.max() for one, least in ((angle, STILL_TURN), (way, STILL_WAY)) if one.max() > least]
        if not moved:
            raise NoScore("at_rest", "the camera never left its first view, so that it cannot come back to it")
        share = np.max(moved, axis=0)
        best = start + int(np.argmin(share[start:end]))
        if share[best] > BACK:
            sentence = f"the camera comes back to {share[best]:.0%} of its farthest way, and not to {BACK:.0%}"
            raise NoScore("no_return", sentence)
    facts = {"degrees_off": float(angle[best]), "way_off": float(way[best]), "poses_from": track.source}
    return best / max(len(track.frame) - 1, 1), facts


def _return_and_least_similarity(
    case: Case, track: PoseTrack, distance: FirstViewDistance, rule: str
) -> tuple[float, float, dict[str, object]]:
    """Likeness of the returned view to the first, the least of ten frames, and what the record says."""
    if not case.annotations.get("loop"):
        raise NoScore("does_not_apply", "the actions of the case do not undo each other")
    share, facts = _return_progress_and_facts(case, track, is_upstream_rule(rule))
    if len(distance.index) < 2:
        raise NoScore("too_short", "a loop needs two frames")
    likeness = 1 / (1 + distance.distance)
    frame = share * distance.index[-1]
    back = int(np.abs(distance.index - frame).argmin())
    on_the_way = np.linspace(0, len(likeness) - 1, LOOKED).round().astype(int)
    facts |= {"likeness_by": distance.maker, "return_frame": int(distance.index[back])}
    return float(likeness[back]), float(likeness[on_the_way].min()), facts


@metric(
    id="wb_spatial", version=1, title="Spatial consistency", needs=(Case, PoseTrack, FirstViewDistance),
    upstream="spatial_consistency", published_by=(DREAMSIM,), responds_to=("content replaced on return",),
    blind_to=("what changes on the way",), rewards_unchanged=True, **CARD,
)  # fmt: skip
def spatial_consistency(
    case: Case, track: PoseTrack, distance: FirstViewDistance, *, rule: str = "corrected"
) -> Score | Unscored:
    """1 / (1 + distance) of the returned view to the first one, in cases that undo their actions."""
    likeness, _, facts = _return_and_least_similarity(case, track, distance, rule)
    return Score(likeness, facts=facts)


@metric(
    id="wb_gated_spatial", version=1, title="Gated spatial consistency", needs=(Case, PoseTrack, FirstViewDistance),
    upstream="gated_spatial_consistency", published_by=(DREAMSIM,),
    responds_to=("content replaced on return", "frozen camera"), blind_to=("what changes on the way",), **CARD,
)  # fmt: skip
def gated_spatial_consistency(
    case: Case, track: PoseTrack, distance: FirstViewDistance, *, rule: str = "corrected"
) -> Score | Unscored:
    """The same, times how far the view changed on the way, in parts of a loss of likeness of 0.15."""
    likeness, least, facts = _return_and_least_similarity(case, track, distance, rule)
    gate = min(1.0, (1 - least) / GATED)
    return Score(likeness * gate, facts={**facts, "gate": gate})
