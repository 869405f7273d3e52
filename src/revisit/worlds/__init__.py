"""Worlds: small textured rooms with exact truth, and models that remember or fail in a known way."""

from revisit.worlds.demo import SCENES, Scene, render_demo
from revisit.worlds.events import EVENTS
from revisit.worlds.film import Film, play
from revisit.worlds.models import MODELS, generate
from revisit.worlds.rooms import make_room
from revisit.worlds.world import TARGET, Shot, State, World

__all__ = [
    "EVENTS",
    "MODELS",
    "SCENES",
    "TARGET",
    "Film",
    "Scene",
    "Shot",
    "State",
    "World",
    "generate",
    "make_room",
    "play",
    "render_demo",
]
