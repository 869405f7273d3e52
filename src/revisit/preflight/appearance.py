"""Looks: what a few small copies of a clip's frames tell, without asking what they show."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from revisit.core import Clip
from revisit.evidence.pictures import is_black, is_flat
from revisit.media import file_digest, open_clip

SIZE = (64, 36)  # width, height of a small copy
LOOKS = 24  # of a clip, evenly spread
BLOCK = 4  # pixels of a small copy: change is looked for in blocks
MOST = 0.9  # of the frames are black or blank
STILL = (1.6, 8.0)  # of 255: mean change, and that of any block, of a clip that was asked to move and does not
FROZEN = (1.2, 5.0)  # the same, where nobody says what was asked; the stillest of 85 real clips changes by 7 and 34
ALIKE = 0.4  # of 255, in the mean: two clips that are one, encoded twice
NEARER = 0.6  # another sample's first frame fits by so much better
APART = 6.0  # of 255: a first frame that is nearer than this is the given one


@dataclass(frozen=True, eq=False)
class Appearance:
    """Small copies of frames, and facts of the file."""

    frames: int
    fps: float
    size: tuple[int, int]
    small: np.ndarray  # (n, 36, 64, 3) levels
    digest: str


def measure_appearance(clip: Path) -> Appearance:
    """What a clip looks like; raises MediaError where it cannot be decoded to its end."""
    import cv2

    def spread_frame_numbers(count: int, fps: float) -> np.ndarray:
        return np.unique(np.linspace(0, count - 1, min(count, LOOKS)).round().astype(int))

    with open_clip(Clip(clip), wanted=spread_frame_numbers) as stream:
        small = [cv2.resize(frame.rgb, SIZE, interpolation=cv2.INTER_AREA).astype(np.float32) for frame in stream]
        info = stream.info
    digest = "" if clip.is_dir() else file_digest(clip)
    return Appearance(info.count, float(info.fps), (info.width, info.height), np.stack(small), digest)


def read_small_copy(path: Path) -> np.ndarray | None:
    """The small copy of a picture."""
    import cv2

    full = cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_COLOR)
    return None if full is None else cv2.resize(full[..., ::-1], SIZE, interpolation=cv2.INTER_AREA).astype(np.float32)


def why_blank(appearance: Appearance) -> str:
    """Why a clip shows nothing, or nothing."""
    dark = is_black(appearance.small.mean(-1))
    if np.mean(dark) >= MOST:
        return f"{np.sum(dark)} of {dark.size} frames are black"
    flat = np.asarray(is_flat(np.moveaxis(appearance.small, -1, 1)).all(axis=1))
    return f"{np.sum(flat)} of {flat.size} frames have one colour" if np.mean(flat) >= MOST else ""


def why_frozen(appearance: Appearance, asked_to_move: bool) -> str:
    """Why a clip is a still picture, or nothing. A camera that was asked to rest is not asked about."""
    if len(appearance.small) < 2:
        return ""
    change = np.abs(appearance.small - appearance.small[0]).mean(-1)
    h, w = change.shape[1] // BLOCK, change.shape[2] // BLOCK
    blocks = change[:, : h * BLOCK, : w * BLOCK].reshape(len(change), h, BLOCK, w, BLOCK).mean(axis=(2, 4))
    mean, most = STILL if asked_to_move else FROZEN
    still = float(change.mean(axis=(1, 2)).max()) <= mean and float(blocks.max()) <= most
    return f"all {appearance.frames} frames are one picture" if still else ""


def mean_difference_without_tint(a: np.ndarray, b: np.ndarray) -> float:
    """Mean difference in levels of two small copies, whatever their light and tint."""
    return float(np.abs((a - a.mean(axis=(0, 1))) - (b - b.mean(axis=(0, 1)))).mean())


def lightness_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Correlation of the lightness of two small copies: 1 one picture, 0 nothing in common."""
    one, other = (small.mean(axis=2) - small.mean() for small in (a, b))
    return float((one * other).sum() / max(np.linalg.norm(one) * np.linalg.norm(other), 1e-9))


def is_same_clip(a: Appearance, b: Appearance) -> bool:
    """Whether two files are one clip: the same bytes, or the same pictures encoded twice."""
    if a.digest and a.digest == b.digest:
        return True
    return a.small.shape == b.small.shape and a.frames == b.frames and float(np.abs(a.small - b.small).mean()) < ALIKE
