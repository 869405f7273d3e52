"""The audit, a sweep and a horizon as pages that open from disk, in the style of the report.

They hold no script: what a cell says on hover stands in its label too, for readers who do not hover.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

from revisit.audit.cards import effect_text
from revisit.audit.schema import Content
from revisit.audit.text import metrics_fooled_by_frozen_camera, problems_by_meaning, unasked_metrics_by_reason
from revisit.core.text import printable_text, read_package_yaml
from revisit.media.files import write_text_atomically
from revisit.report.plots import COLOURS, line_plot
from revisit.report.standalone import html_and_policy_of_template, read_asset
from revisit.results import Cell, display
from revisit.results.display import direction_arrow, number_text, table_heading_of_score
from revisit.web.templates import Context

WORDS = read_package_yaml("revisit.audit", "words.yaml")


def write_audit_page(out: Path, audit: Content) -> Path:
    """Write <out>/index.html from the content of audit.json and return its path."""
    columns = _failure_columns(audit["kinds"])
    content: Context = {
        "audit": audit,
        "columns": columns,
        "rows": sorted(
            audit["metrics"], key=lambda metric_id: display.HEADINGS.index(table_heading_of_score(metric_id))
        ),
        "heading": table_heading_of_score,
        "heat": _heat_map_cell,
        "passed": sum(row["passes"] for row in audit["diagonal"].values()),
        "memory": [metric["title"] for metric in audit["metrics"].values() if metric["memory"]],
        "rewarded": metrics_fooled_by_frozen_camera(audit),
        "problems": problems_by_meaning(audit),
        "grounds": [*(["frozen_camera"] if "frozen_camera" in audit["kinds"] else ()), *audit["floors"]],
        "not_asked": unasked_metrics_by_reason(audit),
    }
    return _write_html(out / "index.html", "audit.html", "Do the metrics do what they say?", content)


def write_sweep_page(out: Path, sweeps: Sequence[Content]) -> Path:
    """Write <out>/index.html from the content of sweep.json and return its path."""
    plots = []
    for sweep in sweeps:
        for metric_id, metric in sweep["metrics"].items():
            rows = [(row, row["metrics"][metric_id]) for row in sweep["rows"]]
            cells = {model: [Cell.from_json(of["models"][model]) for _, of in rows] for model in sweep["models"]}
            values = list(enumerate(str(row["value"]) for row, _ in rows))
            title = f"{metric['title']} over {sweep['parameter']} {direction_arrow(metric['higher_is_better'])}"
            plot = line_plot(cells if len(cells) <= COLOURS else {}, values)  # more could not be told apart
            plots.append({"title": title, "rows": rows, "sweep": sweep, **plot})
    return _write_html(out / "index.html", "sweep.html", "Does the ranking hold?", {"plots": plots})


def write_horizon_page(out: Path, horizon: Content) -> Path:
    """Write <out>/horizon.html from the content of horizon.json and return its path."""
    plots = []
    for curve in horizon["curves"].values():
        models = curve["models"]
        gaps = [f"{point['gap']:.1f} s" for point in next(iter(models.values()))["points"]]
        cells = {model: list(map(Cell.from_json, one["points"])) for model, one in models.items()}
        title = f"{curve['title']} {direction_arrow(curve['higher_is_better'])}"
        plots.append({"title": title, "gaps": gaps, "models": models, **line_plot(cells, list(enumerate(gaps)))})
    content: Context = {"horizon": horizon, "plots": plots}
    return _write_html(out / "horizon.html", "horizon.html", "How long does it remember?", content)


def _failure_columns(kinds: Mapping[str, Content]) -> list[Content]:
    """The failures in the order of their headings."""
    headings = {kind: name for name, members in WORDS["headings"].items() for kind in members if kind in kinds}
    headings |= {kind: "Other" for kind in kinds if kind not in headings}
    return [{"kind": kind, "heading": name, **kinds[kind]} for kind, name in headings.items()]


def _heat_map_cell(title: str, failure: str, cell: Content) -> Context:
    """A cell of the heat map: its colour class, its figure, and everything about it in words."""
    separation = cell["auc"] if cell["response"] not in ("unscored", "no clips") else None
    sentences = [f"{title} on '{failure}': {WORDS['responses'][cell['response']]}"]
    if cell["auc"] is not None:
        tau = "unknown" if cell["tau"] is None else f"{cell['tau']:.2f}"
        sentences.append(f"AUC {cell['auc']:.2f}, tau {tau}")
    effect = cell["effect"]
    if effect is not None:
        size = effect_text(cell)
        if effect["low"] is not None:
            size += f" ({effect['low']:.1f} to {effect['high']:.1f})"
        sentences.append(f"effect {size}, mean difference {number_text(effect['difference'])}")
    sentences.append(f"{cell['n']} of {cell['of']} clips scored")
    sentences += [f"{n} × {display.reason_title(kind)}" for kind, n in list(cell["unscored"].items())[:2]]
    if cell["read"].startswith("describes"):
        sentences.append(cell["read"])
    if cell["claimed"]:
        sentences.append("its card claims this")
    return {
        "text": "" if separation is None else f"{separation:.2f}".lstrip("0"),
        "level": "none" if separation is None else f"l{round(10 * separation)}",
        "claimed": cell["claimed"],
        "ordered": cell["response"] == "responds",
        "tip": Markup("\n").join(map(printable_text, sentences)),  # plain text would lose its line ends
    }


def _write_html(path: Path, template: str, title: str, content: Context) -> Path:
    style = "".join(map(read_asset, ("base.css", "tables.css", "report.css")))
    style += (files("revisit.audit") / "templates" / "audit.css").read_text(encoding="utf-8")
    html, _ = html_and_policy_of_template(template, title, (), content, style, "revisit.audit")
    write_text_atomically(path, html)
    return path
