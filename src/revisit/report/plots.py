"""Inline SVG of numbers; names go in escaped. Colours come from the style sheet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup, escape

from revisit.core.text import printable_text, truncate_text
from revisit.report.standalone import clamp, page_templates
from revisit.results import Cell
from revisit.results.cells import Interval
from revisit.results.display import number_text, score_title_with_arrow
from revisit.results.trend import PointCoverage, Trend
from revisit.web.templates import Context

COLOURS = 9  # in the style sheet, k0 to k8
BINS = 12  # of a histogram
CHARACTER = 6  # pixels that one takes below an axis
Mark = tuple[float, Interval | None]  # a mean, and how far it may be off


def line_plot(
    models: Mapping[str, Sequence[Cell]],
    ticks: Sequence[tuple[float, str]],
    unit: str = "",
    truth: Sequence[Cell] = (),
    lowest: float | None = None,
) -> Context:
    """The `picture` of a line per model with its intervals as a band, and the `key` of its colours.

    `ticks` are the places of the cells on the axis, each with what is written below it; values begin at `lowest`, else
    at the least of them. Intervals that would flatten all lines leave the picture.
    """
    named = [(name, f"k{min(k, COLOURS - 1)}", cells) for k, (name, cells) in enumerate(models.items())]
    lines = []
    for name, kind, cells in [*named, *([("truth", "kt", truth)] if truth else [])]:
        points = zip(ticks, cells, strict=True)
        line = [(x, cell.mean, cell.interval) for (x, _), cell in points if cell.mean is not None]
        if line:
            lines.append((name, kind, line))
    ends = [
        end
        for *_, line in lines
        for _, mean, interval in line
        for end in _mean_and_ends_unless_too_wide(mean, interval)
    ]
    if not ends:
        return {"picture": "", "key": []}
    width, height, left, right, top, bottom = 430, 230, 46, 12, 10, 40
    start, length, ground = ticks[0][0], (ticks[-1][0] - ticks[0][0]) or 1.0, height - bottom
    low, high = min(ends) if lowest is None else lowest, max(ends)

    def x_pixel(x: float) -> float:
        return left + (width - left - right) * (x - start) / length

    def y_pixel(y: float) -> float:
        return ground - (ground - top) * clamp((y - low) / ((high - low) or 1.0))

    def svg_points(places: Sequence[tuple[float, float]]) -> str:
        return " ".join(f"{x_pixel(x):.1f},{y_pixel(y):.1f}" for x, y in places)

    parts = [f'<line class="axis" x1="{left}" x2="{width - right}" y1="{ground}" y2="{ground}"/>']
    for value in (low, (low + high) / 2, high):
        parts.append(_svg_text(left - 6, y_pixel(value) + 4, "end", number_text(value)))
    gap = (width - left - right) / max(len(ticks) - 1, 1)
    longest = max(int(gap / CHARACTER / 1.5), 6)  # room for a label beside the last, which ends below its point
    for x, text in ticks:
        label = truncate_text(text, longest)
        half = len(label) * CHARACTER / 2
        anchor = "start" if x_pixel(x) < half else "end" if x_pixel(x) + half > width else "middle"
        parts.append(_svg_text(x_pixel(x), ground + 16, anchor, label))
    parts.append(_svg_text(left + (width - left - right) / 2, height - 6, "middle", unit))
    for name, kind, line in lines:
        band = [(x, interval[1]) for x, _, interval in line if interval]
        band += [(x, interval[0]) for x, _, interval in reversed(line) if interval]
        parts.append(f'<g class="curve {kind}"><title>{escape(printable_text(name))}</title>')
        parts += [f'<polygon points="{svg_points(band)}"/>'] if band else []
        parts.append(f'<polyline points="{svg_points([(x, mean) for x, mean, _ in line])}"/>')
        for x, mean, _ in line:
            parts.append(f'<circle cx="{x_pixel(x):.1f}" cy="{y_pixel(mean):.1f}" r="2.5"/>')
        parts.append("</g>")
    meaning = escape(printable_text(f"a line per model over {', '.join(text for _, text in ticks)}"))
    head = f'<svg class="figure" viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="{meaning}">'
    key = [{"name": name, "kind": kind} for name, kind, _ in lines]
    return {"picture": Markup(f"{head}{''.join(parts)}</svg>"), "key": key}


def _mean_and_ends_unless_too_wide(mean: float, interval: Interval | None) -> Sequence[float]:
    """The mean, and the ends of its interval where that does not dwarf everything else."""
    if interval is None or interval[1] - interval[0] >= 4 * max(abs(mean), 0.25):
        return [mean]
    return [mean, *interval]


def _svg_text(x: float, y: float, anchor: str, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(printable_text(text))}</text>'


def trend_svg(trends: Sequence[Trend], labels: Sequence[str], coverage: Sequence[PointCoverage] = ()) -> str:
    """The charts below each other: how many clips came back, where that changes, then each metric with scores."""
    charts: list[tuple[str, Sequence[Mark | None]]] = []
    returned = [(float(one.returned), None) for one in coverage if one.returned is not None]
    if len(returned) == len(labels) and len(set(returned)) > 1:
        charts.append(("Clips on which the camera looked away and came back", returned))
    charts += [
        (
            score_title_with_arrow(one.metric),
            [None if cell.mean is None else (cell.mean, cell.interval) for cell in one.cells],
        )
        for one in trends
        if one.cells
    ]
    content = {"charts": [_chart_content(title, marks) for title, marks in charts], "labels": labels}
    return page_templates().get_template("trend.svg").render(content) + "\n"


def _chart_content(title: str, marks: Sequence[Mark | None]) -> Context:
    """The title of a chart, its points (number, mean, interval) and the ends of its scale."""
    points = [(k, *mark) for k, mark in enumerate(marks) if mark is not None]
    ends = [end for _, mean, interval in points for end in (*(interval or ()), mean)]
    return {"title": title, "points": points, "low": min(ends), "high": max(ends)}


def histogram_svg(title: str, values: Sequence[float]) -> str:
    """Bars over equal intervals from the least to the greatest value."""
    counts, edges = np.histogram(np.asarray(values, dtype=float), bins=min(BINS, max(1, len(set(values)))))
    content = {"title": title, "counts": counts.tolist(), "edges": edges.tolist(), "n": len(values)}
    return page_templates().get_template("histogram.svg").render(content) + "\n"
