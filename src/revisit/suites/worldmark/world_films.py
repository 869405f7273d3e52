"""Films of the house's models in WorldMark's layout: left and back (`LR`), one picture of the first person a world.

A key is held for six seconds at sixteen frames a second, as in `world.py`; `least_frames` asks for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from revisit.media.files import atomic_write_path, write_text_atomically
from revisit.suites.worldmark.evidence import ACTIONS
from revisit.worlds.film import Film
from revisit.worlds.layouts import common
from revisit.worlds.layouts.common import Model, Row
from revisit.worlds.layouts.film_orders import CAST, Layout, Order, layout, place_of
from revisit.worlds.workers import StepCallback

ACTION = next(number for number, keys in ACTIONS.items() if keys == "LR")
SCRIPT = "yaw:left:60@{half},yaw:right:60@{rest}"
LEAST_FRAMES = 2 * 96 + 1


def write_worldmark_film(
    folder: Path, name: str, film: Film, models: Sequence[Model], seed: int, tell: StepCallback
) -> Row:
    """Write the picture and the clips of one film that are not there."""
    image = int(name.partition("_")[0])
    common.write_missing_picture(folder / "arena_inputs/first_view/real" / f"{image:03d}.png", film.truth(0).rgb)
    write_lens_file(folder / "arena_inputs", image, [film.K[0, 0], film.K[1, 1], film.K[0, 2], film.K[1, 2]])
    for model in common.each_that_applies(models, film, name, tell):
        common.video(folder / "real" / "first" / model.name / f"{name}.mp4", model.frames(film, seed), film.fps)
    return {"image": image, "prompt": film.world.prompt}


def write_worldmark_lists(folder: Path, rows: Sequence[Row]) -> None:
    """Write actions and prompts; pictures before the last one that were not rendered are listed and missing."""
    prompts = {row["image"]: row["prompt"] for row in rows}
    texts = [prompts.get(image) or "A place." for image in range(max(prompts) + 1)]
    write_actions_and_prompts(folder / "arena_inputs", [(ACTION,)] * len(texts), texts)


def write_lens_file(arena: Path, image: int, lens: Sequence[float]) -> None:
    """Write the focal lengths and the centre of a picture."""
    place = arena / "first_view" / "real_intrinsics" / f"{image:03d}_intrinsics.npy"
    with atomic_write_path(place) as temporary, temporary.open("wb") as file:
        np.save(file, np.array(lens, np.float32))


def write_actions_and_prompts(arena: Path, actions: Sequence[Sequence[int]], prompts: Sequence[str]) -> None:
    """Write what the actions are, and the actions and the prompt of each picture."""
    lines = "".join(f"{number:2d}: {keys}\n" for number, keys in ACTIONS.items())
    write_text_atomically(arena / "action_protocol.txt", f"Actions and the keys of each\n{lines}")
    view = arena / "first_view"
    write_text_atomically(view / "real_action.txt", "\n".join(", ".join(map(str, some)) for some in actions))
    write_text_atomically(view / "prompt_real.txt", "".join(f"First-person view. {text}\n" for text in prompts))


def worldmark_film_orders(seed: int) -> list[Order]:
    """The film of a seed."""
    kind, event = CAST[seed % len(CAST)]
    return [Order(f"{seed:03d}_{ACTION:03d}", seed, place_of(seed), kind, event, SCRIPT)]


# Upstream steps by the median way of half a second over a folder; of these films that is about 100 pixels of its flow.
OPTIONS = "--suite worldmark --option step=100"
MODELS = ("perfect", "frozen_camera", "opposite_camera", "partial_return", "vanish", "background")
LAYOUT = layout(
    Layout(
        "worldmark-films",
        worldmark_film_orders,
        MODELS,
        write_worldmark_film,
        write_worldmark_lists,
        "",
        OPTIONS,
        least_frames=LEAST_FRAMES,
    )
)
