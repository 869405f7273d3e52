"""WorldMark's files, for `revisit world render`: inputs of two scenes, and deliveries by models with known faults.

A key is held for six seconds, not twenty, or for so many frames as are asked for: what follows a switch by three
seconds and comes a second before the next still counts. Videos have sixteen frames a second.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from revisit.geometry.camera_script import camera_path, parse_script
from revisit.media import encode_mp4, write_picture
from revisit.suites.worldmark.evidence import ACTIONS, OPPOSITE, key_script
from revisit.suites.worldmark.world_films import write_actions_and_prompts, write_lens_file
from revisit.worlds.layout import first_camera_pose
from revisit.worlds.layouts.film_orders import OwnFilms, layout
from revisit.worlds.places import make_room
from revisit.worlds.workers import StepCallback
from revisit.worlds.world import Studio, World

FPS, FRAMES = 16.0, 96  # frames of a key
METRES, DEGREES = 0.6, 60.0  # of a key
SCENES = ((1, 6, 7), (5, 8, 9))  # the actions of each picture
MODELS = ("perfect", "frozen", "opposite", "never_returns", "forgets")
STEPS = sum(map(len, SCENES)) * len(MODELS)
ELSEWHERE = 100  # added to the seed of a room for what a forgetful model shows after a switch


def keys_followed_by_model(model: str, keys: str) -> str:
    """The keys that a model follows; none where it stays."""
    if model == "frozen":
        return ""
    if model == "opposite":
        return "".join(OPPOSITE[key] for key in keys)
    return keys[0] * len(keys) if model == "never_returns" else keys


def camera_poses_of_keys(keys: str, count: int, frames: int) -> np.ndarray:
    """Camera-to-world poses of `count` keys of so many frames each."""
    script = f"hold@{count * frames}"
    if keys:
        script = key_script(keys, [frames] * len(keys), metres=METRES, degrees=DEGREES)
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
        write_lens_file(arena, image, [studio.K[0, 0], studio.K[1, 1], size[1] / 2, size[0] / 2])


layout(OwnFilms("worldmark", write_worldmark_layout, STEPS, "", "--suite worldmark"))
