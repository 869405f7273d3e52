"""Truth: the exact ground truth of a film, saved as plain arrays in one file.

poses (n, 4, 4)       camera to world, OpenCV axes, metres
K (3, 3), fps
depth (m, h, w)       float16 metres along the optical axis, of the frames in depth_frames
masks (n, h, w)       instance ids; instances[id] is the name of each, "" where there is none
place (n, 3), look, amount, roll   the state of the target in every frame
phases, begins        first hidden and first returned frame; the frame at which the event begins
light, screen (n,)    shares of the light that is on and of the way that the screen has come
event, camera         names: what happened, and the camera script
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from revisit.media import save_npz
from revisit.worlds.film import Film

DEPTH_EVERY = 4  # frames; depth is the largest part of the truth
STATES = ("place", "look", "amount", "roll")


def save_truth(film: Film, path: Path, *, depth_every: int = DEPTH_EVERY) -> None:
    """Write what is true of a film to an npz file."""
    shots = [film.truth(frame) for frame in range(len(film))]
    names = film.instances
    arrays = {
        "poses": film.poses,
        "K": film.K,
        "fps": np.float64(film.fps),
        "depth": np.stack([shot.depth for shot in shots[::depth_every]]).astype(np.float16),
        "depth_frames": np.arange(0, len(film), depth_every),
        "masks": np.stack([shot.mask for shot in shots]),
        "instances": np.array([names.get(id, "") for id in range(max(names) + 1)]),
        **{name: np.array([getattr(state, name) for state in film.states]) for name in STATES},
        "phases": np.array(film.phases),
        "begins": np.float64(film.begins),
        "light": film.light,
        "screen": film.screen,
        "event": np.array(film.event),
        "camera": np.array(film.script),
    }
    save_npz(path, arrays, compress=True)
