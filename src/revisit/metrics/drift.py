"""Drift: does a long clip stay what it was, also where it never comes back to a view?

Evidence: `LabStats` and `StyleStats` of all frames. Both hardly depend on what a frame shows, so that stretches of a
clip that show different things can be compared. Stretches side by side differ because the camera moves on; what drifts
differs more, the farther apart two stretches are. So the lag curve is read: the mean difference of stretches that are
so many seconds apart, and drift is what it gains from neighbours to stretches half a clip apart.
"""

from __future__ import annotations

import numpy as np

from revisit.core import Score, Series, Unscored, metric
from revisit.evidence.appearance import LabStats, StyleStats
from revisit.evidence.frames import FrameFacts
from revisit.metrics.appearance import style_names_and_logs
from revisit.metrics.rows import nearest_rows

NOTICED = 10.0  # CIELAB units: a change of light or colour that is noticed, and counts as one
LEAST_STRETCHES = 4


@metric(
    id="long_drift", version=1, title="Drift over time", unit="score", range=(0, 1), higher_is_better=True,
    needs=(FrameFacts, LabStats, StyleStats), suites=("folder",),
    responds_to=("exposure drift", "colour drift", "loss of detail", "oversaturation"),
    blind_to=("objects and places", "drift that ends where it began", "drift within a stretch", "frozen camera"),
)  # fmt: skip
def long_drift(
    frames: FrameFacts, lab: LabStats, style: StyleStats, *, stretch: float = 2.0, least: float = 8.0
) -> Score | Unscored:
    """exp(-D), with D by how much more stretches half a clip or more apart differ than neighbouring ones.

    Stretches last `stretch` seconds. Two differ by the mean of |change| over light and colour (CIELAB units / 10) and
    the logarithms of gradients, contrast and saturation. Clips under `least` seconds are not asked. The facts hold the
    lag curve, and what it gains in a minute (by least squares).
    """
    seconds = frames.time[nearest_rows(frames.index, style.index)] if len(frames.index) else np.zeros(0)
    lasting = float(seconds[-1] - seconds[0]) if len(seconds) and len(lab.index) else 0.0
    if lasting < least:
        return Unscored("too_short", f"drift is asked of clips of {least:g} s or more; this one has {lasting:.1f} s")
    number = ((seconds - seconds[0]) / stretch).astype(int)
    number = np.minimum(number, max(round(lasting / stretch) - 1, 0))  # a short rest joins the one before it
    segments, first, counts = np.unique(number, return_index=True, return_counts=True)
    if len(segments) < LEAST_STRETCHES or counts.min() < 2:
        return Unscored("too_short", f"{len(segments)} stretches of {stretch:g} s are too few to see a drift")
    light = lab.mean[nearest_rows(lab.index, style.index)].astype(float) / NOTICED
    rows = np.column_stack([light, style_names_and_logs(style)[1]])
    mean = np.stack([rows[number == one].mean(axis=0) for one in segments])
    apart = np.abs(mean[:, None] - mean[None]).mean(axis=2)
    lags = np.arange(1, len(segments))
    curve = np.array([np.diagonal(apart, lag).mean() for lag in lags])
    near, far = float(curve[0]), float(curve[lags >= len(segments) / 2].mean())
    gained = max(far - near, 0.0)
    value = np.exp(-np.maximum(apart[0] - near, 0))
    facts = {
        "lag_seconds": (lags * stretch).tolist(), "difference": curve.round(4).tolist(), "near": round(near, 4),
        "far": round(far, 4), "per_minute": round(float(np.polyfit(lags * stretch, curve, 1)[0]) * 60, 4),
    }  # fmt: skip
    units = Series(frame=style.index[first], seconds=seconds[first], value=value, from_first=apart[0])
    return Score(float(np.exp(-gained)), raw=gained, units=units, facts=facts)
