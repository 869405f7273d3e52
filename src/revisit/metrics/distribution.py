"""Distribution: features of clips and of frames, from which distances between sets of clips are computed.

FVD, KVD, FID and KID are no scores of a clip but of a model: how far the distribution of its clips is from that of the
truth. What each clip contributes is recorded here with its clip, as two descriptions, neither good nor bad: the action
that a network sees in it, and how much its frames differ. `results/distances.py` makes the distances of these.
"""

from __future__ import annotations

import numpy as np

from revisit.core import Score, Series, Unscored, metric
from revisit.evidence.appearance import IntegrityTokens
from revisit.evidence.motion import VideoFeatures

FRAMES = 16  # of a clip count for FID and KID, evenly spread


@metric(
    id="video_action", version=1, title="Action seen (I3D)", unit="probability", range=(0, 1), higher_is_better=None,
    needs=(VideoFeatures,), suites=("folder",), paper="Carreira & Zisserman 2017; FVD: Unterthiner et al. 2018",
    blind_to=("memory", "places", "small objects", "order beyond the frames taken"),
)  # fmt: skip
def video_action(video: VideoFeatures) -> Score | Unscored:
    """How probable the network finds the action that it finds most probable; the facts name it.

    The logits of the clip, whose distribution FVD and KVD compare, are the series behind the score.
    """
    if not len(video.logits):
        return Unscored("too_short", f"{len(video.index)} frames are too few for a network of 16 frames")
    logits = video.logits[0].astype(np.float64)
    share = np.exp(logits - logits.max())
    facts = {
        "action": video.action, "maker": video.maker, "frames": len(video.index), "size": video.size,
    }  # fmt: skip
    feature = Series(dimension=np.arange(len(logits)), feature=video.logits[0].astype(np.float32))
    return Score(float(share.max() / share.sum()), units=feature, facts=facts)


@metric(
    id="frame_variety", version=1, title="Variety of frames", unit="score", range=(0, 2), higher_is_better=None,
    needs=(IntegrityTokens,), suites=("folder",), paper="FID: Heusel et al. 2017; KID: Binkowski et al. 2018",
    blind_to=("memory", "motion", "order of frames"),
)  # fmt: skip
def frame_variety(tokens: IntegrityTokens) -> Score | Unscored:
    """1 - mean cosine between whole frames some way apart, by the image network of the set: 0 for a picture at rest.

    The features of at most 16 frames, whose distribution FID and KID compare, are the series behind the score.
    """
    if len(tokens.index) < 2:
        return Unscored("too_short", "one frame cannot differ from others")
    rows = np.unique(np.linspace(0, len(tokens.index) - 1, min(FRAMES, len(tokens.index))).astype(int))
    whole = tokens.whole[rows].astype(np.float64)
    unit = whole / np.linalg.norm(whole, axis=1, keepdims=True)
    pairs = np.triu_indices(len(rows), 1)
    facts = {"maker": tokens.maker, "frames": len(rows), "cropped": tokens.cropped}
    feature = Series(frame=tokens.index[rows], feature=unit.astype(np.float32))
    return Score(float(1 - (unit @ unit.T)[pairs].mean()), units=feature, facts=facts)
