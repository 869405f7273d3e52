"""An observer whose network takes a fixed time for a frame, whatever the machine: a device that only waits."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import numpy as np

from revisit.core import Batch, evidence, observer

DELAY = 0.02  # seconds a frame


@evidence(id="bench_delayed")
@dataclass(frozen=True)
class Delayed:
    """Which process looked at each frame."""

    index: np.ndarray
    process: np.ndarray


@observer(
    id="bench.delay", version=1, kind="frame", makes=Delayed, weights=("lpips_alex",)
)  # any network of torch; it is not read
def delayed(batch: Batch) -> Delayed:
    """Wait as long as a network of a known speed would take."""
    time.sleep(DELAY * len(batch.index))
    return Delayed(batch.index, np.full(len(batch.index), os.getpid()))
