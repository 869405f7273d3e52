"""One decode for all observers against one decode each, on a rendered clip: seconds and their ratio.

The second way is what a pile of scripts does: every metric opens the video again.
"""

from __future__ import annotations

import tempfile
import time
from collections import deque
from pathlib import Path

import numpy as np

from revisit.core import SUITES
from revisit.engine.cache import EvidenceCache
from revisit.engine.dependencies import ObserverSet
from revisit.engine.jobs import ObservingJob
from revisit.engine.observe import observe_job
from revisit.engine.plan import make_plan
from revisit.media import Limits, encode_mp4
from revisit.observers.sets import load_roles

FRAMES, SIZE = 81, (480, 832)


def write_clip(path: Path) -> None:
    """A window that slides over a random wall and back."""
    rng = np.random.default_rng(0)
    wall = np.kron(rng.integers(0, 255, (60, 200, 3), dtype=np.uint8), np.ones((8, 8, 1), np.uint8))
    offsets = np.r_[np.arange(41), np.arange(40)[::-1]] * 8
    encode_mp4(path, (np.ascontiguousarray(wall[: SIZE[0], x : x + SIZE[1]]) for x in offsets), fps=16)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_clip(root / "videos/model/clip.mp4")
        plan = make_plan(SUITES["folder"], root / "videos", ObserverSet("lite", load_roles("lite")))
        [job] = plan.observing_jobs_for(plan.tasks)
        [clip] = job.clips
        started = time.perf_counter()
        deque(observe_job(job, EvidenceCache(root / "together"), Limits()))
        together = time.perf_counter() - started
        started = time.perf_counter()
        for task in clip.observers:
            alone = ObservingJob((type(clip)(clip.digest, clip.clip, (task,)),), frozenset())
            deque(observe_job(alone, EvidenceCache(root / "apart"), Limits()))
        apart = time.perf_counter() - started
        print(f"{len(clip.observers)} observers on {FRAMES} frames of {SIZE[1]}x{SIZE[0]}")
        print(f"one decode       {together:6.2f} s")
        print(f"one decode each  {apart:6.2f} s   {apart / together:.2f} x")


if __name__ == "__main__":
    main()
