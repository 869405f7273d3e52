"""The known generators: inputs, length and size of clips, and form of the camera path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from revisit.control.payloads import FAMILIES
from revisit.control.payloads.family import PayloadOptions
from revisit.core import UsageError
from revisit.core.text import convert_read_errors, read_package_yaml, read_yaml_file

Takes = Literal["image", "source_video", "nothing"]
Condition = Literal["source_video", "geometry_cache", "model_inferred", "prompt_only"]
Check = Literal["loader", "upstream"]  # against the facts of the model's own loader; against what WRBench writes for it
AtLeastOne = Annotated[int, msgspec.Meta(ge=1)]
AboveZero = Annotated[float, msgspec.Meta(gt=0)]
CHECKS: dict[Check, str] = {"loader": "loader's facts", "upstream": "WRBench's file"}


@dataclass(frozen=True)
class Generator:
    """How one generator is asked for a camera path."""

    id: str
    title: str
    payload: str
    takes: Takes = "image"
    condition: Condition = "model_inferred"  # of the viewpoint: where the knowledge of the new view comes from
    frames: Annotated[int, msgspec.Meta(ge=2)] = 81
    fps: AboveZero = 16.0
    size: tuple[AtLeastOne, AtLeastOne] = (832, 480)  # width, height
    # Of turns, of ways, and the largest way; they act on the payload alone.
    gain: tuple[AboveZero, AboveZero, AboveZero] = (1.0, 1.0, 0.6)
    # Frames that it can make: the first number, the step, the last; none: any.
    lengths: Annotated[tuple[AtLeastOne, ...], msgspec.Meta(max_length=3)] = ()
    static: bool = True  # whether it can be asked to hold still
    options: PayloadOptions = field(default_factory=dict)  # of its payload
    aliases: tuple[str, ...] = ()  # WRBench's names of it
    loader: str = ""  # the code that reads the payload: repository @ commit, file
    checked: tuple[Check, ...] = ()  # what the payload was checked against
    converter: str = ""  # what is missing between the payload and the generator's own program
    note: str = ""
    patched: tuple[PayloadOptions, ...] = ()  # options of a changed copy, in turn, for what the published one refuses
    patch: str = ""  # what must be changed in that copy

    @property
    def checked_text(self) -> str:
        """What the payload was checked against, in words."""
        if self.converter:
            return "converter needed"
        if not self.checked:
            return "no loader stated"
        return " and ".join(CHECKS[name] for name in self.checked)

    def can_make_length(self, frames: int) -> bool:
        """Whether it can make clips of so many frames."""
        if not self.lengths:
            return frames >= 2
        first, step, last = (*self.lengths, *([0, self.lengths[0]] if len(self.lengths) == 1 else [0, 0]))[:3]
        in_step = frames == first or (step > 0 and frames > first and (frames - first) % step == 0)
        return in_step and (not last or frames <= last)

    @property
    def lengths_text(self) -> str:
        """The numbers of frames it can make, in words."""
        if len(self.lengths) < 2:
            return str(self.lengths[0]) if self.lengths else "any number of"
        first, step = self.lengths[:2]
        examples = [count for count in (first, first + step, first + 2 * step) if self.can_make_length(count)]
        ellipsis = " ..." if self.can_make_length(first + 3 * step) else ""
        last = f" to {self.lengths[2]}" if ellipsis and len(self.lengths) > 2 else ""
        return f"{', '.join(map(str, examples))}{ellipsis}{last}"


KEYS = {one.name for one in fields(Generator)} - {"id"}  # of an entry of a file of generators


@cache
def load_generators(own: Path | None = None) -> dict[str, Generator]:
    """Every known generator; entries of the user's own file come on top."""
    entries = _parse_generators(read_package_yaml(__package__, "generators.yaml"), "generators.yaml")
    if own is not None:
        if not own.is_file():
            raise UsageError(f"{own}: no such file; a file of generators is YAML with `generators:`")
        with convert_read_errors(own, "a file of generators"):
            entries |= _parse_generators(read_yaml_file(own), str(own))
    return entries


def find_generator(id: str, own: Path | None = None) -> Generator:
    """The generator of that name, ours or WRBench's; case, dots and underscores do not matter."""
    entries = load_generators(own)
    name = _comparable_name(id)
    for entry in entries.values():
        if name in (_comparable_name(entry.id), *map(_comparable_name, entry.aliases)):
            return entry
    raise UsageError(f"unknown generator {id!r}; choose one of {', '.join(sorted(entries))}")


def _comparable_name(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def _parse_generators(content: Any, where: str) -> dict[str, Generator]:
    if not isinstance(content, dict) or not isinstance(content.get("generators"), dict):
        raise UsageError(f"{where}: expected `generators:` with an entry per generator")
    defaults = content.get("defaults") or {}
    return {
        str(generator_id): _parse_generator(str(generator_id), {**defaults, **(facts or {})}, where)
        for generator_id, facts in content["generators"].items()
    }


def _parse_generator(generator_id: str, facts: Mapping[str, object], where: str) -> Generator:
    try:
        entry = msgspec.convert({"title": generator_id, **facts, "id": generator_id}, Generator, strict=False)
    except msgspec.ValidationError as error:
        sentence = re.sub(r"`\$\.(\w+)[^`]*`", r"`\1`", str(error))
        raise UsageError(f"{where}: the generator {generator_id}: {sentence}") from error
    family = FAMILIES.get(entry.payload)
    wrong = {
        "payload": family is None,
        "lengths": not entry.can_make_length(entry.frames),
        "options": family is not None and not set(entry.options) <= set(family.options),
        "patched": family is not None and not set().union(*entry.patched) <= set(family.options),
        "patch": bool(entry.patched) != bool(entry.patch),
        **dict.fromkeys(sorted(facts.keys() - KEYS), True),
    }
    bad = next((name for name, is_wrong in wrong.items() if is_wrong), None)
    if bad is not None:
        raise UsageError(f"{where}: the generator {generator_id} has an unknown value of `{bad}`")
    return entry
