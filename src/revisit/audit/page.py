"""The audit, a sweep and a horizon as pages that open from disk, in the style of the report.

They hold no script: what a cell says on hover stands in its label too, for readers who do not hover.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from revisit.audit.text import PROBLEMS, by_reason
from revisit.media.files import replacing
from revisit.report.write_html import policy_hash
from revisit.results import Cell, display
from revisit.results.display import arrow, coverage, heading, number

# Failures under the headings of the heat map; a new one comes last.
HEADINGS = {
    "Camera": ("frozen_camera", "timid_camera", "camera_drift", "late_return", "partial_return"),
    "Target": (
        "vanish", "colour_drift", "texture_drift", "shape_drift", "state_reset", "state_frozen", "teleport",
        "duplicate",
    ),
    "Place": ("background", "lighting", "style"),
    "Whole clip": ("flicker", "cut", "blur", "collapse"),
}  # fmt: skip
MOST_LINES = 12  # models in one plot
WORDS = {
    "responds": "noticed, and more of it is worse",
    "responds, not in order": "noticed, but more of it is not always worse",
    "in part": "noticed in part",
    "quiet": "not noticed",
    "rewards": "scores better than perfect memory",
    "unscored": "fewer than half of the clips were scored",
    "no clips": "no scene in which it can happen",
}


def write_page(out: Path, found: Mapping[str, Any]) -> Path:
    """Write <out>/index.html from the content of audit.json and return its path."""
    columns = _columns(found["kinds"])
    rows = sorted(
        (_row(id, metric, columns) for id, metric in found["metrics"].items()),
        key=lambda row: (display.HEADINGS.index(row["group"]), list(found["metrics"]).index(row["id"])),
    )
    for before, row in zip([None, *rows], rows, strict=False):
        row["opens"] = before is None or before["group"] != row["group"]
    rewarded = [e["metric"] for e in found["failing"] if e["problem"] == "frozen camera scored as memory"]
    content = {
        "found": found,
        "columns": columns,
        "rows": rows,
        "diagonal": [_diagonal(kind, row, found) for kind, row in found["diagonal"].items()],
        "passed": sum(row["passes"] for row in found["diagonal"].values()),
        "memory": [metric["title"] for metric in found["metrics"].values() if metric["memory"]],
        "rewarded": rewarded,
        "problems": _problems(found),
        "levels": [_levels(metric, found) for metric in found["metrics"].values()],
        "gates": _gates(found, columns),
        "not_asked": by_reason(found),
    }
    return _write(out / "index.html", "audit.html", "Do the metrics do what they say?", content)


def write_sweep(out: Path, found: Sequence[Mapping[str, Any]]) -> Path:
    """Write <out>/index.html from the content of sweep.json and return its path."""
    plots = [
        {
            "title": f"{sweep['metrics'][id]['title']} over {sweep['parameter']}",
            "plot": _lines(
                [str(row["value"]) for row in sweep["rows"]],
                {model: [row["metrics"][id]["models"][model] for row in sweep["rows"]] for model in sweep["models"]},
            ),
            "rows": [
                {
                    "value": row["value"],
                    "default": row["default"],
                    "cells": [row["metrics"][id]["models"][model] for model in sweep["models"]],
                    "tau_models": row["metrics"][id]["tau_models"],
                    "tau_clips": row["metrics"][id]["tau_clips"],
                }
                for row in sweep["rows"]
            ],
            "models": sweep["models"],
            "arrow": arrow(sweep["metrics"][id]["higher_is_better"]),
            "sweep": sweep,
        }
        for sweep in found
        for id in sweep["metrics"]
    ]
    return _write(out / "index.html", "sweep.html", "Does the ranking hold?", {"plots": plots, "number": number})


def write_horizon(out: Path, found: Mapping[str, Any]) -> Path:
    """Write <out>/horizon.html from the content of horizon.json and return its path."""
    plots = []
    for id, curve in found["curves"].items():
        models = curve["models"]
        gaps = [f"{point['gap']:.1f} s" for point in next(iter(models.values()))["points"]]
        plots.append(
            {
                "id": id,
                "title": f"{curve['title']} {arrow(curve['higher_is_better'])}",
                "gaps": gaps,
                "plot": _lines(gaps, {model: facts["points"] for model, facts in models.items()}),
                "models": models,
            }
        )
    content = {"found": found, "plots": plots, "number": number}
    return _write(out / "horizon.html", "horizon.html", "How long does it remember?", content)


def _columns(kinds: Mapping[str, Mapping[str, str]]) -> list[dict[str, Any]]:
    """The failures in the order of their headings."""
    headed = [(name, kind) for name, members in HEADINGS.items() for kind in members if kind in kinds]
    headed += [("Other", kind) for kind in kinds if kind not in {kind for _, kind in headed}]
    columns: list[dict[str, Any]] = [{"kind": kind, "heading": name, **kinds[kind]} for name, kind in headed]
    for before, column in zip([None, *columns], columns, strict=False):
        column["opens"] = before is None or before["heading"] != column["heading"]
    return columns


def _row(id: str, metric: Mapping[str, Any], columns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "id": id,
        "title": metric["title"],
        "arrow": arrow(metric["higher_is_better"]),
        "memory": metric["memory"],
        "group": heading(id),
        "cells": [
            _heat(metric["title"], column["title"], metric["kinds"][column["kind"]]) | {"opens": column["opens"]}
            for column in columns
        ],
    }


def _heat(title: str, failure: str, cell: Mapping[str, Any]) -> dict[str, Any]:
    """A cell of the heat map: its colour class, its figure, and everything about it in words."""
    scored = cell["response"] not in ("unscored", "no clips")
    said = [f"{title} on '{failure}': {WORDS[cell['response']]}"]
    if cell["auc"] is not None:
        said.append(f"AUC {cell['auc']:.2f}, tau {_plain(cell['tau'])}")
    effect = cell["effect"]
    if effect is not None:
        size = "unbounded" if effect["size"] is None else f"{effect['size']:.1f}"
        if effect["low"] is not None:
            size += f" ({effect['low']:.1f} to {effect['high']:.1f})"
        said.append(f"effect {size}, mean difference {number(effect['difference'])}")
    said.append(f"{cell['n']} of {cell['of']} clips scored")
    said += [f"{n} × {display.reason_title(kind)}" for kind, n in list(cell["unscored"].items())[:2]]
    if cell["read"].startswith("describes"):
        said.append(cell["read"])
    if cell["claimed"]:
        said.append("its card claims this")
    return {
        "text": f"{cell['auc']:.2f}".lstrip("0") if scored else "",
        "level": f"l{round(10 * cell['auc'])}" if scored else "none",
        "claimed": cell["claimed"],
        "ordered": cell["response"] == "responds",
        "said": "\n".join(said),
    }


def _diagonal(kind: str, row: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    titles = [found["metrics"][id]["title"] for id in row["metrics"]]
    best = row["best"]
    return {
        **found["kinds"][kind],
        "passes": row["passes"],
        "metrics": titles,
        "claimed": [found["metrics"][id]["title"] for id in row["claimed"]],
        "nearest": f"{found['metrics'][best['metric']]['title']}, AUC {best['auc']:.2f}, tau {_plain(best['tau'])}"
        if best and best["auc"] is not None
        else "",
    }


def _problems(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    grouped = []
    for problem, meaning in PROBLEMS.items():
        entries = [
            {"title": found["metrics"][entry["metric"]]["title"], "sentence": entry["sentence"]}
            for entry in found["failing"]
            if entry["problem"] == problem
        ]
        if entries:
            grouped.append({"meaning": meaning, "entries": entries, "n": len({entry["title"] for entry in entries})})
    return grouped


def _levels(metric: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """Ceiling, perfect memory and floors of a metric, as text."""
    grounds = ["frozen_camera", *found["floors"]] if "frozen_camera" in found["kinds"] else list(found["floors"])

    def shown(level: Mapping[str, Any]) -> dict[str, Any]:
        wins = level.get("auc") is not None and level["auc"] <= 0.5
        cell = Cell.from_json(level)
        return {"text": number(cell.mean), "coverage": coverage(cell), "wins": wins}

    return {
        "title": metric["title"],
        "arrow": arrow(metric["higher_is_better"]),
        "cells": [shown(metric[name]) for name in ("ceiling", "perfect")]
        + [shown(metric["floors"][kind]) for kind in grounds],
    }


def _gates(found: Mapping[str, Any], columns: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """How often each gate was open, per failure at full strength."""
    rows = []
    for gate, kinds in found["gates"].items():
        cells = []
        for kind in ("perfect", *(column["kind"] for column in columns)):
            counts = kinds.get(kind, {})
            cells.append(f"{counts.get('open', 0)}/{sum(counts.values())}" if counts else "–")
        rows.append({"gate": gate, "cells": cells})
    return rows


def _lines(ticks: Sequence[str], models: Mapping[str, Sequence[Mapping[str, Any]]]) -> Markup:
    """An SVG of one line per model with its intervals; none where there are too many models to tell apart.

    It is made of numbers and escaped names only.
    """
    if len(models) > MOST_LINES:
        return Markup("")
    width, height, left, right, top, bottom = 760, 260, 52, 170, 12, 30
    ends = [value for points in models.values() for point in points if "mean" in point for value in _span(point)]
    low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
    pad = 0.06 * (high - low) or 0.5
    low, high = low - pad, high + pad

    def x(position: int) -> float:
        return left + (width - left - right) * (position / max(len(ticks) - 1, 1))

    def y(value: float) -> float:
        return top + (height - top - bottom) * (high - value) / (high - low)

    parts: list[Markup] = []

    def draw(shape: str, *values: object) -> None:
        parts.append(Markup(shape).format(*values))

    for value in (low + pad, (low + high) / 2, high - pad):
        at = y(value)
        draw('<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>', left, width - right, at, at)
        draw('<text class="tick" x="{}" y="{:.1f}" text-anchor="end">{}</text>', left - 8, at + 4, number(value))
    for position, tick in enumerate(ticks):
        draw('<text class="tick" x="{:.1f}" y="{}" text-anchor="middle">{}</text>', x(position), height - 8, tick)
    ends_at: dict[str, tuple[int, float, float]] = {}  # model -> colour, x and y of its last point
    for k, (model, points) in enumerate(models.items()):
        seen = [(x(i), point) for i, point in enumerate(points) if "mean" in point]
        if not seen:
            continue
        colour = k % 6
        shift = 3.0 * (k - (len(models) - 1) / 2)  # so that intervals of equal values do not hide each other
        for at, point in seen:
            if point.get("interval"):
                ends = [y(max(min(end, high), low)) for end in point["interval"]]
                reach = '<line class="reach m{}" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>'
                draw(reach, colour, at + shift, at + shift, *ends)
            draw('<circle class="m{}" cx="{:.1f}" cy="{:.1f}" r="3.5"/>', colour, at + shift, y(point["mean"]))
        joined = " L".join(f"{at + shift:.1f} {y(point['mean']):.1f}" for at, point in seen)
        draw('<path class="m{}" d="M{}"/>', colour, joined)
        ends_at[model] = colour, seen[-1][0], y(seen[-1][1]["mean"]) + 4
    lowest = 0.0
    for model, (colour, at, label) in sorted(ends_at.items(), key=lambda item: item[1][2]):
        lowest = max(label, lowest + 13)  # names stand below each other
        draw('<text class="name m{}" x="{:.1f}" y="{:.1f}">{}</text>', colour, at + 22, lowest, model)
    return Markup('<svg class="lines" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        width, height, f"One line per model over {', '.join(ticks)}", Markup("").join(parts)
    )


def _span(point: Mapping[str, Any]) -> list[float]:
    """The mean, and its interval where that does not dwarf everything else."""
    interval = point.get("interval")
    if interval and interval[1] - interval[0] < 4 * max(abs(point["mean"]), 0.25):
        return [point["mean"], *interval]
    return [point["mean"]]


def _plain(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"


def _write(path: Path, template: str, question: str, content: Mapping[str, Any]) -> Path:
    style = (files("revisit.report") / "templates" / "report.css").read_text(encoding="utf-8")
    style += (files("revisit.audit") / "templates" / "audit.css").read_text(encoding="utf-8")
    environment = Environment(
        loader=PackageLoader("revisit.audit"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    policy = f"default-src 'none'; img-src data:; style-src '{policy_hash(style)}'; base-uri 'none'; form-action 'none'"
    html = environment.get_template(template).render(policy=policy, style=Markup(style), question=question, **content)
    with replacing(path) as temporary:
        temporary.write_text(html, encoding="utf-8", errors="replace")
    return path
