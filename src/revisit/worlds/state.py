"""State: everything about the target that may differ from one moment, or one model, to the next."""

from __future__ import annotations

from dataclasses import dataclass

TARGET = 1  # instance id of the target; 0 is nothing, the things of the place follow
SCREEN = 255  # instance id of the screen that may pass in front of the target


@dataclass(frozen=True)
class State:
    """The target at a moment. Equal states are drawn to equal bytes.

    The first four fields are what events change; the others are for models that remember the target wrongly.
    """

    place: tuple[float, float, float]  # x, y, z of the middle of its bottom
    look: int = 0  # 0 as first seen, 1 changed
    amount: float = 0.0  # how far a lasting event has gone: 0 not begun .. 1 full, molten, open or burnt down
    roll: float = 0.0  # degrees by which it has rolled towards +x
    turn: float = 0.0  # degrees about the vertical
    scale: float = 1.0
    shape: float = 0.0  # 0 as it is .. 1 squat: half as wide again and half as high
    identity: int = 0  # another individual of its kind: other colours and another pattern
    colour: float = 0.0  # 0 as it is .. 1 all hues turned
    texture: float = 0.0  # 0 as it is .. 1 covered by another pattern
