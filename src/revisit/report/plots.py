"""Inline SVG of numbers; names go in escaped. Colours come from the style sheet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup, escape

from revisit.core.grouping import group_items


def share_bar_svg(share: float, kind: str) -> Markup:
    """A horizontal bar that fills `share` of its track."""
    return Markup(
        f'<svg class="bar {kind}" width="100%" height="12" aria-hidden="true"><rect class="track" width="100%" '
        f'height="12" rx="2"/><rect class="fill" width="{100 * _clamp_to_unit(share):.2f}%" height="12" rx="2"/></svg>'
    )


def whisker_plot_svg(mean: float, interval: Sequence[float] | None, low: float, high: float) -> Markup:
    """A dot for the mean and a line for its interval, on the scale from `low` to `high`."""
    return _dot_on_axis("whisker", 6, 4, 3, mean, interval, (low, high), None)


def heat_map_svg(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Markup:
    """Shares from 0 to 1 as a grid: names and, for each column, (share, n) or None. Darker is more."""
    left, top, wide, high = 190, 26, 104, 26
    middles = [left + k * wide + wide // 2 for k in range(len(columns))]
    parts = [_svg_text(x, 18, "middle", _shorten(name, 16)) for x, name in zip(middles, columns, strict=True)]
    for j, (name, cells) in enumerate(rows):
        y = top + j * high
        parts.append(_svg_text(left - 8, y + 17, "end", _shorten(name, 28)))
        for x, cell in zip(middles, cells, strict=False):
            if cell is not None:
                share, n = _clamp_to_unit(float(cell[0])), int(cell[1])
                parts.append(
                    f'<rect class="heat" x="{x - wide // 2}" y="{y}" width="{wide - 2}" height="{high - 2}" '
                    f'fill-opacity="{0.06 + 0.6 * share:.2f}"/><text x="{x}" y="{y + 17}" text-anchor="middle">'
                    f"{100 * share:.0f} %<title>{round(share * n)} of {n}</title></text>"
                )
    return _svg_figure(left + wide * len(columns), top + high * len(rows), parts)


def win_share_scatter_svg(points: Sequence[Sequence[Any]]) -> Markup:
    """(name, share by people, share by the metric) on a square from 0 to 1, with the diagonal."""
    side, edge = 260, 44

    def to_pixels(value: float) -> float:
        return edge + (side - edge - 12) * _clamp_to_unit(value)

    low, middle, high = to_pixels(0), to_pixels(0.5), to_pixels(1)
    parts = [
        f'<line class="axis" x1="{low:.0f}" y1="{side - low:.0f}" x2="{high:.0f}" y2="{side - high:.0f}"/>',
        _svg_text(f"{middle:.0f}", side - 6, "middle", "won by people"),
        f'<text transform="translate(14 {side - middle:.0f}) rotate(-90)" text-anchor="middle">'
        "won by the metric</text>",
    ]
    parts += [
        _svg_text(f"{to_pixels(value):.0f}", f"{side - 24:.0f}", "middle", f"{value:g}") for value in (0.0, 0.5, 1.0)
    ]
    together = group_items(points, lambda point: (round(float(point[1]), 3), round(float(point[2]), 3)))
    for (people, metric), some in together.items():
        x, y = to_pixels(people), side - to_pixels(metric)
        shift, anchor = (-7, "end") if people > 0.6 else (7, "start")
        names = ", ".join(str(name) for name, *_ in some)
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"/>')
        parts.append(_svg_text(f"{x + shift:.1f}", f"{y + 4:.1f}", anchor, _shorten(names, 30)))
    return _svg_figure(side, side, parts)


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
        return left + (width - left - right) * share, height - bottom - (height - top - bottom) * _clamp_to_unit(
            y / highest
        )

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
    return _svg_figure(width, height, parts)


def dot_plot_svg(
    mean: float | None,
    interval: Sequence[float] | None,
    scale: tuple[float, float],
    ceiling: float | None = None,
    kind: str = "",
) -> Markup:
    """A dot with its interval on the scale from the worst end to the best, and a mark where the truth is."""
    return _dot_on_axis(f"dots {kind}", 7, 5, 4, mean, interval, scale, ceiling)


def stacked_bar_svg(parts: Sequence[tuple[str, int]], height: int = 14) -> Markup:
    """One bar of parts (kind, n) side by side."""
    total = sum(n for _, n in parts) or 1
    at, bars = 0.0, []
    for kind, n in parts:
        width = 100 * n / total
        bars.append(f'<rect class="{kind}" x="{at:.2f}%" width="{max(width - 0.3, 0.2):.2f}%" height="{height}"/>')
        at += width
    return Markup(f'<svg class="stacked" width="100%" height="{height}" aria-hidden="true">{"".join(bars)}</svg>')


def _dot_on_axis(
    kind: str,
    middle: int,
    margin: int,
    radius: int,
    mean: float | None,
    interval: Sequence[float] | None,
    scale: tuple[float, float],
    ceiling: float | None,
) -> Markup:
    """A dot of this radius and the line of its interval, on an axis in the middle with margins in percent."""
    start, end = scale
    extent = (end - start) or 1.0

    def to_percent(value: float) -> float:
        return margin + (100 - 2 * margin) * _clamp_to_unit((value - start) / extent)

    parts = [f'<line class="axis" x1="{margin}%" x2="{100 - margin}%" y1="{middle}" y2="{middle}"/>']
    if ceiling is not None:
        at = f"{to_percent(ceiling):.1f}%"
        parts.append(f'<line class="ceiling" x1="{at}" x2="{at}" y1="0" y2="{2 * middle}"/>')
    if interval:
        first, last = sorted(map(to_percent, interval))
        parts.append(f'<line class="reach" x1="{first:.1f}%" x2="{last:.1f}%" y1="{middle}" y2="{middle}"/>')
    if mean is not None:
        parts.append(f'<circle cx="{to_percent(mean):.1f}%" cy="{middle}" r="{radius}"/>')
    return Markup(f'<svg class="{kind}" width="100%" height="{2 * middle}" aria-hidden="true">{"".join(parts)}</svg>')


def _svg_figure(width: int, height: int, parts: Sequence[str]) -> Markup:
    return Markup(
        f'<svg class="figure" viewBox="0 0 {width} {height}" width="{width}" role="img">{"".join(parts)}</svg>'
    )


def _svg_text(x: float | str, y: float | str, anchor: str, text: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'


def _shorten(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _clamp_to_unit(value: float) -> float:
    return min(max(value, 0.0), 1.0)
