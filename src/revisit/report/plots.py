"""Inline SVG made of numbers only, so that nothing has to be escaped. Colours come from the style sheet."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup


def bar(share: float, kind: str) -> Markup:
    """A horizontal bar that fills `share` of its track."""
    return Markup(
        '<svg class="bar {}" width="100%" height="12" aria-hidden="true"><rect class="track" width="100%" height="12"'
        ' rx="2"/><rect class="fill" width="{:.2f}%" height="12" rx="2"/></svg>'
    ).format(kind, 100 * _unit(share))


def whisker(mean: float, interval: Sequence[float] | None, low: float, high: float) -> Markup:
    """A dot for the mean and a line for its interval, on the scale from `low` to `high`."""
    extent = (high - low) or 1.0

    def x(value: float) -> float:
        return 4 + 92 * _unit((value - low) / extent)

    line = Markup("")
    if interval:
        line = Markup('<line class="reach" x1="{:.1f}%" x2="{:.1f}%" y1="6" y2="6"/>').format(*map(x, interval))
    return Markup(
        '<svg class="whisker" width="100%" height="12" aria-hidden="true">'
        '<line class="axis" x1="4%" x2="96%" y1="6" y2="6"/>{}<circle cx="{:.1f}%" cy="6" r="3"/></svg>'
    ).format(line, x(mean))


def stacked(parts: Sequence[tuple[str, int]], height: int = 14) -> Markup:
    """One bar of parts (kind, n) side by side."""
    total = sum(n for _, n in parts) or 1
    at, drawn = 0.0, []
    for kind, n in parts:
        width = 100 * n / total
        drawn.append(
            Markup('<rect class="{}" x="{:.2f}%" width="{:.2f}%" height="{}"/>').format(
                kind, at, max(width - 0.3, 0.2), height
            )
        )
        at += width
    return Markup('<svg class="stacked" width="100%" height="{}" aria-hidden="true">{}</svg>').format(
        height, Markup("").join(drawn)
    )


def _unit(value: float) -> float:
    return min(max(value, 0.0), 1.0)
