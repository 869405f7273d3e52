"""Cards of metrics and titles of gates, as the page shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from revisit.core import GATES, OBSERVERS, Case, evidence_id
from revisit.core.text import read_package_yaml
from revisit.results.display import HEADINGS, direction_arrow, stand_in_suffix_text, table_heading_of_score
from revisit.results.score_names import find_metric_of_score

DIRECTIONS = {True: "higher is better", False: "lower is better", None: "describes, neither good nor bad"}
# gate -> its short name, and the title and top of its series
GATE_NAMES = read_package_yaml("revisit.report", "gates.yaml")


def metric_cards(summary: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """A card per metric of the summary, in the order of the table; what is not installed here says so."""
    observers = facts["protocol"]["observers"]
    cards: dict[str, dict[str, Any]] = {}
    for metric_id, column in summary.get("metrics", {}).items():
        metric = find_metric_of_score(metric_id)
        description = metric.description if metric else "The code of this metric is not installed here."
        needs = ["case" if kind is Case else evidence_id(kind) for kind in metric.needs] if metric else []
        cards[metric_id] = {
            "id": metric_id,
            "group": table_heading_of_score(metric_id),
            "title": column["title"] + stand_in_suffix_text(column),
            **{name: column[name] for name in ("unit", "range", "version", "higher_is_better")},
            "protocol": ", ".join(column["protocol"]),
            "arrow": direction_arrow(column["higher_is_better"]),
            "direction": DIRECTIONS[column["higher_is_better"]],
            "span": range_text(column["range"]),
            # Values that end at 1 read as parts of a whole, and can be drawn as a bar.
            "bounded": column["range"][0] is not None and column["range"][1] == 1,
            # A docstring without the line breaks that only fit it into the source.
            "description": [" ".join(paragraph.split()) for paragraph in description.split("\n\n")],
            "needs": needs,
            **{name: list(getattr(metric, name, ())) for name in ("gates", "responds_to", "blind_to")},
            "gate_titles": [GATES[gate].title for gate in metric.gates if gate in GATES] if metric else [],
            "paper": metric.paper if metric else "",
            "against_reference": any(_is_reference_comparison(observers.get(need)) for need in needs),
            "sampling": [f"{need}: {observers[need]['frames']}" for need in needs if need in observers],
        }
    return dict(sorted(cards.items(), key=lambda item: HEADINGS.index(item[1]["group"])))


def range_text(limits: Sequence[float | None]) -> str:
    """A range in words: 0 to 1, 0 and more."""
    low, high = limits
    if low is None and high is None:
        return "any number"
    if high is None:
        return f"{low:g} and more"
    return f"up to {high:g}" if low is None else f"{low:g} to {high:g}"


def _is_reference_comparison(observer: Mapping[str, Any] | None) -> bool:
    """Whether this observer compares a clip with its reference, so that `other` is a frame of the reference."""
    return observer is not None and observer["observer"] in OBSERVERS and OBSERVERS[observer["observer"]].pairs


def gate_titles(plan: Mapping[str, Any]) -> dict[str, str]:
    """Titles of the gates of a plan, by id."""
    return {gate: GATES[gate].title if gate in GATES else gate.replace("_", " ") for gate in plan["gates"]}


def short_gate_name(gate: str, title: str) -> str:
    """What a gate is called where there is little room."""
    return str(GATE_NAMES[gate]["short"]) if gate in GATE_NAMES else title
