"""Readers of camera payloads, written from the public facts of the generators' own loaders.

They share nothing with `revisit.control.payloads`: what they make of a file is what the generator would be told. Each
takes the written file or folder and the generator's card, and gives the frames that it has poses for, and the poses:
OpenCV camera-to-world, relative to the first, in the loader's own unit of length. Axes here: x right, y down, z ahead.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation, Slerp

from revisit.control.generators import Generator

Read = tuple[np.ndarray, np.ndarray]


def relative(c2w: np.ndarray) -> np.ndarray:
    return np.linalg.inv(c2w[0]) @ c2w


def rows_of_19(path: Path) -> np.ndarray:
    """CameraCtrl's rows: the first line is thrown away unread, the others split on single blanks."""
    lines = path.read_text().splitlines()[1:]
    return np.array([[float(word) for word in line.strip().split(" ")] for line in lines])


def poses_of_rows(rows: np.ndarray) -> np.ndarray:
    w2c = np.tile(np.eye(4), (len(rows), 1, 1))
    w2c[:, :3] = rows[:, 7:19].reshape(-1, 3, 4)
    return relative(np.linalg.inv(w2c))


def wan_fun(path: Path, to: Generator) -> Read:
    c2w = poses_of_rows(rows_of_19(path))[:81]
    return np.arange(len(c2w)), c2w


def wan_fun_focal(path: Path, width: int, height: int) -> tuple[float, float]:
    """fx and fy in pixels of the sample: the reader takes them for those of a 1280x720 picture that covers it."""
    _, fx, fy, cx, cy = rows_of_19(path)[0, :5]
    if width / height < 1280 / 720:
        fx *= height * (1280 / 720) / width
    else:
        fy *= width / (1280 / 720) / height
    assert (cx, cy) == (0.5, 0.5)
    return fx * width, fy * height


def easyanimate(path: Path, to: Generator) -> Read:
    kept = rows_of_19(path)[:: int(24 // to.fps)][: to.frames]
    return np.arange(len(kept)), poses_of_rows(kept)


def magicworld(path: Path, to: Generator) -> Read:
    """Two readers: one skips the first line, the other takes every line for numbers, the first too."""
    every_line = np.array([[float(word) for word in line.split()] for line in path.read_text().splitlines()])
    rows = rows_of_19(path)
    assert every_line.shape[1] == 19
    np.testing.assert_array_equal(every_line[0], every_line[1])
    chunks = len(rows) // 33
    assert len(rows) == 33 * chunks  # the rest would be dropped
    return np.arange(len(rows)), poses_of_rows(rows)


def game_craft(path: Path, to: Generator) -> Read:
    """33 rows for each chunk; ways are multiplied by 10, and K scaled by w / (2 cx) and h / (2 cy)."""
    rows = rows_of_19(path)
    chunks = [rows[start : start + 33] for start in range(0, len(rows), 33)]
    assert {len(chunk) for chunk in chunks} == {33}
    c2w = poses_of_rows(np.concatenate(chunks))
    c2w[:, :3, 3] *= 10
    return np.arange(len(c2w)), c2w


def worldplay(path: Path, to: Generator) -> Read:
    """A table whose order in the file is the order in time; `extrinsic` is camera-to-world."""
    entries = json.loads(path.read_text(), object_pairs_hook=list)
    tables = [dict(entry) for _, entry in entries]
    assert all(set(table) == {"extrinsic", "K"} for table in tables)
    lens = np.array(tables[0]["K"], dtype=float)
    assert lens[0, 0] / (2 * lens[0, 2]) > 0 and lens[1, 1] / (2 * lens[1, 2]) > 0
    c2w = np.array([table["extrinsic"] for table in tables], dtype=float)
    assert len(c2w) == (to.frames - 1) // 4 + 1  # or it stops
    np.testing.assert_allclose(c2w[0], np.eye(4), atol=1e-12)
    return 4 * np.arange(len(c2w)), c2w


def lingbot_latents(folder: Path) -> np.ndarray:
    c2w, lens = np.load(folder / "poses.npy"), np.load(folder / "intrinsics.npy")
    assert c2w.shape[1:] == (4, 4) and lens.shape == (len(c2w), 4)
    c2w = c2w[: (len(c2w) - 1) // 4 * 4 + 1]
    at = np.linspace(0, len(c2w) - 1, (len(c2w) - 1) // 4 + 1)
    made = np.tile(np.eye(4), (len(at), 1, 1))
    made[:, :3, :3] = Slerp(np.arange(len(c2w)), Rotation.from_matrix(c2w[:, :3, :3]))(at).as_matrix()
    for axis in range(3):
        made[:, axis, 3] = np.interp(at, np.arange(len(c2w)), c2w[:, axis, 3])
    return relative(made)


def lingbot(folder: Path, to: Generator) -> Read:
    """Poses between successive latent frames, their ways divided by the longest of them."""
    c2w = lingbot_latents(folder)
    between = np.linalg.inv(c2w[:-1]) @ c2w[1:]
    longest = np.linalg.norm(between[:, :3, 3], axis=1).max()
    if longest > 0:
        between[:, :3, 3] /= longest
    chained = [np.eye(4)]
    for step in between:
        chained.append(chained[-1] @ step)
    return 4 * np.arange(len(chained)), np.stack(chained)


def lingbot_act(folder: Path, to: Generator) -> Read:
    """Turns from the poses; what the ways are is told by the keys alone (`lingbot_keys`)."""
    c2w = lingbot_latents(folder)
    c2w[:, :3, 3] = 0
    return 4 * np.arange(len(c2w)), c2w


def lingbot_keys(folder: Path) -> np.ndarray:
    """To the right and ahead, a row for each latent frame after the first: every fourth row of the keys w a s d."""
    keys = np.load(folder / "action.npy")
    assert keys.shape == (len(np.load(folder / "poses.npy")), 4) and set(np.unique(keys)) <= {0.0, 1.0}
    w, a, s, d = keys[:-1:4].T
    return np.stack([d - a, w - s], axis=1)


def matrix_game_2_keys(path: Path, frames: int) -> np.ndarray:
    """The same of forward, back, left, right, which change every 4 frames."""
    with np.load(path) as file:
        keys = file["keyboard_cond"][0].astype(float)
    assert keys.shape == (frames, 4)
    forward, back, left, right = keys[:-1:4].T
    np.testing.assert_array_equal(np.repeat(keys[:-1:4], 4, axis=0), keys[:-1])
    return np.stack([right - left, forward - back], axis=1)


def walked(moves: np.ndarray, yaw: np.ndarray) -> np.ndarray:
    """Where keys lead (M, 3) that act along the heading halfway between one yaw (M,) in degrees and the next."""
    middle = (yaw[:-1] + yaw[1:]) / 2
    across, ahead = moves.T
    steps = Rotation.from_euler("Y", middle[:, None], degrees=True).apply(
        np.stack([across, np.zeros(len(across)), ahead], axis=1)
    )
    return np.concatenate([np.zeros((1, 3)), np.cumsum(steps, axis=0)])


def hydra(path: Path, to: Generator) -> Read:
    """Unreal's columns ahead, right, up and position in centimetres; every fourth of 77 poses, relative to tgt 0."""
    cameras = json.loads(path.read_text())
    assert set(cameras) == {"cond_cam", "tgt_cam"}
    for name in cameras:
        assert sorted(cameras[name], key=int) == [str(k) for k in range(77)]
    given = np.array([cameras["tgt_cam"][str(k)] for k in range(77)])[::4]
    source = np.array([cameras["cond_cam"][str(k)] for k in range(77)])
    np.testing.assert_allclose(source[-1], given[0], atol=1e-9)  # it ends where the clip begins
    return 4 * np.arange(20), relative(_opencv_of_unreal(given))


def recammaster(path: Path, to: Generator) -> Read:
    """Strings of four bracketed groups, the columns in Unreal's axes; every fourth of 81."""
    frames = json.loads(path.read_text())
    assert list(frames) == [f"frame{k}" for k in range(81)]
    given = []
    for k in range(0, 81, 4):
        groups = frames[f"frame{k}"]["cam01"].strip().split("] [")
        columns = [[float(word) for word in group.replace("[", "").replace("]", "").split()] for group in groups]
        given.append(np.array(columns).T)
    return 4 * np.arange(21), relative(_opencv_of_unreal(np.array(given)))


def _opencv_of_unreal(given: np.ndarray) -> np.ndarray:
    assert given.shape[1:] == (4, 4)
    c2w = given[:, :, [1, 2, 0, 3]].copy()  # right, up, ahead, position
    c2w[:, :3, 1] *= -1
    c2w[:, :3, 3] /= 100
    return c2w


def liveworld(path: Path, to: Generator) -> Read:
    """Pose 0 is the first picture's; generated frame k uses pose 1 + k."""
    with np.load(path) as file:
        c2w = file["poses_c2w"]
    assert len(c2w) % 65 == 1
    return np.arange(len(c2w) - 1), relative(c2w.astype(float))[1:]


def versecrafter(path: Path, to: Generator) -> Read:
    """The second and third column are negated and the matrix inverted; the scene's world has y ahead and z up."""
    with np.load(path) as file:
        assert list(file) == ["extrinsics"]
        given = file["extrinsics"]
    assert given.dtype == np.float32 and given.shape == (81, 4, 4)
    # The first pose of the model's own demo files.
    np.testing.assert_allclose(given[0, :3, :3], [[1, 0, 0], [0, 0, -1], [0, 1, 0]], atol=1e-6)
    c2w = given.astype(float)
    c2w[:, :, 1:3] *= -1
    w2c = np.linalg.inv(c2w)
    # A point five ahead of the first picture lies at y = 5 of that world and must be seen straight ahead.
    np.testing.assert_allclose(w2c[0] @ [0, 5, 0, 1], [0, 0, 5, 1], atol=1e-5)
    return np.arange(81), relative(c2w)


def spatia(folder: Path, to: Generator) -> Read:
    """A bare array per line, world-to-camera; four intrinsics divided by width and height in a file of their own."""
    w2c = np.array([json.loads(line) for line in (folder / "poses.txt").read_text().splitlines()])
    lens = [float(word) for word in (folder / "intrinsics.txt").read_text().split()]
    assert w2c.shape == (to.frames, 4, 4) and len(lens) == 4
    assert lens[2:] == [0.5, 0.5]
    np.testing.assert_allclose(lens[0] * to.size[0], lens[1] * to.size[1], rtol=1e-9)  # square pixels
    return np.arange(len(w2c)), relative(np.linalg.inv(w2c))


def sana(folder: Path, to: Generator) -> Read:
    c2w, lens = np.load(folder / "poses.npy"), np.load(folder / "intrinsics.npy")
    assert c2w.shape == (to.frames, 4, 4) and (to.frames - 1) % 8 == 0 and lens.shape == (4,)
    return np.arange(len(c2w)), relative(c2w)


def gen3c(path: Path, to: Generator) -> Read:
    with np.load(path) as file:
        w2c, lens = file["w2cs_all"].astype(float), file["Ks_all"].astype(float)
    assert w2c.shape[1:] == (4, 4) and lens.shape == (len(w2c), 3, 3) and (len(w2c) - 1) % 120 == 0
    np.testing.assert_allclose(lens[0, :2, 2], [640, 352])  # pixels of 1280x704
    return np.arange(len(w2c)), relative(np.linalg.inv(w2c))


def hyworld(folder: Path, to: Generator) -> Read:
    scene = json.loads((folder / "camera.json").read_text())
    w2c, lens = np.array(scene["extrinsic"]), np.array(scene["intrinsic"])
    assert w2c.shape == (to.frames, 4, 4) and lens.shape == (to.frames, 3, 3)
    return np.arange(len(w2c)), relative(np.linalg.inv(w2c))


def inspatio(path: Path, to: Generator) -> Read:
    """Lines of pitch, yaw and displacement; up to three keyframes are joined by straight lines; +pitch looks down."""
    pitch, yaw, way = ([float(word) for word in line.split()] for line in path.read_text().splitlines())
    assert len(pitch) == len(yaw) == len(way) == 3  # one fails, and more are smoothed
    share = np.linspace(0, 2, to.frames)
    pitch_at, yaw_at, way_at = (np.interp(share, [0, 1, 2], keys) for keys in (pitch, yaw, way))
    c2w = np.tile(np.eye(4), (to.frames, 1, 1))
    c2w[:, :3, :3] = Rotation.from_euler("YX", np.stack([yaw_at, -pitch_at], axis=1), degrees=True).as_matrix()
    if not any(pitch) and not any(yaw):
        c2w[:, 2, 3] = way_at
    return np.arange(to.frames), c2w


def minwm_path(runs: str, to: Generator) -> np.ndarray:
    """20 poses of 19 tokens: 3 degrees or 0.08 each, from where the camera is; a patched copy turns by 6 and rests."""
    step = to.options.get("degrees", 3)
    turn = {"j": (0, -step), "l": (0, step), "i": (step, 0), "k": (-step, 0)}
    turn |= {"z": (0, 0)} if "rest" in to.options else {}
    go = {"w": (0, 0, 0.08), "s": (0, 0, -0.08), "a": (-0.08, 0, 0), "d": (0.08, 0, 0), "u": (0, -0.08, 0)}
    c2w = [np.eye(4)]
    for run in runs.split(","):
        letter, count = re.fullmatch(r"([a-z]+)\*(\d+)", run).groups()  # type: ignore[union-attr]
        for _ in range(int(count)):
            step = np.eye(4)
            if letter in turn:
                step[:3, :3] = Rotation.from_euler("XY", turn[letter], degrees=True).as_matrix()
            else:
                step[:3, 3] = {**go, "dn": (0, 0.08, 0)}[letter]
            c2w.append(c2w[-1] @ step)
    return np.stack(c2w)


def minwm_hy(path: Path, to: Generator) -> Read:
    """A list of samples; short paths are padded with the last pose, long ones cut."""
    samples = json.loads(path.read_text())
    assert isinstance(samples, list) and set(samples[0]) == {"caption", "image", "trajectory"}
    made = minwm_path(samples[0]["trajectory"], to)
    return 4 * np.arange(20), np.concatenate([made, np.tile(made[-1], (20, 1, 1))])[:20]


def minwm_wan(path: Path, to: Generator) -> Read:
    """Every line that is not empty is a path of exactly 19 tokens."""
    (runs,) = [line for line in path.read_text().splitlines() if line.strip()]
    made = minwm_path(runs, to)
    assert len(made) == 20
    return 4 * np.arange(20), made


def matrix_game_3(path: Path, to: Generator) -> Read:
    """Keys w s a d over 0.5 and two unused; mouse up and right, 15 degrees per unit and frame, under 0.02 ignored."""
    with np.load(path) as file:
        keys, mouse = file["keyboard"].astype(float), file["mouse"].astype(float)
    assert keys.shape == (to.frames, 6) and mouse.shape == (to.frames, 2) and not keys[:, 4:].any()
    assert not ((np.abs(mouse) > 0) & (np.abs(mouse) < 0.02 - 1e-8)).any()
    yaw = pitch = 0.0
    at = np.zeros(3)
    c2w = [np.eye(4)]
    for (w, s, a, d), (up, right) in zip(keys[:-1, :4], mouse[:-1], strict=True):
        ahead, across = (w > 0.5) * 1.0 - (s > 0.5), (d > 0.5) * 1.0 - (a > 0.5)
        speed = 8.73 if ahead and across else 12.35
        at = at + speed * Rotation.from_euler("Y", yaw, degrees=True).apply([across, 0, ahead])
        yaw, pitch = yaw + 15 * right, pitch + 15 * up
        pose = np.eye(4)
        pose[:3, :3] = Rotation.from_euler("YX", [yaw, pitch], degrees=True).as_matrix()
        pose[:3, 3] = at
        c2w.append(pose)
    return np.arange(to.frames), np.stack(c2w)


def voyager(path: Path, to: Generator) -> Read:
    """The name of one of six moves: about 45 degrees, or 1 unit, over 49 frames."""
    name = path.read_text().strip()
    share = np.arange(49) / 48
    c2w = np.tile(np.eye(4), (49, 1, 1))
    if name.startswith("turn_"):
        yaw = {"turn_left": -45, "turn_right": 45}[name] * share
        c2w[:, :3, :3] = Rotation.from_euler("Y", yaw[:, None], degrees=True).as_matrix()
    else:
        way = {"forward": (0, 0, 1), "backward": (0, 0, -1), "left": (-1, 0, 0), "right": (1, 0, 0)}[name]
        c2w[:, :3, 3] = share[:, None] * np.array(way)
    return np.arange(49), c2w


READERS = {
    "wan21-fun-1p3b": wan_fun, "wan21-fun-14b": wan_fun, "wan22-fun-5b": wan_fun, "wan22-fun-a14b": wan_fun,
    "easyanimate-v51": easyanimate, "magicworld": magicworld, "hunyuan-game-craft": game_craft,
    "hunyuan-game-craft-mirrored": game_craft, "hunyuan-worldplay": worldplay, "lingbot-world": lingbot,
    "lingbot-world-act": lingbot_act, "versecrafter": versecrafter, "gen3c": gen3c, "spatia": spatia,
    "recammaster": recammaster, "inspatio-world": inspatio, "hydra": hydra, "liveworld": liveworld, "hyworld": hyworld,
    "matrix-game-3": matrix_game_3, "minwm-hy": minwm_hy, "minwm-wan": minwm_wan, "sana-wm": sana, "voyager": voyager,
}  # fmt: skip
