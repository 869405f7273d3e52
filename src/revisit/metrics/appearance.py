"""Appearance: does a place return with the same light and style?

Evidence: `LabStats` or `StyleStats` of whole frames, and `ReturnPairs` (i, j) that join a frame with one
that sees the same view again. Only pairs that share most of their view are compared, because whole
frames that show different things differ without any drift.
Lighting follows MBench (arXiv:2606.00793, rendering lighting): D = alpha |dL| + (1 - alpha) |dab|, exp(-D / tau).
Style: MBench compares Gram matrices of VGG features; here it is the log ratio of simple statistics, so
the numbers are not MBench's.
"""

from __future__ import annotations

import numpy as np

from revisit.core import NoScore, Reason, Score, Series, Unscored, metric
from revisit.evidence.appearance import LabStats, StyleStats
from revisit.evidence.views import ReturnPairs
from revisit.metrics.rows import nearest_rows

NO_RETURN = Reason("no_return", "no frame shows an earlier view again")


def pairs_with_enough_overlap(
    pairs: ReturnPairs, index: np.ndarray, least_overlap: float
) -> tuple[np.ndarray, np.ndarray]:
    """Frames i and j of the pairs that share enough of their view."""
    usable = np.asarray(pairs.overlap) >= least_overlap
    if not len(pairs.i) or not len(index):
        raise NoScore(NO_RETURN)
    if not usable.any():
        raise NoScore("no_overlap", f"no two frames share at least {least_overlap:.0%} of their view")
    return pairs.i[usable], pairs.j[usable]


def style_names_and_logs(style: StyleStats) -> tuple[list[str], np.ndarray]:
    """Names and (N, S + 2) logarithms of gradients, contrast and saturation.

    The floor of a gray level in 255 keeps black or gray frames from having a style of pure noise.
    """
    names = [*(f"gradient_{k}" for k in range(style.gradient.shape[1])), "contrast", "saturation"]
    table = np.column_stack([style.gradient, style.contrast, style.saturation]).astype(float)
    return names, np.log(np.maximum(table, 1 / 255))


@metric(
    id="lighting_consistency", version=1, title="Light on return", unit="score", range=(0, 1), higher_is_better=True,
    needs=(LabStats, ReturnPairs), gates=("view_return",), suites=("folder",), paper="arXiv:2606.00793 eq. 9-12",
    responds_to=("exposure drift", "colour drift", "another time of day on return"),
    blind_to=("local shadows", "light that moves while its mean stays", "anything when no view returns"),
)  # fmt: skip
def lighting_consistency(
    lab: LabStats, pairs: ReturnPairs, *, alpha: float = 0.5, tau: float = 10.0, least_overlap: float = 0.7
) -> Score | Unscored:
    """exp(-D / tau), with D the mean over return pairs of alpha |dL| + (1 - alpha) |dab| in CIELAB units."""
    i, j = pairs_with_enough_overlap(pairs, lab.index, least_overlap)
    change = (lab.mean[nearest_rows(lab.index, j)] - lab.mean[nearest_rows(lab.index, i)]).astype(float)
    lightness, colour = np.abs(change[:, 0]), np.hypot(change[:, 1], change[:, 2])
    deviation = alpha * lightness + (1 - alpha) * colour
    mean = float(deviation.mean())
    units = Series(frame=j, other=i, value=np.exp(-deviation / tau), lightness=change[:, 0], colour=colour)
    facts = {"lightness": float(change[:, 0].mean()), "colour": float(colour.mean()), "pairs": len(i)}
    return Score(float(np.exp(-mean / tau)), raw=mean, units=units, facts=facts)


@metric(
    id="style_consistency", version=1, title="Style on return", unit="score", range=(0, 1), higher_is_better=True,
    needs=(StyleStats, ReturnPairs), gates=("view_return",), suites=("folder",),
    responds_to=("blur", "loss of detail", "oversaturation", "loss of contrast"),
    blind_to=("a change of style with the same statistics", "objects", "anything when no view returns"),
)  # fmt: skip
def style_consistency(style: StyleStats, pairs: ReturnPairs, *, least_overlap: float = 0.7) -> Score | Unscored:
    """exp(-D), with D the mean over return pairs of |log ratio| of gradients at three scales, contrast, saturation.

    A statistic that doubles or halves while the others stay costs about 0.13 of the score.
    """
    i, j = pairs_with_enough_overlap(pairs, style.index, least_overlap)
    names, table = style_names_and_logs(style)
    change = table[nearest_rows(style.index, j)] - table[nearest_rows(style.index, i)]
    deviation = np.abs(change).mean(axis=1)
    mean = float(deviation.mean())
    facts = {name: float(value) for name, value in zip(names, np.exp(change.mean(axis=0)), strict=True)}
    units = Series(frame=j, other=i, value=np.exp(-deviation))
    return Score(float(np.exp(-mean)), raw=mean, units=units, facts={"ratio": facts, "pairs": len(i)})
