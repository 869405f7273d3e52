"""Consistency: background, cuts, depth and colours from frame to frame, and the subject."""

from __future__ import annotations

import numpy as np

from revisit.core import NoScore, PublishedMaker, Score, Series, Unscored, derived, metric
from revisit.evidence.appearance import NetworkPatches, PatchFeatures
from revisit.evidence.motion import ShotChanges
from revisit.evidence.target import ObjectFeatures, ObjectMasks
from revisit.suites.wbench.evidence import BackgroundLooks, BackgroundVectors, Reprojections
from revisit.suites.wbench.metrics.rules import CARD

CUT = 0.5  # of TransNet's certainty, above which a shot ends
STRAY = 0.3  # spread of the subject's middle, in widths and heights of the frame, at which nothing is left
CLIP = PublishedMaker("CLIP ViT-B/32", "described_by", names=("clip-vit-b-32",))
DINO_AND_CLIP = PublishedMaker("DINOv2 and CLIP ViT-B/16", "described_by", names=("dinov2-and-clip", "dinov2 and clip"))
SAM2 = PublishedMaker("SAM 2", "masks_by", names=("sam2",))
DA3 = PublishedMaker("Depth Anything 3", "depth_by", names=("da3", "depth-anything-3", "depth anything 3"))


@derived(makes=BackgroundLooks, needs=(PatchFeatures,), optional=(NetworkPatches, BackgroundVectors), version=1)
def choose_background_vectors(
    patches: PatchFeatures, network: NetworkPatches | None, clip: BackgroundVectors | None
) -> BackgroundLooks:
    """Descriptors by CLIP where the set has it, else by another network, or classical ones."""
    if clip is not None:
        return BackgroundLooks(clip.index, clip.vector, clip.maker)
    looks, maker = (patches, "classical patches") if network is None else (network, network.maker)
    return BackgroundLooks(looks.index, looks.whole, maker)


def score_similarity_to_previous_and_first(
    frame_numbers: np.ndarray, vectors: np.ndarray, facts: dict[str, object]
) -> Score | Unscored:
    """Mean over frames of the mean of the cosines with the frame before and with the first, none below 0."""
    if len(frame_numbers) < 2:
        return Unscored("too_short", "one frame has none to be compared with")
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.maximum(length, 1e-9)
    before = np.maximum((unit[1:] * unit[:-1]).sum(axis=1), 0)
    first = np.maximum(unit[1:] @ unit[0], 0)
    value = np.minimum((before + first) / 2, 1)
    return Score(float(value.mean()), units=Series(frame=frame_numbers[1:], value=value), facts=facts)


@metric(
    id="wb_background", version=1, title="Background consistency", needs=(BackgroundLooks,),
    upstream="background_consistency", published_by=(CLIP,), responds_to=("changed background", "scene cut"),
    blind_to=("small things", "frozen camera"), rewards_unchanged=True, **CARD,
)  # fmt: skip
def background_consistency(looks: BackgroundLooks) -> Score | Unscored:
    """Likeness of whole frames to the one before and to the first; a picture that rests scores best."""
    return score_similarity_to_previous_and_first(looks.index, looks.vector, {"described_by": looks.maker})


@metric(
    id="wb_segment", version=1, title="Segment continuity", needs=(ShotChanges,), upstream="segment_continuity",
    responds_to=("scene cut",), blind_to=("drift", "camera"), rewards_unchanged=True, **CARD,
)  # fmt: skip
def shot_continuity(changes: ShotChanges, *, threshold: float = CUT) -> Score | Unscored:
    """1 where no shot ends within the clip, 0 where one does."""
    if not len(changes.index):
        return Unscored("too_short", "one frame cannot hold a cut")
    most = float(changes.probability.max())
    return Score(float(most <= threshold), raw=most, facts={"surest_cut": most, "network": changes.maker})


def _require_reprojections(pairs: Reprojections) -> None:
    if pairs.refused:
        raise NoScore("unreadable", pairs.refused)
    if not len(pairs.frame):
        raise NoScore("no_overlap", "no two frames share enough points with depth")


@metric(
    id="wb_photometric", version=1, title="Photometric consistency", needs=(Reprojections,),
    upstream="photometric_consistency", published_by=(DA3,), responds_to=("flicker",), blind_to=("memory",),
    rewards_unchanged=True, **CARD,
)  # fmt: skip
def photometric_consistency(pairs: Reprojections) -> Score | Unscored:
    """1 - 10^(-PSNR/20) of points carried from frame to frame by depth and poses, which is 1 minus the RMS error."""
    _require_reprojections(pairs)
    psnr = float(np.mean(-10 * np.log10(np.maximum(pairs.mse, 1e-10))))
    units = Series(frame=pairs.frame, value=pairs.mse)
    return Score(max(0.0, 1 - 10 ** (-psnr / 20)), raw=psnr, units=units, facts={"depth_by": pairs.maker})


@metric(
    id="wb_geometric", version=1, title="Geometric consistency", needs=(Reprojections,),
    upstream="geometric_consistency", published_by=(DA3,), responds_to=("depth collapse",),
    blind_to=("colour", "memory"), rewards_unchanged=True, **CARD,
)  # fmt: skip
def geometric_consistency(pairs: Reprojections) -> Score | Unscored:
    """1 / (1 + e), e the median over frames of the relative difference of depths where frames see one point."""
    _require_reprojections(pairs)
    error = float(np.median(pairs.depth_error))
    units = Series(frame=pairs.frame, value=pairs.depth_error)
    return Score(1 / (1 + error), raw=error, units=units, facts={"depth_by": pairs.maker})


@metric(
    id="wb_subject", version=1, title="Subject consistency", needs=(ObjectFeatures,), upstream="subject_consistency",
    published_by=(DINO_AND_CLIP,), responds_to=("identity drift",), blind_to=("background", "a subject that is gone"),
    rewards_unchanged=True, **CARD,
)  # fmt: skip
def subject_consistency(features: ObjectFeatures) -> Score | Unscored:
    """Likeness of the subject, cut out on grey, to how it looked before and at first."""
    if len(features.frame) < 2:
        return Unscored("not_seen", f"the subject is seen in {len(features.frame)} frames, and two are compared")
    facts = {"described_by": features.maker, "seen_in": len(features.frame), "looked_at": len(features.index)}
    return score_similarity_to_previous_and_first(features.frame, features.vector, facts)


@metric(
    id="wb_perspective", version=1, title="Perspective consistency", needs=(ObjectMasks,),
    upstream="perspective_consistency", published_by=(SAM2,), responds_to=("object vanishes",),
    blind_to=("identity", "background"), rewards_unchanged=True, **CARD,
)  # fmt: skip
def perspective_consistency(masks: ObjectMasks) -> Score | Unscored:
    """1 minus the spread of the subject's middle over 0.3, none below 0, times the share of frames that show it."""
    if not len(masks.index):
        return Unscored("not_seen", "nobody looked for the subject in this clip")
    height, width = masks.mask.shape[1:]
    shows = masks.mask.any(axis=(1, 2))
    if not shows.any():
        return Score(0.0, facts={"masks_by": masks.maker, "shown_in": 0})
    places = (np.arange(width)[None] + 0.5, width), (np.arange(height)[:, None] + 0.5, height)
    area = masks.mask[shows].sum(axis=(1, 2))
    middle = [(masks.mask[shows] * place).sum(axis=(1, 2)) / area / side for place, side in places]
    spread = float(np.sqrt(np.var(middle, axis=1).sum()))
    facts = {"masks_by": masks.maker, "shown_in": int(shows.sum()), "spread": spread}
    return Score(max(0.0, 1 - spread / STRAY) * float(shows.mean()), facts=facts)
