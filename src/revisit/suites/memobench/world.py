"""MemoBench: its dataset with ground truth, and generated clips, in the layout of docs/memobench.md.

A film called {Scene}_{NNN} is a synthetic clip, one called {NNN} a real one. Positions of synthetic clips are in
centimetres, as the dataset's engine has them. Depth, which no metric reads, is not written. targets.json, which the
benchmark does not have, says where the target is in the first frame.
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
from revisit.worlds.workers import StepCallback

CENTIMETRES = 100.0
SYNTHETIC_MARKS = ("video_folder", "exits", "re-enter", "frame_num", "skip", "prompt")
SYNTHETIC_FACTS = ("scene", "video_id", "subject", "exr_path", "prompt")
REAL_MARKS = ("id", "exit", "reenter")
REAL_FACTS = ("video_id", "subject", "full_image_path", "prompt")
TRACK = ("loc_x", "loc_y", "loc_z", "rot_x", "rot_y", "rot_z", "fx", "fy", "cx", "cy")


def write_film(folder: Path, name: str, film: Film, models: Sequence[Model], seed: int, tell: StepCallback) -> Row:
    """Write the ground truth and the clips of one film that are not there, and return what the sheets say of it."""
    scene, _, number = name.rpartition("_")
    first = (
        _write_synthetic_truth(folder / "data", scene, int(number), film)
        if scene
        else _write_real_truth(folder / "data", name, film)
    )
    for model in common.each_that_applies(models, film, name, tell):
        place = folder / "output" / model.name / ("Synthetic" if scene else "Real") / scene / name
        if scene:
            common.video(place / "video.mp4", model.frames(film, seed), film.fps)
        else:
            common.write_missing_pictures(place / "frames", lambda k: f"{k + 1:05d}.png", model.frames(film, seed))
        common.write_missing_arrays(place / "poses.npz", poses=model.poses(film, seed))
    subject = film.world.instances[1]
    prompt = f"The camera sees a {subject} (subject). {film.prompt}"
    return {
        "video_folder": name, "exits": film.phases[0], "re-enter": film.phases[1], "frame_num": len(film), "skip": "",
        "prompt": prompt, "scene": scene, "video_id": int(number), "subject": subject, "exr_path": first,
        "id": int(number), "exit": film.phases[0], "reenter": film.phases[1], "full_image_path": first,
        "box": film.target_box(),
    }  # fmt: skip


def _write_synthetic_truth(data: Path, scene: str, n: int, film: Film) -> str:
    """Write the ground truth of a synthetic clip and return the path of its first frame."""
    clip = Path("Synthetic_processed") / scene / f"{scene}_{n:03d}"
    common.write_missing_pictures(
        data / clip / f"RGB{n}", lambda k: f"NewLevelSequence{n}.{k:04d}.jpg", common.true_frames(film)
    )
    poses = film.poses.copy()
    poses[:, :3, 3] *= CENTIMETRES
    lens = np.tile(film.K[[0, 1, 0, 1], [0, 1, 2, 2]], (len(film), 1))
    common.write_missing_arrays(data / clip / str(n) / "poses.npy", poses=poses)
    common.write_missing_arrays(data / clip / str(n) / "intrinsics.npy", intrinsics=lens)
    track = np.concatenate([poses[:, :3, 3], _engine_euler_angles(poses), lens], axis=1)
    rows = [dict(zip(TRACK, map(repr, line), strict=True)) for line in track.tolist()]
    common.write_csv_table(data / clip / f"camera_full{n}.csv", TRACK, rows)
    return (clip / f"RGB{n}" / f"NewLevelSequence{n}.0000.jpg").as_posix()


def _engine_euler_angles(poses: np.ndarray) -> np.ndarray:
    """Radians x, y, z (n, 3): Rz·Ry·Rx, all with the sign of the sine turned, is the rotation with y and z turned."""
    turned = poses[:, :3, :3] * (1, -1, -1)
    x = -np.arctan2(turned[:, 2, 1], turned[:, 2, 2])
    y = np.arcsin(np.clip(turned[:, 2, 0], -1, 1))
    z = -np.arctan2(turned[:, 1, 0], turned[:, 0, 0])
    return np.stack([x, y, z], axis=1)


def _write_real_truth(data: Path, name: str, film: Film) -> str:
    """Write the ground truth of a real clip and return the path of its first frame."""
    clip = Path("Real_Raw") / name
    common.video(data / clip / f"{name}.mp4", common.true_frames(film), film.fps)
    common.write_missing_pictures(data / clip / "FRAMES", lambda k: f"frame_{k + 1:04d}.jpg", common.true_frames(film))
    common.write_missing_arrays(data / clip / "raw" / f"{name}_mapanything.npz", cam_c2w=film.poses, intrinsic=film.K)
    return (clip / "FRAMES" / "frame_0001.jpg").as_posix()


def write_lists(folder: Path, rows: Sequence[Row]) -> None:
    """Write the sheets of exits and returns, the metadata and the targets."""
    data = folder / "data"
    synthetic, real = [row for row in rows if row["scene"]], [row for row in rows if not row["scene"]]
    if synthetic:
        common.write_spreadsheet(
            data / "Synthetic_processed" / "Synthetic_ExitReenter.xlsx", SYNTHETIC_MARKS, synthetic
        )
        common.write_csv_table(data / "sam3_metadata" / "synthetic_metadata.csv", SYNTHETIC_FACTS, synthetic)
    if real:
        common.write_spreadsheet(data / "Real_Raw" / "Real_ExitReenter.xlsx", REAL_MARKS, real)
        common.write_csv_table(data / "sam3_metadata" / "real_metadata.csv", REAL_FACTS, real)
    boxes = {row["video_folder"]: {"target": row["subject"], "box": row["box"]} for row in rows}
    write_text_atomically(folder / "targets.json", json.dumps(boxes, indent=1))


def film_orders_of_seed(seed: int) -> list[Order]:
    """The films of a seed: as the dataset, more synthetic than real clips."""
    kind, event = CAST[seed % len(CAST)]
    scene = "Yard" if seed % 2 else "Living_Room"
    synthetic = Order(f"{scene}_{seed // 2 + 1:03d}", seed, place_of(seed), kind, event)
    other_kind, other_event = CAST[(seed + 3) % len(CAST)]
    real = Order(f"{seed + 7:03d}", 50 + seed, place_of(seed), other_kind, other_event, "tilt")
    return [synthetic, real] if seed % 2 == 0 else [synthetic]


MODELS = (
    "perfect", "frozen_camera", "vanish", "colour_drift", "state_reset", "teleport", "background", "camera_drift",
)  # fmt: skip
OPTIONS = "--suite memobench --option gt={folder}/data --option targets={folder}/targets.json"
LAYOUT = layout(Layout("memobench", film_orders_of_seed, MODELS, write_film, write_lists, "output", OPTIONS))
