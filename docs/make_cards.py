"""Write docs/metrics.md (the cards of all metrics, gates and observers) and docs/audit-results.md, from the code.

Run `make docs` after changing a card; a test fails when the page and the code differ.
"""

from __future__ import annotations

from pathlib import Path

from revisit import catalog
from revisit.audit import cards as audited
from revisit.core import METRICS

PAGE = Path(__file__).with_name("metrics.md")
FACTS = (
    "unit",
    "range",
    "better",
    "needs",
    "gates",
    "suites",
    "parameters",
    "paper",
    "upstream",
    "responds_to",
    "blind_to",
    "machines",
    "spread",
)


def page() -> str:
    """The whole page."""
    parts = [
        "# Metric cards\n\nWritten by `make docs` from the code; the same cards are shown by `revisit show ID`.\n",
        "\n## Metrics\n",
    ]
    for id in METRICS:
        card = catalog.card(id)
        parts.append(f"\n### {card['title']} (`{id}`, version {card['version']})\n\n{card['description']}\n\n")
        parts.append(_facts(card))
        parts.append(audited.table(id, card["version"]))
    parts.append("\n## Gates\n")
    for row in catalog.listing("gates"):
        card = catalog.card(row["id"])
        parts.append(f"\n### {card['title']} (`{card['id']}`, version {card['version']})\n\n{card['description']}\n\n")
        parts.append(_facts(card))
    parts.append("\n## Observers\n\n| id | version | makes | frames | what |\n|---|---|---|---|---|\n")
    for row in catalog.listing("observers"):
        parts.append(f"| `{row['id']}` | {row['v']} | {row['makes']} | {row['frames']} | {row['what']} |\n")
    return "".join(parts)


def _facts(card: dict[str, object]) -> str:
    lines = []
    for name in FACTS:
        value = card.get(name)
        if value in (None, "", [], {}):
            continue
        if isinstance(value, list) and name in catalog.SENTENCES:
            lines += [f"- {name}: {line}\n" for line in value]
            continue
        if isinstance(value, list):
            value = ", ".join("open" if item is None else str(item) for item in value)
        if isinstance(value, dict):
            value = ", ".join(f"{key} = {item}" for key, item in value.items())
        lines.append(f"- {name.replace('_', ' ')}: {value}\n")
    return "".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    PAGE.with_name("audit-results.md").write_text(audited.results_page(), encoding="utf-8")
