"""Words: the camera's way as a sentence, for generators that take nothing else.

Rotation is said with *turns* and *tilts*, travel with *moves*, so that a generator which slides sideways when it
was asked to turn has not been misled.
"""

from __future__ import annotations

import re

import numpy as np

from revisit.control.payloads.family import Ask, Delivered, Family, Files, PayloadError
from revisit.geometry.camera_script import UNITS, Move, Step
from revisit.geometry.script_path import timed_path

VERBS = {"yaw": "turns", "tilt": "tilts", "roll": "rolls", "dolly": "moves", "truck": "moves", "crane": "moves"}
KINDS = {
    "turns": {"left": "yaw", "right": "yaw"}, "tilts": {"up": "tilt", "down": "tilt"},
    "rolls": {"left": "roll", "right": "roll"},
    "moves": {
        "forward": "dolly", "backward": "dolly", "left": "truck", "right": "truck", "up": "crane", "down": "crane",
    },
}  # fmt: skip
SIDES = {"forward": "forward", "back": "backward", "left": "left", "right": "right", "up": "up", "down": "down"}
PHRASE = re.compile(
    r"(?:(?P<verb>turns|tilts|rolls|moves) (?P<side>left|right|up|down|forward|backward) by (?P<amount>[0-9.e+-]+) "
    r"(?P<unit>degrees|metres)|(?P<rest>stays still))(?P<joined> while it)?(?: for (?P<frames>\d+) frames)?"
)


def write(ask: Ask) -> dict[str, bytes]:
    """The sentence of a plan's steps. No gain is in it: a gain on words would ask for another path."""
    said = []
    for step in ask.plan.steps:
        moves = [
            f"{VERBS[move.kind]} {SIDES[move.direction]} by {move.amount:g} {UNITS[move.kind]}"
            for move in step.moves
            if move.kind in VERBS
        ]
        if len(moves) != len(step.moves):
            raise PayloadError(f"the step {step} has a move that cannot be put into words")
        said.append(f"{' while it '.join(moves) or 'stays still'} for {step.frames} frames")
    return {"txt": f"The camera {', then '.join(said)}. The scene goes on by itself.\n".encode()}


def read(files: Files, count: int) -> Delivered:
    """The path that the sentence asks for."""
    steps: list[Step] = []
    moves: list[Move] = []
    for found in PHRASE.finditer(files["txt"].decode(errors="replace")):
        if found["verb"]:
            side = {"backward": "back"}.get(found["side"], found["side"])
            kind = KINDS[found["verb"]].get(found["side"])
            if kind is None:
                raise PayloadError(f"the sentence asks for {found[0]!r}, which is not a camera move")
            moves.append(Move(kind, side, float(found["amount"])))
        if found["frames"]:
            steps.append(Step(tuple(moves), int(found["frames"])))
            moves = []
    if not steps:
        raise PayloadError("the sentence has no recognisable camera move")
    return Delivered(np.arange(count), timed_path(steps, count))


PROMPT = Family(
    "prompt", "A sentence", ("txt",), "The camera turns left by 60 degrees for 40 frames, then ...", write, read,
    line=True, gains=False,
)  # fmt: skip
