"""Whether drift curves find the speed of a drift that is known, on rendered worlds.

    python benchmarks/drift_speed.py [--worlds 6] [--workers 2]

Each world is filmed for ten seconds, with a drift whose speed is drawn by lot:

- *place*: the camera turns or tilts at a constant speed; known is the angle as a share of the field of view.
- *look*: all levels fall exponentially while the camera turns there and back; known are the falls of the logarithms of
  gradients, contrast and saturation, and of lightness and colour by scikit-image.
- *similarity*: before a camera at rest one world is replaced by another, from one side on; known is which patches are
  replaced in each frame, and so the descriptor of the frame from those of the patches of both worlds.

Ratios of measured to known slopes go to benchmarks/drift_speed.json, which a test reads; it fails where the code has
changed since. No threshold of the metrics was set on these worlds or speeds.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
from pathlib import Path
from typing import Any

import numpy as np
from distances import THREADS, digest_of

import revisit
from revisit.core import Score, import_registering_modules
from revisit.geometry.camera_script import camera_path, parse_script
from revisit.metrics import drift_curves, view_gate
from revisit.metrics.drift_curves import DRIFT_METRICS
from revisit.metrics.view_gate import derive_view_relations
from revisit.observers import color_texture, matching, patches, views
from revisit.worlds import make_world, play
from revisit.worlds.failures import add_faint_noise

SIZE, FRAMES, FPS = (144, 256), 41, 4.0
PATCHED, COLUMNS = (192, 320), 20  # a size of whole patches of 16 pixels
SECONDS = (FRAMES - 1) / FPS
FIRST_WORLD = 7100
STORE = Path(__file__).with_suffix(".json")


def code_digest() -> str:
    """Of the code that the slopes rest on."""
    return digest_of(drift_curves, view_gate, views, matching, patches, color_texture)


def render(seed: int, script: str, size: tuple[int, int] = SIZE) -> tuple[np.ndarray, float]:
    """Frames of a world along a script, with a model's faint noise, and its field of view across."""
    world = make_world(seed, ("room", "yard")[seed % 2])
    half = (FRAMES - 1) // 2
    away_and_back = play(world, f"yaw:left:80@{half},yaw:right:80@{half}", size=size, fps=FPS)  # films must look away
    film = away_and_back.along(camera_path(parse_script(script), world.start))
    frames = (film.shot(k, film.states[k]).rgb for k in range(len(film)))
    return np.stack(list(add_faint_noise(frames, np.random.default_rng(seed)))), world.fov


def slope(name: str, frames: np.ndarray) -> float:
    """What the metric says, per minute."""
    facts, *evidence = (revisit.observe(frames, f"lite.{id}", fps=FPS) for id in ("frames", *OBSERVERS[name]))
    if name == "place":
        evidence = [derive_view_relations.fn(evidence[0])]
    answer = DRIFT_METRICS[name][0](facts, *evidence)
    assert isinstance(answer, Score), answer
    return float(answer.value)


OBSERVERS = {"place": ("views",), "look": ("lab", "style"), "similarity": ("patches",)}


def place(seed: int, rng: np.random.Generator) -> dict[str, Any]:
    """A camera that turns, or tilts."""
    turning = bool(rng.random() < 0.7)
    degrees = float(rng.uniform(10, 40) if turning else rng.uniform(6, 16))
    way = ("yaw:left", "yaw:right")[rng.integers(2)] if turning else "tilt:down"
    frames, across = render(seed, f"{way}:{degrees:.3f}@{FRAMES - 1}")
    height, width = SIZE
    up = 2 * np.degrees(np.arctan(np.tan(np.radians(across) / 2) * height / width))
    known = 60 * degrees / SECONDS / (across if turning else up)
    return {"drift": way, "known": known, "measured": slope("place", frames)}


def look(seed: int, rng: np.random.Generator) -> dict[str, Any]:
    """A picture that fades while the camera turns there and back."""
    from skimage.color import rgb2lab

    rate = float(rng.uniform(0.01, 0.06))  # of the levels, in a second
    half = (FRAMES - 1) // 2
    frames, _ = render(seed, f"yaw:left:10@{half},yaw:right:10@{half}")
    fading = np.exp(-rate * np.arange(FRAMES) / FPS)[:, None, None, None]
    frames = np.round(frames * fading).astype(np.uint8)
    some = [0, FRAMES - 1]  # the same view: they differ by the fading alone
    light = np.abs(np.diff([rgb2lab(frames[k]).mean(axis=(0, 1)) for k in some], axis=0)).sum() / SECONDS / 10
    known = 60 * float(light + 5 * rate) / 8  # three of CIELAB, three gradients, contrast, saturation
    return {"drift": "fading", "known": known, "measured": slope("look", frames)}


def similarity(seed: int, rng: np.random.Generator) -> dict[str, Any]:
    """A world that is replaced by another, column by column of patches."""
    share = float(rng.uniform(0.5, 1.0))  # of the view, in the end
    worlds = np.stack([render(seed + 100 * k, f"hold@{FRAMES - 1}", PATCHED)[0][0] for k in (0, 1)])
    if rng.random() < 0.5:
        worlds = worlds[:, :, ::-1]
    columns = np.round(np.linspace(0, share, FRAMES) * COLUMNS).astype(int)
    replaced = np.arange(COLUMNS) < columns[:, None]  # (frames, columns)
    pixels = np.repeat(replaced, PATCHED[1] // COLUMNS, axis=1)[:, None, :, None]
    frames = np.where(pixels, worlds[1], worlds[0])
    tokens = revisit.observe(worlds, "lite.patches", fps=FPS).tokens.astype(float)
    whole = [described(np.where(mask[None, :, None], tokens[1], tokens[0])) for mask in replaced]
    gaps, distances = zip(
        *(((j - i) / FPS, 1 - float(whole[i] @ whole[j])) for j in range(FRAMES) for i in range(j)), strict=True
    )
    known = 60 * float(np.polyfit(gaps, distances, 1)[0])
    return {"drift": "replaced", "known": known, "measured": slope("similarity", frames)}


def described(tokens: np.ndarray) -> np.ndarray:
    """The unit vector of a frame by its card: mean token of the frame and of 3 x 3 regions, each of length 1."""
    regions = [tokens, *(part for rows in np.array_split(tokens, 3) for part in np.array_split(rows, 3, axis=1))]
    means = np.stack([region.mean(axis=(0, 1)) for region in regions])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    return means.ravel() / np.sqrt(len(means))


DRIFTS = {"place": place, "look": look, "similarity": similarity}


def measure(task: tuple[str, int]) -> dict[str, Any]:
    """One kind of drift in one world."""
    name, number = task
    import_registering_modules()
    seed = FIRST_WORLD + number
    row = DRIFTS[name](seed, np.random.default_rng([seed, list(DRIFTS).index(name)]))
    known, measured = row["known"], row["measured"]
    return {
        "signal": name, "world": seed, "drift": row["drift"], "known": round(known, 4),
        "measured": round(measured, 4), "ratio": round(measured / known, 4),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=6)
    parser.add_argument("--signals", default=",".join(DRIFTS))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=STORE)
    given = parser.parse_args()
    os.environ.update(dict.fromkeys(THREADS, "1"))  # of the workers
    tasks = [(name, number) for name in given.signals.split(",") for number in range(given.worlds)]
    rows = []
    with multiprocessing.get_context("spawn").Pool(given.workers) as pool:
        for row in pool.imap(measure, tasks):
            rows.append(row)
            print(json.dumps(row), flush=True)
    given.out.write_text(json.dumps({"code": code_digest(), "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
