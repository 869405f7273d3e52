"""Object texture on a track of MobileSAM: does it tell a kept object from one that was swapped out of view?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revisit.core import Score, Target
from revisit.suites.mbench.evidence import FoldPairs
from revisit.suites.mbench.metrics.entities import object_texture
from revisit.worlds.film import play
from revisit.worlds.places import make_world
from revisit.worlds.state import TARGET

pytest.importorskip("torch", reason="needs torch: pip install 'revisit-bench[networks]'")

from revisit.networks import runtime
from revisit.observers.masks import object_features_by_efficientnet

SIZE = (240, 416)
FRAMES = 13
SHOWN = (0, FRAMES - 2)  # before it leaves, and after its return, 10 degrees from the first view
SCENES = 6


@dataclass(frozen=True)
class Scene:
    """Two moments of a film, kept and with another object after the return."""

    kept: list[np.ndarray]
    swapped: list[np.ndarray]
    target: Target


@pytest.fixture(scope="module")
def scenes() -> list[Scene]:
    """Rooms and yards with a target each; in half of them another pattern, in half another shape comes back."""
    made = []
    for seed in range(SCENES):
        world = make_world(seed, ("room", "yard")[seed % 2])
        back = {"left": "right", "right": "left"}[world.turn]
        half = FRAMES // 2
        film = play(world, f"yaw:{world.turn}:60@{half},yaw:{back}:60@{half}", size=SIZE, frames=FRAMES)
        shots = [film.truth(k) for k in SHOWN]
        state = film.states[SHOWN[-1]]
        another = replace(state, texture=1.0) if seed // 2 % 2 == 0 else replace(state, shape=1.0)
        kept = [shot.rgb for shot in shots]
        swapped = [*kept[:-1], film.shot(SHOWN[-1], another).rgb]
        made.append(Scene(kept, swapped, Target("it", box_of(shots[0].mask == TARGET))))
    return made


def box_of(mask: np.ndarray) -> tuple[float, float, float, float]:
    rows, columns = np.nonzero(mask)
    height, width = mask.shape
    return columns.min() / width, rows.min() / height, (columns.max() + 1) / width, (rows.max() + 1) / height


def texture(pictures: list[np.ndarray], target: Target) -> Any:
    """The score of object texture of two frames, one on each side of the turnaround."""
    seen = object_features_by_efficientnet(pictures, fps=8.0, target=target)
    none = np.zeros(0, int)
    return object_texture(seen, FoldPairs(none, none, none.astype(float), 0, "symmetric", ""))


@pytest.fixture(autouse=True)
def own_networks() -> Iterator[None]:
    yield
    runtime.forget_cached_networks()


@pytest.mark.slow
@pytest.mark.long
def test_texture_separates_kept_from_swapped_objects(small_weights: Path, scenes: list[Scene]) -> None:
    kept = [texture(scene.kept, scene.target) for scene in scenes]
    swapped = [texture(scene.swapped, scene.target) for scene in scenes]
    assert all(isinstance(made, Score) for made in kept)
    values, others = ([made.value for made in scores if isinstance(made, Score)] for scores in (kept, swapped))
    assert len(others) >= SCENES - 1  # one that is no longer found is unscored, and says so
    separated = np.mean([(a > b) + 0.5 * (a == b) for a in values for b in others])
    assert separated >= 0.95
    for before, after in zip(kept, swapped, strict=True):
        if isinstance(after, Score):
            assert after.value < before.value
            assert after.facts["return_score"] < before.facts["return_score"]
