"""Family: how a group of generators takes its camera."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

import numpy as np

from revisit.control.compiling import CameraPlan
from revisit.core import RevisitError
from revisit.geometry.poses import InvalidPoses, as_4x4, check_rigid, invert
from revisit.geometry.rotations import from_yaw_pitch, to_yaw_pitch

LATENT_STRIDE = 4  # frames per latent frame of the usual video autoencoders
STILL = 1e-6  # metres or degrees

Ways = Literal["metres", "shape"]
Files = Mapping[str, bytes]


class PayloadError(RevisitError):
    """A path that a family cannot express, or a payload that cannot be read; the message says why."""


@dataclass(frozen=True, eq=False)
class Ask:
    """What a generator shall be told: a path, with the plan it comes from, and what some files hold besides."""

    plan: CameraPlan
    c2w: np.ndarray  # (N, 4, 4) relative to the first pose; it may be amplified
    prompt: str = ""
    image: str = ""
    picture: tuple[int, int] | None = None  # width and height of the first picture, where it is known

    def lens(self, size: tuple[int, int]) -> np.ndarray:
        """K in pixels of a picture of another size that shows as much across."""
        assert self.plan.path.intrinsics is not None
        width, height = size
        focal = float(self.plan.path.intrinsics[0, 0, 0]) * width / self.plan.size[0]
        return np.array([[focal, 0, width / 2], [0, focal, height / 2], [0, 0, 1.0]])

    def lenses(self, size: tuple[int, int]) -> np.ndarray:
        """The same for every frame (N, 3, 3)."""
        return np.tile(self.lens(size), (len(self.c2w), 1, 1))


@dataclass(frozen=True, eq=False)
class Delivered:
    """What a payload says by its loader's rules: camera-to-world poses relative to the first, and their frames.

    Where the loader keeps only the shape of a way, or nobody knows how large its unit is, `ways` is `shape`. Where the
    size of a turn is not known either, there are no poses.
    """

    frame: np.ndarray  # (M,)
    c2w: np.ndarray | None  # (M, 4, 4)
    ways: Ways = "metres"


@dataclass(frozen=True)
class Family:
    """A form of camera control: its files, how to write them and how their loader reads them.

    `write(ask, **options)` gives the content of each file by its name, `read(files, count, **options)` what a loader
    makes of them in a clip of so many frames. A family whose files have names of their own is a folder; the others are
    one file beside the clip.
    """

    id: str
    title: str
    files: tuple[str, ...]
    layout: str
    write: Callable[..., dict[str, bytes]]
    read: Callable[..., Delivered]
    folder: bool = False
    options: tuple[str, ...] = ()
    line: bool = False  # whether the file is one line of text that a command can take as it is
    pictured: bool = False  # whether its lens is in pixels of the first picture
    gains: bool = True  # whether a gain can be in it
    about: bool = False  # whether the loader's own numbers are known only about


def relative(c2w: np.ndarray) -> np.ndarray:
    """Poses seen from the first one."""
    return invert(c2w[0]) @ c2w


def latents(count: int) -> np.ndarray:
    """Frames 0, 4, 8, ... of so many: one for each latent frame."""
    return np.arange(0, count, LATENT_STRIDE)


def local_steps(c2w: np.ndarray) -> np.ndarray:
    """How far each pose (N - 1, 3) lies from the one before, to the right, down and ahead of it."""
    return (invert(c2w[:-1]) @ c2w[1:])[:, :3, 3]


def level(c2w: np.ndarray) -> np.ndarray:
    """The same places, looking level along the heading."""
    made = c2w.copy()
    made[:, :3, :3] = turned(to_yaw_pitch(c2w[:, :3, :3])[0], np.zeros(len(c2w)))
    return made


def turned(yaw: np.ndarray, pitch: np.ndarray) -> np.ndarray:
    """Rotations (N, 3, 3) of a camera that does not roll."""
    return np.stack([from_yaw_pitch(*angles) for angles in zip(yaw, pitch, strict=True)])


def chained(steps: Iterable[np.ndarray]) -> np.ndarray:
    """The path that goes on from each pose by the next step."""
    return np.stack(list(accumulate(steps, np.matmul, initial=np.eye(4))))


def held(c2w: np.ndarray) -> np.ndarray:
    """Whether the keys forward, back, left and right are held (N - 1, 4) from each pose to the next."""
    right, _, ahead = local_steps(level(c2w)).T
    return np.stack([ahead > STILL, ahead < -STILL, right < -STILL, right > STILL], axis=1)


def packed(**members: np.ndarray) -> bytes:
    """An npz file of float32 arrays."""
    file = io.BytesIO()
    np.savez(file, **{name: array.astype(np.float32) for name, array in members.items()})  # type: ignore[arg-type]
    return file.getvalue()


def saved(array: np.ndarray) -> bytes:
    """An npy file."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def member(content: bytes, name: str, shape: tuple[int | None, ...]) -> np.ndarray:
    """A member of an npz, or the array of an npy where the name is empty; None stands for any length."""
    try:
        loaded = np.load(io.BytesIO(content), allow_pickle=False)
        found = np.asarray(loaded[name] if name else loaded, dtype=float)
    except (OSError, EOFError, ValueError, KeyError, IndexError, TypeError, zipfile.BadZipFile) as error:
        what = f"npz with a member {name!r}" if name else "npy file"
        raise PayloadError(f"the file is not a {what}") from error
    fits = len(found.shape) == len(shape) and all(
        want in (None, have) and have for have, want in zip(found.shape, shape, strict=True)
    )
    if not fits:
        raise PayloadError(f"`{name or 'the array'}` has shape {found.shape}; expected {shape}, None for any length")
    return found


def document(content: bytes) -> Any:
    """A JSON document."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise PayloadError(f"the document is not JSON: {error}") from error


def rigid(matrices: Any) -> np.ndarray:
    """Poses (N, 4, 4), checked."""
    try:
        full = as_4x4(np.asarray(matrices, dtype=float))
        check_rigid(full)
    except (InvalidPoses, TypeError, ValueError) as error:
        raise PayloadError(f"these are not camera poses: {error}") from error
    return full


def numbers(matrix: np.ndarray) -> list[Any]:
    """An array as nested lists, without minus zeros."""
    return (np.round(matrix, 12) + 0.0).tolist()
