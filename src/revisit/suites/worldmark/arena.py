"""Inputs of WorldMark: pictures with lens and prompt in two views and two domains, and the actions asked of each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from revisit.core import UsageError
from revisit.core.text import convert_read_errors
from revisit.media import IMAGE_SUFFIXES
from revisit.media.text_files import read_text
from revisit.suites.worldmark.evidence import ACTIONS, keys_of_condition

VIEWS, DOMAINS = ("first", "third"), ("real", "style")
FOLDER, PROTOCOL = "arena_inputs", "action_protocol.txt"
SECONDS, TOLERANCE = 20.0, 0.1  # of a key; by which share a clip may be longer or shorter
ACTION_LINE = re.compile(r"\s*(\d+)\s*:\s*([A-Za-z]+)\b")


@dataclass(frozen=True)
class ArenaCase:
    """One case of the benchmark: a picture and the keys to be held from there."""

    view: str
    domain: str
    image: int
    action: int
    keys: str
    prompt: str = ""
    picture: Path | None = None
    focal: float | None = None  # in widths of the picture

    @property
    def name(self) -> str:
        """The name of its clip, without an ending."""
        return f"{self.image:03d}_{self.action:03d}"

    @property
    def id(self) -> str:
        """Its name with the view and the domain."""
        return f"{self.view}/{self.domain}/{self.name}"


def find_arena_folder(folder: Path) -> Path | None:
    """The folder of inputs: this one, or arena_inputs in it or beside it."""
    for place in (folder, folder / FOLDER, folder.parent / FOLDER):
        if any((place / f"{view}_view").is_dir() for view in VIEWS):
            return place
    return None


def require_arena_folder(folder: Path) -> Path:
    """The same, or a UsageError."""
    place = find_arena_folder(folder)
    if place is None:
        raise UsageError(f"{folder}: no inputs of WorldMark found; expected first_view and third_view in it")
    return place


def read_action_keys(arena: Path | None) -> Mapping[int, str]:
    """Action -> keys, as the inputs list them; the fifteen of the benchmark where they do not."""
    path = None if arena is None else arena / PROTOCOL
    if path is None or not path.is_file():
        return ACTIONS
    matches = filter(None, map(ACTION_LINE.match, read_text(path).splitlines()))
    actions = {int(match[1]): match[2] for match in matches if keys_of_condition(match[2])}
    if not actions:
        raise UsageError(f"{path}: no line lists an action; expected lines such as ' 6: WS  (forward -> back)'")
    return actions


def read_arena_cases(arena: Path) -> Iterator[ArenaCase]:
    """All cases of the inputs, in the order of their lists; UsageError where a list cannot be read."""
    actions = read_action_keys(arena)
    for view, domain in product(VIEWS, DOMAINS):
        listing = arena / f"{view}_view" / f"{domain}_action.txt"
        if listing.is_file():
            yield from _read_split_cases(view, domain, listing, actions)


def _read_split_cases(view: str, domain: str, listing: Path, actions: Mapping[int, str]) -> Iterator[ArenaCase]:
    folder = listing.parent
    prompts_file = folder / f"prompt_{domain}.txt"
    prompts = [line for line in read_text(prompts_file).splitlines() if line.strip()] if prompts_file.is_file() else []
    rows = [line for line in read_text(listing).splitlines() if line.strip()]
    for image, row in enumerate(rows):
        picture = next((p for end in IMAGE_SUFFIXES if (p := folder / domain / f"{image:03d}{end}").is_file()), None)
        focal = read_focal_in_widths(folder / f"{domain}_intrinsics" / f"{image:03d}_intrinsics.npy")
        for word in re.split(r"[,\s]+", row.strip(" ,\t")):
            if not word.isdecimal() or int(word) not in actions:
                known = f"they are {min(actions)} to {max(actions)}"
                raise UsageError(f"{listing}, line {image + 1}: {word!r} is no action; {known}")
            action = int(word)
            prompt = prompts[image].strip() if image < len(prompts) else ""
            yield ArenaCase(view, domain, image, action, actions[action], prompt, picture, focal)


def read_focal_in_widths(path: Path) -> float | None:
    """The focal length of a picture in widths, from [fx, fy, cx, cy] in pixels; None where there is no file."""
    if not path.is_file():
        return None
    with convert_read_errors(path, "an array of [fx, fy, cx, cy]"):
        lens = np.ravel(np.load(path, allow_pickle=False)).astype(float)
    if lens.shape != (4,) or not np.isfinite(lens).all() or (lens[[0, 2]] <= 0).any():
        raise UsageError(f"{path}: expected [fx, fy, cx, cy] in pixels, found {lens.tolist()}")
    return float(lens[0] / (2 * lens[2]))


def parse_positive_option(name: str, text: str, meaning: str = "a number above zero") -> float:
    """The number that an option gives; a UsageError where it is none, or not above zero."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise UsageError(f"--option {name}={text}: give {meaning}")
    return value
