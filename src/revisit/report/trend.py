"""Trends as a picture: one small chart per metric, means with their intervals, in plain SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from revisit.core.text import printable_text
from revisit.results.cells import Interval
from revisit.results.display import number_text, score_title_with_arrow
from revisit.results.trend import PointCoverage, Trend

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 640, 200, 64, 34, 34
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#333}.head{font-weight:600;font-size:13px}"
    ".line{fill:none;stroke:#0b6e6e;stroke-width:2}.reach{stroke:#0b6e6e;stroke-opacity:.45;stroke-width:2}"
    ".dot{fill:#0b6e6e}.axis{stroke:#bbb}"
)


Mark = tuple[float, Interval | None]  # a mean, and how far it may be off


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
    body = "".join(
        f'<g transform="translate(0 {k * HEIGHT})">{_chart_svg(title, marks, labels)}</g>'
        for k, (title, marks) in enumerate(charts)
    )
    height = HEIGHT * max(len(charts), 1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
        f'<style>{STYLE}</style><rect width="100%" height="100%" fill="#fff"/>{body}</svg>\n'
    )


def _chart_svg(title: str, marks: Sequence[Mark | None], labels: Sequence[str]) -> str:
    points = [(k, *mark) for k, mark in enumerate(marks) if mark is not None]
    ends = [end for _, mean, interval in points for end in (*(interval or ()), mean)]
    low, high = min(ends), max(ends)
    extent = (high - low) or 1.0
    right = WIDTH - 24

    def to_x(k: int) -> float:
        return LEFT + 20 + (right - LEFT - 40) * k / max(len(labels) - 1, 1)

    def to_y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - (value - low) / extent)

    parts = [f'<text class="head" x="{LEFT}" y="20">{_escape_printable(title)}</text>']
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{right}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM}"/>')
    for value in (low, high):
        parts.append(f'<text x="{LEFT - 8}" y="{to_y(value) + 4:.1f}" text-anchor="end">{number_text(value)}</text>')
    path = " ".join(f"{to_x(k):.1f},{to_y(mean):.1f}" for k, mean, _ in points)
    parts.append(f'<polyline class="line" points="{path}"/>')
    every = max(1, len(labels) // 8)
    for k, mean, interval in points:
        if interval:
            parts.append(
                f'<line class="reach" x1="{to_x(k):.1f}" x2="{to_x(k):.1f}" y1="{to_y(interval[0]):.1f}" '
                f'y2="{to_y(interval[1]):.1f}"/>'
            )
        parts.append(f'<circle class="dot" cx="{to_x(k):.1f}" cy="{to_y(mean):.1f}" r="4"/>')
        if k % every == 0:
            parts.append(
                f'<text x="{to_x(k):.1f}" y="{HEIGHT - 14}" text-anchor="middle">{_escape_printable(labels[k])}</text>'
            )
    return "".join(parts)


def _escape_printable(words: str) -> str:
    return escape(printable_text(words))
