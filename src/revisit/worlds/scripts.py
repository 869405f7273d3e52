"""Scripts: how the camera, the lights or a screen lose sight of the target and find it again, by name.

They are rows of scripts.yaml.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from revisit.core.text import read_package_yaml
from revisit.geometry.camera_script import Step, parse_script
from revisit.worlds.world import World


@dataclass(frozen=True)
class Script:
    """What is done, as a sentence, and its steps: moves and their share of the clip."""

    what: str
    steps: Sequence[tuple[str, float]]

    def text_with_frame_counts(self, world: World, frames: int) -> str:
        """The camera script of a clip of some frames in a world."""
        total, elapsed, at, parts = sum(share for _, share in self.steps), 0.0, 0, []
        for moves, share in self.steps:
            elapsed += share
            end = round((frames - 1) * elapsed / total)
            parts.append(f"{moves.format(**world.away_and_back)}@{max(end - at, 1)}")
            at = end
        return ",".join(parts)


SCRIPTS = {name: Script(**script) for name, script in read_package_yaml(__package__, "scripts.yaml").items()}


def resolve_camera_script(world: World, script: str, frames: int) -> str:
    """The camera script of a name in a world; what is no name is a script already."""
    return SCRIPTS[script].text_with_frame_counts(world, frames) if script in SCRIPTS else script


def describe_steps(world: World, steps: Sequence[Step]) -> str:
    """What the steps do, as a sentence; rests and numbers of frames make no difference."""
    moves = _moves_without_rests(steps)
    for script in SCRIPTS.values():
        if _moves_without_rests(parse_script(script.text_with_frame_counts(world, 100))) == moves:
            return script.what
    return world.prompt.removeprefix(world.scene).strip()


def _moves_without_rests(steps: Sequence[Step]) -> list[object]:
    return [step.moves for step in steps if step.moves]
