"""Worlds: rendered scenes with exact ground truth, and models with known failures."""

from revisit.worlds.demo import SCENES, DemoScene, render_demo
from revisit.worlds.events import EVENTS, Event
from revisit.worlds.film import Film, play
from revisit.worlds.models import MODELS, generate
from revisit.worlds.places import make_room, make_world
from revisit.worlds.scripts import SCRIPTS, Script
from revisit.worlds.state import SCREEN, TARGET, State
from revisit.worlds.targets import TARGETS, TargetKind
from revisit.worlds.truth import save_truth
from revisit.worlds.world import Shot, World

__all__ = [
    "EVENTS",
    "MODELS",
    "SCENES",
    "SCREEN",
    "SCRIPTS",
    "TARGET",
    "TARGETS",
    "DemoScene",
    "Event",
    "Film",
    "Script",
    "Shot",
    "State",
    "TargetKind",
    "World",
    "generate",
    "make_room",
    "make_world",
    "play",
    "render_demo",
    "save_truth",
]  # fmt: skip
