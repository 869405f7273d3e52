"""What only Flashback measures."""

from __future__ import annotations

import numpy as np

from revisit.core import Score, Unscored, metric
from revisit.evidence.appearance import LabStats


@metric(
    id="flashback_light",
    version=1,
    title="Light as it was",
    unit="score",
    range=(0, 1),
    higher_is_better=True,
    needs=(LabStats,),
    suites=("flashback",),
    responds_to=("lighting",),
    blind_to=("frozen camera", "another thing of the same brightness"),
)
def flashback_light(looks: LabStats) -> Score | Unscored:
    """1 - the difference of the mean lightness of the first and the last frame, in full ranges."""
    if len(looks.index) < 2:
        return Unscored("too_short", "one frame cannot come back")
    return Score(float(np.clip(1 - abs(looks.mean[-1, 0] - looks.mean[0, 0]) / 100, 0, 1)))
