"""Films of the house's models in WorldMark's layout: left and back (`LR`), one picture of the first person a world.

A key is held for six seconds at sixteen frames a second, as in `world.py`; `least_frames` asks for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from revisit.media.files import replacing, write_text
from revisit.suites.worldmark.evidence import ACTIONS
from revisit.worlds.film import Film
from revisit.worlds.layouts import common
from revisit.worlds.layouts.common import Model, Row
from revisit.worlds.layouts.film_orders import CAST, Layout, Order, layout, place_of
from revisit.worlds.workers import StepCallback

ACTION = next(number for number, keys in ACTIONS.items() if keys == "LR")
SCRIPT = "yaw:left:60@{half},yaw:right:60@{rest}"
LEAST_FRAMES = 2 * 96 + 1
VIEW = Path("arena_inputs") / "first_view"


def write_film(folder: Path, name: str, film: Film, models: Sequence[Model], seed: int, tell: StepCallback) -> Row:
    """Write the picture and the clips of one film that are not there."""
    image = int(name.partition("_")[0])
    common.picture(folder / VIEW / "real" / f"{image:03d}.png", film.truth(0).rgb)
    place = folder / VIEW / "real_intrinsics" / f"{image:03d}_intrinsics.npy"
    lens = [film.K[0, 0], film.K[1, 1], film.K[0, 2], film.K[1, 2]]
    with replacing(place) as temporary, temporary.open("wb") as file:
        np.save(file, np.array(lens, np.float32))
    for model in common.each_that_applies(models, film, name, tell):
        common.video(folder / "real" / "first" / model.name / f"{name}.mp4", model.frames(film, seed), film.fps)
    return {"image": image, "prompt": film.world.prompt}


def write_lists(folder: Path, rows: Sequence[Row]) -> None:
    """Write actions and prompts; pictures before the last one that were not rendered are listed and missing."""
    prompts = {row["image"]: row["prompt"] for row in rows}
    count = max(prompts) + 1
    lines = "".join(f"{number:2d}: {keys}\n" for number, keys in ACTIONS.items())
    write_text(folder / "arena_inputs" / "action_protocol.txt", f"Actions and the keys of each\n{lines}")
    write_text(folder / VIEW / "real_action.txt", "\n".join([str(ACTION)] * count))
    texts = [prompts.get(image) or "A place." for image in range(count)]
    write_text(folder / VIEW / "prompt_real.txt", "".join(f"First-person view. {text}\n" for text in texts))


def films(seed: int) -> list[Order]:
    """The film of a seed."""
    kind, event = CAST[seed % len(CAST)]
    return [Order(f"{seed:03d}_{ACTION:03d}", seed, place_of(seed), kind, event, SCRIPT)]


# Upstream steps by the median way of half a second over a folder; of these films that is about 100 pixels of its flow.
OPTIONS = "--suite worldmark --option step=100"
MODELS = ("perfect", "frozen_camera", "opposite_camera", "partial_return", "vanish", "background")
LAYOUT = layout(
    Layout("worldmark-films", films, MODELS, write_film, write_lists, "", OPTIONS, least_frames=LEAST_FRAMES)
)
