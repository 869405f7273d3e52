"""Decay of the picture: does it turn to noise, is it sharpened or smeared more and more, is it blurred?

Evidence: `PictureStatistics`. Every frame is held against the clip's own first second, so no reference is needed, and
the question can be asked whether or not the camera looks away:

- *noise* has no direction, fills the picture, and is as fine in colour as in luma. All three must have grown;
- *oversharpened* or *smeared* is a picture whose detail grows or shrinks in all cells at once while it still shows the
  first view, step by step. A thing that grows or walks by changes some of the cells, another light all of them in
  proportion, another view each in its own way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revisit.core import Score, Series, Unscored, metric
from revisit.evidence.appearance import PictureStatistics
from revisit.evidence.frames import FrameFacts
from revisit.evidence.pictures import is_black, is_flat
from revisit.metrics.rows import linear_ramp, nearest_rows

FAMILY = "drift"
LEAST_FRAMES = 12
FIRST_SECONDS, FIRST_SHARE = 1.0, 1 / 6  # what stands for the beginning: the shorter of both
LAST_SHARE = 1 / 5  # of the frames, which say whether the picture has decayed in the end
SAME_VIEW = 0.6  # correlation of thumbnails, at the best small shift, of frames that show the first view
SHIFTS = 3, 4  # rows and columns of the thumbnail: largest shift
LEAST_SAME = 8  # frames that show the first view, before anything is said of a gradual change
LIGHT_FLOOR = 10.0  # gray levels: below it a ratio of light is one of noise
COLLAPSED = 0.5  # sign from which a frame counts as decayed
FOR_GOOD = 0.75  # share of the frames from there on that are decayed, too

# What pictures show anyway, and what an eye sees at a glance.
LESS_DIRECTION, MORE_SPECKLE, MORE_DENSITY = (0.06, 0.16), (0.15, 0.45), (0.04, 0.14)
NO_DIRECTION, FULL_DENSITY = (0.36, 0.31), (0.62, 0.72)  # of a clip that is noise from its first frame on
SHARPENED, SMEARED = (0.12, 0.26), (0.25, 0.5)
STEADILY = (0.4, 0.7)  # rank correlation with time


@dataclass(frozen=True)
class Decay:
    """Signs of decay of each frame, 0 none to 1 plain, and how whole frames changed that show the first view."""

    noise: np.ndarray
    sharpened: np.ndarray
    smeared: np.ndarray
    same_view: np.ndarray  # bool
    margin: np.ndarray  # the plainest, as a multiple of where its sign is a half, and not cut off at its ends
    chroma: np.ndarray  # change of log chroma that all cells share; nan where another view is seen
    light: np.ndarray  # change of log light that all cells share, likewise

    @property
    def plainest_sign(self) -> np.ndarray:
        """The plainest of the signs, without single frames that stand out."""
        plainest = np.maximum.reduce([self.noise, self.sharpened, self.smeared])
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(plainest, 2, mode="edge"), 5)
        return np.asarray(np.median(windows, axis=1))


def multiple_of_middle(value: np.ndarray, ends: tuple[float, float]) -> np.ndarray:
    """Values as multiples of the middle between two ends."""
    return np.asarray(value, float) / (sum(ends) / 2)


def measure_decay(statistics: PictureStatistics, seconds: np.ndarray) -> Decay:
    """Signs of decay, each frame against the first second."""
    n = len(statistics.index)
    within = seconds - seconds[0] <= FIRST_SECONDS
    first = slice(0, max(3, min(int(within.sum()), round(FIRST_SHARE * n))))

    def change_since_start(values: np.ndarray) -> np.ndarray:
        return np.asarray(values - np.median(values[first], axis=0), float)

    changes = (
        (-change_since_start(statistics.coherence), LESS_DIRECTION),
        (change_since_start(statistics.speckle), MORE_SPECKLE),
        (change_since_start(statistics.density), MORE_DENSITY),
    )
    noise = np.minimum.reduce([linear_ramp(change, *ends) for change, ends in changes])
    from_the_start = np.minimum(
        linear_ramp(statistics.coherence, *NO_DIRECTION),
        linear_ramp(statistics.density, *FULL_DENSITY),
    )
    same_view = thumbnail_correlations_with_row(statistics.thumbnail, first.stop // 2) >= SAME_VIEW
    light = change_since_start(np.log(statistics.light.reshape(n, -1) + LIGHT_FLOOR))
    brighter = np.median(light, axis=1)
    low, high = np.quantile(change_since_start(statistics.detail.reshape(n, -1)), (0.2, 0.8), axis=1)
    gained, lost = low - np.maximum(brighter, 0), high - np.minimum(brighter, 0)
    steady = [
        linear_ramp(np.array(rank_correlation_with_time(change, seconds, same_view)), *STEADILY)
        for change in (gained, -lost)
    ]
    sharpened = linear_ramp(gained, *SHARPENED) * same_view * steady[0]
    smeared = linear_ramp(-lost, *SMEARED) * same_view * steady[1]
    margin = np.maximum.reduce(
        [
            np.minimum.reduce([multiple_of_middle(change, ends) for change, ends in changes]),
            multiple_of_middle(gained, SHARPENED) * same_view * (steady[0] >= COLLAPSED),
            multiple_of_middle(-lost, SMEARED) * same_view * (steady[1] >= COLLAPSED),
        ]
    )
    shared = [np.where(same_view, change_shared_by_cells(change), np.nan) for change in
              (change_since_start(statistics.chroma.reshape(n, -1)), light)]  # fmt: skip
    return Decay(np.maximum(noise, from_the_start), sharpened, smeared, same_view, margin, *shared)


def change_shared_by_cells(change: np.ndarray) -> np.ndarray:
    """Of changes (N, cells), what four fifths of the cells share: 0 where some gain and others lose."""
    low, high = np.quantile(change, (0.2, 0.8), axis=1)
    return np.asarray(np.maximum(low, 0) + np.minimum(high, 0))


def thumbnail_correlations_with_row(thumbnails: np.ndarray, row: int) -> np.ndarray:
    """(N,) correlation of each thumbnail with that of one row, at the best small shift."""
    pictures = np.asarray(thumbnails, float)
    up, left = SHIFTS
    height, width = pictures.shape[1:]
    template = pictures[row, up : height - up, left : width - left]
    template = template - template.mean()
    best = np.full(len(pictures), -1.0)
    for y in range(2 * up + 1):
        for x in range(2 * left + 1):
            window = pictures[:, y : y + template.shape[0], x : x + template.shape[1]]
            window = window - window.mean(axis=(1, 2), keepdims=True)
            length = np.sqrt((window**2).sum(axis=(1, 2)) * (template**2).sum())
            best = np.maximum(best, (window * template).sum(axis=(1, 2)) / np.maximum(length, 1e-6))
    return best


def rank_correlation_with_time(values: np.ndarray, seconds: np.ndarray, row_mask: np.ndarray) -> float:
    """Rank correlation of values with time over some rows; 0 where these are too few."""
    if int(row_mask.sum()) < LEAST_SAME:
        return 0.0
    order = np.argsort(np.argsort(values[row_mask])).astype(float)
    time = np.argsort(np.argsort(seconds[row_mask])).astype(float)
    return float(np.corrcoef(order, time)[0, 1])


def rows_bad_for_good(bad: np.ndarray) -> np.ndarray:
    """Rows that are bad, as are most of those that follow."""
    remaining = bad[::-1].cumsum()[::-1] / np.arange(len(bad), 0, -1)
    return np.flatnonzero(bad & (remaining >= FOR_GOOD))


def blank_end_facts(statistics: PictureStatistics, last_count: int) -> dict[str, object]:
    """From which frame on a clip shows nothing, for how much of it, and what; empty where it ends otherwise."""
    for name, blank in (("black", is_black(statistics.thumbnail)), ("one colour", is_flat(statistics.thumbnail))):
        rows = rows_bad_for_good(blank)
        if len(rows) and blank[-last_count:].mean() > 0.5:
            first = int(statistics.index[rows[0]])
            return {"blank": name, "blank_from_frame": first, "blank_share": round(float(blank.mean()), 3)}
    return {}


@metric(
    id="time_to_collapse", version=2, title="Time until collapse", unit="score", range=(0, 1), higher_is_better=True,
    needs=(FrameFacts, PictureStatistics), suites=("folder", "memobench"), responds_to=("collapse",),
    blind_to=("a picture that recovers", "a smear while another view is seen", "wrong content in a good picture",
              "frozen camera"),
)  # fmt: skip
def time_to_collapse(frames: FrameFacts, statistics: PictureStatistics) -> Score | Unscored:
    """Share of the clip before its picture decayed for good; 1 where it did not.

    Decayed is a picture that turned to noise, or that gained or lost detail everywhere, step by step, against the first
    second of the clip (see `metrics/picture_decay.py`). The facts hold how plain that is in the end, 0 to 1, and what.
    A clip that is black or of one colour in the end has no detail to decay: the facts say so, and from which frame on.
    """
    n = len(statistics.index)
    if n < LEAST_FRAMES or not len(frames.index):
        return Unscored("too_short", f"{n} frames are too few to see a picture decay")
    seconds = np.asarray(frames.time[nearest_rows(frames.index, statistics.index)], float)
    signs = measure_decay(statistics, seconds)
    sign = signs.plainest_sign
    last = max(3, round(LAST_SHARE * n))
    collapse = float(np.median(sign[-last:]))
    lasting = rows_bad_for_good(sign >= COLLAPSED)
    parts = {name: float(np.median(getattr(signs, name)[-last:])) for name in ("noise", "sharpened", "smeared")}
    shared = {
        f"{name}_change": None if np.isnan(values[-last:]).all() else round(float(np.nanmedian(values[-last:])), 3)
        for name, values in (("chroma", signs.chroma), ("light", signs.light))
    }
    facts: dict[str, object] = {
        "collapse": round(collapse, 3),
        "margin": round(float(np.median(signs.margin[-last:])), 3),
        **{name: round(value, 3) for name, value in parts.items()},
        "first_view_at_end": bool(np.median(signs.same_view[-last:])),
        **shared,
        "collapsed_at_frame": None,
    }
    facts |= blank_end_facts(statistics, last)
    units = Series(frame=statistics.index, seconds=seconds, value=1 - sign)
    if collapse < COLLAPSED or not len(lasting):
        return Score(1.0, raw=collapse, units=units, facts=facts)
    start = int(lasting[0])
    facts |= {
        "collapsed_at_frame": int(statistics.index[start]), "collapsed_at_second": round(float(seconds[start]), 3),
        "by": max(parts, key=lambda name: parts[name]),
        "frames": [int(statistics.index[row]) for row in (start, n - 1)],
    }  # fmt: skip
    return Score(start / n, raw=collapse, units=units, facts=facts)


@metric(
    id="edge_sharpness", version=1, title="Sharpness of edges", unit="ratio", range=(0, None), higher_is_better=True,
    needs=(PictureStatistics,), suites=("folder",), responds_to=("blur",),
    blind_to=("what is shown", "blur of some of the edges", "blur for less than half of the clip", "frozen camera"),
)  # fmt: skip
def edge_sharpness(statistics: PictureStatistics) -> Score | Unscored:
    """Gradient of the strongest edges over that at a quarter of the size, median over the frames: 1 sharp, 0.3 soft.

    Smooth things in a sharp picture do not count against it, and no reference is needed. Clips that were enlarged are
    soft by it, as they are.
    """
    finite = np.isfinite(statistics.sharpness)
    if finite.sum() < 3:
        return Unscored("not_followed", "fewer than three frames have edges whose sharpness can be measured")
    values = statistics.sharpness[finite].astype(float)
    units = Series(frame=statistics.index[finite], value=values)
    late = float(np.median(values[-max(3, round(LAST_SHARE * len(values))) :]))
    return Score(float(np.median(values)), units=units, facts={"late": round(late, 3)})
