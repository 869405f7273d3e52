"""A metric of evidence in one file: do colours stay as strong as they were?"""

from __future__ import annotations

import numpy as np

import revisit
from revisit_example.saturation_observer import Saturation


@revisit.metric(
    id="example.saturation_kept",
    unit="score",
    range=(0, 1),
    higher_is_better=True,
    suites=("folder", "playlist"),
    responds_to=("style drift",),
    blind_to=("frozen camera",),
)
def saturation_kept(seen: Saturation) -> revisit.Score | revisit.Unscored:
    """1 - |last - first| of the mean saturation."""
    if len(seen.index) < 2:
        return revisit.Unscored("too_short", "one frame cannot drift")
    change = np.abs(seen.mean - seen.mean[0])
    return revisit.Score(1 - change[-1], raw=change[-1], units=revisit.Series(frame=seen.index, value=1 - change))
