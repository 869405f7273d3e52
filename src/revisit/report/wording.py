"""Ranges, directions and gates in words, for the page and its data."""

from __future__ import annotations

SHORT_GATES = {"camera_moved": "Camera", "view_return": "View", "look_away": "Looks away", "target_return": "Target"}


def is_bounded(limits: list[float | None]) -> bool:
    """Whether a metric ends at 1, so that its values read as parts of a whole and can be drawn as a bar."""
    return limits[0] is not None and limits[1] == 1


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


def gate_name(gate: str, title: str) -> str:
    """What a gate is called where there is little room."""
    return SHORT_GATES.get(gate, title)
