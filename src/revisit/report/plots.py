"""Inline SVG made of numbers only, so that nothing has to be escaped. Colours come from the style sheet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup


def share_bar(share: float, kind: str) -> Markup:
    """A horizontal bar that fills `share` of its track."""
    return Markup(
        '<svg class="bar {}" width="100%" height="12" aria-hidden="true"><rect class="track" width="100%" height="12"'
        ' rx="2"/><rect class="fill" width="{:.2f}%" height="12" rx="2"/></svg>'
    ).format(kind, 100 * _clamp(share))


def whisker_plot(mean: float, interval: Sequence[float] | None, low: float, high: float) -> Markup:
    """A dot for the mean and a line for its interval, on the scale from `low` to `high`."""
    extent = (high - low) or 1.0

    def x(value: float) -> float:
        return 4 + 92 * _clamp((value - low) / extent)

    line = Markup("")
    if interval:
        line = Markup('<line class="reach" x1="{:.1f}%" x2="{:.1f}%" y1="6" y2="6"/>').format(*map(x, interval))
    return Markup(
        '<svg class="whisker" width="100%" height="12" aria-hidden="true">'
        '<line class="axis" x1="4%" x2="96%" y1="6" y2="6"/>{}<circle cx="{:.1f}%" cy="6" r="3"/></svg>'
    ).format(line, x(mean))


def heat_map(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Markup:
    """Shares from 0 to 1 as a grid: names and, for each column, (share, n) or None. Darker is more."""
    left, top, wide, high = 190, 26, 104, 26
    parts = [
        Markup('<text x="{}" y="18" text-anchor="middle">{}</text>').format(
            left + k * wide + wide // 2, _shorten(name, 16)
        )
        for k, name in enumerate(columns)
    ]
    for j, (name, cells) in enumerate(rows):
        y = top + j * high
        parts.append(
            Markup('<text x="{}" y="{}" text-anchor="end">{}</text>').format(left - 8, y + 17, _shorten(name, 28))
        )
        for k, cell in enumerate(cells):
            if cell is None:
                continue
            share, n = _clamp(float(cell[0])), int(cell[1])
            parts.append(
                Markup(
                    '<rect class="heat" x="{}" y="{}" width="{}" height="{}" fill-opacity="{:.2f}"/><text x="{}" '
                    'y="{}" text-anchor="middle">{:.0f} %<title>{} of {}</title></text>'
                ).format(
                    left + k * wide, y, wide - 2, high - 2, 0.06 + 0.6 * share, left + k * wide + wide // 2, y + 17,
                    100 * share, round(share * n), n,
                )
            )  # fmt: skip
    size = left + wide * len(columns), top + high * len(rows)
    return Markup('<svg class="figure" viewBox="0 0 {} {}" width="{}" role="img">{}</svg>').format(
        *size, size[0], Markup("").join(parts)
    )


def scatter_plot(points: Sequence[Sequence[Any]]) -> Markup:
    """(name, share by people, share by the metric) on a square from 0 to 1, with the diagonal."""
    side, edge = 260, 44

    def at(value: float) -> float:
        return edge + (side - edge - 12) * _clamp(value)

    parts = [
        Markup('<line class="axis" x1="{0:.0f}" y1="{2:.0f}" x2="{1:.0f}" y2="{3:.0f}"/>').format(
            at(0), at(1), side - at(0), side - at(1)
        ),
        Markup('<text x="{:.0f}" y="{}" text-anchor="middle">won by people</text>').format(at(0.5), side - 6),
        Markup(
            '<text transform="translate(14 {:.0f}) rotate(-90)" text-anchor="middle">won by the metric</text>'
        ).format(side - at(0.5)),
    ]
    for value in (0.0, 0.5, 1.0):
        parts.append(
            Markup('<text x="{:.0f}" y="{:.0f}" text-anchor="middle">{:g}</text>').format(at(value), side - 24, value)
        )
    together: dict[tuple[float, float], list[str]] = {}
    for name, people, metric in points:
        together.setdefault((round(float(people), 3), round(float(metric), 3)), []).append(str(name))
    for (people, metric), names in together.items():
        x, y = at(people), side - at(metric)
        parts.append(Markup('<circle cx="{:.1f}" cy="{:.1f}" r="4"/>').format(x, y))
        parts.append(
            Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(
                x - 7 if people > 0.6 else x + 7,
                y + 4,
                "end" if people > 0.6 else "start",
                _shorten(", ".join(names), 30),
            )
        )
    return Markup('<svg class="figure" viewBox="0 0 {0} {0}" width="{0}" role="img">{1}</svg>').format(
        side, Markup("").join(parts)
    )


Curve = Sequence[tuple[float, float, Sequence[float] | None]]  # x, mean, and its interval


def line_plot(lines: Sequence[tuple[str, str, Curve]], unit: str) -> Markup:
    """Means with their intervals as bands over a logarithmic axis: name, class of its colour, and points of each."""
    width, height, left, right, top, bottom = 430, 230, 46, 12, 10, 40
    points = [point for _, _, line in lines for point in line]
    if not points:
        return Markup("")
    start, stop = min(x for x, *_ in points), max(x for x, *_ in points)
    highest = max(end for _, mean, interval in points for end in (mean, *(interval or ()))) or 1.0

    def at(x: float, y: float) -> tuple[float, float]:
        share = math.log(x / start) / (math.log(stop / start) or 1.0)
        return left + (width - left - right) * share, height - bottom - (height - top - bottom) * _clamp(y / highest)

    def path(ends: Sequence[tuple[float, float]]) -> str:
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*end) for end in ends))

    ground = height - bottom
    parts = [Markup('<line class="axis" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(left, width - right, ground, ground)]
    for value in (0.0, highest / 2, highest):
        y = at(start, value)[1]
        parts.append(Markup('<text x="{}" y="{:.1f}" text-anchor="end">{:.2g}</text>').format(left - 6, y + 4, value))
    for x in sorted({x for x, *_ in points}):
        text = Markup('<text x="{:.1f}" y="{}" text-anchor="middle">{:g}</text>')
        parts.append(text.format(at(x, 0)[0], ground + 16, x))
    middle = left + (width - left - right) / 2
    parts.append(Markup('<text x="{:.0f}" y="{}" text-anchor="middle">{}</text>').format(middle, height - 6, unit))
    for name, kind, line in lines:
        band = [(x, interval[1]) for x, _, interval in line if interval]
        band += [(x, interval[0]) for x, _, interval in reversed(line) if interval]
        parts.append(Markup('<g class="curve {}"><title>{}</title>').format(kind, name))
        parts.append(Markup('<polygon points="{}"/>').format(path(band)) if band else Markup(""))
        parts.append(Markup('<polyline points="{}"/>').format(path([(x, mean) for x, mean, _ in line])))
        for x, mean, _ in line:
            parts.append(Markup('<circle cx="{:.1f}" cy="{:.1f}" r="2.5"/>').format(*at(x, mean)))
        parts.append(Markup("</g>"))
    return Markup('<svg class="figure" viewBox="0 0 {0} {1}" width="{0}" role="img">{2}</svg>').format(
        width, height, Markup("").join(parts)
    )


def _shorten(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def dot_plot(
    mean: float | None,
    interval: Sequence[float] | None,
    scale: tuple[float, float],
    ceiling: float | None = None,
    kind: str = "",
) -> Markup:
    """A dot with its interval on the scale from the worst end to the best, and a mark where the truth is."""
    worst, best = scale
    extent = (best - worst) or 1.0

    def x(value: float) -> float:
        return 5 + 90 * _clamp((value - worst) / extent)

    parts = [Markup('<line class="axis" x1="5%" x2="95%" y1="7" y2="7"/>')]
    if ceiling is not None:
        parts.append(Markup('<line class="ceiling" x1="{0:.1f}%" x2="{0:.1f}%" y1="0" y2="14"/>').format(x(ceiling)))
    if interval:
        ends = sorted(map(x, interval))
        parts.append(Markup('<line class="reach" x1="{:.1f}%" x2="{:.1f}%" y1="7" y2="7"/>').format(*ends))
    if mean is not None:
        parts.append(Markup('<circle cx="{:.1f}%" cy="7" r="4"/>').format(x(mean)))
    return Markup('<svg class="dots {}" width="100%" height="14" aria-hidden="true">{}</svg>').format(
        kind, Markup("").join(parts)
    )


def stacked_bar(parts: Sequence[tuple[str, int]], height: int = 14) -> Markup:
    """One bar of parts (kind, n) side by side."""
    total = sum(n for _, n in parts) or 1
    at, bars = 0.0, []
    for kind, n in parts:
        width = 100 * n / total
        bars.append(
            Markup('<rect class="{}" x="{:.2f}%" width="{:.2f}%" height="{}"/>').format(
                kind, at, max(width - 0.3, 0.2), height
            )
        )
        at += width
    return Markup('<svg class="stacked" width="100%" height="{}" aria-hidden="true">{}</svg>').format(
        height, Markup("").join(bars)
    )


def _clamp(value: float) -> float:
    return min(max(value, 0.0), 1.0)
