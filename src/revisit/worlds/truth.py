"""Truth: the exact ground truth of a film, saved as plain arrays in one file (docs/worlds.md lists them)."""

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
        "instances": np.array([names.get(instance, "") for instance in range(max(names) + 1)]),
        **{name: np.array([getattr(state, name) for state in film.states]) for name in STATES},
        "phases": np.array(film.phases),
        "begins": np.float64(film.begins),
        "light": film.light,
        "screen": film.screen,
        "event": np.array(film.event),
        "camera": np.array(film.script),
    }
    save_npz(path, arrays, compress=True)
