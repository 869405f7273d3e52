"""The radar figure: every model's scores on spokes, as an SVG picture. Two panels, as in the paper's Fig. S17.

A spoke runs from 0 in the middle to 100 at the rim. A model without a score on a spoke has a gap there: its line ends
before it and goes on after it. Only what has a scale to 100 is drawn; dB and distances have none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from revisit.suites.memobench.columns import LEADERBOARD, PublicColumn
from revisit.suites.memobench.metrics import FIDELITY

SPOKES = [column for column in LEADERBOARD.values() if column.metric not in FIDELITY]
PANELS = {
    "Automated metrics": [column for column in SPOKES if not column.title.startswith("VQA-")],
    "Questions": [column for column in SPOKES if column.title.startswith("VQA-")],
}
RADIUS, WIDTH, MIDDLE = 150, 460, (230, 215)
COLOURS = ("#1b6ca8", "#d1495b", "#3c8d53", "#8a5fbf", "#c77d0a", "#2a9d8f", "#6b4f3a", "#b03a8c", "#4a6fe3", "#777777")

Scores = Mapping[str, Mapping[str, float | None]]  # model -> metric -> mean


def radar_svg(scores: Scores) -> str:
    """The picture; an empty text where no panel has three spokes with a score."""
    panels = {
        title: [c for c in columns if any(mine.get(c.metric) is not None for mine in scores.values())]
        for title, columns in PANELS.items()
    }
    panels = {title: columns for title, columns in panels.items() if len(columns) > 2}
    if not panels:
        return ""
    models = sorted(scores)
    parts = [_radar_panel_svg(*panel, scores, k * WIDTH) for k, panel in enumerate(panels.items())]
    height = 2 * RADIUS + 130
    legend = "".join(
        f'<g transform="translate({20 + 150 * (k % 3)},{height + 18 * (k // 3)})">'
        f'<rect width="12" height="12" fill="{COLOURS[k % len(COLOURS)]}"/><text x="18" '
        f'y="11">{escape(model)}</text></g>'
        for k, model in enumerate(models)
    )
    width, depth = len(panels) * WIDTH, height + 18 * (1 + len(models) // 3) + 10
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {depth}" width="{width}" height="{depth}" '
        f'font-family="sans-serif" font-size="12">{"".join(parts)}{legend}</svg>\n'
    )


def point_of_score_on_spoke(score: float, spoke_number: int, spoke_count: int) -> tuple[float, float]:
    """Where a score lies: so far from the middle, the first spoke upward, the others clockwise."""
    angle = 2 * math.pi * spoke_number / spoke_count
    length = RADIUS * min(max(score, 0.0), 100.0) / 100
    return round(MIDDLE[0] + length * math.sin(angle), 2), round(MIDDLE[1] - length * math.cos(angle), 2)


def _radar_panel_svg(title: str, columns: Sequence[PublicColumn], scores: Scores, x_offset: int) -> str:
    count = len(columns)
    parts = [f'<g transform="translate({x_offset},0)"><text x="{MIDDLE[0]}" y="24" text-anchor="middle">{title}</text>']
    for ring in (25, 50, 75, 100):
        points = " ".join("{},{}".format(*point_of_score_on_spoke(ring, k, count)) for k in range(count))
        parts.append(f'<polygon points="{points}" fill="none" stroke="#ccc"/>')
    for k, name in enumerate(column.title.removeprefix("VQA-") for column in columns):
        x, y = point_of_score_on_spoke(100, k, count)
        parts.append(f'<line x1="{MIDDLE[0]}" y1="{MIDDLE[1]}" x2="{x}" y2="{y}" stroke="#ddd"/>')
        at = MIDDLE[0] + 1.13 * (x - MIDDLE[0]), MIDDLE[1] + 1.13 * (y - MIDDLE[1])
        parts.append(f'<text x="{at[0]:.1f}" y="{at[1] + 4:.1f}" text-anchor="middle">{name}</text>')
    for number, (model, mine) in enumerate(sorted(scores.items())):
        values = [None if (mean := mine.get(c.metric)) is None else c.factor * mean for c in columns]
        if path := _path_between_neighbouring_scores(values):
            parts.append(
                f'<path data-model="{escape(model)}" d="{path}" fill="none" stroke="{COLOURS[number % len(COLOURS)]}" '
                f'stroke-width="2"><title>{escape(model)}</title></path>'
            )
    return "".join([*parts, "</g>"])


def _path_between_neighbouring_scores(values: Sequence[float | None]) -> str:
    """Lines between the scores of neighbouring spokes, none where one of them has no score."""
    count = len(values)
    spots = [None if value is None else point_of_score_on_spoke(value, k, count) for k, value in enumerate(values)]
    parts: list[str] = []
    for k, current in enumerate(spots):
        after = spots[(k + 1) % count]
        if current is not None and after is not None:
            parts.append("M{},{} L{},{}".format(*current, *after))
        elif current is not None and spots[k - 1] is None:
            parts.append("M{},{} h0.01".format(*current))  # a score without neighbours is a dot
    return " ".join(parts)
