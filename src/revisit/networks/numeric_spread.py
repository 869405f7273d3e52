"""How far scores move with device, batch size and precision: measured, and kept with the version that was measured.

`numeric_spread.json` is written by benchmarks/network_spread.py from rendered and real clips: for each set and metric
the largest difference of a clip's score to that on a CPU, frame by frame, and the lowest and highest score. The
tolerance on a card is the next of 1, 2, 5, 10, ... above twice the largest one.
"""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path
from typing import TypedDict

RESULTS = Path(__file__).with_name("numeric_spread.json")
# Of one metric: clips, lowest and highest score, and the largest difference by setting.
MetricSpread = TypedDict("MetricSpread", {"cases": int, "from": float, "to": float, "differences": dict[str, float]})


class SetSpread(TypedDict):
    """What was measured of one set."""

    device: str
    weights: str
    metrics: dict[str, MetricSpread]


@cache
def results() -> dict[str, SetSpread]:
    """What was measured, by set."""
    if not RESULTS.is_file():
        return {}
    content: dict[str, SetSpread] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return content


def largest(row: MetricSpread, word: str = "") -> float:
    """The largest difference of a metric, over all settings or those whose name holds a word."""
    return max((value for name, value in row["differences"].items() if word in name), default=0.0)


def tolerance(difference: float) -> float:
    """The next round number above twice a difference; never below what float32 can promise."""
    least = max(2 * difference, 1e-6)
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= least * (1 - 1e-9))


def lines(metric: str) -> list[str]:
    """What a metric's card says of it, a line for each set that was measured."""
    return [
        card_line(set_name, measured, measured["metrics"][metric])
        for set_name, measured in results().items()
        if metric in measured["metrics"]
    ]


def card_line(set_name: str, measured: SetSpread, row: MetricSpread) -> str:
    """One line of a card."""
    low, high = f"{row['from']:.4g}", f"{row['to']:.4g}"
    scores = low if low == high else f"{low} to {high}"
    clips = "1 clip" if row["cases"] == 1 else f"{row['cases']} clips"
    batches = ", batches of 1 and 64" if any("batch" in name for name in row["differences"]) else ""
    where = f"CPU and {measured['device']}{batches}"
    return f"set {set_name}, {measured['weights']} weights, {clips} with scores of {scores}, {where}: {how_far(row)}"


def how_far(row: MetricSpread) -> str:
    """By how much the scores of a metric moved, in words."""
    if row["from"] == row["to"] == 0:  # where rounding cannot move them
        return "a score on its bound says nothing of how far others move"
    exact = (
        f"{largest(row, 'float32'):.1g} in float32 and "
        if any("float32" in name for name in row["differences"])
        else ""
    )
    tolerated = tolerance(largest(row))
    return f"up to {exact}{largest(row, 'default'):.1g} in the default precision; tolerance {tolerated:g}"
