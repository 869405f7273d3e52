"""WBench: cases with their turns, and models' videos with poses, depth and turns.json, in the layout of docs/wbench.md.

A film is called {case}__{actions}; its camera script is what its actions mean here. Turns are equally long, but for the
first, which has the clip's first frame besides. Poses and depth are exact, and told as the benchmark's tools tell them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from revisit.media.files import write_text_atomically
from revisit.worlds.film import Film
from revisit.worlds.layouts import common
from revisit.worlds.layouts.common import Model, Row
from revisit.worlds.layouts.film_orders import CAST, Layout, Order, layout, place_of
from revisit.worlds.state import TARGET
from revisit.worlds.story import film_along_poses
from revisit.worlds.workers import StepCallback

EVERY = 4  # frames of which the file of depth tells


def write_wbench_film(
    folder: Path, name: str, film: Film, models: Sequence[Model], seed: int, tell: StepCallback
) -> Row:
    """Write the case and the videos of one film that are not there, and return what turns.json says of it."""
    case_id, _, actions = name.partition("__")
    turns = actions.split(",")
    each = (len(film) - 1) // len(turns)
    _write_case(folder / "data", case_id, turns, film)
    names = []
    for model in common.each_that_applies(models, film, name, tell):
        names.append(model.name)
        place = folder / "work_dirs" / model.name
        video = place / "videos" / f"case_{case_id}_combined.mp4"
        geometry = place / "da3_cache" / f"case_{case_id}" / "results.npz"
        if not (video.is_file() and geometry.is_file()):
            poses = model.poses(film, seed)
            common.video(video, model.frames(film, seed), film.fps)
            common.write_missing_arrays(place / "megasam" / f"case_{case_id}_combined.npz", cam_c2w=poses)
            _write_exact_geometry(geometry, film_along_poses(film, poses))
    return {
        "id": case_id,
        "frames": [0, *(1 + each * (k + 1) for k in range(len(turns)))],
        "models": names,
        "fps": film.fps,
    }


def _write_case(data: Path, case_id: str, turns: Sequence[str], film: Film) -> None:
    """Write a case with the mask of its subject."""
    mask = (film.truth(0).mask == TARGET).astype(np.uint8) * 255
    common.write_missing_picture(data / "masks" / f"case_{case_id}_mask.png", np.repeat(mask[..., None], 3, axis=2))
    name = film.world.instances[TARGET]
    content = {
        "id": case_id, "description": film.prompt,
        "settings": {
            "scene": {"environment": film.world.scene, "attribute": "rendered", "name": case_id},
            "style": "rendered", "perspective": "first_person", "subject": {"type": "object", "desc": name},
            "initial_image": f"images/case_{case_id}.png", "subject_mask": f"masks/case_{case_id}_mask.png",
        },
        "interactions": [
            {"turn": number, "type": "navigation", "action": action, "prompt": film.camera_words}
            for number, action in enumerate(turns, start=1)
        ],
        "scene_adherence": {"visible_part": film.world.scene, "offscreen_part": ""},
        "subject_adherence": {"appearance_part": f"A {name}.", "action_part": ""},
    }  # fmt: skip
    common.write_missing_picture(data / "images" / f"case_{case_id}.png", film.truth(0).rgb)
    write_text_atomically(data / "cases" / f"case_{case_id}.json", json.dumps(content, indent=1))


def _write_exact_geometry(path: Path, film: Film) -> None:
    """Write exact depth and poses of every fourth frame, on the grid of the video."""
    numbers = np.arange(0, len(film), EVERY)
    common.write_missing_arrays(
        path,
        depth=np.stack([film.truth(int(k)).depth for k in numbers]).astype(np.float32),
        extrinsics=np.linalg.inv(film.poses[numbers])[:, :3],
        intrinsics=np.tile(film.K, (len(numbers), 1, 1)),
        frame_indices=numbers,
        convention=np.array("w2c_opencv"),
        producer=np.array("exact"),
    )


def write_turns_files(folder: Path, rows: Sequence[Row]) -> None:
    """Write turns.json of every model."""
    for model in dict.fromkeys(model for row in rows for model in row["models"]):
        cases = {row["id"]: {"turn_frames": row["frames"]} for row in rows if model in row["models"]}
        write_text_atomically(
            folder / "work_dirs" / model / "turns.json", json.dumps({"fps": rows[0]["fps"], "cases": cases})
        )


# The actions of a film, and its camera script: half a metre or sixty degrees a turn.
ASKED = {
    "{away},{back}": "yaw:{away}:60.0@{each},yaw:{back}:60.0@{each}",
    "W,{away},{back},S": "dolly:forward:0.5@{each},yaw:{away}:60.0@{each},yaw:{back}:60.0@{each},dolly:back:0.5@{each}",
    "{out}+{away},{in}+{back}": "truck:{away}:0.5+yaw:{away}:60.0@{each},truck:{back}:0.5+yaw:{back}:60.0@{each}",
}


def wbench_film_orders(seed: int) -> list[Order]:
    """The films of a seed: a turn and back, the same after a step ahead, and a walk aside while turning."""
    kind, event = CAST[seed % len(CAST)]
    return [
        Order(f"{seed}{letter}__{actions}", seed, place_of(seed), kind, event, script)
        for letter, (actions, script) in zip("abc", ASKED.items(), strict=True)
    ]


MODELS = ("perfect", "frozen_camera", "opposite_camera", "partial_return", "state_reset", "vanish", "background")
LAYOUT = layout(
    Layout(
        "wbench",
        wbench_film_orders,
        MODELS,
        write_wbench_film,
        write_turns_files,
        "work_dirs",
        "--suite wbench --option data={folder}/data",
    )
)
