"""Family: how a group of generators takes its camera."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from revisit.control.compiling import CameraPlan
from revisit.core import RevisitError


class PayloadError(RevisitError):
    """A path that a family cannot express, or a payload that cannot be read; the message says why."""


@dataclass(frozen=True, eq=False)
class Delivered:
    """What a payload says: camera-to-world poses relative to its first one, and the frames they belong to."""

    frame: np.ndarray  # (M,)
    c2w: np.ndarray  # (M, 4, 4)


@dataclass(frozen=True)
class Family:
    """A form of camera control: its file, how to write it from a plan and how to read it back.

    `write(plan, c2w, **parameters)` takes the path that the generator shall be fed, which may be amplified.
    """

    id: str
    title: str
    suffix: str
    layout: str
    write: Callable[..., bytes]
    read: Callable[[bytes], Delivered]


def relative(c2w: np.ndarray) -> np.ndarray:
    """Poses seen from the first one."""
    from revisit.geometry.poses import invert

    return invert(c2w[0]) @ c2w


def every(plan: CameraPlan, stride: int) -> np.ndarray:
    """Frames 0, stride, 2·stride, ... of a plan; the last of them need not be the clip's last frame."""
    if stride < 1:
        raise PayloadError(f"poses are taken every 1, 2, 3 ... frames, not every {stride}")
    return np.arange(0, len(plan), stride)
