"""Models with known failures, on which every metric can be tested.

A model is a function from a film (the truth) to the frames it would generate; most are failures of
`failures.py` at full strength. To add one, add a row that says what it gets wrong. Frames then get the model's
own faint sensor noise, so that even the perfect model never repeats the truth pixel by pixel.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np

from revisit.worlds.failures import add_faint_noise, failure_of_kind
from revisit.worlds.film import Film
from revisit.worlds.world import Shot


def drifting_frames(film: Film, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """The truth, whose colours, contrast and textures change more and more once the camera has looked away."""
    gains = rng.uniform(0.78, 1.22, (256, 3))  # of each instance: furniture, walls and target take other colours
    cast = np.array([1.12, 1.0, 0.88]) if rng.random() < 0.5 else np.array([0.88, 1.0, 1.12])
    waves, shifts = rng.normal(0, 9, (8, 3)), rng.uniform(0, 2 * np.pi, 8)
    left = film.phases[0]
    for frame in range(len(film)):
        shot = film.truth(frame)
        strength = max(0.0, (frame - left + 1) / (len(film) - left))
        if strength == 0:
            yield shot.rgb
        else:
            stains = _surface_stains(shot, film, frame, waves, shifts)
            yield _drifted_picture(shot, gains, cast, stains, strength)


# What each gets wrong, in words.
MODELS = {
    "perfect": "nothing, it shows the truth",
    "frozen": "the camera never moves",
    "forgets": "the target is gone on return",
    "resets": "the target returns as it was before the event",
    "drifts": "colours, contrast and textures change after looking away",
}
# Those that are failures at full strength.
FAILURES = {"perfect": "perfect", "frozen": "frozen_camera", "forgets": "vanish", "resets": "state_reset"}


def generate_model_frames(model: str, film: Film) -> Iterator[np.ndarray]:
    """The frames (uint8 RGB) that a model makes of a film, with its noise."""
    rng = np.random.default_rng([0, film.world.seed, zlib.crc32(model.encode())])
    frames = (
        failure_of_kind(FAILURES[model]).frames(film, 1.0, rng) if model in FAILURES else drifting_frames(film, rng)
    )
    return add_faint_noise(frames, rng)


def _surface_stains(shot: Shot, film: Film, frame: int, waves: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """Blotches in -1..1 that stick to the surfaces of the room, at the size of the frame."""
    import cv2

    depth = shot.depth[::4, ::4]
    height, width = shot.depth.shape
    y, x = np.mgrid[: depth.shape[0], : depth.shape[1]] * 4
    rays = np.stack([x, y, np.ones_like(x)], axis=-1) @ np.linalg.inv(film.K).T
    points = (rays * depth[..., None]) @ film.poses[frame][:3, :3].T + film.poses[frame][:3, 3]
    field = np.sin(points @ waves.T + shifts).mean(axis=-1) * 2
    return cv2.resize(np.clip(field, -1, 1).astype(np.float32), (width, height), interpolation=cv2.INTER_LINEAR)


def _drifted_picture(
    shot: Shot, gains: np.ndarray, cast: np.ndarray, stains: np.ndarray, strength: float
) -> np.ndarray:
    """A shot whose colours, contrast, stains and sharpness have drifted by a strength of 0 to 1."""
    import cv2

    table = (1 + strength * (gains * cast - 1)).astype(np.float32)
    tint = cv2.merge([cv2.LUT(shot.mask, table[:, channel]) for channel in range(3)])
    soft = cv2.GaussianBlur(shot.rgb, (0, 0), 1.2)
    image = cv2.addWeighted(shot.rgb, 1 - 0.5 * strength, soft, 0.5 * strength, 0).astype(np.float32)
    image *= cv2.blur(tint, (3, 3))
    image *= (1 + 0.15 * strength * stains)[..., None]
    grey = np.float32(118)
    return np.clip(grey + (image - grey) * np.float32(1 - 0.2 * strength), 0, 255).astype(np.uint8)
