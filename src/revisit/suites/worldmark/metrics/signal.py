"""The clock of a clip: flow per eighth of a second at sixteen samples a second, and the keys that are held.

`upstream` takes sixteen frames a second, whatever the file says. `corrected` takes the times of the file: the flow of a
pair of frames becomes a speed halfway between them, and speeds are averaged over the eighth of a second around each
sample. Constants in samples mean the same time at every frame rate then.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revisit.core import NoScore
from revisit.evidence.frames import FrameFacts
from revisit.metrics.rules import is_upstream_rule
from revisit.suites.worldmark.evidence import APART, KEYS, Key, KeyFlow, keys_of_condition

RATE = 16.0  # samples a second
AFTER, BEFORE = 3.0, 1.0  # seconds after and before a switch that do not count as steady
LEAST_SAMPLES = 3  # of a steady part
AT_REST = 0.15  # pixels in an eighth of a second: a turn of 0.15 degrees a second, and more than compression moves


@dataclass(frozen=True, eq=False)
class Signal:
    """The flow of a clip on its clock, and the keys it was asked for."""

    keys: tuple[Key, ...]
    names: tuple[str, ...]
    time: np.ndarray  # seconds
    horizontal: np.ndarray  # pixels in an eighth of a second
    radial: np.ndarray
    seconds: float  # that the keys share
    frame: np.ndarray  # number of the frame at each sample

    def signed_flow_of_key(self, key: Key) -> np.ndarray:
        """The flow that shows a key: radial for steps ahead and back, else horizontal; positive as it is asked for."""
        return key.sign * (self.radial if key.axis == "forward" else self.horizontal)

    @property
    def speed(self) -> np.ndarray:
        """Length of both channels together."""
        return np.hypot(self.horizontal, self.radial)

    def steady_mask_of_key(self, number: int) -> np.ndarray:
        """Which samples lie in a key's time and not around a switch."""
        share = self.seconds / len(self.keys)
        first = number * share + (AFTER if number else 0.0)
        last = (number + 1) * share - (BEFORE if number < len(self.keys) - 1 else 0.0)
        return np.asarray((self.time >= first) & (self.time <= last))


def make_signal(condition: str, frames: FrameFacts, flow: KeyFlow, rule: str) -> Signal:
    """The flow of a clip on the clock of a rule."""
    names = keys_of_condition(condition)
    if not names:
        raise NoScore("no_camera", f"{condition!r} is no string of the keys {', '.join(KEYS)}")
    if len(flow.index) < LEAST_SAMPLES:
        raise NoScore("too_short", f"flow of {len(flow.index)} pairs of frames; a key needs {LEAST_SAMPLES}")
    keys = tuple(KEYS[name] for name in names)
    if is_upstream_rule(rule):
        time = np.arange(len(flow.index)) / RATE
        return Signal(keys, names, time, flow.horizontal, flow.radial, float(time[-1]), flow.index)
    last = len(frames.time) - 1
    if last < APART or not np.isfinite(frames.time).all() or not 0 < frames.fps < np.inf:
        raise NoScore("not_observed", "the times of the frames are not known, and the clock follows them")
    at = np.minimum(np.searchsorted(frames.index, np.c_[flow.index, flow.index + APART]), last)
    start, end = (frames.time[at] - frames.time[0]).T
    middle, length = (start + end) / 2, end - start
    if (length <= 0).any() or (np.diff(middle) <= 0).any():
        raise NoScore("mismatch", "the times of the frames do not rise, so no speed can be told")
    seconds = float(frames.time[-1] - frames.time[0]) + 1 / frames.fps
    time = np.arange(max(int(seconds * RATE), 1)) / RATE
    speeds = [values / length / (RATE / APART) for values in (flow.horizontal, flow.radial)]
    horizontal, radial = (_window_means_at_times(middle, speed, time) for speed in speeds)
    return Signal(keys, names, time, horizontal, radial, seconds, _nearest_frame_numbers(frames, time))


def _window_means_at_times(middle: np.ndarray, speed: np.ndarray, time: np.ndarray) -> np.ndarray:
    """Mean speed in the window of a sample's length around each sample; the ends are held."""
    half = 0.5 / RATE
    ends = middle[0] - 1.0, middle[-1] + 1.0
    at = np.r_[ends[0], middle, ends[1]]
    values = np.r_[speed[0], speed, speed[-1]]
    way = np.r_[0.0, np.cumsum(np.diff(at) * (values[1:] + values[:-1]) / 2)]
    return np.asarray((np.interp(time + half, at, way) - np.interp(time - half, at, way)) / (2 * half))


def _nearest_frame_numbers(frames: FrameFacts, time: np.ndarray) -> np.ndarray:
    """The number of the frame nearest to each time."""
    times = frames.time - frames.time[0]
    after = np.clip(np.searchsorted(times, time), 1, len(times) - 1)
    earlier = time - times[after - 1] <= times[after] - time
    return np.asarray(frames.index[after - earlier])


def moving_average(values: np.ndarray, window: int) -> np.ndarray:
    """Mean over so many samples around each, zeros beyond the ends."""
    return np.convolve(values, np.ones(window) / window, mode="same")
