"""A histogram as SVG, without a plotting library."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

WIDTH, HEIGHT, MARGIN = 480, 240, 36
BINS = 12


def histogram_svg(title: str, values: Sequence[float]) -> str:
    """Bars over equal intervals from the least to the greatest value."""
    counts, edges = np.histogram(np.asarray(values, dtype=float), bins=min(BINS, max(1, len(set(values)))))
    wide = (WIDTH - 2 * MARGIN) / len(counts)
    tall = (HEIGHT - 2 * MARGIN) / max(int(counts.max()), 1)
    bars = []
    for k, count in enumerate(counts.tolist()):
        x, y = MARGIN + k * wide, HEIGHT - MARGIN - count * tall
        bars.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide - 1:.1f}" height="{count * tall:.1f}" fill="#4477aa">'
            f"<title>{edges[k]:.4g} to {edges[k + 1]:.4g}: {count}</title></rect>"
        )
    ends = [(MARGIN, "start", edges[0]), (WIDTH - MARGIN, "end", edges[-1])]
    labels = [f'<text x="{x}" y="{HEIGHT - 14}" text-anchor="{side}">{value:.4g}</text>' for x, side, value in ends]
    labels.append(f'<text x="{MARGIN - 6}" y="{MARGIN}" text-anchor="end">{int(counts.max())}</text>')
    labels.append(f'<text x="{WIDTH / 2}" y="20" text-anchor="middle">{escape(title)} (n = {len(values)})</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">'
        f'{"".join(bars)}<line x1="{MARGIN}" y1="{HEIGHT - MARGIN}" x2="{WIDTH - MARGIN}" y2="{HEIGHT - MARGIN}" '
        f'stroke="#333"/>{"".join(labels)}</svg>\n'
    )
