"""Words and numbers as the report writes them, the same on the page and in its data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

# Families of metrics (the chapter a metric lives in) under the headings of the table, in its order.
GROUPS = {
    "Memory": ("target_return", "returning", "outcome", "lcm", "gsc", "memo_identity", "memo_reappearance", "answers"),
    "Fidelity": ("fidelity", "memo_fidelity"),
    "Appearance": ("appearance", "integrity", "visual", "memo_quality", "memo_geometry"),
    "Motion": ("motion", "camera_path", "cuts", "action", "camera", "memo_smoothness", "memo_camera", "true_turn"),
    "Signs of failures": ("camera_departure", "look_departure", "target_departure"),
}
OTHER = "Other"
ORDER = (*GROUPS, OTHER)

SHORT_GATES = {"camera_moved": "Camera", "view_return": "View", "target_return": "Target"}


def group(card: Mapping[str, Any]) -> str:
    """The heading a metric stands under; a plugin's metric behind a gate is taken for one of memory."""
    for name, families in GROUPS.items():
        if card["family"] in families:
            return name
    return "Memory" if card["gates"] else OTHER


def number(value: float | None, bounded: bool = True) -> str:
    """Two or three significant digits; whole numbers bare, unless the metric is `bounded` by 1; a dash for nothing."""
    if value is None or not math.isfinite(value):
        return "–"
    size = abs(value)
    if 1e-9 < size < 0.01:
        return f"{value:.2g}".replace("-", "−")
    whole = not bounded and value == int(value)
    digits = 0 if size >= 100 or whole else 1 if size >= 10 else 2
    return f"{value:.{digits}f}".replace("-", "−")


def is_bounded(limits: list[float | None]) -> bool:
    """Whether a metric ends at 1, so that its values read as parts of a whole and can be drawn as a bar."""
    return limits[0] is not None and limits[1] == 1


def arrow(higher_is_better: bool | None) -> str:
    return {True: "↑", False: "↓", None: ""}[higher_is_better]


def direction(higher_is_better: bool | None) -> str:
    return {True: "higher is better", False: "lower is better", None: "describes, neither good nor bad"}[
        higher_is_better
    ]


def span(limits: list[float | None]) -> str:
    """A range in words: 0 to 1, 0 and more."""
    low, high = limits
    if low is None and high is None:
        return "any number"
    if high is None:
        return f"{low:g} and more"
    return f"up to {high:g}" if low is None else f"{low:g} to {high:g}"


def gate_name(id: str, title: str) -> str:
    """What a gate is called where there is little room."""
    return SHORT_GATES.get(id, title)


def count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
