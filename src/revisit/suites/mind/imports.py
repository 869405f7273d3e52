"""Keys held in each frame of a recording, from its action file."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from revisit.core import MediaError, observer
from revisit.media.error_names import raise_media_errors_naming_file
from revisit.media.text_files import read_json_object
from revisit.suites.mind.evidence import ActionTrack

AXES = {"forward": "ws", "side": "ad", "tilt": "ud", "turn": "lr"}
EXPECTED = '"data": one row per frame with time and ws, ad, ud, lr, each 0, 1 or 2'


@observer(id="import.actions", version=1, kind="file", makes=ActionTrack, artifact="actions", sets=("lite",))
def read_action_track(path: Path) -> ActionTrack:
    """The keys of each frame, from an action.json."""
    with raise_media_errors_naming_file(path):
        rows = read_json_object(path, f"an object with {EXPECTED}").get("data")
        if not isinstance(rows, list) or not rows:
            raise MediaError(f"it has no rows; expected {EXPECTED}")
        frames = np.array([_row_integer(row, k, "time", k) for k, row in enumerate(rows)], dtype=np.int64)
        keys = {axis: [_row_integer(row, k, key, 0, 2) for k, row in enumerate(rows)] for axis, key in AXES.items()}
    return ActionTrack(frame=frames, **{axis: np.array(codes, np.int8) for axis, codes in keys.items()})


def _row_integer(row: object, k: int, key: str, default: int, most: float = math.inf) -> int:
    value = row.get(key, default) if isinstance(row, dict) else None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise MediaError(f"row {k} has {key} = {str(value)[:40]!r}; expected {EXPECTED}")
    return value
