"""Write docs/metrics.md (the cards of all metrics, gates and observers), docs/reasons.md and docs/audit-results.md.

All come from the code: run `make docs` after changing a card; a test fails when the page and the code differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from revisit import catalog
from revisit.audit import cards as audited
from revisit.audit.results import results
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


def results_page() -> str:
    """What the saved audit found, as a page of the documentation."""
    saved = results()
    if not saved:
        return "# Results of the audit\n\nNone are saved; `revisit audit --save-results` makes them.\n"
    kinds, metrics, rows, grid = saved["kinds"], saved["metrics"], saved["diagonal"], saved["grid"]
    strengths = ", ".join(f"{strength:g}" for strength in [0, *grid["strengths"]])
    passed = sum(row["passes"] for row in rows.values())
    memory = sorted(id for id, metric in metrics.items() if metric["memory"])
    fooled = [id for id in memory for fault in metrics[id]["failing"] if fault["problem"].startswith("frozen camera")]
    text = "# Results of the audit\n\nWritten by `make docs` from the saved results; [audit.md](audit.md) says how to "
    text += f"read them. Rendered worlds, set {grid['set']}, {len(grid['seeds'])} scenes, strengths {strengths}, "
    text += f"{grid['clips']} clips of {grid['frames']} frames.\n\n## Failure by failure\n\n"
    text += f"{passed} of {len(rows)} failures have a metric with AUC ≥ 0.95 at full strength and tau ≥ 0.8 in "
    text += "strength; metrics that claim the failure are in bold.\n\n"
    text += "| failure | noticed, in order, by |\n|---|---|\n"
    for kind, row in rows.items():
        named = [f"**{id}**" if id in row["claimed"] else id for id in row["metrics"]]
        text += f"| {kinds[kind]['title']} | {', '.join(named) or 'none'} |\n"
    text += f"\n## Memory metrics and the frozen camera\n\n{', '.join(memory)}.\n\n"
    text += f"Fooled by a frozen camera: {', '.join(fooled) or 'none of them'}.\n"
    text += "\n## Metrics that do not do what they claim\n\n"
    for id, metric in metrics.items():
        text += "".join(f"- `{id}`: {fault['sentence']}\n" for fault in metric["failing"])
    text += (
        "\n## AUC at full strength\n\nClaimed ones in bold; a dash where fewer than half of the clips were scored.\n\n"
    )
    text += f"| metric | {' | '.join(kinds[kind]['title'] for kind in kinds)} |\n|---|{'---|' * len(kinds)}\n"
    for id, metric in metrics.items():
        cells = [_cell(metric["kinds"][kind]) for kind in kinds]
        text += f"| `{id}` | {' | '.join(cells)} |\n"
    return text


def _cell(cell: Mapping[str, Any]) -> str:
    text = "–" if cell["response"] in ("unscored", "no clips") else audited.figure(cell["auc"])
    return f"**{text}**" if cell["claimed"] else text


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
    PAGE.with_name("audit-results.md").write_text(results_page(), encoding="utf-8")
