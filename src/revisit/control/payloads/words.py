"""Words: the camera's way as a sentence, for generators that take nothing else.

Rotation is said with *turns* and *tilts*, travel with *moves*, so that a generator which slides sideways when it
was asked to turn has not been misled.
"""

from __future__ import annotations

import re

import numpy as np

from revisit.control.compiling import CameraPlan
from revisit.control.payloads.family import Delivered, Family, PayloadError
from revisit.geometry.camera_script import Move, Step, camera_path

VERBS = {"yaw": "turns", "tilt": "tilts", "dolly": "moves", "truck": "moves"}
SIDES = {"forward": "forward", "back": "backward", "left": "left", "right": "right", "up": "up", "down": "down"}
PHRASE = re.compile(
    r"(?:(?P<verb>turns|tilts|moves) (?P<side>left|right|up|down|forward|backward) by (?P<amount>[0-9.]+) "
    r"(?P<unit>degrees|metres)|(?P<rest>stays still))(?P<joined> while it)?(?: for (?P<frames>\d+) frames)?"
)


def write(plan: CameraPlan, c2w: np.ndarray) -> bytes:
    """The sentence of a plan's steps."""
    said = []
    for step in plan.steps:
        moves = [
            f"{VERBS[move.kind]} {SIDES[move.direction]} by {move.amount:g} "
            f"{'degrees' if move.kind in ('yaw', 'tilt') else 'metres'}"
            for move in step.moves
            if move.kind in VERBS
        ]
        if len(moves) != len(step.moves):
            raise PayloadError(f"the step {step} holds a move that has no words")
        said.append(f"{' while it '.join(moves) or 'stays still'} for {step.frames} frames")
    return f"The camera {', then '.join(said)}. The scene goes on by itself.\n".encode()


def read(content: bytes) -> Delivered:
    """The path that the sentence asks for."""
    steps: list[Step] = []
    moves: list[Move] = []
    for found in PHRASE.finditer(content.decode(errors="replace")):
        if found["verb"]:
            side = {"backward": "back"}.get(found["side"], found["side"])
            kind = {"turns": "yaw", "tilts": "tilt"}.get(found["verb"]) or (
                "dolly" if side in ("forward", "back") else "truck"
            )
            moves.append(Move(kind, side, float(found["amount"])))
        if found["frames"]:
            steps.append(Step(tuple(moves), int(found["frames"])))
            moves = []
    if not steps:
        raise PayloadError("the sentence asks for no camera move that can be read")
    c2w = camera_path(steps)
    return Delivered(np.arange(len(c2w)), c2w)


PROMPT = Family(
    "prompt", "A sentence", ".txt", "The camera turns left by 60 degrees for 40 frames, then ...", write, read
)
