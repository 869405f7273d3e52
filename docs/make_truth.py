"""Write the table of truth.md from `benchmarks/truth_table.json`: run `make docs` after measuring, or a test fails."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from revisit.core.reasons import KINDS

HERE = Path(__file__).parent
PAGE = HERE / "truth.md"
FIGURES = HERE.parent / "benchmarks" / "truth_table.json"
START, END = "<!-- table: start -->", "<!-- table: end -->"


def page(text: str, figures: Mapping[str, Any]) -> str:
    """The page with the table in its place."""
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n{table(figures)}\n{END}{after}"


def table(figures: Mapping[str, Any]) -> str:
    """Rows of metrics, measured and held to the truth."""
    models = list(figures["held"]["event_outcome"])
    rows = [["", "truth", *models], ["---"] * (2 + len(models))]
    for metric, scores in figures["measured"].items():
        held = figures["held"][metric]
        own = [_cell(scores[model]) for model in ("truth", *models)]
        if all(held[model] == scores[model] for model in models):
            rows.append([f"`{metric}`", *own])
            continue
        rows.append([f"`{metric}`, measured", *own])
        rows.append([f"`{metric}`, held to the truth", "", *(_cell(held[model]) for model in models)])
    versions = figures["versions"]
    head = f"With the set `{figures['set']}` and version {versions['target_return']} of the target gate:"
    return "\n".join([head, "", *(f"| {' | '.join(row)} |" for row in rows)])


def _cell(score: float | str) -> str:
    return KINDS[score].title if isinstance(score, str) else f"{score:.2f}"


def main() -> None:
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), figures), encoding="utf-8")


if __name__ == "__main__":
    main()
