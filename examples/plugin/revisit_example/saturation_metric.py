"""A metric in one file: do colours stay as strong as they were?"""

from __future__ import annotations

import numpy as np

from revisit.core import Score, Series, Unscored, metric
from revisit_example.saturation_observer import Saturation


@metric(
    id="example.saturation_kept",
    version=1,
    title="Saturation kept",
    unit="score",
    range=(0, 1),
    higher_is_better=True,
    needs=(Saturation,),
    suites=("folder", "playlist"),
    responds_to=("style drift",),
    blind_to=("frozen camera",),
)
def saturation_kept(seen: Saturation) -> Score | Unscored:
    """1 - |last - first| of the mean saturation."""
    if len(seen.index) < 2:
        return Unscored("too_short", "one frame cannot drift")
    change = np.abs(seen.mean - seen.mean[0])
    return Score(1 - change[-1], raw=change[-1], units=Series(frame=seen.index, value=1 - change))
