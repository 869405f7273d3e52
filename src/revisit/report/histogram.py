"""A histogram as SVG, without a plotting library."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from revisit.report.standalone import page_templates

BINS = 12


def histogram_svg(title: str, values: Sequence[float]) -> str:
    """Bars over equal intervals from the least to the greatest value."""
    counts, edges = np.histogram(np.asarray(values, dtype=float), bins=min(BINS, max(1, len(set(values)))))
    content = {"title": title, "counts": counts.tolist(), "edges": edges.tolist(), "n": len(values)}
    return page_templates().get_template("histogram.svg").render(content) + "\n"
