"""Mind: a small dataset in MIND's layout (docs/mind.md), with predictions by models whose faults are known exactly.

Keys move an actor by exact steps; a name such as data-0-2.0x-100 tells a varied action space. In the third person the
camera follows half a metre behind. Videos are lossless, so that a copy of the truth is one to the bit. Poses of
predictions live in a turned, shifted and scaled world, as those of a pose network would.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import numpy as np

from revisit.geometry.formats import format_colmap
from revisit.geometry.poses import to_unreal, trajectory
from revisit.geometry.rotations import axis_angle, from_yaw_pitch
from revisit.media import encode_mp4, save_npz, write_picture
from revisit.worlds.layout import EYE, PITCH
from revisit.worlds.layouts.orders import DEMOS, OwnFilms, layout
from revisit.worlds.places import make_room
from revisit.worlds.render import Camera, intrinsics
from revisit.worlds.workers import Tell
from revisit.worlds.world import World, take_view

Progress = Callable[[int, int, str], None]
Keys = str  # keys held in one frame: w s a d move, u n look up and down, l r look left and right; empty for none

Space = tuple[float, float]  # an action space: speed of steps, and angle of turns as the dataset's names write it

FPS = 24.0
FUTURE = 18  # frames of a prediction
SPACE: Space = (1.0, 200.0)  # that of all recordings but the varied ones
WALK, TURN, TILT = 0.03, 2.0, 1.0  # metres and degrees per frame
BEHIND, ABOVE = 0.5, 0.1  # metres from the actor to the camera of the third person
WEAKER = 0.9  # share of a turn that the model weak_turns makes
LOSSLESS = 0
SPACES: tuple[Space, ...] = ((1.0, 200.0), (2.0, 100.0))  # varied action spaces of the layout
STEPS = 10  # of which render_mind tells: two perspectives with four recordings and the mirror test
DONE = "complete"  # an empty file that is written last
PERSPECTIVES = {"1st_data": False, "3rd_data": True}
MODELS = ("copy", "frozen", "weak_turns")
CODES = {"w": ("ws", 1), "s": ("ws", 2), "a": ("ad", 1), "d": ("ad", 2),
         "u": ("ud", 1), "n": ("ud", 2), "l": ("lr", 1), "r": ("lr", 2)}  # fmt: skip
OPPOSITE = dict(zip("wsadunlr", "swdanurl", strict=True))
MIRRORS: dict[str, Keys] = {"-wr": "wr", "-a": "a", "-u": "u", "-s": "s"}  # of the ten action files


@dataclass(frozen=True)
class Actor:
    """Where the actor stands (metres, from the middle of the room) and looks (degrees right and up)."""

    x: float = 0.0
    z: float = 0.0
    yaw: float = 0.0
    pitch: float = PITCH

    def moved(self, keys: Keys, turn: float = 1.0, speed: float = 1.0) -> Actor:
        """The actor one frame later; `turn` is the share of turns and tilts that is made, `speed` that of steps."""
        along = ("w" in keys) - ("s" in keys)
        across = ("d" in keys) - ("a" in keys)
        heading = np.radians(self.yaw)
        return Actor(
            self.x + speed * WALK * float(along * np.sin(heading) + across * np.cos(heading)),
            self.z + speed * WALK * float(along * np.cos(heading) - across * np.sin(heading)),
            self.yaw + turn * TURN * (("r" in keys) - ("l" in keys)),
            self.pitch + turn * TILT * (("u" in keys) - ("n" in keys)),
        )

    def pose(self, third_person: bool = False) -> np.ndarray:
        """Camera-to-world pose of the eye, or of the camera behind."""
        pose = np.eye(4)
        pose[:3, :3] = from_yaw_pitch(self.yaw, self.pitch)
        pose[:3, 3] = (self.x, -EYE, self.z)
        if third_person:
            heading = np.radians(self.yaw)
            pose[:3, 3] += (-BEHIND * np.sin(heading), -ABOVE, -BEHIND * np.cos(heading))
        return pose


@dataclass(frozen=True)
class Take:
    """One recording: the keys of every frame, and the first frame that is to be predicted."""

    test: str
    name: str
    room: int  # seed
    keys: tuple[Keys, ...]
    mark: int
    speed: float = 1.0  # of steps, against the shared action space
    turn: float = 1.0  # of turns and tilts

    def walk(self, keys: Sequence[Keys], start: Actor, turn: float = 1.0) -> list[Actor]:
        """The actor in every frame, in this recording's action space."""
        return walk(keys, start, self.turn * turn, self.speed)


class Studio:
    """Pictures of a room from any pose, each pose rendered once."""

    def __init__(self, world: World, size: tuple[int, int]) -> None:
        self.world, self.size, self.K = world, size, intrinsics(size, world.fov)
        self.seen: dict[bytes, np.ndarray] = {}

    def picture(self, pose: np.ndarray) -> np.ndarray:
        key = (np.round(pose, 9) + 0.0).tobytes()
        if key not in self.seen:
            state = self.world.first_state
            self.seen[key] = take_view(self.world, Camera(self.K, pose, self.size)).shot(state).rgb
        return self.seen[key]


def takes(context: int, future: int, clips: int, spaces: Sequence[Space] = (SPACE,)) -> list[Take]:
    """The recordings of one perspective: look around and back, then walk and look again."""
    half = context // 2
    before = ("r",) * half + ("l",) * (context - half)
    found = []
    for k in range(clips):
        side, other = ("r", "l") if k % 2 == 0 else ("l", "r")
        after = _spread([side, other, "w", "", "w" + side, "d"], future)
        found.append(Take("mem_test", f"data-{25 + k}", k, before + after, context))
    # Tilts come back before the next turn, so that a weaker tilt leaves no trace in the turns after it.
    after = _spread(["u", "n", "r", "s", "a", "l"], future)
    for k, (speed, angle) in enumerate(spaces):
        name = f"data-{k}-{speed:.1f}x-{angle:g}"
        found.append(Take("action_space_test", name, 0, before + after, context, speed, angle / SPACE[1]))
    return found


def _spread(parts: Sequence[Keys], frames: int) -> tuple[Keys, ...]:
    """Each part in turn for an equal share of the frames."""
    return tuple(parts[min(i * len(parts) // frames, len(parts) - 1)] for i in range(frames))


def walk(keys: Sequence[Keys], start: Actor, turn: float = 1.0, speed: float = 1.0) -> list[Actor]:
    """The actor in every frame; the keys of the last frame lead out of the clip."""
    actors = [start]
    for held in keys[:-1]:
        actors.append(actors[-1].moved(held, turn, speed))
    return actors


def render_mind(
    folder: Path,
    *,
    size: tuple[int, int] = (120, 208),
    context: int = 12,
    future: int = FUTURE,
    clips: int = 2,
    spaces: Sequence[Space] = (SPACE,),
    mirrors: Sequence[str] = tuple(MIRRORS),
    mirror_half: int = 8,
    perspectives: Sequence[str] = tuple(PERSPECTIVES),
    progress: Progress | None = None,
) -> tuple[Path, Path]:
    """Write the dataset and the predictions of all models; return both folders.

    Clips are rendered side by side; `progress(done, total, what)` is called by one thread at a time.
    """
    truth, predictions = Path(folder) / "MIND-Data", Path(folder) / "predictions"
    recordings = takes(context, future, clips, spaces)
    worlds = {seed: make_room(seed) for seed in sorted({take.room for take in recordings})}
    jobs: list[Callable[[], str]] = []
    for perspective in perspectives:
        for take in recordings:
            jobs.append(_job(_record, truth, predictions, perspective, take, Studio(worlds[take.room], size)))
        jobs.append(
            _job(_go_and_return, truth, predictions, perspective, mirrors, mirror_half, Studio(worlds[0], size))
        )
    done, lock = 0, Lock()

    def work(job: Callable[[], str]) -> None:
        nonlocal done
        what = job()
        with lock:
            done += 1
            if progress is not None:
                progress(done, len(jobs), what)

    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        list(pool.map(work, jobs))
    (Path(folder) / DONE).touch()
    return truth, predictions


def _job(function: Callable[..., str], *arguments: object) -> Callable[[], str]:
    return lambda: function(*arguments)


def _record(truth: Path, predictions: Path, perspective: str, take: Take, studio: Studio) -> str:
    """One recording, and what every model makes of its second part."""
    third = PERSPECTIVES[perspective]
    actors = take.walk(take.keys, Actor())
    poses = np.stack([actor.pose(third) for actor in actors])
    folder = truth / perspective / "test" / take.test / take.name
    encode_mp4(folder / "video.mp4", map(studio.picture, poses), FPS, crf=LOSSLESS)
    write_actions(folder / "action.json", take.keys, actors, take.mark, third)
    if take.test == "mem_test" or take.speed != 1:  # of the first varied one only action.json tells the poses
        (folder / "images.txt").write_text(format_colmap(trajectory(poses[take.mark :])), encoding="utf-8")
        caption = truth / perspective / "description" / f"{take.name}.txt"
        caption.parent.mkdir(parents=True, exist_ok=True)
        caption.write_text(f"{studio.world.prompt}\n", encoding="utf-8")
    for model, made in _predicted(take, actors, third).items():
        place = predictions / model / perspective / take.test / take.name
        encode_mp4(place / "video.mp4", map(studio.picture, made), FPS, crf=LOSSLESS)
        save_npz(place / "poses.npz", {"poses": as_estimated(made)})
    return f"{perspective}/{take.test}/{take.name}"


def _predicted(take: Take, actors: Sequence[Actor], third: bool) -> dict[str, np.ndarray]:
    """Camera poses of every model in the frames it predicts."""
    start = actors[take.mark]
    weaker = take.walk(take.keys[take.mark :], start, WEAKER)
    paths: Mapping[str, Sequence[Actor]] = {
        "copy": actors[take.mark :],
        "frozen": [start] * (len(actors) - take.mark),
        "weak_turns": weaker,
    }
    return {model: np.stack([actor.pose(third) for actor in paths[model]]) for model in MODELS}


def _go_and_return(
    truth: Path, predictions: Path, perspective: str, mirrors: Sequence[str], half: int, studio: Studio
) -> str:
    """Clips that go out and come back the same way: frame i and frame n-1-i are one view."""
    third, name = PERSPECTIVES[perspective], "data-25"
    folder = truth / perspective / "test" / "mirror_test"
    write_picture(folder / f"{name}.png", studio.picture(Actor().pose(third)))
    for number, mirror in enumerate(mirrors, start=1):
        held = MIRRORS[mirror]
        back = "".join(OPPOSITE[key] for key in held)
        keys = (held,) * half + (back,) * half
        for model in MODELS:
            turn = WEAKER if model == "weak_turns" else 1.0
            out = [Actor()] * half if model == "frozen" else walk(keys[:half], Actor(), turn)
            poses = [actor.pose(third) for actor in [*out, *reversed(out)]]
            place = predictions / model / perspective / "mirror_test" / name / f"path-{number}.mp4"
            encode_mp4(place, map(studio.picture, poses), FPS, crf=LOSSLESS)
        out = walk(keys[:half], Actor())
        write_actions(folder / f"{mirror}.json", keys, [*out, *reversed(out)], 0, third)
    return f"{perspective}/mirror_test"


def write_actions(path: Path, keys: Sequence[Keys], actors: Sequence[Actor], mark: int, third: bool) -> None:
    """Write an action.json: a row per frame with the keys held, and where the actor (and the camera) is."""
    tracks = {"actor": [actor.pose() for actor in actors]}
    if third:
        tracks["camera"] = [actor.pose(third_person=True) for actor in actors]
    rows: list[dict[str, object]] = [{"time": k, **_codes(held)} for k, held in enumerate(keys)]
    for who, poses in tracks.items():
        positions, angles = to_unreal(np.stack(poses))
        for row, position, angle in zip(rows, positions, angles, strict=True):
            row[f"{who}_pos"] = dict(zip("xyz", position.tolist(), strict=True))
            row[f"{who}_rpy"] = dict(zip("xyz", angle.tolist(), strict=True))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mark_time": mark, "total_time": len(rows), "data": rows}), encoding="utf-8")


def _codes(keys: Keys) -> dict[str, int]:
    return {"ws": 0, "ad": 0, "ud": 0, "lr": 0, **{CODES[key][0]: CODES[key][1] for key in keys}}


def as_estimated(poses: np.ndarray) -> np.ndarray:
    """The poses in another world: turned, shifted, and with another unit of length."""
    turned = poses.copy()
    turn = axis_angle((1, 2, 3), 40.0)
    turned[:, :3, :3] = turn @ poses[:, :3, :3]
    turned[:, :3, 3] = 2.5 * poses[:, :3, 3] @ turn.T + (1.0, -2.0, 0.5)
    return turned


def write(folder: Path, size: tuple[int, int], tell: Tell = lambda _: None, frames: int | None = None) -> Path:
    """Write the dataset and the predictions where they are not complete; return what `revisit eval` is given.

    `frames` is the length of a prediction: upstream's rules need more than 100.
    """
    if (folder / DONE).is_file():
        for step in range(STEPS):
            tell(f"part {step + 1} is there")
    else:
        render_mind(
            folder, size=size, future=frames or FUTURE, spaces=SPACES, progress=lambda done, total, what: tell(what)
        )
    return folder / "predictions"


layout(OwnFilms("mind", write, STEPS, "predictions", "--suite mind --option gt={folder}/MIND-Data"))


def demo(videos: Path, fresh: bool, scenes: int, say: Tell, progress: Progress) -> tuple[Path, list[str]]:
    """The dataset and three models."""
    if fresh or not (videos / DONE).is_file():
        say(f"rendering a small dataset in the layout of MIND, and three models, into {videos}")
        render_mind(videos, progress=progress)
    return videos / "predictions", [f"gt={(videos / 'MIND-Data').resolve()}"]


DEMOS.add("mind", demo)
