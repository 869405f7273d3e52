"""Rows of evidence: finding frames in an index, and saying what is wrong with a record's shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from revisit.core import InvalidEvidence


def nearest_rows(index: np.ndarray, frames: np.ndarray) -> np.ndarray:
    """For each frame number the row of `index` (rising) that is nearest, the earlier one of two."""
    after = np.clip(np.searchsorted(index, frames), 0, len(index) - 1)
    before = np.maximum(after - 1, 0)
    return np.where(np.abs(index[before] - frames) <= np.abs(index[after] - frames), before, after)


def require_rows(record: Any, *, several: bool = False, **tails: tuple[int | None, ...]) -> None:
    """Raise InvalidEvidence unless each named field has one row per frame of `index` and these further axes.

    None stands for any length. Values must be finite. With `several` a frame may stand in several rows.
    """
    kind = type(record).__name__
    index = np.asarray(record.index)
    if index.ndim != 1 or (len(index) > 1 and (np.diff(index) < (0 if several else 1)).any()):
        wanted = "a rising list of frame numbers" + ("" if several else ", each once")
        raise InvalidEvidence(f"{kind}.index must be {wanted}; got shape {index.shape}")
    for name, tail in tails.items():
        values = np.asarray(getattr(record, name))
        axes = (len(index), *tail)
        fits = values.ndim == len(axes) and all(w is None or w == n for w, n in zip(axes, values.shape, strict=True))
        if not fits:
            shown = ", ".join("any" if w is None else str(w) for w in axes)
            raise InvalidEvidence(
                f"{kind}.{name} has shape {values.shape}; {len(index)} frames in `index` need ({shown}): one row each"
            )
        require_finite(record, name)


def require_finite(record: Any, *names: str) -> None:
    """Raise InvalidEvidence unless these fields hold finite numbers only."""
    for name in names:
        if not np.isfinite(getattr(record, name)).all():
            kind = type(record).__name__
            raise InvalidEvidence(f"{kind}.{name} holds values that are not finite; every row needs a number")
