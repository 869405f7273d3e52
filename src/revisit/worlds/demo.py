"""Demo: a folder of clips by five models with known faults, their references, truth and manifest.

<model>/<scene>.mp4   what each model generated
truth/<scene>.mp4     the reference
truth/<scene>.npz     poses, K, depth, masks, states and phases (see docs/worlds.md)
manifest.jsonl        one line per clip, as the folder suite reads it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from revisit.media import encode_mp4
from revisit.media.files import write_lines
from revisit.worlds.events import EVENTS
from revisit.worlds.film import ClipLine, play
from revisit.worlds.layouts.common import true_frames
from revisit.worlds.models import MODELS, generate
from revisit.worlds.places import make_room
from revisit.worlds.truth import save_truth
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
SCENES = (
    DemoScene("ball", "moved"),
    DemoScene("gift", "changed"),
    DemoScene("rocket", "moved"),
    DemoScene("chest", "moved"),
    DemoScene("figure", "moved"),
    DemoScene("vase", "changed"),
    DemoScene("gift", "moved"),
    DemoScene("snowman", "moved"),
    DemoScene("vase", "moved"),
)

FAILS = {  # metric that answers a question -> the models that fail in it
    "target_reappearance": ("forgets", "resets"),
    "target_identity": ("drifts", "resets"),
    "return_consistency": ("drifts", "forgets", "resets"),
    "event_outcome": ("drifts", "forgets", "resets"),
    "camera_standstill": ("frozen",),
}


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
    rooms = [Room(Path(folder), scene, ROOMS_APART * seed + number, size) for number, scene in enumerate(scenes)]
    lines_by_scene = run_in_processes(_shoot, rooms, workers, len(rooms) * (len(MODELS) + 2), progress)
    lines = [line for scene in lines_by_scene for line in scene]
    manifest = Path(folder) / "manifest.jsonl"
    write_lines(manifest, sorted(lines, key=lambda line: list(MODELS).index(line["model"])), ascii=True)
    return manifest


@dataclass(frozen=True)
class Room:
    """A scene that is rendered in a room, which a number tells from others."""

    folder: Path
    scene: DemoScene
    number: int
    size: tuple[int, int]


def _shoot(room: Room, tell: StepCallback) -> list[ClipLine]:
    """Render one scene for all models and return its lines of the manifest."""
    folder, scene, size = room.folder, room.scene, room.size
    world = make_room(room.number, scene.kind, scene.name)
    away, back = ("right", "left") if world.turn == "right" else ("left", "right")
    film = play(world, scene.script.format(away=away, back=back), scene.event, size, fps=FPS)
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
