"""Scripts: how the camera, the lights or a screen lose sight of the target and find it again, by name.

A script is steps in the language of `geometry.camera_script`, with {away} for the side to which the world
has room, {back} for the other, and the share of the clip that each step takes. To add one, add a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from revisit.geometry.camera_script import Step, parse_script
from revisit.worlds.world import World


@dataclass(frozen=True)
class Script:
    """What is done, as a sentence, and its steps: moves and their share of the clip."""

    what: str
    steps: tuple[tuple[str, float], ...]

    def text(self, turn: str, frames: int) -> str:
        """The camera script of a clip of some frames in a world that turns right or left."""
        away, back = ("right", "left") if turn == "right" else ("left", "right")
        total, elapsed, at, parts = sum(share for _, share in self.steps), 0.0, 0, []
        for moves, share in self.steps:
            elapsed += share
            end = round((frames - 1) * elapsed / total)
            parts.append(f"{moves.format(away=away, back=back)}@{max(end - at, 1)}")
            at = end
        return ",".join(parts)


def there_and_back(out: str, back: str) -> tuple[tuple[str, float], ...]:
    """A short look at the target, two moves of equal length, and a short look again."""
    return ("hold", 1), (out, 6), (back, 6), ("hold", 1)


SCRIPTS: dict[str, Script] = {
    "yaw": Script("The camera turns away from the target and back.", there_and_back("yaw:{away}:60", "yaw:{back}:60")),
    "pan": Script(
        "The camera moves sideways until the target is out of view, and back.",
        there_and_back("truck:{away}:1.9+yaw:{away}:12", "truck:{back}:1.9+yaw:{back}:12"),
    ),
    "tilt": Script("The camera looks up and then down again.", there_and_back("tilt:up:45", "tilt:down:45")),
    "dolly": Script(
        "The camera goes past the target, waits there and comes back.",
        (("hold", 1), ("dolly:forward:2.3", 5), ("hold", 2), ("dolly:back:2.3", 5), ("hold", 1)),
    ),
    "uturn": Script("The camera turns right round and back.", there_and_back("yaw:{away}:180", "yaw:{back}:180")),
    "orbit": Script(
        "The camera goes part of the way around the target while it turns away, and comes back.",
        there_and_back("orbit:{away}:35+yaw:{away}:85", "orbit:{back}:35+yaw:{back}:85"),
    ),
    "occluder": Script(
        "A folding screen is drawn in front of the target and taken away again.",
        (("hold", 2), ("screen:in:1", 2), ("hold", 4), ("screen:out:1", 2), ("hold", 2)),
    ),
    "lights_off": Script(
        "The light goes out and comes back on.",
        (("hold", 3), ("lights:down:0.96", 1), ("hold", 4), ("lights:up:0.96", 1), ("hold", 3)),
    ),
}


def script_text(world: World, script: str, frames: int) -> str:
    """The camera script of a name in a world; what is no name is a script already."""
    return SCRIPTS[script].text(world.turn, frames) if script in SCRIPTS else script


def told(world: World, steps: Sequence[Step]) -> str:
    """What the steps do, as a sentence; rests and numbers of frames make no difference."""
    for script in SCRIPTS.values():
        if _moves(parse_script(script.text(world.turn, 100))) == _moves(steps):
            return script.what
    return world.prompt.removeprefix(world.scene).strip()


def _moves(steps: Sequence[Step]) -> list[object]:
    return [step.moves for step in steps if step.moves]
