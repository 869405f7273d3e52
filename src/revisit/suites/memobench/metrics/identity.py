"""Object identity consistency of MemoBench: do the patches of the returned view look like those of the first frame?

    100 * (0.7 * mean over frames of their mean + 0.3 * the smallest of all of them)   (Eq. 4)

of the cosines of the 40 % most similar patches at the same position, which is not the same place: a camera that stops a
few degrees short loses, one that never moved wins (docs/memobench-metrics.md).
"""

from __future__ import annotations

import numpy as np

from revisit.core import Case, InvalidEvidence, PublishedMaker, Score, Series, Unscored
from revisit.evidence.frames import FrameFacts
from revisit.metrics.rows import unit_vectors
from revisit.suites.memobench.evidence import IdentityTokens
from revisit.suites.memobench.metrics import rules


def best_patch_similarity(first: np.ndarray, later: np.ndarray, best_share: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean and minimum similarity of the best share of the patches of each of `later` (N, patches, D) to `first`."""
    similar = np.clip((unit_vectors(later) * unit_vectors(first)).sum(axis=-1), 0, 1)
    count = max(1, int(similar.shape[1] * best_share))
    best = np.sort(similar, axis=1)[:, -count:]
    return best.mean(axis=1), best[:, 0]


@rules.percent_metric(
    id="memo_identity", version=1, title="Object identity consistency", needs=(Case, FrameFacts, IdentityTokens),
    paper=f"{rules.PAPER} eq. 4", upstream="ObjIdentityConsistency",
    responds_to=("changed background", "ends in another place"),
    blind_to=("frozen camera", "state reset", "anything that fills less than 60 % of the frame"),
    rewards_unchanged=True,
    published_by=(PublishedMaker("DINOv2-B", "described_by", ("dinov2-base", "dinov2-vitb14")),),
)  # fmt: skip
def object_identity(
    case: Case,
    frames: FrameFacts,
    patches: IdentityTokens,
    *,
    rule: str = "corrected",
    top: float = 0.4,
    samples: int = 9,
    alpha: float = 0.7,
) -> Score | Unscored:
    """Likeness of the returned frames to the first one, patch by patch at the same position, 0 to 100.

    Facts: mean and minimum of the best `top` share of patches, how many patches there are and who described them.
    """
    if not len(patches.index) or patches.index[0] != 0:
        raise InvalidEvidence("IdentityTokens.index must begin with frame 0, which all others are compared with")
    phases = rules.checked_clip_phases(case, frames)
    sampled = rules.sampled_frames_by_rule(
        *phases.first_and_last_frame(rules.RETURNED), samples, rules.check_rule(rule)
    )
    at = rules.rows_of_frames(patches.index, sampled, "patch descriptors")
    means, minima = best_patch_similarity(patches.tokens[0], patches.tokens[at], top)
    mean, minimum = (rules.round_if_upstream_rule(one, 4, rule) for one in (means.mean(), minima.min()))
    facts = {
        "mean": mean,
        "minimum": minimum,
        "patches": int(patches.tokens.shape[1]),
        "described_by": patches.maker,
        "middle_of_the_frame_only": patches.cropped,
    }
    units = Series(frame=sampled, value=means, minimum=minima)
    return Score(rules.weighted_mean_and_worst_percent(mean, minimum, rule, alpha), float(means.mean()), units, facts)
