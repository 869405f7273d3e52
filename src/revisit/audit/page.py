"""The audit, a sweep and a horizon as pages that open from disk, in the style of the report.

They hold no script: what a cell says on hover stands in its label too, for readers who do not hover.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

from revisit.audit.schema import AuditContent, Content, KindAudit
from revisit.audit.text import metrics_fooled_by_frozen_camera, problems_by_meaning, unasked_metrics_by_reason
from revisit.core.text import read_package_yaml
from revisit.media.files import atomic_write_path
from revisit.report.standalone import csp_source_hash, read_asset
from revisit.results import Cell, display
from revisit.results.display import direction_arrow, number_text, table_heading_of_score
from revisit.web.templates import Context, template_environment

WORDS = read_package_yaml("revisit.audit", "words.yaml")
MOST_LINES = 12  # models in one plot


def write_audit_page(out: Path, audit: AuditContent) -> Path:
    """Write <out>/index.html from the content of audit.json and return its path."""
    columns = _failure_columns(audit["kinds"])
    content = {
        "found": audit,
        "columns": columns,
        "rows": sorted(
            audit["metrics"], key=lambda metric_id: display.HEADINGS.index(table_heading_of_score(metric_id))
        ),
        "heading": table_heading_of_score,
        "heat": _heat_map_cell,
        "passed": sum(row["passes"] for row in audit["diagonal"].values()),
        "memory": [metric["title"] for metric in audit["metrics"].values() if metric["memory"]],
        "rewarded": metrics_fooled_by_frozen_camera(audit),
        "problems": _problems_by_meaning(audit),
        "grounds": [*(["frozen_camera"] if "frozen_camera" in audit["kinds"] else ()), *audit["floors"]],
        "not_asked": unasked_metrics_by_reason(audit),
        "arrow": direction_arrow,
        "number": number_text,
    }
    return _write_html(out / "index.html", "audit.html", "Do the metrics do what they say?", content)


def write_sweep_page(out: Path, sweeps: Sequence[Content]) -> Path:
    """Write <out>/index.html from the content of sweep.json and return its path."""
    plots = []
    for sweep in sweeps:
        for metric_id, metric in sweep["metrics"].items():
            rows = [(row, row["metrics"][metric_id]) for row in sweep["rows"]]
            cells = {model: [Cell.from_json(of["models"][model]) for _, of in rows] for model in sweep["models"]}
            lines = _line_plot_svg([str(row["value"]) for row, _ in rows], cells)
            title = f"{metric['title']} over {sweep['parameter']}"
            arrow_of_metric = direction_arrow(metric["higher_is_better"])
            plots.append({"title": title, "arrow": arrow_of_metric, "plot": lines, "rows": rows, "sweep": sweep})
    return _write_html(
        out / "index.html", "sweep.html", "Does the ranking hold?", {"plots": plots, "number": number_text}
    )


def write_horizon_page(out: Path, horizon: Content) -> Path:
    """Write <out>/horizon.html from the content of horizon.json and return its path."""
    plots = []
    for curve in horizon["curves"].values():
        models = curve["models"]
        gaps = [f"{point['gap']:.1f} s" for point in next(iter(models.values()))["points"]]
        cells = {model: list(map(Cell.from_json, one["points"])) for model, one in models.items()}
        title = f"{curve['title']} {direction_arrow(curve['higher_is_better'])}"
        plots.append({"title": title, "gaps": gaps, "plot": _line_plot_svg(gaps, cells), "models": models})
    content = {"found": horizon, "plots": plots, "number": number_text}
    return _write_html(out / "horizon.html", "horizon.html", "How long does it remember?", content)


def _failure_columns(kinds: Mapping[str, Content]) -> list[Content]:
    """The failures in the order of their headings."""
    headings = {kind: name for name, members in WORDS["headings"].items() for kind in members if kind in kinds}
    headings |= {kind: "Other" for kind in kinds if kind not in headings}
    return [{"kind": kind, "heading": name, **kinds[kind]} for kind, name in headings.items()]


def _heat_map_cell(title: str, failure: str, cell: KindAudit) -> Context:
    """A cell of the heat map: its colour class, its figure, and everything about it in words."""
    separation = cell["auc"] if cell["response"] not in ("unscored", "no clips") else None
    sentences = [f"{title} on '{failure}': {WORDS['responses'][cell['response']]}"]
    if cell["auc"] is not None:
        tau = "unknown" if cell["tau"] is None else f"{cell['tau']:.2f}"
        sentences.append(f"AUC {cell['auc']:.2f}, tau {tau}")
    effect = cell["effect"]
    if effect is not None:
        size = "unbounded" if effect["size"] is None else f"{effect['size']:.1f}"
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
        "said": "\n".join(sentences),
    }


def _problems_by_meaning(audit: AuditContent) -> list[Context]:
    grouped: list[Context] = []
    for meaning, problems in problems_by_meaning(audit).items():
        entries = [(audit["metrics"][problem["metric"]]["title"], problem["sentence"]) for problem in problems]
        grouped.append({"meaning": meaning, "entries": entries, "n": len({title for title, _ in entries})})
    return grouped


def _line_plot_svg(ticks: Sequence[str], models: Mapping[str, Sequence[Cell]]) -> Markup:
    """An SVG of one line per model with its intervals; none where there are too many models to tell apart.

    It is made of numbers and escaped names only.
    """
    if len(models) > MOST_LINES:
        return Markup("")
    width, height, left, right, top, bottom = 760, 260, 52, 170, 12, 30
    ends = [value for cells in models.values() for cell in cells for value in _plotted_values(cell)]
    low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
    pad = 0.06 * (high - low) or 0.5
    low, high = low - pad, high + pad

    def x_pixel(position: int) -> float:
        return left + (width - left - right) * (position / max(len(ticks) - 1, 1))

    def y_pixel(value: float) -> float:
        return top + (height - top - bottom) * (high - value) / (high - low)

    parts: list[Markup] = []

    def append_shape(shape: str, *values: object) -> None:
        parts.append(Markup(shape).format(*values))

    for value in (low + pad, (low + high) / 2, high - pad):
        at = y_pixel(value)
        append_shape('<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>', left, width - right, at, at)
        append_shape(
            '<text class="tick" x="{}" y="{:.1f}" text-anchor="end">{}</text>', left - 8, at + 4, number_text(value)
        )
    for position, tick in enumerate(ticks):
        append_shape(
            '<text class="tick" x="{:.1f}" y="{}" text-anchor="middle">{}</text>', x_pixel(position), height - 8, tick
        )
    ends_at: dict[str, tuple[int, float, float]] = {}  # model -> colour, x and y of its last point
    for k, (model, cells) in enumerate(models.items()):
        means = [(x_pixel(i), cell.mean, cell.interval) for i, cell in enumerate(cells) if cell.mean is not None]
        if not means:
            continue
        colour = k % 6
        shift = 3.0 * (k - (len(models) - 1) / 2)  # so that intervals of equal values do not hide each other
        for at, mean, interval in means:
            if interval:
                ends = [y_pixel(max(min(end, high), low)) for end in interval]
                reach = '<line class="reach m{}" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>'
                append_shape(reach, colour, at + shift, at + shift, *ends)
            append_shape('<circle class="m{}" cx="{:.1f}" cy="{:.1f}" r="3.5"/>', colour, at + shift, y_pixel(mean))
        joined = " L".join(f"{at + shift:.1f} {y_pixel(mean):.1f}" for at, mean, _ in means)
        append_shape('<path class="m{}" d="M{}"/>', colour, joined)
        ends_at[model] = colour, means[-1][0], y_pixel(means[-1][1]) + 4
    lowest = 0.0
    for model, (colour, at, label) in sorted(ends_at.items(), key=lambda item: item[1][2]):
        lowest = max(label, lowest + 13)  # names stand below each other
        append_shape('<text class="name m{}" x="{:.1f}" y="{:.1f}">{}</text>', colour, at + 22, lowest, model)
    return Markup('<svg class="lines" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        width, height, f"One line per model over {', '.join(ticks)}", Markup("").join(parts)
    )


def _plotted_values(cell: Cell) -> list[float]:
    """The mean, and its interval where that does not dwarf everything else."""
    if cell.mean is None:
        return []
    wide = cell.interval is None or cell.interval[1] - cell.interval[0] >= 4 * max(abs(cell.mean), 0.25)
    return [cell.mean] if wide or cell.interval is None else [cell.mean, *cell.interval]


def _write_html(path: Path, template: str, question: str, content: Context) -> Path:
    style = "".join(map(read_asset, ("base.css", "tables.css", "report.css")))
    style += (files("revisit.audit") / "templates" / "audit.css").read_text(encoding="utf-8")
    policy = (
        f"default-src 'none'; img-src data:; style-src '{csp_source_hash(style)}'; base-uri 'none'; form-action 'none'"
    )
    page = template_environment("revisit.audit").get_template(template)
    html = page.render(policy=policy, style=Markup(style), question=question, **content)
    with atomic_write_path(path) as temporary:
        temporary.write_text(html, encoding="utf-8", errors="replace")
    return path
