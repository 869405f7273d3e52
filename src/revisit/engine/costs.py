"""What observing costs: seconds per frame of each observer, learnt from earlier runs on this machine.

A run begins with its longest jobs, so that no worker sits over a long clip when all others are done.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from revisit.core import Clip
from revisit.core.text import parse_json
from revisit.engine.cache import EvidenceCache
from revisit.engine.jobs import ObserverTask
from revisit.media import announced_frames
from revisit.media.files import replacing

NAME = "costs.json"  # in the cache: observer -> [seconds, frames]
UNKNOWN = 0.01  # seconds per frame of an observer that never ran here
REMEMBERED = 100_000  # frames after which earlier runs count for less than the last one
BYTES_PER_FRAME = 10_000  # of a video that does not say how many frames it has


class Costs:
    """Seconds per frame by observer."""

    def __init__(self, per_frame: Mapping[str, float]) -> None:
        self.per_frame = per_frame
        self._frames: dict[Clip, int] = {}

    def seconds(self, tasks: Iterable[tuple[Clip, ObserverTask]]) -> float:
        """About how long one processor needs for these observers, each on its clip."""
        return sum(self.frames(clip) * self.per_frame.get(task.observer, UNKNOWN) for clip, task in tasks)

    def frames(self, clip: Clip) -> int:
        """About how many frames a clip has; nothing is decoded."""
        if clip not in self._frames:
            self._frames[clip] = _frames(clip)
        return self._frames[clip]


def load_costs(cache: EvidenceCache) -> Costs:
    """What earlier runs that used this cache took."""
    return Costs({observer: seconds / frames for observer, (seconds, frames) in _read(cache).items() if frames > 0})


def save_costs(cache: EvidenceCache, seconds: Mapping[str, float], frames: Mapping[str, int]) -> None:
    """Keep what a run took, by observer, for those that come."""
    costs = _read(cache)
    for observer, count in frames.items():
        before, of = costs.get(observer, (0.0, 0.0))
        weight = min(1.0, REMEMBERED / of) if of else 0.0
        costs[observer] = round(before * weight + seconds.get(observer, 0.0), 3), round(of * weight) + count
    if frames:
        with suppress(OSError), replacing(cache.root / NAME) as temporary:  # of a cache that others own
            temporary.write_text(json.dumps(dict(sorted(costs.items())), indent=0), encoding="utf-8")


def _read(cache: EvidenceCache) -> dict[str, tuple[float, float]]:
    try:
        content = parse_json((cache.root / NAME).read_text(encoding="utf-8"))
        return {str(id): (float(seconds), float(frames)) for id, (seconds, frames) in content.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}  # a guess is enough to begin with


def _frames(clip: Clip) -> int:
    if clip.frames is not None:
        count = len(clip.frames.rgb)
    else:
        try:
            path: Path = clip.path
            if path.is_dir():
                count = sum(1 for _ in path.iterdir())
            else:
                count = announced_frames(path) or path.stat().st_size // BYTES_PER_FRAME
        except Exception:  # whatever it holds: the decoder will say what is wrong with it
            return 0
    count = max(0, count - clip.start)
    return count if clip.count is None else min(count, clip.count)
