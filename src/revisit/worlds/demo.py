"""Demo: a folder of clips by five models with known faults, their references, truth and manifest.

<model>/<scene>.mp4   what each model generated
truth/<scene>.mp4     the reference
truth/<scene>.npz     poses, K, depth, masks, states and phases (see docs/worlds.md)
manifest.jsonl        one line per clip, as the folder suite reads it

A model is a function from a film (the truth) to the frames it would generate; most are failures of
`failures.py` at full strength. To add one, add a row that says what it gets wrong. Frames then get the model's
own faint sensor noise, so that even the perfect model never repeats the truth pixel by pixel.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core.text import read_package_yaml
from revisit.media import encode_mp4
from revisit.media.files import write_json_lines
from revisit.worlds.events import EVENTS
from revisit.worlds.failures import add_faint_noise, failure_of_kind
from revisit.worlds.film import Film, play, save_truth
from revisit.worlds.layouts.common import true_frames
from revisit.worlds.places import make_room
from revisit.worlds.workers import Progress, StepCallback, run_in_processes
from revisit.worlds.world import Shot

SIZE, FPS = (144, 256), 6.0  # height, width; frames per second
OUT_AND_BACK = "hold@1,yaw:{away}:60@7,yaw:{back}:60@7,hold@2"
ROOMS_APART = 1000  # between the rooms of two seeds
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


@dataclass(frozen=True)
class DemoScene:
    """A kind of target, what happens to it, and how the camera moves; {away} and {back} are the room's sides."""

    kind: str
    event: str
    script: str = OUT_AND_BACK

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.event}"


# Enough rooms that every question names the models that fail in it; benchmarks/demo_seeds.py tries other rooms.
SCENES = [DemoScene(*scene) for scene in read_package_yaml(__package__, "demo.yaml")]


def render_demo(
    folder: Path,
    *,
    scenes: Sequence[DemoScene] = SCENES,
    size: tuple[int, int] = SIZE,
    seed: int = 0,
    progress: Progress | None = None,
    workers: int | None = None,
) -> Path:
    """Write the clips of all models in all scenes and return the path of the manifest.

    Each seed has rooms of its own. So many processes render a scene each, by default as many as cores;
    `progress(done, total, what)` is called for every clip.
    """
    rooms = list(enumerate(scenes, start=ROOMS_APART * seed))
    shoot = partial(_render_scene, Path(folder), size)
    lines_by_scene = run_in_processes(shoot, rooms, workers, len(rooms) * (len(MODELS) + 2), progress)
    lines = [line for scene in lines_by_scene for line in scene]
    manifest = Path(folder) / "manifest.jsonl"
    write_json_lines(manifest, sorted(lines, key=lambda line: list(MODELS).index(line["model"])), ascii=True)
    return manifest


def _render_scene(
    folder: Path, size: tuple[int, int], numbered_scene: tuple[int, DemoScene], tell: StepCallback
) -> list[dict[str, Any]]:
    """Render the scene of a room, which its number tells from others, for all models; return lines of the manifest."""
    number, scene = numbered_scene
    world = make_room(number, scene.kind, scene.name)
    film = play(world, scene.script.format(**world.away_and_back), scene.event, size, fps=FPS)
    tell(f"{scene.name}: rendered")
    encode_mp4(folder / "truth" / f"{scene.name}.mp4", true_frames(film), film.fps)
    save_truth(film, folder / "truth" / f"{scene.name}.npz")
    tell(f"{scene.name}: truth")
    lines = []
    for model in MODELS:
        encode_mp4(folder / model / f"{scene.name}.mp4", generate_model_frames(model, film), film.fps)
        tell(f"{scene.name}: {model}")
        line = {**film.manifest_line(scene.name, 0), "model": model, "video": f"{model}/{scene.name}.mp4"}
        lines.append({**line, "prompt": f"{world.prompt} Meanwhile {EVENTS[scene.event].what}."})
    return lines


def generate_model_frames(model: str, film: Film) -> Iterator[np.ndarray]:
    """The frames (uint8 RGB) that a model makes of a film, with its noise."""
    rng = np.random.default_rng([0, film.world.seed, zlib.crc32(model.encode())])
    frames = (
        failure_of_kind(FAILURES[model]).frames(film, 1.0, rng) if model in FAILURES else drifting_frames(film, rng)
    )
    return add_faint_noise(frames, rng)


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
