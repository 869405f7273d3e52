"""WorldMark's files, for `revisit world render`: inputs of two scenes, and deliveries by models with known faults.

A key is held for six seconds, not twenty, or for so many frames as are asked for: what follows a switch by three
seconds and comes a second before the next still counts. Videos have sixteen frames a second.

The layout worldmark-films is of films of the house's models: left and back (`LR`), one picture of the first person a
world. Its keys are as long; `least_frames` asks for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from revisit.geometry.camera_script import camera_path, parse_script
from revisit.media import encode_mp4, write_picture
from revisit.media.files import atomic_write_path, write_text_atomically
from revisit.suites.worldmark.evidence import ACTIONS, OPPOSITE, camera_script_of_keys
from revisit.worlds.film import Film
from revisit.worlds.layout import first_camera_pose
from revisit.worlds.layouts import common
from revisit.worlds.layouts.common import Model, Row
from revisit.worlds.layouts.film_orders import CAST, Layout, Order, OwnFilms, layout, place_of
from revisit.worlds.places import make_room
from revisit.worlds.workers import StepCallback
from revisit.worlds.world import Studio, World

FPS, FRAMES = 16.0, 96  # frames of a key
METRES, DEGREES = 0.6, 60.0  # of a key
SCENES = ((1, 6, 7), (5, 8, 9))  # the actions of each picture
MODELS = ("perfect", "frozen", "opposite", "never_returns", "forgets")
STEPS = sum(map(len, SCENES)) * len(MODELS)
ELSEWHERE = 100  # added to the seed of a room for what a forgetful model shows after a switch
ACTION = next(number for number, keys in ACTIONS.items() if keys == "LR")
SCRIPT = "yaw:left:60@{half},yaw:right:60@{rest}"
LEAST_FRAMES = 2 * 96 + 1


def keys_followed_by_model(model: str, keys: str) -> str:
    """The keys that a model follows; none where it stays."""
    if model == "frozen":
        return ""
    if model == "opposite":
        return "".join(OPPOSITE[key] for key in keys)
    return keys[0] * len(keys) if model == "never_returns" else keys


def camera_poses_of_keys(keys: str, key_count: int, frames_per_key: int) -> np.ndarray:
    """Camera-to-world poses of `key_count` keys of so many frames each."""
    script = f"hold@{key_count * frames_per_key}"
    if keys:
        script = camera_script_of_keys(keys, [frames_per_key] * len(keys), metres=METRES, degrees=DEGREES)
    return camera_path(parse_script(script), first_camera_pose())


def write_worldmark_layout(
    folder: Path, size: tuple[int, int], tell: StepCallback = lambda _: None, frames: int | None = None
) -> Path:
    """Write the inputs, and the clips that are not there; return what `revisit eval` is given."""
    length = frames or FRAMES
    rooms = [make_room(seed) for seed in range(len(SCENES))]
    write_arena_inputs(folder / "arena_inputs", rooms, size)
    for image, actions in enumerate(SCENES):
        room, other = Studio(rooms[image], size), Studio(make_room(image + ELSEWHERE), size)
        for action in actions:
            for model in MODELS:
                clip = folder / "real" / "first" / model / f"{image:03d}_{action:03d}.mp4"
                if not clip.is_file():
                    keys = ACTIONS[action]
                    poses = camera_poses_of_keys(keys_followed_by_model(model, keys), len(keys), length)
                    places = [other if model == "forgets" and k > length else room for k in range(len(poses))]
                    encode_mp4(
                        clip, (place.render_picture(pose) for place, pose in zip(places, poses, strict=True)), FPS
                    )
                tell(f"{model} {image:03d}_{action:03d}")
    return folder


def write_arena_inputs(arena: Path, rooms: list[World], size: tuple[int, int]) -> None:
    """Write pictures, lenses, prompts and actions."""
    write_actions_and_prompts(arena, SCENES, [room.prompt for room in rooms])
    for image, room in enumerate(rooms):
        studio = Studio(room, size)
        write_picture(arena / "first_view/real" / f"{image:03d}.png", studio.render_picture(first_camera_pose()))
        write_intrinsics_file(arena, image, [studio.K[0, 0], studio.K[1, 1], size[1] / 2, size[0] / 2])


layout(OwnFilms("worldmark", write_worldmark_layout, STEPS, "", "--suite worldmark"))


def write_worldmark_film(
    folder: Path, name: str, film: Film, models: Sequence[Model], seed: int, tell: StepCallback
) -> Row:
    """Write the picture and the clips of one film that are not there."""
    image = int(name.partition("_")[0])
    common.write_missing_picture(folder / "arena_inputs/first_view/real" / f"{image:03d}.png", film.truth(0).rgb)
    write_intrinsics_file(folder / "arena_inputs", image, [film.K[0, 0], film.K[1, 1], film.K[0, 2], film.K[1, 2]])
    for model in common.each_that_applies(models, film, name, tell):
        common.video(folder / "real" / "first" / model.name / f"{name}.mp4", model.frames(film, seed), film.fps)
    return {"image": image, "prompt": film.world.prompt}


def write_worldmark_lists(folder: Path, rows: Sequence[Row]) -> None:
    """Write actions and prompts; pictures before the last one that were not rendered are listed and missing."""
    prompts = {row["image"]: row["prompt"] for row in rows}
    texts = [prompts.get(image) or "A place." for image in range(max(prompts) + 1)]
    write_actions_and_prompts(folder / "arena_inputs", [(ACTION,)] * len(texts), texts)


def write_intrinsics_file(arena: Path, image: int, lens: Sequence[float]) -> None:
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
FILM_MODELS = ("perfect", "frozen_camera", "opposite_camera", "partial_return", "vanish", "background")
LAYOUT = layout(
    Layout(
        "worldmark-films",
        worldmark_film_orders,
        FILM_MODELS,
        write_worldmark_film,
        write_worldmark_lists,
        "",
        OPTIONS,
        least_frames=LEAST_FRAMES,
    )
)
