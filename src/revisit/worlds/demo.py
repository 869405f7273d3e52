"""Demo: a folder of clips by five models with known faults, their references, truth and manifest.

<model>/<scene>.mp4   what each model generated
truth/<scene>.mp4     the reference
truth/<scene>.npz     poses, K, depth, masks, states and phases (see docs/worlds.md)
manifest.jsonl        one line per clip, as the folder suite reads it
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from revisit.media import encode_mp4
from revisit.media.files import write_lines
from revisit.worlds.events import EVENTS
from revisit.worlds.film import ClipLine, play
from revisit.worlds.layouts.common import true_frames
from revisit.worlds.models import MODELS, generate
from revisit.worlds.places import make_room
from revisit.worlds.truth import save_truth
from revisit.worlds.workers import Progress

OUT_AND_BACK = "yaw:{away}:60@40,yaw:{back}:60@40"
OUT_AND_BACK_STEPPING = "yaw:{away}:60+truck:{away}:0.4@40,yaw:{back}:60+truck:{back}:0.4@40"


@dataclass(frozen=True)
class DemoScene:
    """A kind of target, what happens to it, and how the camera moves; {away} and {back} are the room's sides."""

    kind: str
    event: str
    script: str = OUT_AND_BACK

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.event}"


SCENES = (
    DemoScene("ball", "moved"),
    DemoScene("gift", "changed"),
    DemoScene("vase", "both"),
    DemoScene("rocket", "none", OUT_AND_BACK_STEPPING),
)


def render_demo(
    folder: Path,
    *,
    scenes: Sequence[DemoScene] = SCENES,
    size: tuple[int, int] = (360, 640),
    progress: Progress | None = None,
) -> Path:
    """Write the clips of all models in all scenes and return the path of the manifest.

    Scenes are rendered side by side; `progress(done, total, what)` is called by one thread at a time.
    """
    folder = Path(folder)
    total, done, lock = len(scenes) * (len(MODELS) + 2), 0, Lock()

    def tell(what: str) -> None:
        nonlocal done
        with lock:
            done += 1
            if progress is not None:
                progress(done, total, what)

    def shoot(numbered: tuple[int, DemoScene]) -> list[ClipLine]:
        number, scene = numbered
        return _shoot(folder, scene, number, size, tell)

    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        lines = [line for scene in pool.map(shoot, enumerate(scenes)) for line in scene]
    manifest = folder / "manifest.jsonl"
    write_lines(manifest, sorted(lines, key=lambda line: list(MODELS).index(line["model"])), ascii=True)
    return manifest


def _shoot(
    folder: Path, scene: DemoScene, number: int, size: tuple[int, int], tell: Callable[[str], None]
) -> list[ClipLine]:
    """Render one scene for all models and return its lines of the manifest."""
    world = make_room(number, scene.kind, scene.name)
    away, back = ("right", "left") if world.turn == "right" else ("left", "right")
    film = play(world, scene.script.format(away=away, back=back), scene.event, size)
    tell(f"{scene.name}: rendered")
    encode_mp4(folder / "truth" / f"{scene.name}.mp4", true_frames(film), film.fps)
    save_truth(film, folder / "truth" / f"{scene.name}.npz")
    tell(f"{scene.name}: truth")
    lines: list[ClipLine] = []
    for model in MODELS:
        encode_mp4(folder / model / f"{scene.name}.mp4", generate(model, film), film.fps)
        tell(f"{scene.name}: {model}")
        line: ClipLine = {**film.line(scene.name, 0), "model": model, "video": f"{model}/{scene.name}.mp4"}
        line["prompt"] = f"{world.prompt} Meanwhile {EVENTS[scene.event].what}."
        lines.append(line)
    return lines
