"""How far scores move with device, batch size and precision: measured, and kept with the version that was measured.

`numeric_spread.json` is written by benchmarks/network_spread.py from rendered and real clips: for each set and metric
the largest difference of a clip's score to that on a CPU, frame by frame, and the lowest and highest score. The
tolerance on a card is the next of 1, 2, 5, 10, ... above five times the largest one, and at least a ten-thousandth of
the highest score: the largest difference of a few clips is soon exceeded by other clips.
"""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path
from typing import TypedDict

FLOAT32 = 1e-6  # no tolerance is below it
RESULTS = Path(__file__).with_name("numeric_spread.json")
# Of one metric: clips, lowest and highest score, and the largest difference by setting.
MetricSpread = TypedDict("MetricSpread", {"cases": int, "from": float, "to": float, "differences": dict[str, float]})


class SetSpread(TypedDict):
    """What was measured of one set."""

    device: str
    weights: str
    metrics: dict[str, MetricSpread]


@cache
def measured_spread_by_set() -> dict[str, SetSpread]:
    """What was measured, by set."""
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def largest_difference(spread: MetricSpread, setting_word: str = "") -> float:
    """The largest difference of a metric, over all settings or those whose name holds a word."""
    return max((value for name, value in spread["differences"].items() if setting_word in name), default=0.0)


def tolerance_of(spread: MetricSpread) -> float:
    """How far the score of a metric may move by its card, whatever device, batch size and precision."""
    highest = max(abs(spread["from"]), abs(spread["to"]))
    return next_round_number(max(5 * largest_difference(spread), 1e-4 * highest, FLOAT32))


def next_round_number(least: float) -> float:
    """The smallest of ..., 1, 2, 5, 10, ... that is not below a number."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= least * (1 - 1e-9))


def card_lines_of_metric(metric: str) -> list[str]:
    """What a metric's card says of it, a line for each set that was measured."""
    spreads = measured_spread_by_set()
    return [_card_line(name, spread, metric) for name, spread in spreads.items() if metric in spread["metrics"]]


def _card_line(set_name: str, measured: SetSpread, metric: str) -> str:
    spread = measured["metrics"][metric]
    low, high = f"{spread['from']:.4g}", f"{spread['to']:.4g}"
    scores = low if low == high else f"{low} to {high}"
    clips = "1 clip" if spread["cases"] == 1 else f"{spread['cases']} clips"
    batches = ", batches of 1 and 64" if any("batch" in name for name in spread["differences"]) else ""
    where = f"set {set_name}, {measured['weights']} weights, {clips} with scores of {scores}, CPU and "
    return f"{where}{measured['device']}{batches}: {describe_spread(spread)}"


def describe_spread(spread: MetricSpread) -> str:
    """By how much the scores of a metric moved, in words."""
    if spread["from"] == spread["to"] == 0:  # where rounding cannot move them
        return "a score on its bound says nothing of how far others move"
    has_float32 = any("float32" in name for name in spread["differences"])
    exact = f"{largest_difference(spread, 'float32'):.1g} in float32 and " if has_float32 else ""
    return (
        f"up to {exact}{largest_difference(spread, 'default'):.1g} in the default precision; tolerance "
        f"{tolerance_of(spread):g}"
    )
