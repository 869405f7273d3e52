"""Named moves: the generator takes the name of one of six moves and no path.

HunyuanWorld-Voyager's own tool turns by about 45 degrees or goes 1 unit over the clip, and renders what the model is
given; a path of another kind or size would have to be rendered by a tool of your own.
"""

from __future__ import annotations

import numpy as np

from revisit.control.payloads.family import Family, Files, LoadedPath, PayloadError, PayloadRequest
from revisit.geometry.camera_script import Move, Step, camera_path

NAMES = {
    ("dolly", "forward"): "forward", ("dolly", "back"): "backward", ("truck", "left"): "left",
    ("truck", "right"): "right", ("yaw", "left"): "turn_left", ("yaw", "right"): "turn_right",
}  # fmt: skip
DEGREES, UNITS = 45.0, 1.0


def write(ask: PayloadRequest) -> dict[str, bytes]:
    """The name of a script's only move."""
    kinds = {tuple((move.kind, move.direction) for move in step.moves) for step in ask.plan.steps}
    moves = kinds.pop() if len(kinds) == 1 else ()
    if len(moves) != 1 or moves[0] not in NAMES:
        raise PayloadError(
            f"the generator takes one of six moves by name ({', '.join(NAMES.values())}), one way over the whole clip; "
            "another path needs a converter that renders its pictures along *.target_c2w.npy"
        )
    return {"txt": f"{NAMES[moves[0]]}\n".encode()}


def read(files: Files, count: int) -> LoadedPath:
    """The path that the name stands for, about."""
    name = files["txt"].decode(errors="replace").strip()
    moves = {word: move for move, word in NAMES.items()}
    if name not in moves:
        raise PayloadError(f"expected one of {', '.join(moves)}, not {name[:40]!r}")
    kind, direction = moves[name]
    c2w = camera_path([Step((Move(kind, direction, DEGREES if kind == "yaw" else UNITS),), count - 1)])
    return LoadedPath(np.arange(count), c2w, ways="metres" if kind == "yaw" else "shape")


NAMED_MOVE = Family(
    "named_move", "The name of a move", ("txt",),
    "forward, backward, left, right, turn_left or turn_right; about 45 degrees or 1 unit", write, read,
    line=True, gains=False, about=True,
)  # fmt: skip
