"""Evidence of MIND: distances of frames from the reference and from the first frame, and actions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from revisit.core import Array, evidence


@evidence(id="feature_error")
@dataclass(frozen=True)
class FeatureError:
    """Squared difference between normalised patch features of frames and of the aligned reference frames."""

    index: Annotated[Array, "N"]  # frame numbers in the clip
    reference: Annotated[Array, "N"]  # frame numbers in the reference
    mse: Annotated[Array, "N"]  # mean over patches and channels
    net: str


@evidence(id="outset")
@dataclass(frozen=True)
class DistanceFromStart:
    """Squared difference to the first frame, of the first, the middle and the last frame."""

    index: Annotated[Array, "N"]  # frame numbers: at most three
    mse: Annotated[Array, "N"]  # mean over pixels and channels of values from 0 to 1


@evidence(id="action_track")
@dataclass(frozen=True)
class ActionTrack:
    """Keys held in each frame of a recording, as four axes: 0 neither, 1 the first, 2 the second of its two keys."""

    frame: Annotated[Array, "N"]  # frame numbers in the recording
    forward: Annotated[Array, "N"]  # 1 forward, 2 backward
    side: Annotated[Array, "N"]  # 1 left, 2 right
    tilt: Annotated[Array, "N"]  # 1 look up, 2 look down
    turn: Annotated[Array, "N"]  # 1 look left, 2 look right
