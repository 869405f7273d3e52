"""Events: what happens to the target, mostly while it is out of view.

An event gives the state of the target at any number of seconds since it began, in closed form; before it
begins (at negative seconds) that is the state in which the target is first seen. Some happen at once and
unseen. The lasting ones begin while the target is still in view and go on when it is not, so a model that freezes the
event when it looks away fails in another way than one that resets it.

To add an event, write its function and add a row with the sentence a reader sees, what kinds of target it
can happen to, and how long it lasts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from revisit.core import UsageError
from revisit.worlds.state import State
from revisit.worlds.targets import BALL, TARGETS
from revisit.worlds.world import World

GRAVITY = 9.81  # m/s²
BOUNCE = 0.55  # share of its speed that a falling target keeps when it hits the table
ROLLING = 2.5  # seconds until a rolling ball has come to rest
STEADY = 2.5  # seconds that filling, melting, opening, burning down and growing take


@dataclass(frozen=True)
class Event:
    """What happens, in words, and the state of the target at any moment."""

    what: str
    at: Callable[[World, float], State]  # seconds since it began
    kinds: tuple[str, ...] = tuple(TARGETS)
    in_view: bool = False  # whether it begins while the target can still be seen
    needs_perch: bool = False  # whether the target stands on a block at first

    def state_before(self, world: World) -> State:
        """The state in which the target is first seen."""
        return self.at(world, -1.0)

    def state_after(self, world: World) -> State:
        """The state that the event leaves behind."""
        return self.at(world, 1e9)

    def can_happen_in(self, world: World) -> bool:
        """Whether it can happen in a world, to the target that is there."""
        return world.kind in self.kinds and (world.perch is not None or not self.needs_perch)


def unchanged_state(world: World, seconds: float) -> State:
    """The state the target was in."""
    return world.first_state


def state_when_moved(world: World, seconds: float) -> State:
    """The target at its second place, looking as it did."""
    return replace(world.first_state, place=world.places[0 if seconds < 0 else 1])


def state_when_changed(world: World, seconds: float) -> State:
    """The target where it was, with its other look."""
    return replace(world.first_state, look=int(seconds >= 0))


def state_when_moved_and_changed(world: World, seconds: float) -> State:
    """The target at its second place, with its other look."""
    return State(state_when_moved(world, seconds).place, state_when_changed(world, seconds).look)


def state_while_rolling(world: World, seconds: float) -> State:
    """The ball on its way to its second place, slowing down evenly until it rests there."""
    remaining = 1 - float(np.clip(seconds / ROLLING, 0, 1))
    (x0, y, z), (x1, _, _) = world.places[:2]
    distance = (x1 - x0) * (1 - remaining**2)
    return State((x0 + distance, y, z), roll=float(np.degrees(distance / BALL)))


def state_while_falling(world: World, seconds: float) -> State:
    """The target knocked off its block: thrown sideways, bouncing where it lands, and at rest."""
    assert world.perch is not None
    x0, y0, z = world.perch
    x1, y1, _ = min(world.places[:2], key=lambda place: abs(place[0] - x0))
    lands = float(np.sqrt(2 * (y1 - y0) / GRAVITY))
    if seconds <= lands:
        fallen = max(seconds, 0.0)
        return State((x0 + (x1 - x0) * fallen / lands, y0 + GRAVITY * fallen**2 / 2, z))
    speed, left = GRAVITY * lands, seconds - lands
    while speed > 0.1:
        speed *= BOUNCE
        if left < 2 * speed / GRAVITY:
            return State((x1, y1 - (speed * left - GRAVITY * left**2 / 2), z))
        left -= 2 * speed / GRAVITY
    return State((x1, y1, z))


def state_with_linear_amount(world: World, seconds: float) -> State:
    """The target filled, molten, opened, burnt down or grown at one pace until that is complete."""
    return replace(world.first_state, amount=float(np.clip(seconds / STEADY, 0, 1)))


EVENTS: dict[str, Event] = {
    "none": Event("nothing happens to the target while it is out of view", unchanged_state),
    "moved": Event("the target is moved while it is out of view", state_when_moved),
    "changed": Event("the target changes in place while it is out of view", state_when_changed),
    "both": Event("the target is moved and changes while it is out of view", state_when_moved_and_changed),
    "falling": Event(
        "the target is knocked off its block and falls on to the table", state_while_falling, needs_perch=True
    ),
    "rolling": Event(
        "the target rolls along the table and comes to rest", state_while_rolling, ("ball",), in_view=True
    ),
    "filling": Event("the target fills up", state_with_linear_amount, ("cup",), in_view=True),
    "melting": Event("the target melts", state_with_linear_amount, ("snowman",), in_view=True),
    "opening": Event("the lid of the target opens", state_with_linear_amount, ("chest",), in_view=True),
    "burning": Event("the target burns down", state_with_linear_amount, ("candle",), in_view=True),
    "growing": Event("the target grows", state_with_linear_amount, ("plant",), in_view=True),
    "foaming": Event("foam grows out of the target", state_with_linear_amount, ("flask",), in_view=True),
}


def possible_event_by_name(world: World, event_name: str) -> Event:
    """The event of a name, if it can happen in a world."""
    if event_name not in EVENTS:
        raise UsageError(f"unknown event {event_name!r}; choose one of {', '.join(EVENTS)}")
    chosen_event = EVENTS[event_name]
    if not chosen_event.can_happen_in(world):
        kinds = chosen_event.kinds
        reason = "a block to fall from" if world.kind in kinds else f"a target of kind {' or '.join(kinds)}"
        fitting = ", ".join(name for name, other in EVENTS.items() if other.can_happen_in(world))
        raise UsageError(f"the event {event_name!r} needs {reason}; possible with a {world.kind} here: {fitting}")
    return chosen_event
