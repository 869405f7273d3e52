"""Orders: the films that a benchmark's layout is made of, and the layouts there are, one registered by each suite."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from revisit.core.grouping import group_items
from revisit.core.registry import Registry
from revisit.worlds.events import EVENTS
from revisit.worlds.film import Film, play
from revisit.worlds.layouts.common import Model, Row
from revisit.worlds.places import make_cached_world
from revisit.worlds.workers import StepCallback
from revisit.worlds.world import World


@dataclass(frozen=True)
class Order:
    """A film to be made, all by name: where and how it is played, and what it is called in its layout.

    {away} and {back} in the name and in the script are the side to which the world turns and the other one. In the
    name, {camera} and {action} are these as WRBench and MBench write them, {out} and {in} the keys that walk there and
    back. In the script, {half} and {rest} are the frames out and back, and {each} those of a step of equal ones.
    """

    name: str
    seed: int
    place: str
    kind: str
    event: str
    script: str = "yaw"

    @property
    def world(self) -> World:
        """Where it is played."""
        return make_cached_world(self.seed, self.place, self.kind, block=EVENTS[self.event].needs_perch)

    def film(self, size: tuple[int, int], frames: int) -> tuple[str, Film]:
        """What it is called, and the film."""
        world = self.world
        sides = world.away_and_back
        if world.turn == "right":
            words = {"camera": "RL", "action": "right_then_left", "out": "D", "in": "A"}
        else:
            words = {"camera": "LR", "action": "left_then_right", "out": "A", "in": "D"}
        half = frames // 2
        each = max((frames - 1) // (self.script.count(",") + 1), 2)
        name = self.name.format(**sides, **words)
        script = self.script.format(**sides, half=half, rest=frames - 1 - half, each=each)
        return name, play(world, script, self.event, size, frames=frames)


# Targets with what happens to them, in turn; the first four change at once, the others while they are seen.
CAST = (
    ("gift", "both"), ("ball", "rolling"), ("rocket", "changed"), ("cup", "filling"), ("vase", "moved"),
    ("candle", "burning"), ("figure", "moved"), ("chest", "opening"), ("plant", "none"), ("snowman", "melting"),
)  # fmt: skip


def place_of(seed: int) -> str:
    """Rooms and yards in turn."""
    return "yard" if seed % 2 else "room"


@dataclass(frozen=True)
class Layout:
    """How a benchmark's files are written: films of a seed as models remember them, and an index of all films.

    `source`, below the folder, is what `revisit eval` is given, with the further arguments `options`; {folder} in them
    is the folder.
    """

    id: str
    films: Callable[[int], Sequence[Order]]
    models: tuple[str, ...]  # those that show what the benchmark asks about
    # (folder, name, film, models, seed, tell) -> what the index says of the film
    shoot: Callable[[Path, str, Film, Sequence[Model], int, StepCallback], Row]
    index: Callable[[Path, Sequence[Row]], None]
    source: str = ""
    options: str = ""
    least_frames: int = 0  # of a clip, where the rules of the benchmark need so many

    def write(self, folder: Path, films: Mapping[str, Film], models: Sequence[Model], seed: int = 0) -> Path:
        """Write films, by name, as models remember them; return what `revisit eval` is given."""
        rows = [self.shoot(folder, name, film, models, seed, lambda _: None) for name, film in films.items()]
        self.index(folder, rows)
        return folder / self.source


@dataclass(frozen=True)
class OwnFilms:
    """The layout of a benchmark whose films and models are its own: it is written as a whole, in so many steps."""

    id: str
    # (folder, size, tell, frames of a clip) -> what `revisit eval` is given
    write: Callable[[Path, tuple[int, int], StepCallback, int | None], Path]
    steps: int
    source: str = ""
    options: str = ""


Kind = TypeVar("Kind", Layout, OwnFilms)
LAYOUTS: Registry[Layout | OwnFilms] = Registry("layout", part="world")
# (folder, anew, scenes, say, progress) -> what `revisit demo` evaluates, and the options it takes
Demo = Callable[[Path, bool, int, StepCallback, Callable[[int, int, str], None]], tuple[Path, list[str]]]
DEMOS: Registry[Demo] = Registry("demo", part="world")


def layout(suite_layout: Kind) -> Kind:
    """Register a layout."""
    LAYOUTS.add(suite_layout.id, suite_layout)
    return suite_layout


def layout_read_by_suite(suite_id: str) -> Layout | None:
    """The first layout whose clips a suite reads and any model may make, or None."""
    layouts = (one for one in LAYOUTS.values() if isinstance(one, Layout))
    return next((one for one in layouts if _values_by_flag(one).get("--suite") == [suite_id]), None)


def layout_suite_options(suite_layout: Layout, folder: Path) -> list[str]:
    """The options, name=value, that the suite of a layout is given."""
    return [text.format(folder=folder) for text in _values_by_flag(suite_layout).get("--option", [])]


def _values_by_flag(suite_layout: Layout) -> dict[str, list[str]]:
    """What stands behind each flag of a layout's arguments."""
    words = suite_layout.options.split()
    pairs = group_items(zip(words[::2], words[1::2], strict=True), lambda pair: pair[0])
    return {flag: [value for _, value in some] for flag, some in pairs.items()}


def evaluation_command(id: str, folder: Path) -> str:
    """The command that evaluates what was written in a layout."""
    suite_layout = LAYOUTS[id]
    return f"revisit eval {folder / suite_layout.source} {suite_layout.options.format(folder=folder)}".rstrip()
