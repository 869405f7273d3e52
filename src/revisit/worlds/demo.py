"""Demo: a folder of clips by five models with known faults, their references, truth and manifest.

<model>/<scene>.mp4   what each model generated
truth/<scene>.mp4     the reference
truth/<scene>.npz     poses, K, depth, masks, states and phases (see docs/worlds.md)
manifest.jsonl        one line per clip, as the folder suite reads it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from revisit.core.text import read_package_yaml
from revisit.media import encode_mp4
from revisit.media.files import write_json_lines
from revisit.worlds.events import EVENTS
from revisit.worlds.film import play, save_truth
from revisit.worlds.layouts.common import true_frames
from revisit.worlds.models import MODELS, generate_model_frames
from revisit.worlds.places import make_room
from revisit.worlds.workers import Progress, StepCallback, run_in_processes

SIZE, FPS = (144, 256), 6.0  # height, width; frames per second
OUT_AND_BACK = "hold@1,yaw:{away}:60@7,yaw:{back}:60@7,hold@2"
ROOMS_APART = 1000  # between the rooms of two seeds


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
