"""Words: the camera's way as a sentence, or as commands in brackets, for generators that take nothing else.

Rotation is said with *turns* and *tilts*, travel with *moves*, so that a generator which slides sideways when it
was asked to turn has not been misled. Hailuo knows commands in brackets: [Pan left] turns and [Truck left] slides.
Moves made at once share a pair of brackets, at most three of them, and the order of the text is the order in time. No
command says how far. HunyuanWorld-Voyager takes the name of one of six moves: its own tool turns by about 45 degrees or
goes 1 unit over the clip, and renders what the model is given; a path of another kind or size would have to be rendered
by a tool of your own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

import numpy as np

from revisit.control.payloads.family import Files, LoadedPath, PayloadError, PayloadRequest
from revisit.core.text import read_package_yaml
from revisit.geometry.camera_script import MOVES, UNITS, Move, Step, camera_path, camera_path_of_length

WORDS = read_package_yaml(__package__, "words.yaml")
VERBS, SIDES = WORDS["verbs"], WORDS["sides"]
KINDS = {(verb, SIDES.get(side, side)): (kind, side) for kind, verb in VERBS.items() for side in MOVES[kind]}
PHRASE = re.compile(
    r"(?:(?P<verb>turns|tilts|rolls|moves) (?P<side>left|right|up|down|forward|backward) by (?P<amount>[0-9.e+-]+) "
    r"(?P<unit>degrees|metres)|(?P<rest>stays still))(?P<joined> while it)?(?: for (?P<frames>\d+) frames)?"
)
STILL_COMMAND = "Static shot"
AT_ONCE = 3  # commands in one pair of brackets
# (kind, direction) of a move -> what it is called
COMMANDS, NAMES = (
    {(kind, side): name for kind, sides in WORDS[form].items() for side, name in sides.items()}
    for form in ("commands", "names")
)
NAMED_DEGREES, NAMED_UNITS = 45.0, 1.0
COMMAND = re.compile(r"\[([^\[\]]+)\]")


def write_prompt(ask: PayloadRequest) -> dict[str, bytes]:
    """The sentence of a plan's steps. No gain is in it: a gain on words would ask for another path."""
    phrases = []
    for step in ask.plan.steps:
        moves = [
            f"{VERBS[move.kind]} {SIDES.get(move.direction, move.direction)} by {move.amount:g} {UNITS[move.kind]}"
            for move in step.moves
            if move.kind in VERBS
        ]
        if len(moves) != len(step.moves):
            raise PayloadError(f"the step {step} has a move that cannot be put into words")
        phrases.append(f"{' while it '.join(moves) or 'stays still'} for {step.frames} frames")
    return {"txt": f"The camera {', then '.join(phrases)}. The scene goes on by itself.\n".encode()}


def read_prompt(files: Files, frame_count: int) -> LoadedPath:
    """The path that the sentence asks for."""
    steps: list[Step] = []
    moves: list[Move] = []
    for phrase in PHRASE.finditer(files["txt"].decode()):
        if phrase["verb"]:
            moves.append(Move(*KINDS[phrase["verb"], phrase["side"]], float(phrase["amount"])))
        if phrase["frames"]:
            steps.append(Step(tuple(moves), int(phrase["frames"])))
            moves = []
    if not steps:
        raise PayloadError("the sentence has no recognisable camera move")
    return LoadedPath(np.arange(frame_count), camera_path_of_length(steps, frame_count))


def write_camera_commands(ask: PayloadRequest) -> dict[str, bytes]:
    """The commands of a plan's steps, one after the other: [Pan left], then [Pan right]."""
    return {"txt": f"{', then '.join(bracketed_commands(ask.plan.steps))}\n".encode()}


def bracketed_commands(steps: Iterable[Step]) -> list[str]:
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


def read_camera_commands(files: Files, frame_count: int) -> LoadedPath:
    """Nothing but whether the camera travels: how far each command goes is not said."""
    groups = [name.split(",") for name in COMMAND.findall(files["txt"].decode())]
    if not groups:
        raise PayloadError("the script has no move that a command could say")
    travels = {name for (kind, _), name in COMMANDS.items() if kind not in ("yaw", "tilt")}
    moves = any(name in travels for names in groups for name in names)
    return LoadedPath(np.arange(frame_count), None, ways="shape" if moves else "metres")


def write_named_move(ask: PayloadRequest) -> dict[str, bytes]:
    """The name of a script's only move."""
    kinds = {tuple((move.kind, move.direction) for move in step.moves) for step in ask.plan.steps}
    moves = kinds.pop() if len(kinds) == 1 else ()
    if len(moves) != 1 or moves[0] not in NAMES:
        raise PayloadError(
            f"the generator takes one of six moves by name ({', '.join(NAMES.values())}), one way over the whole clip; "
            "another path needs a converter that renders its pictures along *.target_c2w.npy"
        )
    return {"txt": f"{NAMES[moves[0]]}\n".encode()}


def read_named_move(files: Files, frame_count: int) -> LoadedPath:
    """The path that the name stands for, about."""
    moves = {word: move for move, word in NAMES.items()}
    kind, direction = moves[files["txt"].decode().strip()]
    move = Move(kind, direction, NAMED_DEGREES if kind == "yaw" else NAMED_UNITS)
    c2w = camera_path([Step((move,), frame_count - 1)])
    return LoadedPath(np.arange(frame_count), c2w, ways="metres" if kind == "yaw" else "shape")
