"""Worlds: rendered scenes with exact ground truth, and models with known failures."""

from revisit.worlds.events import EVENTS
from revisit.worlds.film import SCRIPTS, Film, play, save_truth
from revisit.worlds.places import make_room, make_world
from revisit.worlds.state import TARGET, State
from revisit.worlds.targets import TARGETS
from revisit.worlds.world import Shot, World

__all__ = [
    "EVENTS", "SCRIPTS", "TARGET", "TARGETS", "Film", "Shot", "State", "World", "make_room", "make_world", "play",
    "save_truth",
]  # fmt: skip
