"""What a metric's card says of its audit."""

from __future__ import annotations

from revisit.audit.results import load_saved_audit, saved_metric_audit
from revisit.audit.schema import Content


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
