"""Inputs of WorldMark: what lies in their folder, what could not be generated from it, and the jobs that they ask for.

Pictures have a lens and a prompt, in two views and two domains, and the actions asked of each. A job is a picture with
one of its actions, keys frame by frame and as a camera script. The benchmark says which key is held, and not how far a
model goes with it. The script goes five metres and turns ninety degrees a key, unless options say otherwise; scores do
not ask for an amount.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from revisit.control.jobs import BatchRequest, Job, JobBatch, split_frames
from revisit.core import UsageError
from revisit.core.text import convert_read_errors
from revisit.datasets.clips import first_file
from revisit.media import IMAGE_SUFFIXES
from revisit.media.text_files import read_text
from revisit.suites.authoring import DatasetDescription, DatasetTools, value_count_table
from revisit.suites.worldmark.evidence import (
    ACTIONS,
    DEGREES,
    KEYS,
    METRES,
    camera_script_of_keys,
    keys_of_condition,
    keys_undo_each_other,
)

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
        picture = first_file(folder / domain / f"{image:03d}{end}" for end in IMAGE_SUFFIXES)
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


def worldmark_generation_jobs(data: Path, out: Path | None, request: BatchRequest) -> JobBatch:
    """The jobs of the inputs; clips are laid out as a delivery in `out`."""
    request.refuse_unknown_options("metres", "degrees", "seconds")
    defaults = {"metres": METRES, "degrees": DEGREES, "seconds": SECONDS}
    amounts = {
        name: parse_positive_option(name, request.suite_option(name, str(usual))) for name, usual in defaults.items()
    }
    seconds = amounts.pop("seconds")
    arena, home = require_arena_folder(data), out or Path("generated/worldmark")
    questions = list(read_arena_cases(arena))
    places = {one.id: home / one.domain / one.view / request.model / f"{one.name}.mp4" for one in questions}
    candidates = [_job_of_case(one, places[one.id], request, amounts, seconds) for one in questions]
    left_out = [f"{one.id}: there is no picture {one.image:03d}" for one in questions if one.picture is None]
    chosen = [job for job in request.select_jobs(candidates) if job.image is not None or not request.first_frame]
    words = [str(home), "--suite", "worldmark", "--option", f"arena={arena}"]
    return JobBatch(chosen, home, words, left_out=left_out if request.first_frame else (), allowed=[*places.values()])


def _job_of_case(
    arena_case: ArenaCase, out: Path, request: BatchRequest, amounts: dict[str, float], seconds: float
) -> Job:
    frames = request.clip_frame_count(round(len(arena_case.keys) * seconds * request.frame_rate) + 1)
    counts = split_frames(frames - 1, [1.0] * len(arena_case.keys))
    return Job(
        id=arena_case.id, out=out, suite="worldmark", sample=f"{arena_case.domain}/{arena_case.image:03d}",
        fps=request.frame_rate,
        subset=f"{arena_case.view}/{arena_case.domain}", condition=arena_case.keys, prompt=arena_case.prompt,
        frames=frames, **request.size_model_and_seed,
        image=arena_case.picture if request.first_frame else None, camera=camera_script_of_keys(arena_case.keys, counts,
        **amounts),
        actions=tuple({"key": key} for key, count in zip(arena_case.keys, counts, strict=True) for _ in range(count)),
        tolerance=TOLERANCE, annotations={"name": arena_case.name, "action": arena_case.action},
    )  # fmt: skip


def is_worldmark_dataset(folder: Path) -> bool:
    """Whether the folder holds first_view or third_view."""
    return folder.is_dir() and find_arena_folder(folder) in (folder, folder / "arena_inputs")


def describe_worldmark_dataset(folder: Path) -> DatasetDescription:
    """Counts by split, action and number of keys, and how many lead back."""
    questions = list(read_arena_cases(require_arena_folder(folder)))
    back = [one for one in questions if keys_undo_each_other(tuple(one.keys))]
    facts = {
        "cases": len(questions),
        "scenes": len({(one.domain, one.image) for one in questions}),
        "cases that lead back": len(back),
        "pictures": len({one.picture for one in questions if one.picture is not None}),
        "hours": round(sum(SECONDS * len(one.keys) for one in questions) / 3600, 2),
    }
    tables = [
        value_count_table("Cases", ("split", "cases"), (f"{one.view}/{one.domain}" for one in questions)),
        value_count_table("Actions", ("keys", "cases"), (one.keys for one in questions)),
        value_count_table("Keys of a case", ("keys", "cases"), (f"{one.domain}: {len(one.keys)}" for one in questions)),
        value_count_table("Returns", ("kind", "cases"), (f"{one.domain}: {KEYS[one.keys[0]].family}" for one in back)),
    ]
    return DatasetDescription("WorldMark", facts, tables)


def worldmark_dataset_problems(folder: Path) -> list[str]:
    """What could not be generated or scored by the lens, as sentences."""
    sentences: dict[str, None] = {}
    for one in read_arena_cases(require_arena_folder(folder)):
        name = f"{one.view}_view/{one.domain}/{one.image:03d}"
        if one.picture is None:
            sentences[f"{name}: there is no picture"] = None
        if one.focal is None:
            sentences[f"{name}: there is no lens, so degrees are those of a field of view of 70"] = None
        if not one.prompt:
            sentences[f"{name}: there is no prompt"] = None
    return list(sentences)


DATASET = DatasetTools(is_worldmark_dataset, describe_worldmark_dataset, worldmark_dataset_problems)
