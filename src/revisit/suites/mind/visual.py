"""visual and dino: what networks say of the predicted frames. Without an observer for them they are Unscored.

MIND takes DINOv3 for the latter (the paper set); the small set takes EfficientNet-Lite0 in its place.
"""

from __future__ import annotations

from dataclasses import replace

from revisit.core import Case, Score, Unscored, metric
from revisit.evidence.frames import FrameFacts
from revisit.evidence.quality import AestheticQuality, FeatureError, ImagingQuality
from revisit.suites.mind.lcm import over_frames
from revisit.suites.mind.selection import another_network


@metric(
    id="mind_imaging", version=2, title="Imaging quality", unit="score", range=(0, 1), higher_is_better=True,
    needs=(Case, FrameFacts, ImagingQuality), suites=("mind",), paper="MUSIQ (Ke et al. 2021)",
    upstream="visual_quality.avg_imaging", responds_to=("blur", "noise"), blind_to=("memory", "camera"),
)  # fmt: skip
def imaging(
    case: Case, frames: FrameFacts, seen: ImagingQuality, *, rule: str = "corrected", video_max_time: int | None = None
) -> Score | Unscored:
    """Mean technical quality of the predicted frames."""
    return over_frames(case, frames, seen.index, seen.index, seen.value, rule, video_max_time)


@metric(
    id="mind_aesthetic", version=2, title="Aesthetic quality", unit="score", range=(0, 1), higher_is_better=True,
    needs=(Case, FrameFacts, AestheticQuality), suites=("mind",), paper="LAION aesthetic predictor",
    upstream="visual_quality.avg_aesthetic", responds_to=("ugly frames",), blind_to=("memory", "camera"),
)  # fmt: skip
def aesthetic(
    case: Case,
    frames: FrameFacts,
    seen: AestheticQuality,
    *,
    rule: str = "corrected",
    video_max_time: int | None = None,
) -> Score | Unscored:
    """Mean beauty of the predicted frames."""
    return over_frames(case, frames, seen.index, seen.index, seen.value, rule, video_max_time)


@metric(
    id="mind_dino", version=2, title="Patch feature error", unit="mse", range=(0, None), higher_is_better=False,
    needs=(Case, FrameFacts, FeatureError), suites=("mind",), paper="DINOv3 (Simeoni et al. 2025)",
    upstream="dino.avg_dino_mse", responds_to=("wrong content", "wrong camera"), blind_to=("small textures",),
)  # fmt: skip
def dino(
    case: Case, frames: FrameFacts, seen: FeatureError, *, rule: str = "corrected", video_max_time: int | None = None
) -> Score | Unscored:
    """Mean squared error of normalised patch features against the true frames.

    Its size depends on the network, which the facts name: numbers of two networks are not to be compared. Under
    `upstream` only DINOv3 counts.
    """
    if (other := another_network(seen.net, "dinov3-base", rule)) is not None:
        return other
    made = over_frames(case, frames, seen.index, seen.reference, seen.mse, rule, video_max_time)
    return replace(made, facts={**made.facts, "described_by": seen.net})
