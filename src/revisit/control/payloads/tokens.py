"""Tokens: a line of letters, each holding for a few frames: `j*10,l*10`.

j and l turn left and right, i and k look up and down, w and s go ahead and back, a and d left and right, z rests.
The file says first how many frames a token lasts and how far one goes, as `# frames=4 degrees=6 metres=0.05`. Turns
that are no whole number of tokens are rounded; reading the file tells what is left of them.
"""

from __future__ import annotations

import re
from itertools import groupby

import numpy as np

from revisit.control.compiling import CameraPlan
from revisit.control.payloads.arrays import LATENT_STRIDE
from revisit.control.payloads.family import Delivered, Family, PayloadError
from revisit.geometry.camera_script import Move, Step, camera_path

MOVES = {
    "j": ("yaw", "left"), "l": ("yaw", "right"), "i": ("tilt", "up"), "k": ("tilt", "down"),
    "w": ("dolly", "forward"), "s": ("dolly", "back"), "a": ("truck", "left"), "d": ("truck", "right"),
}  # fmt: skip
LETTERS = {move: letter for letter, move in MOVES.items()}
HEAD = re.compile(r"# frames=(\d+) degrees=([0-9.eE+-]+) metres=([0-9.eE+-]+)")


def write(
    plan: CameraPlan,
    c2w: np.ndarray,
    *,
    frames: int = LATENT_STRIDE,
    degrees: float | None = None,
    metres: float | None = None,
    gain: float = 1.0,
) -> bytes:
    """The tokens of a plan's steps. Steps that turn and move at once cannot be said.

    Without a size, a token goes as far as the fastest step needs.
    """
    degrees = degrees or _largest(plan, frames, ("yaw", "tilt"), gain)
    metres = metres or _largest(plan, frames, ("dolly", "truck"), gain)
    letters = ""
    for step in plan.steps:
        count = round(step.frames / frames)
        if len(step.moves) > 1:
            raise PayloadError(f"the step {step} makes two moves at once; a token makes one")
        for move in step.moves:
            unit = degrees if move.kind in ("yaw", "tilt") else metres
            wanted = round(gain * move.amount / unit)
            letter = LETTERS.get((move.kind, move.direction))
            if letter is None:
                raise PayloadError(f"no token stands for {move}")
            if wanted > count:
                raise PayloadError(
                    f"the step {step} needs {wanted} tokens of {unit:g} and lasts for {count}; give it more frames"
                )
            letters += letter * wanted
            count -= wanted
        letters += "z" * count
    runs = ",".join(f"{letter}*{len(list(run))}" for letter, run in groupby(letters))
    return f"# frames={frames} degrees={degrees:.9g} metres={metres:.9g}\n{runs}\n".encode()


def _largest(plan: CameraPlan, frames: int, kinds: tuple[str, ...], gain: float) -> float:
    """How far one token must go for the fastest step of these kinds; 1 if there is none."""
    sizes = [
        gain * move.amount / max(round(step.frames / frames), 1)
        for step in plan.steps
        for move in step.moves
        if move.kind in kinds
    ]
    return max(sizes, default=1.0)


def read(content: bytes) -> Delivered:
    """The path that the tokens lead along."""
    lines = content.decode(errors="replace").split("\n")
    head = HEAD.fullmatch(lines[0].strip())
    runs = re.findall(r"([a-z])\*(\d+)", lines[1]) if len(lines) > 1 else []
    if head is None or not runs or any(letter not in (*MOVES, "z") for letter, _ in runs):
        raise PayloadError("expected `# frames=4 degrees=6 metres=0.05` and a line such as j*10,l*10")
    frames, degrees, metres = int(head[1]), float(head[2]), float(head[3])
    steps = []
    for letter, count in runs:
        moves: tuple[Move, ...] = ()
        if letter != "z":
            kind, direction = MOVES[letter]
            unit = degrees if kind in ("yaw", "tilt") else metres
            moves = (Move(kind, direction, int(count) * unit),)
        steps.append(Step(moves, int(count) * frames))
    c2w = camera_path(steps)
    return Delivered(np.arange(len(c2w)), c2w)


TOKENS = Family(
    "tokens", "Action tokens", ".txt", "j*10,l*10: letters that hold for 4 frames each; the head says how far one goes",
    write, read,
)  # fmt: skip
