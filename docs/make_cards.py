"""Write docs/metrics.md (the cards of all metrics, gates and observers), docs/reasons.md and docs/audit-results.md.

All come from the code: run `make docs` after changing a card; a test fails when the page and the code differ.
"""

from __future__ import annotations

from pathlib import Path

from revisit import catalog
from revisit.audit import cards as audited
from revisit.core import KINDS, METRICS

PAGE = Path(__file__).with_name("metrics.md")
REASONS = Path(__file__).with_name("reasons.md")
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


def reasons() -> str:
    """The page of the kinds of reasons."""
    parts = [
        "# Why there is no score\n\nWritten by `make docs` from the code.\n\n"
        "What cannot be scored is unscored, with a reason: one of the kinds below, and a sentence about the clip. "
        "Tables count reasons by kind and show their titles. The list is closed: records, exports and plugins hold no "
        "others, and no code reads the sentence, so its words may change.\n"
    ]
    asked = {kind: facts for kind, facts in KINDS.items() if not facts.lacking}
    for title, text, kinds in (
        (
            "The question could not be asked",
            "Something was not given, or is not in the observer set or on this machine. Where this holds for all "
            "clips, the metric counts as not asked.",
            {kind: facts for kind, facts in KINDS.items() if facts.lacking},
        ),
        ("It was asked, and there is no answer", "The clip counts in the coverage of the metric.", asked),
    ):
        parts.append(f"\n## {title}\n\n{text}\n\n| kind | in tables | meaning |\n|---|---|---|\n")
        parts += [f"| `{kind}` | {facts.title} | {facts.meaning} |\n" for kind, facts in kinds.items()]
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
    REASONS.write_text(reasons(), encoding="utf-8")
    PAGE.with_name("audit-results.md").write_text(audited.results_page(), encoding="utf-8")
