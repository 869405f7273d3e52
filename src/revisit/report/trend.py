"""Trends as a picture: one small chart per metric, means with their intervals, in plain SVG."""

from __future__ import annotations

from collections.abc import Sequence

from revisit.report.standalone import page_templates
from revisit.results.cells import Interval
from revisit.results.display import score_title_with_arrow
from revisit.results.trend import PointCoverage, Trend
from revisit.web.templates import Context

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
    content = {"charts": [_chart_content(title, marks) for title, marks in charts], "labels": labels}
    return page_templates().get_template("trend.svg").render(content) + "\n"


def _chart_content(title: str, marks: Sequence[Mark | None]) -> Context:
    """The title of a chart, its points (number, mean, interval) and the ends of its scale."""
    points = [(k, *mark) for k, mark in enumerate(marks) if mark is not None]
    ends = [end for _, mean, interval in points for end in (*(interval or ()), mean)]
    return {"title": title, "points": points, "low": min(ends), "high": max(ends)}
