"""Prompt interaction of MBench: does each segment of the clip show what its caption says (docs/mbench-metrics.md)?

Cosines of CLIP lie around 0.2 to 0.35 for captions that fit: compare models, do not read it as a share.
"""

from __future__ import annotations

import numpy as np

from revisit.core import Case, InvalidEvidence, PublishedMaker, Score, Series, Unscored
from revisit.metrics.rows import unit_vectors
from revisit.suites.mbench.evidence import TextFeatures
from revisit.suites.mbench.metrics.rules import PAPER, score_metric


@score_metric(
    id="mb_prompt_interaction", version=1, title="Prompt interaction", needs=(Case, TextFeatures),
    paper=f"{PAPER} eq. 15", upstream="prompt_interaction",
    responds_to=("another scene", "an event that does not happen"),
    blind_to=("memory", "order within a segment", "details of long captions"),
    published_by=(PublishedMaker("OpenCLIP", "described_by", ("clip-vit", "openclip", "open-clip", "vit-")),),
)  # fmt: skip
def prompt_interaction(case: Case, features: TextFeatures) -> Score | Unscored:
    """Mean cosine of frames with the caption of their segment, each segment counting alike."""
    rows, captions = len(features.frame), len(features.text)
    if rows and not 0 <= features.segment.min() <= features.segment.max() < captions:
        raise InvalidEvidence(f"TextFeatures.segment needs a number from 0 to {captions - 1} for each of {rows} frames")
    expected = len(case.annotations.get("segments") or ()) or captions
    facts = {"captions": captions, "described_by": features.maker, "captions_cut": features.cut}
    if expected != captions:
        return Unscored("mismatch", f"the file has {captions} captions, but the case has {expected}", facts)
    cosines = (unit_vectors(features.image) * unit_vectors(features.text)[features.segment]).sum(axis=1)
    missing = sorted(set(range(captions)) - set(features.segment.tolist()))
    if missing or not rows:
        return Unscored("not_observed", f"segment {missing[0] if missing else 0} has no frame with a descriptor", facts)
    means = np.array([cosines[features.segment == k].mean() for k in range(captions)])
    facts |= {"of_each_segment": means.tolist()}
    units = Series(frame=features.frame, segment=features.segment, value=cosines)
    return Score(float(np.clip(means.mean(), 0, 1)), raw=float(means.mean()), units=units, facts=facts)
