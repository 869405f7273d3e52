"""What observing costs: seconds and bytes per frame of each observer, learnt from earlier runs on this machine.

A run begins with its longest jobs, so that no worker sits over a long clip when all others are done.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from revisit.core import OBSERVERS, Clip
from revisit.core.text import parse_json
from revisit.engine.cache import EvidenceCache
from revisit.engine.jobs import ObserverTask
from revisit.media import frame_count_in_mp4_index, frame_size_in_mp4_index
from revisit.media.files import atomic_write_path

NAME = "costs.json"  # in the cache: observer -> [seconds, frames, megapixels of all frames, bytes of evidence]
UNKNOWN = 0.01  # seconds per frame of an observer that never ran here
UNKNOWN_BYTES = 500.0  # of evidence per frame
REMEMBERED = 100_000  # frames after which earlier runs count for less than the last one
BYTES_PER_FRAME = 10_000  # of a video that does not say how many frames it has
DECODING, SCORING = "decoding", "scoring"  # under which the time beside observers is kept


# Observer -> seconds, frames, megapixels of all frames together, bytes of evidence.
CostSums = MutableMapping[str, np.ndarray]


@dataclass
class Costs:
    """Seconds and bytes of evidence per frame by observer, and the picture size that they were learnt from."""

    per_frame: Mapping[str, float]
    megapixels: Mapping[str, float] = field(default_factory=dict)
    evidence: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.frames, self.picture = cache(approximate_frame_count), cache(announced_frame_megapixels)

    def estimate_total_seconds(self, tasks: Iterable[tuple[Clip, ObserverTask]]) -> float:
        """About how long one processor needs for these observers, each on its clip."""
        return sum(self.estimate_seconds(clip, task.observer) for clip, task in tasks)

    def estimate_seconds(self, clip: Clip, observer: str) -> float:
        """About how long one processor needs for an observer, or for decoding or scoring, on a clip.

        What looks at whole pictures takes as much longer as they are larger than those it was learnt from; an
        observer that has them scaled to a size of its own does not.
        """
        unknown = 0.0 if observer in (DECODING, SCORING) else UNKNOWN
        seconds = self.frames(clip) * self.per_frame.get(observer, unknown)
        usual = self.megapixels.get(observer)
        takes_any_size = observer == DECODING or (observer in OBSERVERS and OBSERVERS[observer].size is None)
        if not usual or not takes_any_size:
            return seconds
        return seconds * (self.picture(clip) or usual) / usual

    def estimate_evidence_bytes(self, clip: Clip, observer: str) -> float:
        """About how much evidence an observer leaves of a clip."""
        return self.frames(clip) * self.evidence.get(observer, UNKNOWN_BYTES)


def load_costs(cache: EvidenceCache) -> Costs:
    """What earlier runs that used this cache took."""
    sums = {observer: values for observer, values in _read_cost_sums(cache).items() if values[1] > 0}
    return Costs(
        {observer: seconds / frames for observer, (seconds, frames, _, _) in sums.items()},
        {observer: pixels / frames for observer, (_, frames, pixels, _) in sums.items() if pixels},
        {observer: evidence / frames for observer, (_, frames, pixels, evidence) in sums.items() if evidence},
    )


def merge_into_saved_costs(cache: EvidenceCache, record: CostSums) -> None:
    """Keep what a run took, by observer, for those that come."""
    costs = _read_cost_sums(cache)
    for observer, now in record.items():
        before = np.array(costs.get(observer, [0.0] * 4))
        weight = min(1.0, REMEMBERED / before[1]) if before[1] else 0.0
        seconds, frames, pixels, evidence = (before * weight + now).tolist()
        costs[observer] = [round(seconds, 3), round(frames), round(pixels, 3), round(evidence)]
    if record:
        with suppress(OSError), atomic_write_path(cache.root / NAME) as temporary:  # of a cache that others own
            temporary.write_text(json.dumps(dict(sorted(costs.items())), indent=0), encoding="utf-8")


def _read_cost_sums(cache: EvidenceCache) -> dict[str, list[float]]:
    try:
        content = parse_json((cache.root / NAME).read_text(encoding="utf-8"))
        rows = {str(id): [float(value) for value in values] for id, values in content.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}  # a guess is enough to begin with
    # Earlier versions kept seconds and frames alone.
    return {id: [*row, 0.0, 0.0][:4] for id, row in rows.items() if len(row) >= 2}


def announced_frame_megapixels(clip: Clip) -> float | None:
    """Megapixels of a picture of a clip, where the file says it; nothing is decoded."""
    if clip.frames is not None:
        return float(np.prod(clip.frames.rgb[0].shape[:2])) / 1e6 if len(clip.frames.rgb) else None
    try:
        size = frame_size_in_mp4_index(clip.path) if clip.path.is_file() else None
    except Exception:  # whatever it holds: the decoder will say what is wrong with it
        return None
    return None if size is None else size[0] * size[1] / 1e6


def approximate_frame_count(clip: Clip) -> int:
    """About how many frames a clip has; nothing is decoded."""
    try:
        if clip.frames is not None:
            count = len(clip.frames.rgb)
        elif clip.path.is_dir():
            count = sum(1 for _ in clip.path.iterdir())
        else:
            count = frame_count_in_mp4_index(clip.path) or clip.path.stat().st_size // BYTES_PER_FRAME
    except Exception:  # whatever it holds: the decoder will say what is wrong with it
        return 0
    count = max(0, count - clip.start)
    return count if clip.count is None else min(count, clip.count)
