"""What only WorldMark observes, and its keys: what each asks of the camera, and which channel of the flow shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np

from revisit.core import Array, evidence

Family = Literal["translation", "rotation"]
FLOW_SIZE = (640, 432)  # width and height at which flow is measured, whatever the clip's own
APART = 2  # frames from the earlier to the later picture of a pair


@dataclass(frozen=True)
class Key:
    """What a key asks for, and how the flow shows it."""

    family: Family
    axis: str  # forward, sideways or turn
    sign: int  # of the flow in its channel: +1 where the picture grows or moves to the right
    move: str  # of a camera script


KEYS: Mapping[str, Key] = {
    "W": Key("translation", "forward", 1, "dolly:forward"),
    "S": Key("translation", "forward", -1, "dolly:back"),
    "A": Key("translation", "sideways", 1, "truck:left"),
    "D": Key("translation", "sideways", -1, "truck:right"),
    "L": Key("rotation", "turn", 1, "yaw:left"),
    "R": Key("rotation", "turn", -1, "yaw:right"),
}
# Action -> the keys that are held one after the other, as action_protocol.txt lists them.
ACTIONS: Mapping[int, str] = {
    1: "W", 2: "S", 3: "A", 4: "D", 5: "R", 6: "WS", 7: "LR", 8: "AD", 9: "WR", 10: "SL", 11: "WSW", 12: "LRL",
    13: "WRW", 14: "ADA", 15: "WRS",
}  # fmt: skip
METRES, DEGREES = 5.0, 90.0  # that a camera script asks of a key; the benchmark says no amount
OPPOSITE = {"W": "S", "S": "W", "A": "D", "D": "A", "L": "R", "R": "L"}


def keys_of_condition(condition: str) -> tuple[str, ...]:
    """The keys of a case, one after the other; none where its condition is no string of keys."""
    return tuple(condition) if condition and set(condition) <= KEYS.keys() else ()


def keys_undo_each_other(keys: tuple[str, ...]) -> bool:
    """Whether every key undoes the one before: the camera goes out and comes back."""
    return len(keys) > 1 and all(OPPOSITE[a] == b for a, b in pairwise(keys))


def camera_script_of_keys(
    keys: str, frames_per_key: Sequence[int], *, metres: float = METRES, degrees: float = DEGREES
) -> str:
    """The camera script of keys that are held for so many frames each.

    Examples
    --------
    >>> camera_script_of_keys("WR", [40, 40])
    'dolly:forward:5@40,yaw:right:90@40'
    """
    amounts = {"translation": metres, "rotation": degrees}
    held = zip(keys, frames_per_key, strict=True)
    return ",".join(f"{KEYS[key].move}:{amounts[KEYS[key].family]:g}@{count}" for key, count in held)


@evidence(id="key_flow")
@dataclass(frozen=True)
class KeyFlow:
    """Mean flow between a frame and the next but one, at 640 x 432 pixels: to the right, and away from the centre."""

    index: Annotated[Array, "N; rising"]  # number of the earlier frame
    horizontal: Annotated[Array, "N; finite"]  # pixels
    radial: Annotated[Array, "N; finite"]  # pixels
    maker: str


@evidence(id="key_parallax")
@dataclass(frozen=True)
class KeyParallax:
    """Flow to the side as a line over inverse depth, u = near / Z + far, for each key that is no W or S."""

    segment: Annotated[Array, "N; rising"]  # number of the key
    near: Annotated[Array, "N; finite"]  # what grows with nearness: a step to the side
    far: Annotated[Array, "N; finite"]  # what all depths share: a turn
    spread: Annotated[Array, "N; finite"]  # of inverse depth, from its 5th to its 95th percentile
    frames: Annotated[Array, "N"]  # pairs of frames behind the line
    maker: str  # of the depth
    flow_maker: str

    def lateral_step_shares(self) -> np.ndarray:
        """Share of the flow that is a step, and not a turn, for each of these keys."""
        step = np.abs(self.near) * self.spread
        return np.asarray(step / (step + np.abs(self.far) + 1e-6))


@evidence(id="key_split")
@dataclass(frozen=True)
class KeySplit:
    """Share of the sideways flow of each key that is a step; no rows where depth was not observed."""

    segment: Annotated[Array, "N; rising"]
    step_share: Annotated[Array, "N; finite, 0 to 1"]
    maker: str  # of the depth


@evidence(id="frame_vectors")
@dataclass(frozen=True)
class FrameVectors:
    """The mean of the unit patch tokens of frames by DINOv2, as unit vectors."""

    index: Annotated[Array, "N; rising"]
    vector: Annotated[Array, "N, D; finite"]
    maker: str


@evidence(id="small_frame_vectors")
@dataclass(frozen=True)
class SmallFrameVectors(FrameVectors):
    """The same by a small network, whose distances are on a scale of their own."""


@evidence(id="geometry_error")
@dataclass(frozen=True)
class GeometryError:
    """How far points of one frame are from what another frame reconstructs there, in median depths."""

    index: Annotated[Array, "N; rising"]  # frames that were reconstructed
    error: Annotated[Array, "N"]  # median over the points of a frame in all others; nan where nothing is seen twice
    median: float  # over all points of all pairs
    shared: float  # share of the points within a picture that both frames see
    maker: str


@evidence(id="video_rating")
@dataclass(frozen=True)
class VideoRating:
    """Quality and aesthetics of a clip from 1 to 5, as OneAlign rates it at one frame a second."""

    quality: float
    aesthetic: float
    frames: int
    maker: str
