"""Phase pairs: which frame of a reference belongs to which frame of a clip of another length.

A clip of N frames with its phases (first hidden frame h, first returned frame r) beside a reference of G frames with
its own (d, r'). Four maps, all nearest in index and half to even:

- the whole clip: frames 0 .. N-1 onto 0 .. G-1;
- each phase onto its own: 0 .. h onto 0 .. d, h .. r onto d .. r', r .. N-1 onto r' .. G-1.

The whole map is not the union of the others. A frame therefore has up to three partners; the pair of the whole clip
comes first. Both ends of a phase take part in its map; `closed=False` then leaves out its last frame where the next
phase begins with it, so that no frame counts twice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from revisit.core.errors import UsageError

PHASES = ("visible", "hidden", "returned")
RULE = "phases:"


def spread_evenly(count: int, first: int, last: int) -> np.ndarray:
    """Reference frames of `count` frames that are spread evenly from `first` to `last`."""
    if count < 2 or first == last:
        return np.full(max(count, 0), first, dtype=np.int64)
    return np.rint(first + np.arange(count) * (last - first) / (count - 1)).astype(np.int64)


def frame_pairs_by_phase(
    frames: int, true_frames: int, phases: Sequence[int], true_phases: Sequence[int], closed: bool = True
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Phase -> (frames of the clip, their frames of the reference); `all` is the map of the whole clip."""
    (h, r), (d, back) = phases, true_phases
    maps = {"all": (np.arange(frames), spread_evenly(frames, 0, true_frames - 1))}
    ends = ((0, h, 0, d), (h, r, d, back), (r, frames - 1, back, true_frames - 1))
    for name, (start, end, true_start, true_end) in zip(PHASES, ends, strict=True):
        end = min(end, frames - 1)
        members = np.arange(start, end + 1)
        partners = np.clip(spread_evenly(len(members), true_start, true_end), 0, true_frames - 1)
        keep = len(members) if closed or name == "returned" else len(members) - 1
        maps[name] = members[:keep], partners[:keep]
    return maps


def find_rows_of_frame_pairs(
    index: np.ndarray, reference: np.ndarray, pairs: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """Rows of (index, reference) that hold these pairs; of a frame that lacks its own, the row nearest to it."""
    order = np.lexsort((reference, index))
    rows = []
    for frame, partner in zip(*pairs, strict=True):
        low, high = np.searchsorted(index[order], [frame, frame + 1])
        mine = order[low:high]
        if len(mine):
            rows.append(int(mine[np.abs(reference[mine] - partner).argmin()]))
    return np.array(rows, dtype=np.int64)


def first_row_of_each_frame(index: np.ndarray) -> np.ndarray:
    """Rows of the pairs of the whole clip: the first row of every frame."""
    return np.flatnonzero(np.r_[True, np.diff(index) != 0]) if len(index) else np.zeros(0, np.int64)


def format_phase_rule(phases: Sequence[int], true_phases: Sequence[int]) -> str:
    """The rule of alignment as a Case names it, such as `phases:24,55/90,203`."""
    return f"{RULE}{phases[0]},{phases[1]}/{true_phases[0]},{true_phases[1]}"


def parse_phase_rule(rule: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """(phases of the clip, phases of the reference) of such a rule."""
    try:
        mine, true = ([int(value) for value in part.split(",")] for part in rule.removeprefix(RULE).split("/"))
        return (mine[0], mine[1]), (true[0], true[1])
    except (ValueError, IndexError):
        raise UsageError(f"{rule!r} is not an alignment by phases; expected such as phases:24,55/90,203") from None
