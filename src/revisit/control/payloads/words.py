"""Words: the camera's way as a sentence, or as commands in brackets, for generators that take nothing else.

Rotation is said with *turns* and *tilts*, travel with *moves*, so that a generator which slides sideways when it
was asked to turn has not been misled. Hailuo knows commands in brackets: [Pan left] turns and [Truck left] slides.
Moves made at once share a pair of brackets, at most three of them, and the order of the text is the order in time. No
command says how far.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

import numpy as np

from revisit.control.payloads.family import Family, Files, LoadedPath, PayloadError, PayloadRequest
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


COMMANDS = {
    ("yaw", "left"): "Pan left", ("yaw", "right"): "Pan right",
    ("tilt", "up"): "Tilt up", ("tilt", "down"): "Tilt down",
    ("truck", "left"): "Truck left", ("truck", "right"): "Truck right", ("dolly", "forward"): "Push in",
    ("dolly", "back"): "Pull out", ("crane", "up"): "Pedestal up", ("crane", "down"): "Pedestal down",
}  # fmt: skip
STILL_COMMAND = "Static shot"
AT_ONCE = 3  # commands in one pair of brackets
COMMAND = re.compile(r"\[([^\[\]]+)\]")


def write(ask: PayloadRequest) -> dict[str, bytes]:
    """The sentence of a plan's steps. No gain is in it: a gain on words would ask for another path."""
    phrases = []
    for step in ask.plan.steps:
        moves = [
            f"{VERBS[move.kind]} {SIDES[move.direction]} by {move.amount:g} {UNITS[move.kind]}"
            for move in step.moves
            if move.kind in VERBS
        ]
        if len(moves) != len(step.moves):
            raise PayloadError(f"the step {step} has a move that cannot be put into words")
        phrases.append(f"{' while it '.join(moves) or 'stays still'} for {step.frames} frames")
    return {"txt": f"The camera {', then '.join(phrases)}. The scene goes on by itself.\n".encode()}


def read(files: Files, count: int) -> LoadedPath:
    """The path that the sentence asks for."""
    steps: list[Step] = []
    moves: list[Move] = []
    for phrase in PHRASE.finditer(files["txt"].decode(errors="replace")):
        if phrase["verb"]:
            side = {"backward": "back"}.get(phrase["side"], phrase["side"])
            kind = KINDS[phrase["verb"]].get(phrase["side"])
            if kind is None:
                raise PayloadError(f"the sentence asks for {phrase[0]!r}, which is not a camera move")
            moves.append(Move(kind, side, float(phrase["amount"])))
        if phrase["frames"]:
            steps.append(Step(tuple(moves), int(phrase["frames"])))
            moves = []
    if not steps:
        raise PayloadError("the sentence has no recognisable camera move")
    return LoadedPath(np.arange(count), timed_path(steps, count))


def write_commands(ask: PayloadRequest) -> dict[str, bytes]:
    """The commands of a plan's steps, one after the other: [Pan left], then [Pan right]."""
    return {"txt": f"{', then '.join(commands(ask.plan.steps))}\n".encode()}


def commands(steps: Iterable[Step]) -> list[str]:
    """What each step of a script is called in brackets; steps that are called the same are one.

    Raises
    ------
    PayloadError
        Where a move has no command, or more than three are made at once.
    """
    brackets: list[str] = []
    for step in steps:
        names = [COMMANDS.get((move.kind, move.direction)) for move in step.moves if move.amount]
        if None in names or len(names) > AT_ONCE:
            raise PayloadError(
                f"the step {step} cannot be said in commands; there are {', '.join(COMMANDS.values())}, and at most "
                f"{AT_ONCE} at once"
            )
        brackets.append(f"[{','.join(filter(None, names)) or STILL_COMMAND}]")
    return [command for command, _ in groupby(brackets)]


def read_commands(files: Files, count: int) -> LoadedPath:
    """Nothing but that the commands are known: how far each goes is not said."""
    groups = [name.split(",") for name in COMMAND.findall(files["txt"].decode(errors="replace"))]
    known_names = {*COMMANDS.values(), STILL_COMMAND}
    if not groups or any(name not in known_names for names in groups for name in names):
        raise PayloadError(
            f"expected commands in brackets, such as [Pan left]; there are {', '.join(sorted(known_names))}"
        )
    travels = {name for (kind, _), name in COMMANDS.items() if kind not in ("yaw", "tilt")}
    moves = any(name in travels for names in groups for name in names)
    return LoadedPath(np.arange(count), None, ways="shape" if moves else "metres")


CAMERA_COMMANDS = Family(
    "camera_commands", "Commands in brackets", ("txt",), "[Pan left], then [Pan right]: Hailuo's words, without sizes",
    write_commands, read_commands, line=True, gains=False,
)  # fmt: skip
PROMPT = Family(
    "prompt", "A sentence", ("txt",), "The camera turns left by 60 degrees for 40 frames, then ...", write, read,
    line=True, gains=False,
)  # fmt: skip
