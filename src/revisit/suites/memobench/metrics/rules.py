"""MemoBench's rules: which frames form a phase, which of them are sampled, and how raw values are scaled.

Every metric of the suite takes `rule`: `corrected` (the default), `paper` or `upstream` (docs/memobench-metrics.md).
Phases are those of the case; upstream shares their boundary frames: V = [0, h], D = [h, r], R = [r, N-1].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from revisit.core import Case, NoScore, UsageError, metric
from revisit.core.text import join_names
from revisit.evidence.frames import FrameFacts
from revisit.suites.memobench.evidence import evenly_spread_frames

# What the cards of the benchmark's scores have in common.
percent_metric = partial(metric, unit="percent", range=(0, 100), higher_is_better=True, suites=("memobench",))
RULES = ("corrected", "upstream", "paper")
PAPER = "arXiv:2606.27537"
PHASES = VISIBLE, HIDDEN, RETURNED = "visible", "hidden", "returned"


@dataclass(frozen=True)
class ClipPhases:
    """Where the phases of a clip begin, and how many frames it has."""

    hidden: int
    returned: int
    count: int

    def first_and_last_frame(self, name: str, closed: bool = False) -> tuple[int, int]:
        """First and last frame of a phase; a closed one ends on the first frame of the next."""
        bounds, at = (0, self.hidden, self.returned, self.count), PHASES.index(name)
        first, after = bounds[at], bounds[at + 1]
        return first, after if closed and name != RETURNED else after - 1


def check_rule(rule: str) -> str:
    """The rule, if there is such a one."""
    if rule not in RULES:
        raise UsageError(f"unknown rule {rule!r}; a protocol of the suite memobench sets one of {', '.join(RULES)}")
    return rule


def checked_clip_phases(case: Case, frames: FrameFacts) -> ClipPhases:
    """The phases of a case, checked against the frames of its clip."""
    if case.phases is None:
        raise NoScore("no_phases", "it was not given when the target leaves and returns")
    hidden, returned = case.phases
    count = frames.frame_count
    if not 0 < hidden <= returned < count:
        raise NoScore(
            "mismatch",
            f"the phases do not fit the clip: hidden from frame {hidden}, back from frame {returned}, {count} frames",
        )
    return ClipPhases(hidden, returned, count)


def sampled_frames_by_rule(first: int, last: int, count: int, rule: str) -> np.ndarray:
    """The frames of a stretch that are compared; only `corrected` takes each of them once."""
    frames = evenly_spread_frames(first, last, count)
    return np.unique(frames) if rule == "corrected" else frames


def scale_to_percent(value: float, low: float, high: float, rule: str) -> float:
    """The value on a scale from 0 to 100 (Eq. 1); upstream rounds to one decimal."""
    scaled = float(np.clip(100 * (value - low) / (high - low), 0, 100))
    return round(scaled, 1) if rule == "upstream" else scaled


def round_if_upstream_rule(value: float, digits: int, rule: str) -> float:
    """The value as upstream writes it, or as it is."""
    return round(float(value), digits) if rule == "upstream" else float(value)


def weighted_mean_and_worst_percent(mean: float, worst: float, rule: str, alpha: float) -> float:
    """alpha * mean + (1 - alpha) * minimum of two similarities from 0 to 1, on a scale to 100 (Eq. 4 and 5)."""
    return round_if_upstream_rule(
        alpha * scale_to_percent(mean, 0, 1, rule) + (1 - alpha) * scale_to_percent(worst, 0, 1, rule), 2, rule
    )


def rows_of_frames(index: np.ndarray, frames: np.ndarray, evidence_name: str) -> np.ndarray:
    """Rows of `index` (rising) that hold these frames; NoScore where some were not observed."""
    missing = np.setdiff1d(frames, index).tolist()
    if not missing:
        return np.searchsorted(index, frames)
    raise NoScore(
        "not_observed",
        f"{len(missing)} of the {len(frames)} frames that count have no {evidence_name} (frame "
        f"{join_names([*map(str, missing)], 6)}); observe these as well",
    )
