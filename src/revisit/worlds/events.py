"""Events: what happens to the target while nobody looks.

An event is a function from the world to the state in which the target is afterwards. To add one, write
its function and add a row with the sentence a reader sees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from revisit.worlds.world import State, World


@dataclass(frozen=True)
class Event:
    """What happens, in words, and the state it leaves behind."""

    what: str
    after: Callable[[World], State]


def nothing_happens(world: World) -> State:
    """The state the target was in."""
    return world.first_state


def moved(world: World) -> State:
    """The target at its second place, looking as it did."""
    return replace(world.first_state, place=world.places[1])


def changed(world: World) -> State:
    """The target where it was, with its other look."""
    return replace(world.first_state, look=1)


def moved_and_changed(world: World) -> State:
    """The target at its second place, with its other look."""
    return State(world.places[1], look=1)


EVENTS: dict[str, Event] = {
    "none": Event("nothing happens to the target while it is out of view", nothing_happens),
    "moved": Event("the target is moved while it is out of view", moved),
    "changed": Event("the target changes in place while it is out of view", changed),
    "both": Event("the target is moved and changes while it is out of view", moved_and_changed),
}
