"""Words: the camera's way as a sentence, as commands in brackets or as letters, for generators that take nothing else.

Rotation is said with *turns* and *tilts*, travel with *moves*, so that a generator which slides sideways when it
was asked to turn has not been misled. Hailuo knows commands in brackets: [Pan left] turns and [Truck left] slides.
Moves made at once share a pair of brackets, at most three of them, and the order of the text is the order in time. No
command says how far. HunyuanWorld-Voyager takes the name of one of six moves: its own tool turns by about 45 degrees or
goes 1 unit over the clip, and renders what the model is given; a path of another kind or size would have to be rendered
by a tool of your own.

Tokens are runs of letters, one for each latent frame after the first: `j*10,l*9`. j and l turn left and right, i and k
look up and down, by 3 degrees; w and s go ahead and back, a and d left and right, u and dn up and down, by 0.08. There
is no letter for rest: a path may only rest in the end, and only where the loader fills what is missing with the last
pose (`padded`). A path that the letters do not follow within one of them is refused. They stand alone in a line, or in
a JSON list of samples with `caption`, `image` and `trajectory`. `degrees` and `metres` say how far a letter goes, and
`rest` which letter rests, for a copy of the model that was changed so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from revisit.control.payloads import family
from revisit.control.payloads.family import LATENT_STRIDE, Files, LoadedPath, PayloadError, PayloadRequest
from revisit.core.text import read_package_yaml
from revisit.geometry.camera_script import MOVES, UNITS, Move, Step, camera_path, camera_path_of_length
from revisit.geometry.poses import invert_rigid_poses
from revisit.geometry.rotations import angle_between_rotations, axis_angle_of_rotation, rotation_from_axis_angle

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
# letter -> (axis that it turns about or goes along, sign): x right, y down, z ahead
TURNS = {"j": (1, -1), "l": (1, 1), "i": (0, 1), "k": (0, -1)}
WAYS = {"w": (2, 1), "s": (2, -1), "a": (0, -1), "d": (0, 1), "u": (1, -1), "dn": (1, 1)}
DEGREES, METRES = 3.0, 0.08  # of a letter
REST = ""
RUN = re.compile(r"([a-z]+)\*(\d+)")


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


def write_tokens(
    ask: PayloadRequest,
    *,
    padded: bool = False,
    degrees: float = DEGREES,
    metres: float = METRES,
    rest: str = "",
) -> dict[str, bytes]:
    """The runs of a path."""
    moves = _pose_by_letter(degrees, metres, rest)
    marks = family.latent_frame_numbers(len(ask.c2w))
    target = ask.c2w[marks]
    moving = [_length_in_tokens(ask.c2w[a : b + 1], degrees, metres) >= 0.5 for a, b in pairwise(marks)]
    used = len(moving) - moving[::-1].index(True) if any(moving) else 0
    used = len(moving) if rest and not padded else used
    letters: list[str] = []
    at = np.eye(4)
    for pose in target[1 : used + 1]:
        off = {name: _pose_distance_in_tokens(at @ move, pose, degrees, metres) for name, move in moves.items()}
        letters.append(min(off, key=lambda name: round(off[name], 9)))
        at = at @ moves[letters[-1]]
    path = family.accumulate_poses([*(moves[letter] for letter in letters), *[np.eye(4)] * (len(moving) - used)])
    steps = invert_rigid_poses(target[:-1]) @ target[1:]
    pairs = zip((moves[letter] for letter in letters), steps, strict=False)
    against = any(_progress_in_tokens(move, step, degrees, metres) < -0.5 for move, step in pairs)
    turn = angle_between_rotations(path[:, :3, :3], target[:, :3, :3]).max()
    distance = _position_distances(path, target).max()
    rests = not rest and (not all(moving[:used]) or (used < len(moving) and not padded))
    if rests or against or turn > degrees * 1.001 or distance > metres * 1.001:
        frames = 10 * LATENT_STRIDE
        raise PayloadError(
            f"a token goes {degrees:g} degrees or {metres:g} metres in {LATENT_STRIDE} frames, no more and no less"
            f"{'' if rest else ', and none rests' + (' but in the end' if padded else '')}, and either turns or "
            f"moves: ask for {10 * degrees:g} degrees or {10 * metres:g} metres in {frames} frames"
        )
    runs = ",".join(f"{name}*{len(list(run))}" for name, run in groupby(letters)) or "w*0"
    return {"txt": f"{runs}\n".encode()}


def write_token_list(ask: PayloadRequest, **options: Any) -> dict[str, bytes]:
    """The runs of a path in a list of one sample."""
    runs = write_tokens(ask, **options)["txt"].decode().strip()
    return {"json": json.dumps([{"caption": ask.prompt, "image": ask.image, "trajectory": runs}], indent=1).encode()}


def read_tokens(
    files: Files,
    frame_count: int,
    *,
    degrees: float = DEGREES,
    metres: float = METRES,
    rest: str = "",
    **options: object,
) -> LoadedPath:
    """The path that the runs lead along, one pose per latent frame."""
    runs = json.loads(files["json"])[0]["trajectory"] if "json" in files else files["txt"].decode()
    letters = [letter for letter, number in RUN.findall(runs) for _ in range(int(number))]
    count_tokens = len(family.latent_frame_numbers(frame_count)) - 1
    moves = {**_pose_by_letter(degrees, metres, rest), REST: np.eye(4)}
    letters = [*letters, *[REST] * (count_tokens - len(letters))][:count_tokens]
    return LoadedPath(
        family.latent_frame_numbers(frame_count), family.accumulate_poses(moves[letter] for letter in letters)
    )


read_token_list = read_tokens


def _pose_by_letter(degrees: float, metres: float, rest: str) -> dict[str, np.ndarray]:
    """Letter -> the pose it leads to from where the camera is."""
    poses = {name: np.eye(4) for name in (*([rest] if rest else []), *TURNS, *WAYS)}
    for name, (axis, sign) in TURNS.items():
        poses[name][:3, :3] = rotation_from_axis_angle(tuple(np.eye(3)[axis]), sign * degrees)
    for name, (axis, sign) in WAYS.items():
        poses[name][axis, 3] = sign * metres
    return poses


def _pose_distance_in_tokens(pose: np.ndarray, target: np.ndarray, degrees: float, metres: float) -> float:
    turn = float(angle_between_rotations(pose[:3, :3], target[:3, :3]))
    return turn / degrees + float(np.linalg.norm(pose[:3, 3] - target[:3, 3])) / metres


def _length_in_tokens(c2w: np.ndarray, degrees: float, metres: float) -> float:
    """How long a piece of a path is, in tokens."""
    turns = angle_between_rotations(c2w[:-1, :3, :3], c2w[1:, :3, :3]).sum()
    return float(max(turns / degrees, _position_distances(c2w[:-1], c2w[1:]).sum() / metres))


def _progress_in_tokens(move: np.ndarray, step: np.ndarray, degrees: float, metres: float) -> float:
    """How far a step goes the way of a move, in tokens; below zero is against it."""
    axis, angle = axis_angle_of_rotation(move[:3, :3])
    turn_axis, turn_degrees = axis_angle_of_rotation(step[:3, :3])
    return float(turn_degrees * (turn_axis @ axis) / degrees if angle else step[:3, 3] @ move[:3, 3] / metres**2)


def _position_distances(path: np.ndarray, target: np.ndarray) -> np.ndarray:
    return np.linalg.norm(path[:, :3, 3] - target[:, :3, 3], axis=1)
