"""How far scores move with device, batch size and precision: measured, and kept with the version that was measured.

`spread.json` is written by benchmarks/network_spread.py: for each set and metric the largest difference of a clip's
score to that on a CPU in float32. The tolerance on a card is the next of 1, 2, 5, 10, ... above twice the largest one.
"""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("spread.json")


@cache
def results() -> dict[str, Any]:
    """What was measured, by set."""
    if not RESULTS.is_file():
        return {}
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return found


def largest(row: dict[str, Any], word: str = "") -> float:
    """The largest difference of a metric, over all settings or those whose name holds a word."""
    return max((value for name, value in row["differences"].items() if word in name), default=0.0)


def tolerance(difference: float) -> float:
    """The next round number above twice a difference; never below what float32 can promise."""
    wanted = max(2 * difference, 1e-6)
    power = 10.0 ** math.floor(math.log10(wanted))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= wanted * (1 - 1e-9))


def lines(metric: str) -> list[str]:
    """What a metric's card says of it, a line for each set that was measured."""
    said = []
    for set, measured in results().items():
        row = measured["metrics"].get(metric)
        if row is None:
            continue
        batches = sorted({int(name.rpartition(" ")[2]) for name in row["differences"]})
        said.append(
            f"set {set}, {measured['weights']} weights, {row['cases']} clips, CPU against {measured['device']}: up to "
            f"{largest(row, 'float32'):.1g} in float32 and {largest(row, 'default'):.1g} in the default precision, "
            f"batches of {' and '.join(map(str, batches))}; tolerance {tolerance(largest(row)):g}"
        )
    return said
