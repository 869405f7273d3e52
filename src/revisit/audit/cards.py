"""What a metric's card says of its audit, and of how far its scores move from one machine to another.

`results/lite.json` is what the audit found, on which grid, with which version of each metric: a card shows nothing of a
metric that has changed since. `results/machines.json` is written by benchmarks/machine_spread.py from two runs of the
same clips, one on each kind of processor. Pixels are the same there, so what is left is the order of sums and the
dispatch of libraries.
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
def load_saved_audit(set: str = "lite") -> Content:
    """The saved audit of an observer set; empty where there is none."""
    file = files("revisit.audit.results") / f"{set}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def saved_metric_audit(metric: str, version: int) -> Content | None:
    """What the audit found of a metric in this version, or None."""
    audit = load_saved_audit().get("metrics", {}).get(metric)
    return audit if audit is not None and audit["version"] == version else None


def audit_lines(metric: str, version: int) -> dict[str, str]:
    """The audit of a metric, a line for the grid, the levels, each failure and each fault; empty without one."""
    audit = saved_metric_audit(metric, version)
    if audit is None:
        return {}
    kinds = load_saved_audit()["kinds"]
    text_by_name = {"grid": grid_text(), "levels": levels_text(audit)}
    for kind, cell in audit["kinds"].items():
        claimed = " (claimed)" if cell["claimed"] else ""
        auc, tau = two_decimals_or_dash(cell["auc"]), two_decimals_or_dash(cell["tau"])
        figures = "" if cell["auc"] is None else f"AUC {auc}, tau {tau}, "
        scored = f"{figures}{cell['n']}/{cell['of']} clips scored"
        text_by_name[kinds[kind]["title"]] = f"{scored}: {cell['response']}{claimed}"
    text_by_name |= {f"fault {number}": fault["sentence"] for number, fault in enumerate(audit["failing"], start=1)}
    return text_by_name


def grid_text() -> str:
    """What an audit was made on."""
    grid = load_saved_audit()["grid"]
    return f"rendered worlds, {len(grid['seeds'])} scenes, set {grid['set']}"


def levels_text(audit: Content) -> str:
    """The means of the truth, of perfect memory and of the floors."""
    levels = {"truth": audit["ceiling"], "perfect memory": audit["perfect"], **audit["floors"]}
    means = [f"{name.replace('_', ' ')} {two_decimals_or_dash(level.get('mean'))}" for name, level in levels.items()]
    return f"Means: {', '.join(means)}"


def effect_text(cell: Content) -> str:
    """The effect with one decimal, or a dash."""
    effect = cell["effect"]
    if effect is None:
        return "–"
    return "unbounded" if effect["size"] is None else f"{effect['size']:.1f}"


def two_decimals_or_dash(value: float | None) -> str:
    """Two decimals, or a dash."""
    return "–" if value is None else f"{value:.2f}"


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
    tolerance = score_tolerance(metric)
    if row is not None:
        return [f"{_measured_text(row)}; tolerance {tolerance:g}"]
    if SHARED.get(metric) in machine_results()["metrics"]:
        return [f"not measured itself; by the evidence it shares with {SHARED[metric]}, tolerance {tolerance:g}"]
    if numeric_spread.card_lines_of_metric(metric):
        return []
    return [NOT_MEASURED if tolerance is None else f"arithmetic on given numbers; tolerance {tolerance:g}"]


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
        return numeric_spread.next_round_number(max(2 * row["difference"], numeric_spread.FLOAT32))
    return None if needs_frames(METRICS[metric]) else ARITHMETIC


def needs_frames(metric: Metric) -> bool:
    """Whether something that a metric needs is observed in frames."""
    kinds = observed_kinds_needed_by(metric)
    return any(maker.makes in kinds and maker.kind in LOOKS_AT_FRAMES for maker in OBSERVERS.values())
