"""How far scores move from one machine to another: measured on the same clips, and what a card promises.

`results/machines.json` is written by benchmarks/machine_spread.py from two runs of the same clips, one on each kind of
processor. Pixels are the same there, so what is left is the order of sums and the dispatch of libraries.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from revisit.audit.schema import Content
from revisit.core import METRICS, OBSERVERS, Metric
from revisit.core.text import read_package_yaml
from revisit.engine.dependencies import observed_kinds_needed_by
from revisit.evidence.camera import CameraPath
from revisit.networks import numeric_spread

ARITHMETIC = 1e-6  # of metrics that only read numbers from files, answers of judges or the case itself
WORDS = read_package_yaml(__package__, "machines.yaml")
SHARED: Mapping[str, str] = WORDS["shared"]
LOOKS_AT_FRAMES = ("frame", "sequence", "clip")
# Degrees of odometry scale with a field of view that the picture tells badly: fields 15 degrees apart fit almost as
# well, and points a hundredth of a pixel off choose another one. A jump of about 25 degrees ends a path or does not.
NOT_COMPARED = ("camera_path", "camera_turn_seen")
NO_PROMISE, NOT_MEASURED, BY_ODOMETRY = WORDS["no_promise"], WORDS["not_measured"], WORDS["by_odometry"]


@cache
def machine_results() -> Content:
    """What was measured on two machines: which they are, and of each metric the largest difference and the scores."""
    return json.loads((files("revisit.audit.results") / "machines.json").read_text(encoding="utf-8"))


def tolerance_lines(metric: str) -> list[str]:
    """What a metric's card says of it."""
    row = machine_results()["metrics"].get(metric)
    if metric in NOT_COMPARED:
        measured = [] if row is None else [f"{_measured_text(row)}, and more on others"]
        return [*measured, NO_PROMISE]
    rests = [BY_ODOMETRY] if CameraPath in observed_kinds_needed_by(METRICS[metric]) else []
    return [*_tolerance_sentences(metric, row), *rests]


def _tolerance_sentences(metric: str, row: Content | None) -> list[str]:
    if row is not None:
        return [f"{_measured_text(row)}; tolerance {_tolerance_of_row(row):g}"]
    if other := machine_results()["metrics"].get(SHARED.get(metric, "")):
        shared = f"not measured itself; by the evidence it shares with {SHARED[metric]}"
        return [f"{shared}, tolerance {_tolerance_of_row(other):g}"]
    if numeric_spread.card_lines_of_metric(metric):
        return []
    by_arithmetic = f"arithmetic on given numbers; tolerance {ARITHMETIC:g}"
    return [NOT_MEASURED if needs_frames(METRICS[metric]) else by_arithmetic]


def _measured_text(row: Content) -> str:
    """The machines, the clips and the largest difference."""
    low, high = f"{row['from']:.4g}", f"{row['to']:.4g}"
    scores = low if low == high else f"{low} to {high}"
    clips = "1 clip" if row["cases"] == 1 else f"{row['cases']} clips"
    return f"{machine_results()['machines']}, {clips} with scores of {scores}: up to {row['difference']:.1g}"


def score_tolerance(metric: str) -> float | None:
    """How far a metric's score may be from that of another machine; None where its card promises nothing."""
    if metric in NOT_COMPARED:
        return None
    rows = machine_results()["metrics"]
    row = rows.get(metric) or rows.get(SHARED.get(metric, ""))
    if row is not None:
        return _tolerance_of_row(row)
    return None if needs_frames(METRICS[metric]) else ARITHMETIC


def _tolerance_of_row(row: Content) -> float:
    return numeric_spread.next_round_number(max(2 * row["difference"], numeric_spread.FLOAT32))


def needs_frames(metric: Metric) -> bool:
    """Whether something that a metric needs is observed in frames."""
    kinds = observed_kinds_needed_by(metric)
    return any(maker.makes in kinds and maker.kind in LOOKS_AT_FRAMES for maker in OBSERVERS.values())
