"""What goes on over the frames of a clip: phases, and the per-frame values behind an answer, as a page draws them.

Phases: which frames show the view or target, which hide it, which have it back. A gate says them in its facts as
`phases` ([name, first frame, last frame], inclusive), or frame by frame in its units (`phase`: 0 visible, 1 away,
2 returned, -1 cannot tell; or `hidden`: yes or no), or as first frames in its facts (`first_hidden_frame`,
`first_return_frame`); a dataset, with the case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from revisit.core import Case, MediaError, Series
from revisit.core.text import read_package_yaml
from revisit.results import Results
from revisit.results.display import round_for_page
from revisit.web.templates import Context

KINDS = {name: kind for kind, names in read_package_yaml("revisit.report", "phases.yaml").items() for name in names}
NAMES = {0: "visible", 1: "away", 2: "returned"}
UNKNOWN = "cannot tell"
COLUMNS = ("frame", "other", "value", "phase", "hidden")  # of a series
Phase = list[Any]  # kind, name as the gate says it, first frame, last frame


def phases_of_gate(facts: Mapping[str, object], series: Series | None, last: int) -> list[Phase]:
    """Phases as a gate says them, cut to frames 0 to `last`; empty where it says none."""
    listed = facts.get("phases")
    if isinstance(listed, Sequence) and not isinstance(listed, str):
        return _phases_within_frames(listed, last)
    if series is not None and {"phase", "hidden"} & series.columns.keys():
        return phases_from_series(series, last)
    starts = first_frame_of_each_kind(facts)
    return phases_from_starts(starts.get("hidden"), starts.get("returned"), last)


def first_frame_of_each_kind(facts: Mapping[str, object]) -> dict[str, int]:
    """The first frame of each kind of phase, from facts called first_..._frame."""
    starts: dict[str, int] = {}
    for key, frame in facts.items():
        if key.startswith("first_") and key.endswith("_frame") and isinstance(frame, int):
            starts.setdefault(KINDS.get(key[len("first_") : -len("_frame")], ""), frame)
    return starts


def phases_from_series(series: Series, last: int) -> list[Phase]:
    """Stretches of equal phase; a sampled frame stands for those up to the next one."""
    frame = series["frame"].astype(int)
    if "phase" in series.columns:
        names = [NAMES.get(int(phase), UNKNOWN) for phase in series["phase"]]
    else:
        hidden = series["hidden"].astype(bool)
        names_in_view = np.where(np.cumsum(hidden) > 0, "returned", "visible")
        names = ["hidden" if away else str(name) for away, name in zip(hidden, names_in_view, strict=True)]
    starts = [k for k in range(len(names)) if k == 0 or names[k] != names[k - 1]]
    ends = [int(frame[k]) - 1 for k in starts[1:]] + [last]
    return _phases_within_frames([(names[k], int(frame[k]), end) for k, end in zip(starts, ends, strict=True)], last)


def phases_from_starts(hidden: int | None, returned: int | None, last: int) -> list[Phase]:
    """Three phases from the first hidden and the first returned frame."""
    if hidden is None:
        return []
    back = last + 1 if returned is None else returned
    phases = [("visible", 0, hidden - 1), ("hidden", hidden, back - 1), ("returned", back, last)]
    return _phases_within_frames(phases, last)


def _phases_within_frames(entries: Iterable[Any], last: int) -> list[Phase]:
    """The phases of entries, cut to frames 0 to `last`; what is none is left out."""
    phases = []
    for entry in entries:
        with suppress(TypeError, ValueError):
            name, first, final = entry
            first, final = max(int(first), 0), min(int(final), last)
            if first <= final:
                phases.append([KINDS.get(str(name), "other"), str(name), first, final])
    return phases


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
