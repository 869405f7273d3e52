"""visual and dino: ratings of the predicted frames by networks. Without an observer for them they are Unscored.

MIND takes DINOv3 for the latter (the paper set); the small set takes EfficientNet-Lite0 in its place.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from revisit.core import Case, Metric, PublishedMaker, Score, Unscored, metric
from revisit.evidence.appearance import AestheticQuality, ImagingQuality
from revisit.evidence.frames import FrameFacts
from revisit.suites.mind.evidence import FeatureError
from revisit.suites.mind.metrics.lcm import score_counted_frames
from revisit.suites.mind.metrics.selection import refuse_other_network

FAMILY = "visual"  # the group of these metrics, by which users name it


def register_rating_metric(id: str, kind: type, paper: str, doc: str, *responds_to: str) -> Metric:
    """The metric of a rating of single frames."""

    def score_ratings(
        case: Case, frames: FrameFacts, ratings: Any, *, rule: str = "corrected", video_max_time: int | None = None
    ) -> Score | Unscored:
        return score_counted_frames(case, frames, ratings.index, ratings.index, ratings.value, rule, video_max_time)

    return metric(
        id=f"mind_{id}", version=2, title=f"{id.capitalize()} quality", unit="score", range=(0, 1),
        higher_is_better=True, needs=(Case, FrameFacts, kind), suites=("mind",), paper=paper,
        upstream=f"visual_quality.avg_{id}", responds_to=responds_to, blind_to=("memory", "camera"), doc=doc,
    )(score_ratings)  # fmt: skip


imaging = register_rating_metric(
    "imaging", ImagingQuality, "MUSIQ (Ke et al. 2021)", "Mean technical quality of the predicted frames.",
    "blur", "noise",
)  # fmt: skip
aesthetic = register_rating_metric(
    "aesthetic", AestheticQuality, "LAION aesthetic predictor", "Mean beauty of the predicted frames.", "ugly frames"
)


@metric(
    id="mind_dino", version=2, title="Patch feature error", unit="mse", range=(0, None), higher_is_better=False,
    needs=(Case, FrameFacts, FeatureError), suites=("mind",), paper="DINOv3 (Simeoni et al. 2025)",
    upstream="dino.avg_dino_mse", responds_to=("wrong content", "wrong camera"), blind_to=("small textures",),
    published_by=(PublishedMaker("DINOv3-B", "described_by", ("dinov3-base", "dinov3-vitb16")),),
)  # fmt: skip
def dino_feature_error(
    case: Case, frames: FrameFacts, errors: FeatureError, *, rule: str = "corrected", video_max_time: int | None = None
) -> Score | Unscored:
    """Mean squared error of normalised patch features against the true frames.

    Its size depends on the network, which the facts name: numbers of two networks are not to be compared. Under
    `upstream` only DINOv3 counts.
    """
    refuse_other_network(errors.net, "dinov3-base", rule)
    score = score_counted_frames(case, frames, errors.index, errors.reference, errors.mse, rule, video_max_time)
    return replace(score, facts={**score.facts, "described_by": errors.net})
