"""Series: the per-frame values behind an answer, read from the run and thinned to what a page can show."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from revisit.core import Case, MediaError, Series
from revisit.results import Results
from revisit.results.display import round_for_page
from revisit.web.templates import Context

COLUMNS = ("frame", "other", "value", "phase", "hidden")


def read_drawable_series(results: Results, case: Case, question: str) -> Series | None:
    """The columns of a series that the page knows, in the order of frames; None where nothing can be drawn."""
    try:
        series_of_run = results.series(case, question)
    except (MediaError, ValueError):
        return None
    present = {} if series_of_run is None else series_of_run.columns
    columns = {name: present[name] for name in COLUMNS if name in present}
    if {"frame", "value"} - columns.keys() or any(c.ndim != 1 or c.dtype.kind not in "biuf" for c in columns.values()):
        return None
    columns["value"] = columns["value"].astype(float)
    if "phase" in columns:
        columns["value"][columns["phase"] < 0] = np.nan  # where a gate cannot tell, its value stands for nothing
    placed = np.flatnonzero(np.isfinite(columns["frame"].astype(float)))
    order = placed[np.argsort(columns["frame"][placed], kind="stable")]
    series = Series(**{name: column[order] for name, column in columns.items()})
    return series if np.isfinite(series["value"]).any() else None


def thin_series(series: Series, limits: Sequence[float | None], higher_is_better: bool | None, most: int) -> Context:
    """What the page draws: frames, values (null where unknown), the scale, and the frame with the worst value."""
    frame, value = series["frame"].astype(int), series["value"]
    rows = np.union1d(np.arange(0, len(frame), -(-len(frame) // most)), [len(frame) - 1])
    worst = None if higher_is_better is None else series.worst(higher_is_better)
    if worst is not None:
        rows = np.union1d(rows, [worst])
    least, greatest = float(np.nanmin(value)), float(np.nanmax(value))
    low, high = limits
    return {
        "frame": [int(f) for f in frame[rows]],
        "value": [round_for_page(float(v), 3) if np.isfinite(v) else None for v in value[rows]],
        "low": min(least, 0.0 if low is None else low),
        "high": greatest if high is None else max(greatest, high),
        "worst": None if worst is None else int(frame[worst]),
    }
