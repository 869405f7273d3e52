"""Rows of evidence, one for each frame that was seen, turned into columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from revisit.core.evidence import declared_array_rules


def columns_of_rows(rows: Sequence[tuple[Any, ...]], count: int) -> list[tuple[Any, ...]]:
    """The columns of a table with so many of them; it may have no rows."""
    return list(zip(*rows, strict=True)) or [()] * count


def evidence_arrays_of_rows(kind: type, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All arrays of a kind of evidence, from rows by the names of its fields; floats, but for `index`."""
    arrays = {}
    for name, axes, _ in declared_array_rules(kind):
        column = np.array([row[name] for row in rows], np.int64 if name == "index" else np.float64)
        arrays[name] = column.reshape(-1, *map(int, axes[1:]))
    return arrays
