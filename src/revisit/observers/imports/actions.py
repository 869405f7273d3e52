"""Keys held in each frame of a recording, from its action file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import MediaError, observer
from revisit.evidence.poses import ActionTrack
from revisit.media.names import in_clip

AXES = {"forward": "ws", "side": "ad", "tilt": "ud", "turn": "lr"}
EXPECTED = '"data": one row per frame with time and ws, ad, ud, lr, each 0, 1 or 2'
MOST_BYTES = 256 << 20


@observer(id="import.actions", version=1, kind="file", makes=ActionTrack, artifact="actions", sets=("lite",))
def actions(path: Path) -> ActionTrack:
    """The keys of each frame, from an action.json."""
    with in_clip(path):
        rows = read_action_file(path).get("data")
        if not isinstance(rows, list) or not rows:
            raise MediaError(f"it has no rows; expected {EXPECTED}")
        frames = [_code(row, k, "time", k, None) for k, row in enumerate(rows)]
        columns = {axis: [_code(row, k, key, 0, 2) for k, row in enumerate(rows)] for axis, key in AXES.items()}
    return ActionTrack(
        frame=np.array(frames, dtype=np.int64), **{axis: np.array(c, np.int8) for axis, c in columns.items()}
    )


def read_action_file(path: Path) -> dict[str, Any]:
    """The JSON object in an action file."""
    if path.stat().st_size > MOST_BYTES:
        raise MediaError(f"it is larger than {MOST_BYTES >> 20} MiB, which no action file is")
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise MediaError(f"this is not a JSON document ({error}); expected an object with {EXPECTED}") from None
    if not isinstance(content, dict):
        raise MediaError(f"found a {type(content).__name__}; expected an object with {EXPECTED}")
    return content


def _code(row: object, k: int, key: str, default: int, most: int | None) -> int:
    value = row.get(key, default) if isinstance(row, dict) else None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0 or (most is not None and value > most):
        raise MediaError(f"row {k} has {key} = {str(value)[:40]!r}; expected {EXPECTED}")
    return value
