"""What only Flashback measures."""

from __future__ import annotations

import numpy as np

import revisit
from revisit.evidence import LabStats


@revisit.metric(
    title="Light as it was",
    unit="score",
    range=(0, 1),
    higher_is_better=True,
    suites=("flashback",),
    responds_to=("lighting",),
    blind_to=("frozen camera", "another thing of the same brightness"),
)
def flashback_light(lab: LabStats) -> float | revisit.Unscored:
    """1 - the difference of the mean lightness of the first and the last frame, in full ranges."""
    if len(lab.index) < 2:
        return revisit.Unscored("too_short", "one frame cannot come back")
    return float(np.clip(1 - abs(lab.mean[-1, 0] - lab.mean[0, 0]) / 100, 0, 1))
