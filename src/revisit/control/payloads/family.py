"""Family: how a group of generators takes its camera."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, product
from typing import Any, Literal

import numpy as np

from revisit.control.requested_path import CameraPlan
from revisit.core import RevisitError
from revisit.geometry.poses import invert_rigid_poses
from revisit.geometry.rotations import angle_between_rotations, rotation_from_yaw_pitch, yaw_pitch_of_rotation

LATENT_STRIDE = 4  # frames per latent frame of the usual video autoencoders
STILL = 1e-6  # metres or degrees

Ways = Literal["metres", "shape"]
Files = Mapping[str, bytes]
PayloadOptions = Mapping[str, Any]  # of a family, by the names of the arguments of its `write` and `read`


class PayloadError(RevisitError):
    """A path that a family cannot express; the message says why."""


@dataclass(frozen=True, eq=False)
class PayloadRequest:
    """What a generator shall be told: a path, with the plan it comes from, and what some files hold besides."""

    plan: CameraPlan
    c2w: np.ndarray  # (N, 4, 4) relative to the first pose; it may be amplified
    prompt: str = ""
    image: str = ""
    picture: tuple[int, int] | None = None  # width and height of the first picture, where it is known

    def intrinsics_for_size(self, size: tuple[int, int]) -> np.ndarray:
        """K in pixels of a picture of another size that shows as much across."""
        assert self.plan.path.intrinsics is not None
        width, height = size
        focal = float(self.plan.path.intrinsics[0, 0, 0]) * width / self.plan.size[0]
        return np.array([[focal, 0, width / 2], [0, focal, height / 2], [0, 0, 1.0]])


@dataclass(frozen=True, eq=False)
class LoadedPath:
    """What a payload says by its loader's rules: camera-to-world poses relative to the first, and their frames.

    Where the loader keeps only the shape of a way, or nobody knows how large its unit is, `ways` is `shape`. Where the
    size of a turn is not known either, there are no poses.

    Keys move along the heading that the camera has then. The poses do not say that heading where their turns are
    amplified or of unknown size; so `moves` holds what the keys ask for between two poses.
    """

    frame: np.ndarray  # (M,)
    c2w: np.ndarray | None  # (M, 4, 4)
    ways: Ways = "metres"
    moves: np.ndarray | None = None  # (M - 1, 2) to the right and ahead of the heading, in steps of one key
    key: float = 0.0  # how far one key goes from one pose to the next, in the unit of the ways; 0 without keys


@dataclass(frozen=True)
class Family:
    """A form of camera control: its files, how to write them and how their loader reads them.

    `write(ask, **options)` gives the content of each file by its name, `read(files, count, **options)` what a loader
    makes of them in a clip of so many frames. A family whose files have names of their own is a folder; the others are
    one file beside the clip.
    """

    id: str
    write: Callable[..., dict[str, bytes]]
    read: Callable[..., LoadedPath]
    files: Sequence[str]
    layout: str
    options: Sequence[str] = ()
    line: bool = False  # whether the file is one line of text that a command can take as it is
    pictured: bool = False  # whether its lens is in pixels of the first picture
    gains: bool = True  # whether a gain can be in it
    about: bool = False  # whether the loader's own numbers are known only about
    token_degrees: float | None = None  # that a token turns, where the option `degrees` does not say otherwise
    keyed: bool = False  # whether ways are told by keys of one speed: their shape counts, and no way is too long

    @property
    def is_folder(self) -> bool:
        """Whether the files have names of their own, and so lie in a folder."""
        return "." in self.files[0]


def poses_relative_to_first(c2w: np.ndarray) -> np.ndarray:
    """Poses seen from the first one."""
    return invert_rigid_poses(c2w[0]) @ c2w


def loaded_path_of_all_frames(c2w: np.ndarray) -> LoadedPath:
    """What a loader makes of a pose for each frame."""
    return LoadedPath(np.arange(len(c2w)), poses_relative_to_first(c2w))


def latent_frame_numbers(frame_count: int) -> np.ndarray:
    """Frames 0, 4, 8, ... of so many: one for each latent frame."""
    return np.arange(0, frame_count, LATENT_STRIDE)


def rotations_without_roll(yaw: np.ndarray, pitch: np.ndarray) -> np.ndarray:
    """Rotations (N, 3, 3) of a camera that does not roll."""
    return np.stack([rotation_from_yaw_pitch(*angles) for angles in zip(yaw, pitch, strict=True)])


def yaw_and_pitch_or_refuse_roll(c2w: np.ndarray, why_no_roll: str) -> tuple[np.ndarray, np.ndarray]:
    """Degrees of yaw, unwrapped, and of pitch; PayloadError with `why_no_roll` where the path rolls."""
    yaw, pitch = yaw_pitch_of_rotation(c2w[:, :3, :3])
    yaw = np.degrees(np.unwrap(np.radians(yaw)))
    if float(angle_between_rotations(rotations_without_roll(yaw, pitch), c2w[:, :3, :3]).max()) > 1e-4:
        raise PayloadError(f"the path rolls, which {why_no_roll}; choose another generator")
    return yaw, pitch


def largest_distance_and_scale(
    target_positions: np.ndarray, actual_positions: np.ndarray, *, shape_only: bool
) -> tuple[float, float]:
    """(the largest distance between two ways, the scale of one): the best scale, where the size of it is not known."""
    power = float((actual_positions * actual_positions).sum())
    scale = max(0.0, float((target_positions * actual_positions).sum()) / power) if shape_only and power else 1.0
    return float(np.linalg.norm(target_positions - scale * actual_positions, axis=1).max()), scale


def accumulate_poses(steps: Iterable[np.ndarray]) -> np.ndarray:
    """The path that goes on from each pose by the next step."""
    return np.stack(list(accumulate(steps, np.matmul, initial=np.eye(4))))


# Keys forward, back, left and right -> where they lead: to the right and ahead.
KEYS = {
    (forward, back, left, right): (right - left, forward - back)
    for forward, back, left, right in product((0, 1), repeat=4)
    if not (forward and back) and not (left and right)
}


def keys_for_path(
    c2w: np.ndarray, *, two_key_speed: float = 1.0, heading_rotations: np.ndarray | None = None
) -> np.ndarray:
    """Keys forward, back, left and right (N - 1, 4), 0 or 1, that lead along a level path.

    A key has one speed, so the fastest stretch of the path sets it and slower ones are made in pulses. Between two
    poses the fewest keys are held that stay within half a key's step of the path.

    Parameters
    ----------
    c2w
        Poses (N, 4, 4).
    two_key_speed
        Speed along each of two axes when two keys are held, over the speed of one key alone.
    heading_rotations
        Rotations (N - 1, 2, 2) of the ground that the keys act along; those halfway between two poses by default, so
        that an arc needs one key.
    """
    at = c2w[:, [0, 2], 3]
    heading_rotations = headings_between_poses(c2w) if heading_rotations is None else heading_rotations
    steps = np.einsum("nji,nj->ni", heading_rotations, np.diff(at, axis=0))
    long, short = np.sort(np.abs(steps), axis=1)[:, ::-1].T
    step = float((long - short + short / two_key_speed).max(initial=0.0))
    rows = np.zeros((len(steps), 4))
    if step <= STILL:
        return rows
    step_by_keys = {
        keys: np.array(direction) * step * (two_key_speed if all(direction) else 1) for keys, direction in KEYS.items()
    }
    reached = at[0]
    for k, turn in enumerate(heading_rotations):
        target = turn.T @ (at[k + 1] - reached)
        off = {keys: float(np.linalg.norm(target - direction)) for keys, direction in step_by_keys.items()}
        near = [keys for keys, distance in off.items() if distance <= (0.5 + 1e-6) * step]
        rows[k] = min(near, key=lambda keys: (sum(keys), off[keys])) if near else min(off, key=lambda keys: off[keys])
        reached = reached + turn @ step_by_keys[tuple(rows[k].astype(int))]
    return rows


def headings_between_poses(c2w: np.ndarray) -> np.ndarray:
    """Rotations (N - 1, 2, 2) of the ground (right, ahead) to the heading halfway between two poses and the next."""
    yaw = np.unwrap(np.radians(yaw_pitch_of_rotation(c2w[:, :3, :3])[0]))
    middle = (yaw[:-1] + yaw[1:]) / 2
    cos, sin = np.cos(middle), np.sin(middle)
    return np.stack([np.stack([cos, sin], axis=1), np.stack([-sin, cos], axis=1)], axis=1)


def require_level_path(c2w: np.ndarray) -> None:
    """Raise PayloadError where a path rises or sinks, which keys cannot do."""
    if np.abs(c2w[:, 1, 3] - c2w[0, 1, 3]).max() > STILL:
        raise PayloadError("the path rises or sinks, and there is no key for that; choose another generator")


def npz_payload(**members: np.ndarray) -> dict[str, bytes]:
    """A payload of one npz file of float32 arrays."""
    file = io.BytesIO()
    np.savez(file, **{name: array.astype(np.float32) for name, array in members.items()})  # type: ignore[arg-type]
    return {"npz": file.getvalue()}


def json_payload(content: object) -> dict[str, bytes]:
    """A payload of one JSON file."""
    return {"json": json.dumps(content).encode()}


def npy_bytes(array: np.ndarray) -> bytes:
    """An npy file."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def load_array_as_float(content: bytes, member: str = "") -> np.ndarray:
    """A member of an npz, or the array of an npy, as doubles."""
    loaded = np.load(io.BytesIO(content), allow_pickle=False)
    return np.asarray(loaded[member] if member else loaded, dtype=float)


def rounded_nested_lists(matrix: np.ndarray) -> list[Any]:
    """An array as nested lists, without minus zeros."""
    return (np.round(matrix, 12) + 0.0).tolist()
