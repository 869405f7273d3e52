"""Generators as data: what each starts from, how long and large its clips are, and how it takes its camera."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from revisit.control.payloads import FAMILIES
from revisit.core import UsageError

TAKES = ("image", "source_video", "nothing")
CONDITIONS = ("source_video", "geometry_cache", "model_inferred", "prompt_only")


@dataclass(frozen=True)
class Generator:
    """How one generator is asked for a camera path."""

    id: str
    title: str
    payload: str
    takes: str
    condition: str  # of the viewpoint: where the knowledge of the new view comes from
    frames: int
    fps: float
    size: tuple[int, int]  # width, height
    gain: tuple[float, float, float]  # of turns, of ways, and the largest way; they act on the payload alone
    static: bool = True  # whether it can be asked to hold still


@cache
def generators(own: Path | None = None) -> dict[str, Generator]:
    """Every known generator; entries of the user's own file come on top."""
    found = _read((files(__package__) / "generators.yaml").read_text(encoding="utf-8"), "generators.yaml")
    if own is not None:
        if not own.is_file():
            raise UsageError(f"{own}: no such file; a file of generators is YAML with `generators:`")
        found |= _read(own.read_text(encoding="utf-8"), str(own))
    return found


def generator(id: str, own: Path | None = None) -> Generator:
    """The generator of that name; case and underscores do not matter."""
    known = generators(own)
    name = id.lower().replace("_", "-")
    if name not in known:
        raise UsageError(f"there is no generator {id!r}; `revisit camera models` lists {', '.join(sorted(known))}")
    return known[name]


def _read(text: str, where: str) -> dict[str, Generator]:
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UsageError(f"{where}: no valid YAML: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("generators"), dict):
        raise UsageError(f"{where}: expected `generators:` with an entry per generator")
    base = {"takes": "image", "condition": "model_inferred", "frames": 81, "fps": 16, "size": [832, 480]}
    defaults = {**base, "gain": [1, 1, 0.6], **(content.get("defaults") or {})}
    return {
        str(id): _entry(str(id), {**defaults, **(facts or {})}, where) for id, facts in content["generators"].items()
    }


def _entry(id: str, facts: dict[str, Any], where: str) -> Generator:
    try:
        made = Generator(
            id=id,
            title=str(facts.pop("title", id)),
            payload=str(facts.pop("payload")),
            takes=str(facts.pop("takes")),
            condition=str(facts.pop("condition")),
            frames=int(facts.pop("frames")),
            fps=float(facts.pop("fps")),
            size=tuple(int(side) for side in facts.pop("size")),  # type: ignore[arg-type]
            gain=tuple(float(value) for value in facts.pop("gain")),  # type: ignore[arg-type]
            static=bool(facts.pop("static", True)),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{where}: the generator {id} lacks or misspells {error}") from error
    wrong = {
        "payload": made.payload not in FAMILIES,
        "takes": made.takes not in TAKES,
        "condition": made.condition not in CONDITIONS,
        "size": len(made.size) != 2 or min(made.size) < 1,
        "gain": len(made.gain) != 3 or min(made.gain) <= 0,
        "frames": made.frames < 2,
        "fps": not made.fps > 0,
        **dict.fromkeys(facts, True),
    }
    bad = next((name for name, is_wrong in wrong.items() if is_wrong), None)
    if bad is not None:
        raise UsageError(f"{where}: the generator {id} has a value of `{bad}` that nothing here understands")
    return made
