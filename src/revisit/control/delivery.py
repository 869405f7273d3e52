"""Delivery: the payload that one generator gets for a plan, checked by reading it back, with what it leaves out."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from revisit.control.compiling import CameraPlan, amplified
from revisit.control.generators import Generator
from revisit.control.payloads import FAMILIES
from revisit.control.payloads.family import PayloadError, relative
from revisit.geometry.rotations import geodesic

EXACT_DEGREES = 1e-2
EXACT_METRES = 1e-4


@dataclass(frozen=True, eq=False)
class Delivery:
    """What a generator is given: the file, and how far it is from what was meant."""

    family: str
    suffix: str
    content: bytes
    poses: int  # how many poses it holds
    gain: tuple[float, float, float]
    largest_turn_error: float  # degrees between what was meant, with the gain, and what the file says
    largest_way_error: float  # metres

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def exact(self) -> bool:
        return self.largest_turn_error <= EXACT_DEGREES and self.largest_way_error <= EXACT_METRES

    def facts(self) -> dict[str, Any]:
        """What the record of a generation keeps of it."""
        return {
            "family": self.family,
            "layout": FAMILIES[self.family].layout,
            "sha256": self.digest,
            "poses": self.poses,
            "gain": list(self.gain),
            "exact": self.exact,
            "largest_turn_error_degrees": round(self.largest_turn_error, 6),
            "largest_way_error_metres": round(self.largest_way_error, 6),
        }


def deliver(plan: CameraPlan, to: Generator) -> Delivery:
    """The payload of a plan for a generator."""
    if not to.static and not any(step.moves for step in plan.steps):
        raise PayloadError(f"{to.id} cannot be asked to hold its camera still")
    family = FAMILIES[to.payload]
    turn, way, limit = to.gain
    fed = amplified(plan.path.c2w, rotation=turn, translation=way, limit=limit)
    # Words and tokens say the script itself: a gain on words would ask for another path.
    content = family.write(plan, fed, gain=turn) if family.id == "tokens" else family.write(plan, fed)
    said = family.read(content)
    meant = plan.path.c2w if family.id == "prompt" else fed
    frames = said.frame[said.frame < len(meant)]
    expected, got = relative(meant)[frames], said.c2w[: len(frames)]
    return Delivery(
        family=family.id,
        suffix=family.suffix,
        content=content,
        poses=len(said.frame),
        gain=to.gain,
        largest_turn_error=float(geodesic(expected[:, :3, :3], got[:, :3, :3]).max()),
        largest_way_error=float(np.linalg.norm(expected[:, :3, 3] - got[:, :3, 3], axis=1).max()),
    )
