"""Inline SVG of numbers; names go in escaped. Colours come from the style sheet."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup, escape

from revisit.report.standalone import clamp

Curve = Sequence[tuple[float, float, Sequence[float] | None]]  # x, mean, and its interval


def log_axis_line_plot_svg(lines: Sequence[tuple[str, str, Curve]], unit: str) -> Markup:
    """Means with their intervals as bands over a logarithmic axis: name, class of its colour, and points of each."""
    width, height, left, right, top, bottom = 430, 230, 46, 12, 10, 40
    points = [point for _, _, line in lines for point in line]
    if not points:
        return Markup("")
    start, stop = min(x for x, *_ in points), max(x for x, *_ in points)
    highest = max(end for _, mean, interval in points for end in (mean, *(interval or ()))) or 1.0

    def to_pixels(x: float, y: float) -> tuple[float, float]:
        share = math.log(x / start) / (math.log(stop / start) or 1.0)
        return left + (width - left - right) * share, height - bottom - (height - top - bottom) * clamp(y / highest)

    def svg_points(ends: Sequence[tuple[float, float]]) -> str:
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in (to_pixels(*end) for end in ends))

    ground = height - bottom
    parts = [f'<line class="axis" x1="{left}" x2="{width - right}" y1="{ground}" y2="{ground}"/>']
    for value in (0.0, highest / 2, highest):
        parts.append(_svg_text(left - 6, f"{to_pixels(start, value)[1] + 4:.1f}", "end", f"{value:.2g}"))
    for x in sorted({x for x, *_ in points}):
        parts.append(_svg_text(f"{to_pixels(x, 0)[0]:.1f}", ground + 16, "middle", f"{x:g}"))
    parts.append(_svg_text(f"{left + (width - left - right) / 2:.0f}", height - 6, "middle", unit))
    for name, kind, line in lines:
        band = [(x, interval[1]) for x, _, interval in line if interval]
        band += [(x, interval[0]) for x, _, interval in reversed(line) if interval]
        parts.append(f'<g class="curve {kind}"><title>{escape(name)}</title>')
        parts += [f'<polygon points="{svg_points(band)}"/>'] if band else []
        parts.append(f'<polyline points="{svg_points([(x, mean) for x, mean, _ in line])}"/>')
        for x, y in (to_pixels(x, mean) for x, mean, _ in line):
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>')
        parts.append("</g>")
    head = f'<svg class="figure" viewBox="0 0 {width} {height}" width="{width}" role="img">'
    return Markup(f"{head}{''.join(parts)}</svg>")


def _svg_text(x: float | str, y: float | str, anchor: str, text: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'
