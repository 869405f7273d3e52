"""What a metric's card says of its audit, as lines and as a table in Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from revisit.audit.results import card_of, results


def lines(metric: str, version: int) -> dict[str, str]:
    """The audit of a metric, a line for the grid, the levels, each failure and each fault; empty without one."""
    found = card_of(metric, version)
    if found is None:
        return {}
    kinds = results()["kinds"]
    said = {"grid": _grid(), "levels": _levels(found)}
    for kind, cell in found["kinds"].items():
        claimed = " (claimed)" if cell["claimed"] else ""
        said[kinds[kind]["title"]] = f"{_figures(cell)}: {cell['response']}{claimed}"
    said |= {f"fault {number}": fault["sentence"] for number, fault in enumerate(found["failing"], start=1)}
    return said


def table(metric: str, version: int) -> str:
    """The audit of a metric for the page of cards; empty without one."""
    found = card_of(metric, version)
    if found is None:
        return ""
    kinds = results()["kinds"]
    text = f"\nAudit ({_grid()}). {_levels(found)}.\n\n"
    text += "| failure | claimed | AUC | tau | effect | scored | finding |\n|---|---|---|---|---|---|---|\n"
    for kind, cell in found["kinds"].items():
        claimed = "yes" if cell["claimed"] else ""
        text += (
            f"| {kinds[kind]['title']} | {claimed} | {_figure(cell['auc'])} | {_figure(cell['tau'])} | {_effect(cell)} "
            f"| {cell['n']}/{cell['of']} | {cell['response']} |\n"
        )
    if found["failing"]:
        text += "\nDoes not do what it should:\n\n"
        text += "".join(f"- {fault['sentence']}\n" for fault in found["failing"])
    return text


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
    text = "–" if cell["response"] in ("unscored", "no clips") else _figure(cell["auc"])
    return f"**{text}**" if cell["claimed"] else text


def _grid() -> str:
    grid = results()["grid"]
    return f"rendered worlds, {len(grid['seeds'])} scenes, set {grid['set']}"


def _levels(found: Mapping[str, Any]) -> str:
    levels = {"truth": found["ceiling"], "perfect memory": found["perfect"], **found["floors"]}
    named = [f"{name.replace('_', ' ')} {_figure(level.get('mean'))}" for name, level in levels.items()]
    return f"Means: {', '.join(named)}"


def _figures(cell: Mapping[str, Any]) -> str:
    if cell["auc"] is None:
        return f"{cell['n']}/{cell['of']} clips scored"
    return f"AUC {_figure(cell['auc'])}, tau {_figure(cell['tau'])}, {cell['n']}/{cell['of']} clips scored"


def _effect(cell: Mapping[str, Any]) -> str:
    effect = cell["effect"]
    if effect is None:
        return "–"
    return "unbounded" if effect["size"] is None else f"{effect['size']:.1f}"


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
