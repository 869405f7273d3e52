"""MemoBench's rules: which frames form a phase, which of them are sampled, and how raw values are scaled.

Every metric of the suite takes `rule`: `corrected` (the default), `paper` or `upstream` (docs/memobench-metrics.md).
Phases are those of the case; upstream shares their boundary frames: V = [0, h], D = [h, r], R = [r, N-1].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revisit.core import Case, Unscored, UsageError
from revisit.evidence.frames import FrameFacts

RULES = ("corrected", "upstream", "paper")
PAPER = "arXiv:2606.27537"
VISIBLE, HIDDEN, RETURNED = "visible", "hidden", "returned"


@dataclass(frozen=True)
class ClipPhases:
    """Where the phases of a clip begin, and how many frames it has."""

    hidden: int
    returned: int
    count: int

    def phase(self, name: str, closed: bool = False) -> tuple[int, int]:
        """First and last frame of a phase; a closed one ends on the first frame of the next."""
        first, after = {
            VISIBLE: (0, self.hidden),
            HIDDEN: (self.hidden, self.returned),
            RETURNED: (self.returned, self.count),
        }[name]
        return first, after if closed and name != RETURNED else after - 1


def check_rule(rule: str) -> str:
    """The rule, if there is such a one."""
    if rule not in RULES:
        raise UsageError(f"unknown rule {rule!r}; a protocol of the suite memobench sets one of {', '.join(RULES)}")
    return rule


def clip_phases(case: Case, frames: FrameFacts) -> ClipPhases | Unscored:
    """The phases of a case, checked against the frames of its clip."""
    if case.phases is None:
        return Unscored("no_phases", "it was not given when the target leaves and returns")
    hidden, returned = case.phases
    count = int(frames.index[-1]) + 1 if len(frames.index) else 0
    if not 0 < hidden <= returned < count:
        return Unscored(
            "mismatch",
            f"the phases do not fit the clip: hidden from frame {hidden}, back from frame {returned}, {count} frames",
        )
    return ClipPhases(hidden, returned, count)


def spread_frames(first: int, last: int, count: int) -> np.ndarray:
    """`count` frames from `first` to `last`, evenly, each rounded down; a short stretch repeats frames."""
    if count < 2:
        return np.array([first])
    return first + (np.arange(count) * (last - first) / (count - 1)).astype(np.int64)


def percent(value: float, low: float, high: float, rule: str) -> float:
    """The value on a scale from 0 to 100 (Eq. 1); upstream rounds to one decimal."""
    scaled = float(np.clip(100 * (value - low) / (high - low), 0, 100))
    return round(scaled, 1) if rule == "upstream" else scaled


def round_as_upstream(value: float, digits: int, rule: str) -> float:
    """The value as upstream writes it, or as it is."""
    return round(float(value), digits) if rule == "upstream" else float(value)


def mean_and_worst(mean: float, worst: float, rule: str, alpha: float) -> float:
    """alpha * mean + (1 - alpha) * minimum of two similarities from 0 to 1, on a scale to 100 (Eq. 4 and 5)."""
    return round_as_upstream(alpha * percent(mean, 0, 1, rule) + (1 - alpha) * percent(worst, 0, 1, rule), 2, rule)


def find_rows(index: np.ndarray, frames: np.ndarray) -> np.ndarray | list[int]:
    """Rows of `index` (rising) that hold these frames; or the list of frames that are not there."""
    frames = np.asarray(frames)
    at = np.searchsorted(index, frames)
    there = (at < len(index)) & (index[np.minimum(at, max(len(index) - 1, 0))] == frames) if len(index) else frames < 0
    return at if there.all() else sorted(set(frames[~there].tolist()))


def frames_missing(what: str, missing: list[int], count: int) -> Unscored:
    """Unscored, because some frames that the rule asks for were not observed."""
    listed = ", ".join(map(str, missing[:5])) + (", …" if len(missing) > 5 else "")
    sentence = f"{len(missing)} of the {count} frames that count have no {what} (frame {listed}); observe these as well"
    return Unscored("not_observed", sentence)
