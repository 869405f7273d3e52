"""Films of the house's models in MIND's layout: each is a recording with a context, and a go-and-return test.

The context is the beginning of the film, before the camera turns away; the prediction is what follows. The
go-and-return clip is the whole film, with its turning point twice, so that frame i and frame n-1-i are one view.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from revisit.geometry.formats import format_colmap
from revisit.geometry.poses import invert_rigid_poses, make_trajectory
from revisit.geometry.rotations import yaw_pitch_of_rotation
from revisit.media.files import write_text_atomically
from revisit.suites.mind.world_keys import action_file_content
from revisit.worlds.film import Film
from revisit.worlds.layouts import common
from revisit.worlds.layouts.common import Model, Row
from revisit.worlds.layouts.film_orders import CAST, Layout, Order, layout, place_of
from revisit.worlds.workers import StepCallback

WALKS, TURNS = {1: "w", 0: "", -1: "s"}, {1: "r", 0: "", -1: "l"}  # sign of a motion -> its key
PERSPECTIVE = "1st_data"
CONTEXT = 4  # frames
# Without a rest, so that the way back mirrors the way out.
SCRIPT = "yaw:{away}:60+dolly:forward:0.4@{half},yaw:{back}:60+dolly:back:0.4@{rest}"
LEAST_FRAMES = 123  # upstream scores whole hundreds of frames, 97 poses, and no last batch of one pair


def write_mind_film(folder: Path, name: str, film: Film, models: Sequence[Model], seed: int, tell: StepCallback) -> Row:
    """Write the recording and the clips of one film that are not there."""
    truth = folder / "MIND-Data" / PERSPECTIVE / "test"
    keys = _keys_of_poses(film.poses)
    recording = truth / "mem_test" / name
    common.video(recording / "video.mp4", common.true_frames(film), film.fps)
    write_text_atomically(
        recording / "action.json", json.dumps(action_file_content(keys, {"actor": film.poses}, CONTEXT))
    )
    write_text_atomically(recording / "images.txt", format_colmap(make_trajectory(film.poses[CONTEXT:])))
    common.write_missing_picture(truth / "mirror_test" / f"{name}.png", film.truth(0).rgb)
    half = len(film) // 2
    back_and_forth = [*range(half + 1), *range(half, len(film))]
    for model in common.each_that_applies(models, film, name, tell):
        place = folder / "predictions" / model.name / PERSPECTIVE
        prediction, mirror = place / "mem_test" / name, place / "mirror_test" / name / "path-1.mp4"
        if not ((prediction / "video.mp4").is_file() and mirror.is_file()):
            frames = list(model.frames(film, seed))
            common.video(prediction / "video.mp4", frames[CONTEXT:], film.fps)
            common.video(mirror, [frames[k] for k in back_and_forth], film.fps)
        common.write_missing_arrays(prediction / "poses.npz", poses=model.poses(film, seed)[CONTEXT:])
    return {"name": name}


def _keys_of_poses(c2w: np.ndarray) -> list[str]:
    """The keys that lead from each frame to the next: a step ahead or back, and a turn to the right or to the left."""
    yaw = np.degrees(np.unwrap(np.radians(yaw_pitch_of_rotation(c2w[:, :3, :3])[0])))
    ahead = (invert_rigid_poses(c2w[:-1]) @ c2w[1:])[:, 2, 3]
    signs = np.sign(ahead.round(9)), np.sign(np.diff(yaw).round(9))
    return [*(WALKS[int(walk)] + TURNS[int(turn)] for walk, turn in zip(*signs, strict=True)), ""]


def mind_film_orders(seed: int) -> list[Order]:
    """The film of a seed."""
    kind, event = CAST[seed % len(CAST)]
    return [Order(f"data-{100 + seed}", seed, place_of(seed), kind, event, SCRIPT)]


MODELS = ("perfect", "frozen_camera", "partial_return", "state_reset", "vanish", "background")
OPTIONS = "--suite mind --option gt={folder}/MIND-Data"
LAYOUT = layout(
    Layout(
        "mind-films",
        mind_film_orders,
        MODELS,
        write_mind_film,
        lambda folder, rows: None,  # the folders are the list
        "predictions",
        OPTIONS,
        least_frames=LEAST_FRAMES,
    )
)
