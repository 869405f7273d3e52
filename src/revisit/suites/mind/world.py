"""Mind: a small dataset in MIND's layout (docs/mind.md), with predictions by models whose faults are known exactly.

Keys move an actor by exact steps; a name such as data-0-2.0x-100 tells a varied action space. In the third person the
camera follows half a metre behind. Videos are lossless, so that a copy of the truth is one to the bit. Poses of
predictions live in a turned, shifted and scaled world, as those of a pose network would.

The layout mind-films is of films of the house's models: each is a recording with a context, and a go-and-return test.
The context is the beginning of the film, before the camera turns away; the prediction is what follows. The
go-and-return clip is the whole film, with its turning point twice, so that frame i and frame n-1-i are one view.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from revisit.geometry.formats import format_colmap
from revisit.geometry.poses import make_trajectory
from revisit.geometry.rotations import rotation_from_axis_angle
from revisit.media import encode_mp4, save_npz, write_picture
from revisit.media.files import write_text_atomically
from revisit.suites.mind.world_keys import (
    MIRRORS,
    Actor,
    KeySteps,
    action_file_content,
    infer_keys_from_path,
    keys_out_and_back,
    walk_with_keys,
)
from revisit.worlds.film import Film
from revisit.worlds.layout import EYE, PITCH
from revisit.worlds.layouts import common
from revisit.worlds.layouts.common import Model, Row
from revisit.worlds.layouts.film_orders import CAST, DEMOS, Layout, Order, OwnFilms, layout, place_of
from revisit.worlds.places import make_room
from revisit.worlds.workers import Progress, StepCallback
from revisit.worlds.world import Studio

Keys = str  # held in one frame; empty for none

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
FIRST_PERSON = "1st_data"
PERSPECTIVES = {FIRST_PERSON: False, "3rd_data": True}
MODELS = ("copy", "frozen", "weak_turns")
START = Actor(pitch=PITCH)
GONE_OUT = ("-wr", "-a", "-u", "-s")  # of the ten action files
CONTEXT = 4  # frames of a film
# Without a rest, so that the way back mirrors the way out.
SCRIPT = "yaw:{away}:60+dolly:forward:0.4@{half},yaw:{back}:60+dolly:back:0.4@{rest}"
LEAST_FRAMES = 123  # upstream scores whole hundreds of frames, 97 poses, and no last batch of one pair


@dataclass(frozen=True)
class RecordingPlan:
    """One recording: the keys of every frame, and the first frame that is to be predicted."""

    test: str
    name: str
    room: int  # seed
    keys: tuple[Keys, ...]
    mark: int
    speed: float = 1.0  # of steps, against the shared action space
    turn: float = 1.0  # of turns and tilts

    def walk_actor(self, keys: Sequence[Keys], start: Actor, turn: float = 1.0) -> list[Actor]:
        """The actor in every frame, in this recording's action space."""
        return walk_with_keys(keys, start, scaled_key_steps(self.turn * turn, self.speed))


def plan_recordings(context: int, future: int, clips: int, spaces: Sequence[Space] = (SPACE,)) -> list[RecordingPlan]:
    """The recordings of one perspective: look around and back, then walk and look again."""
    half = context // 2
    before = ("r",) * half + ("l",) * (context - half)
    recordings = []
    for k in range(clips):
        side, other = ("r", "l") if k % 2 == 0 else ("l", "r")
        after = _spread_parts_over_frames([side, other, "w", "", "w" + side, "d"], future)
        recordings.append(RecordingPlan("mem_test", f"data-{25 + k}", k, before + after, context))
    # Tilts come back before the next turn, so that a weaker tilt leaves no trace in the turns after it.
    after = _spread_parts_over_frames(["u", "n", "r", "s", "a", "l"], future)
    for k, (speed, angle) in enumerate(spaces):
        name = f"data-{k}-{speed:.1f}x-{angle:g}"
        recordings.append(RecordingPlan("action_space_test", name, 0, before + after, context, speed, angle / SPACE[1]))
    return recordings


def _spread_parts_over_frames(parts: Sequence[Keys], frames: int) -> tuple[Keys, ...]:
    """Each part in turn for an equal share of the frames."""
    return tuple(parts[i * len(parts) // frames] for i in range(frames))


def scaled_key_steps(turn: float = 1.0, speed: float = 1.0) -> KeySteps:
    """What keys do; `turn` is the share of turns and tilts that is made, `speed` that of steps."""
    return KeySteps(speed * WALK, turn * TURN, turn * TILT)


def camera_poses_of_actors(actors: Sequence[Actor], third: bool) -> np.ndarray:
    """Camera-to-world poses of the actor's eye, or of the camera behind."""
    return np.stack([actor.camera_pose(EYE + ABOVE, BEHIND) if third else actor.camera_pose(EYE) for actor in actors])


def render_mind(
    folder: Path,
    *,
    size: tuple[int, int] = (120, 208),
    context: int = 12,
    future: int = FUTURE,
    clips: int = 2,
    spaces: Sequence[Space] = (SPACE,),
    mirrors: Sequence[str] = GONE_OUT,
    mirror_half: int = 8,
    perspectives: Sequence[str] = tuple(PERSPECTIVES),
    progress: Progress | None = None,
) -> tuple[Path, Path]:
    """Write the dataset and the predictions of all models; return both folders.

    Clips are rendered side by side; `progress(done, total, what)` is told of each.
    """
    truth, predictions = Path(folder) / "MIND-Data", Path(folder) / "predictions"
    recordings = plan_recordings(context, future, clips, spaces)
    worlds = {seed: make_room(seed) for seed in sorted({take.room for take in recordings})}
    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        jobs = []
        for perspective in perspectives:
            place = truth, predictions, perspective
            for take in recordings:
                studio = Studio(worlds[take.room], size)
                jobs.append(pool.submit(_write_recording_and_predictions, *place, take, studio))
            jobs.append(pool.submit(_write_mirror_test, *place, mirrors, mirror_half, Studio(worlds[0], size)))
        for finished, job in enumerate(as_completed(jobs), start=1):
            what = job.result()
            if progress is not None:
                progress(finished, len(jobs), what)
    (Path(folder) / DONE).touch()
    return truth, predictions


def _write_recording_and_predictions(
    truth: Path, predictions: Path, perspective: str, take: RecordingPlan, studio: Studio
) -> str:
    """One recording, and what every model makes of its second part."""
    third = PERSPECTIVES[perspective]
    actors = take.walk_actor(take.keys, START)
    poses = camera_poses_of_actors(actors, third)
    folder = truth / perspective / "test" / take.test / take.name
    encode_mp4(folder / "video.mp4", map(studio.render_picture, poses), FPS, crf=LOSSLESS)
    write_action_file(folder / "action.json", take.keys, actors, take.mark, third)
    if take.test == "mem_test" or take.speed != 1:  # of the first varied one only action.json tells the poses
        write_text_atomically(folder / "images.txt", format_colmap(make_trajectory(poses[take.mark :])))
        write_text_atomically(truth / perspective / "description" / f"{take.name}.txt", f"{studio.world.prompt}\n")
    start = actors[take.mark]
    frozen = [start] * (len(actors) - take.mark)
    paths = actors[take.mark :], frozen, take.walk_actor(take.keys[take.mark :], start, WEAKER)
    for model, path in zip(MODELS, paths, strict=True):
        camera_poses = camera_poses_of_actors(path, third)
        place = predictions / model / perspective / take.test / take.name
        encode_mp4(place / "video.mp4", map(studio.render_picture, camera_poses), FPS, crf=LOSSLESS)
        save_npz(place / "poses.npz", {"poses": transform_to_other_world(camera_poses)})
    return f"{perspective}/{take.test}/{take.name}"


def _write_mirror_test(
    truth: Path, predictions: Path, perspective: str, mirrors: Sequence[str], half: int, studio: Studio
) -> str:
    """Clips that go out and come back the same way: frame i and frame n-1-i are one view."""
    third, name = PERSPECTIVES[perspective], "data-25"
    folder = truth / perspective / "test" / "mirror_test"
    write_picture(folder / f"{name}.png", studio.render_picture(camera_poses_of_actors([START], third)[0]))
    for number, mirror in enumerate(mirrors, start=1):
        keys = keys_out_and_back(MIRRORS[mirror], half)
        for model in MODELS:
            turn = WEAKER if model == "weak_turns" else 1.0
            out = [START] * half if model == "frozen" else walk_with_keys(keys[:half], START, scaled_key_steps(turn))
            poses = camera_poses_of_actors([*out, *reversed(out)], third)
            place = predictions / model / perspective / "mirror_test" / name / f"path-{number}.mp4"
            encode_mp4(place, map(studio.render_picture, poses), FPS, crf=LOSSLESS)
        out = walk_with_keys(keys[:half], START, scaled_key_steps())
        write_action_file(folder / f"{mirror}.json", keys, [*out, *reversed(out)], 0, third)
    return f"{perspective}/mirror_test"


def write_action_file(path: Path, keys: Sequence[Keys], actors: Sequence[Actor], mark: int, third: bool) -> None:
    """Write an action.json."""
    tracks = {"actor": camera_poses_of_actors(actors, False)}
    if third:
        tracks["camera"] = camera_poses_of_actors(actors, True)
    write_text_atomically(path, json.dumps(action_file_content(keys, tracks, mark)))


def transform_to_other_world(poses: np.ndarray) -> np.ndarray:
    """The poses in another world: turned, shifted, and with another unit of length."""
    turned = poses.copy()
    turn = rotation_from_axis_angle((1, 2, 3), 40.0)
    turned[:, :3, :3] = turn @ poses[:, :3, :3]
    turned[:, :3, 3] = 2.5 * poses[:, :3, 3] @ turn.T + (1.0, -2.0, 0.5)
    return turned


def write(folder: Path, size: tuple[int, int], tell: StepCallback = lambda _: None, frames: int | None = None) -> Path:
    """Write the dataset and the predictions where they are not complete; return what `revisit eval` is given.

    `frames` is the length of a prediction: upstream's rules need more than 100.
    """
    if (folder / DONE).is_file():
        for step in range(STEPS):
            tell(f"part {step + 1} is there")
    else:
        render_mind(
            folder, size=size, future=frames or FUTURE, spaces=SPACES, progress=lambda done, of, what: tell(what)
        )
    return folder / "predictions"


layout(OwnFilms("mind", write, STEPS, "predictions", "--suite mind --option gt={folder}/MIND-Data"))


def write_mind_demo(
    videos: Path, fresh: bool, scenes: int, say: StepCallback, progress: Progress
) -> tuple[Path, list[str]]:
    """The dataset and three models."""
    if fresh or not (videos / DONE).is_file():
        say(f"rendering a small dataset in the layout of MIND, and three models, into {videos}")
        render_mind(videos, progress=progress)
    return videos / "predictions", [f"gt={(videos / 'MIND-Data').resolve()}"]


DEMOS.add("mind", write_mind_demo)


def write_mind_film(folder: Path, name: str, film: Film, models: Sequence[Model], seed: int, tell: StepCallback) -> Row:
    """Write the recording and the clips of one film that are not there."""
    truth = folder / "MIND-Data" / FIRST_PERSON / "test"
    keys = infer_keys_from_path(film.poses)
    recording = truth / "mem_test" / name
    common.video(recording / "video.mp4", common.true_frames(film), film.fps)
    write_text_atomically(
        recording / "action.json", json.dumps(action_file_content(keys, {"actor": film.poses}, CONTEXT))
    )
    write_text_atomically(recording / "images.txt", format_colmap(make_trajectory(film.poses[CONTEXT:])))
    common.write_missing_picture(truth / "mirror_test" / f"{name}.png", film.truth(0).rgb)
    half = len(film) // 2
    back_and_forth = [*range(half + 1), *range(half, len(film))]
    for model in common.each_that_applies(models, film, name, tell):
        place = folder / "predictions" / model.name / FIRST_PERSON
        prediction, mirror = place / "mem_test" / name, place / "mirror_test" / name / "path-1.mp4"
        if not ((prediction / "video.mp4").is_file() and mirror.is_file()):
            frames = list(model.frames(film, seed))
            common.video(prediction / "video.mp4", frames[CONTEXT:], film.fps)
            common.video(mirror, [frames[k] for k in back_and_forth], film.fps)
        common.write_missing_arrays(prediction / "poses.npz", poses=model.poses(film, seed)[CONTEXT:])
    return {"name": name}


def mind_film_orders(seed: int) -> list[Order]:
    """The film of a seed."""
    kind, event = CAST[seed % len(CAST)]
    return [Order(f"data-{100 + seed}", seed, place_of(seed), kind, event, SCRIPT)]


FILM_MODELS = ("perfect", "frozen_camera", "partial_return", "state_reset", "vanish", "background")
OPTIONS = "--suite mind --option gt={folder}/MIND-Data"
LAYOUT = layout(
    Layout(
        "mind-films",
        mind_film_orders,
        FILM_MODELS,
        write_mind_film,
        lambda folder, rows: None,  # the folders are the list
        "predictions",
        OPTIONS,
        least_frames=LEAST_FRAMES,
    )
)
