"""What a clip's cues say of its target, as a few numbers: how far it was lost, and how much of it came back.

`target_return.py` reads them. Every number lies between 0 and 1, so that no clip is far from those that the
probabilities were fitted on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revisit.evidence.target import TargetLooks, TargetTrack
from revisit.metrics.answers import cache_for_last_record
from revisit.metrics.rows import linear_ramp, true_runs

IN_DOUBT = 0.1  # seconds more than hiding or returning takes at least: presence is averaged over so long
SOON_AFTER = 0.15  # above the lowest presence: the first frame that low is when the target was lost
LONG = 2.0  # seconds that count as a long time
MOSTLY_GONE, CLEARLY_THERE = 0.35, 0.6  # presence
FIRST_LOOKS = 6  # by which the usual margin of the target is known
OUT = 0.2  # share inside the frame of a box that has left it
SAME_COLOUR = 0.4  # overlap of colours below which a match in layout is something else
FIRST_FRAMES = 3  # by which it is known how far the target stands out
FAINTEST_FIGURE = 0.1  # standing out less than that in the first frames counts as that
EMPTY = 0.3  # of how far the target stood out at first: less, and its place is empty
PLACE_STANDS_OUT = 0.12  # lead of the surroundings over clutter where the target's place is recognised
FAINTEST_PEAK = 0.2  # similarity before the loss: less counts as that


@dataclass(frozen=True)
class Absence:
    """When the target was away, by one kind of cue, and what came after."""

    presence: np.ndarray  # (N,) 0 to 1, averaged over a window
    lost: int  # position of the first frame in which it is as good as gone
    back: slice  # the best window after that; empty where no frame is left
    window: int  # frames of the window


def window_means(values: np.ndarray, window: int) -> np.ndarray:
    """(N,) means over windows of so many frames around each frame, cut at both ends."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    low = np.clip(np.arange(len(values)) - window // 2, 0, None)
    high = np.clip(low + window, None, len(values))
    low = np.clip(high - window, 0, None)
    return np.asarray((sums[high] - sums[low]) / np.maximum(high - low, 1))


@cache_for_last_record  # asked for every threshold that is tried
def median_frame_seconds(frame_times: np.ndarray, single_frame_seconds: float = 1.0) -> float:
    """Median time from frame to frame; of a single frame what is stated."""
    return float(np.median(np.diff(frame_times))) if len(frame_times) > 1 else single_frame_seconds


def frame_count_lasting(frame_times: np.ndarray, duration: float, least_frames: int) -> int:
    """Number of frames, at these times, that last so long, but at least so many."""
    step = median_frame_seconds(frame_times, 0.0)
    return max(least_frames, int(np.ceil(duration / step - 1e-6))) if step > 0 else least_frames


def find_absence(
    presence: np.ndarray,
    strength: np.ndarray,
    frame_times: np.ndarray,
    least_frames: int,
    *,
    hidden_for: float,
    back_for: float,
) -> Absence:
    """The absence that presence shows; the return is the window after it with the largest mean `strength`."""
    count = len(presence)
    window = min(frame_count_lasting(frame_times, hidden_for + IN_DOUBT, least_frames), count)
    back_window = min(frame_count_lasting(frame_times, back_for + IN_DOUBT, least_frames), count)
    smooth = window_means(presence, window)
    lost = int(np.flatnonzero(smooth <= smooth.min() + SOON_AFTER)[0])
    start = min(lost + window - window // 2, count)
    if start >= count:
        return Absence(smooth, lost, slice(count, count), window)
    best = start + int(window_means(strength[start:], back_window).argmax())
    low = max(min(best - back_window // 2, count - back_window), start)
    return Absence(smooth, lost, slice(low, min(low + back_window, count)), window)


def away_mask(absence: Absence, label_is_hidden: bool, comes_back: bool) -> np.ndarray:
    """(N,) whether the target is away in each frame, for a clip of which the outcome is known."""
    smooth, lost = absence.presence, absence.lost
    away = np.zeros(len(smooth), dtype=bool)
    if not label_is_hidden or not len(smooth):
        return away
    away = smooth < (smooth.min() + max(float(np.median(smooth[: lost + 1])), smooth.min() + 2 * SOON_AFTER)) / 2
    away[:1] = False
    for start, end in true_runs(away):
        if end - start < absence.window and not start <= lost < end:
            away[start:end] = False
    away[lost] = (len(away) > 1 and lost > 0) or away[lost]
    if lost == 0:
        away[1 : 1 + absence.window] = True  # gone at once
    if comes_back:
        away[absence.back] = False
        if not (~away & (np.cumsum(away) > 0)).any():
            away[-1] = False
    else:
        away[int(away.argmax()) :] = True
    return np.asarray(away)


@cache_for_last_record
def lead_over_clutter(track: TargetTrack) -> np.ndarray:
    """(N,) how far the best match is above what clutter reaches; at most 0 for one in other colours."""
    most = clutter_similarity(track)
    return np.asarray(np.where(track.colour >= SAME_COLOUR, track.peak, np.minimum(track.peak, most)) - most)


def clutter_similarity(track: TargetTrack) -> np.ndarray:
    """(N,) the similarity that other things reach."""
    return np.maximum(track.second, np.median(track.second))


@cache_for_last_record
def place_without_target_mask(track: TargetTrack) -> np.ndarray:
    """(N,) frames in which the target's place is recognised and holds something else."""
    return np.asarray(recognised_place_mask(track) & (track.at_place < 0.3))


def contrast_relative_to_start(values: np.ndarray, track: TargetTrack) -> np.ndarray:
    """(N,) how far something stands out from what is around it, against how far the target did at first."""
    first = float(np.median(track.stands[:FIRST_FRAMES])) if len(track.stands) else 1.0
    return np.asarray(values / max(first, FAINTEST_FIGURE))


@cache_for_last_record
def recognised_place_mask(track: TargetTrack) -> np.ndarray:
    """(N,) frames in which the target's surroundings stand out from clutter, with its place inside the frame."""
    lead = track.place - np.maximum(track.place_second, np.median(track.place_second))
    centre = (track.place_box[:, :2] + track.place_box[:, 2:]) / 2
    return np.asarray((lead >= PLACE_STANDS_OUT) & ((centre > 0.05) & (centre < 0.95)).all(1))


def layout_presence(track: TargetTrack) -> np.ndarray:
    """(N,) 0 to 1: how clearly each frame shows the target, found anywhere or followed."""
    by_lead = linear_ramp(lead_over_clutter(track), 0.02, 0.18)
    followed = linear_ramp(np.maximum(track.near, track.part), 0.2, 0.55) * (track.inside >= OUT)
    presence = np.maximum(by_lead, followed)
    presence[:1] = 1.0  # the target is in the first frame by definition
    return np.asarray(presence)


def layout_absence(track: TargetTrack, **lasting: float) -> Absence:
    """When the target was away by the layout of edges and colours."""
    strength = linear_ramp(lead_over_clutter(track), 0.0, 0.3)
    return find_absence(layout_presence(track), strength, track.seconds, 3, **lasting)


def layout_features(track: TargetTrack, **lasting: float) -> dict[str, float]:
    """Numbers of the layout of edges and colours; `lasting` are the seconds that hiding and returning take."""
    absence = layout_absence(track, **lasting)
    return {
        **_contrast_features(track, absence),
        **_lowest_features(track, absence),
        **_back_features(track, absence),
        **_end_features(track, absence.window),
        **_place_features(track, absence),
    }


def _contrast_features(track: TargetTrack, absence: Absence) -> dict[str, float]:
    """How far something stands out from what is around it: in the followed box, and at the target's place."""
    presence, window = layout_presence(track), absence.window
    standing = contrast_relative_to_start(track.stands, track)
    empty = recognised_place_mask(track) & (contrast_relative_to_start(track.place_stands, track) < EMPTY)
    after = empty[absence.lost + window // 2 + 1 :]
    return {
        "stands_lowest": float(linear_ramp(window_means(standing, window).min(), 0.0, 1.0)),
        "there_lowest": float(window_means(np.minimum(presence, linear_ramp(standing, 0.1, 0.6)), window).min()),
        "left_empty": float(linear_ramp(after.sum() * median_frame_seconds(track.seconds), 0.0, 1.0)),
        "stands_end": float(linear_ramp(standing[-window:].mean(), 0.0, 1.0)),
    }


def _lowest_features(track: TargetTrack, absence: Absence) -> dict[str, float]:
    """How far each cue fell, for how long, and how steady the target was otherwise."""
    lead, window = lead_over_clutter(track), absence.window

    def lowest_window_mean(values: np.ndarray, low: float, high: float) -> float:
        return float(linear_ramp(window_means(values, window).min(), low, high))

    def largest_window_fall(values: np.ndarray, high: float) -> float:
        return float(linear_ramp((values[:-window] - values[window:]).max(initial=0.0), 0.0, high))

    away = (absence.presence < MOSTLY_GONE).sum() * median_frame_seconds(track.seconds)
    return {
        "lead_lowest": lowest_window_mean(lead, 0.0, 0.3),
        "flow_lowest": lowest_window_mean(track.flow, 0.0, 0.6),
        "inside_lowest": lowest_window_mean(track.inside, 0.0, 0.6),
        "near_lowest": lowest_window_mean(track.near, -1.0, 1.0),
        "part_lowest": lowest_window_mean(track.part, -1.0, 1.0),
        "colour_lowest": lowest_window_mean(track.colour, 0.0, 1.0),
        "own_colour_lowest": lowest_window_mean(track.own_colour, 0.0, 1.0),
        "presence_lowest": float(absence.presence.min()),
        "presence_usual": float(np.median(absence.presence)),
        "flow_usual": float(np.median(track.flow)),
        "near_fall": largest_window_fall(track.near, 2.0),
        "own_colour_fall": largest_window_fall(track.own_colour, 1.0),
        "away": float(linear_ramp(away, 0.0, LONG)),
    }


def _back_features(track: TargetTrack, absence: Absence) -> dict[str, float]:
    """How clear and how alike the best match is after the loss, beside what the target reached before."""
    lead, presence = lead_over_clutter(track), layout_presence(track)
    lost, back, window = absence.lost, absence.back, absence.window
    before = slice(1, max(lost - window // 2, 2))
    clutter_then = float(np.percentile(track.peak[lost : lost + window], 90))  # what is reached without the target
    returned = float(track.peak[back].mean()) if back.start < len(presence) else clutter_then
    usual = max(float(np.median(track.peak[before])), FAINTEST_PEAK)
    return {
        "lead_before": float(linear_ramp(np.median(lead[before]), 0.0, 1.0)),
        "time_after": 1 - lost / len(presence),
        "back_share": _mean_or_zero(presence[back.start :] > CLEARLY_THERE),
        "back_above": float(linear_ramp(returned - clutter_then, 0.0, 0.3)),
        "back_colour": _mean_or_zero(track.own_colour[back]),
        "back_box_colour": _mean_or_zero(track.colour[back]),
        "back_peak": float(linear_ramp(_mean_or_zero(track.peak[back]), 0.0, 1.0)),
        "back_ratio": float(linear_ramp(_mean_or_zero(track.peak[back]) / usual, 0.2, 1.2)),
        "back_lead": float(linear_ramp(_mean_or_zero(lead[back]), 0.0, 0.8)),
        "back_first": float(linear_ramp(_mean_or_zero(track.first[back]), 0.0, 1.0)),
        "back_early": float(linear_ramp(_mean_or_zero(track.early[back]), 0.0, 1.0)),
    }


def _end_features(track: TargetTrack, window: int) -> dict[str, float]:
    """What is in the followed box in the last frames."""
    return {
        "end": float(layout_presence(track)[-window:].mean()),
        "near_end": float(linear_ramp(track.near[-window:].mean(), -1.0, 1.0)),
        "part_end": float(linear_ramp(track.part[-window:].mean(), -1.0, 1.0)),
        "inside_end": float(linear_ramp(track.inside[-window:].mean(), 0.0, 1.0)),
        "own_colour_end": float(track.own_colour[-window:].mean()),
    }


def _place_features(track: TargetTrack, absence: Absence) -> dict[str, float]:
    """Whether the target's place is seen again after the loss, and what is there."""
    window, last = absence.window, len(track.index) - 1
    after = slice(min(absence.lost + window - window // 2, last), None)
    recognised = recognised_place_mask(track)
    there = np.where(recognised, track.at_place, 0.0)
    lead = track.place - np.maximum(track.place_second, np.median(track.place_second))
    return {
        "place_again": float(recognised[after].mean()),
        "place_clearest": float(linear_ramp(lead[after].max(), 0.0, 0.8)),
        "place_end": float(linear_ramp(lead[-window:].mean(), 0.0, 0.8)),
        "at_place_best": float(linear_ramp(there[after].max(), 0.0, 1.0)),
        "at_place_end": float(linear_ramp(track.at_place[-window:].mean(), 0.0, 1.0)),
        "own_colour_best": float(window_means(track.own_colour[after], window).max()),
    }


def _mean_or_zero(values: np.ndarray) -> float:
    """The mean, or 0 of nothing."""
    return float(values.mean()) if len(values) else 0.0


def look_presence(looks: TargetLooks) -> np.ndarray:
    """(N,) 0 to 1: how clearly each look shows the target."""
    presence = np.minimum(linear_ramp(looks.like - looks.unlike, -0.1, 0.12), linear_ramp(looks.like, 0.36, 0.56))
    presence[:1] = 1.0
    return np.asarray(presence)


def look_absence(looks: TargetLooks, **lasting: float) -> Absence:
    """When the target was away by what a network sees."""
    strength = np.minimum(linear_ramp(looks.like - looks.unlike, -0.1, 0.4), linear_ramp(looks.like, 0.3, 0.9))
    return find_absence(look_presence(looks), strength, looks.seconds, 2, **lasting)


def look_features(looks: TargetLooks, **lasting: float) -> dict[str, float]:
    """Numbers of what a network sees."""
    margin = looks.like - looks.unlike
    absence = look_absence(looks, **lasting)
    back, window = absence.back, absence.window
    usual = max(float(np.median(margin[:FIRST_LOOKS])), 0.05)
    return {
        "look_lowest": float(absence.presence.min()),
        "look_lowest_margin": float(linear_ramp(window_means(margin, window).min() / usual, -1.0, 0.6)),
        "look_before_lowest": float(linear_ramp(looks.before[1:].min(initial=1.0), 0.4, 0.9)),
        "look_back_like": _mean_or_zero(linear_ramp(looks.like[back], 0.4, 0.9)),
        "look_back_clear": _mean_or_zero(linear_ramp(margin[back] / usual, 0.0, 1.0)),
        **close_features(looks, **lasting),
    }


def close_features(looks: TargetLooks, **lasting: float) -> dict[str, float]:
    """Numbers of the candidates seen closely."""
    margin = looks.close - looks.close_unlike
    presence = np.minimum(linear_ramp(margin, -0.05, 0.2), linear_ramp(looks.close, 0.35, 0.6))
    presence[:1] = 1.0
    strength = np.minimum(linear_ramp(margin, -0.05, 0.4), linear_ramp(looks.close, 0.3, 0.9))
    absence = find_absence(presence, strength, looks.seconds, 2, **lasting)
    back, first = absence.back, max(float(margin[0]), 0.1)
    return {
        "close_lowest": float(absence.presence.min()),
        "close_back_ratio": _mean_or_zero(linear_ramp(margin[back] / first, 0.1, 0.7)),
        "close_back_view": _mean_or_zero(linear_ramp(looks.close_view[back], 0.4, 0.8)),
        "close_back_colour": _mean_or_zero(looks.close_colour[back]),
    }
