"""Film: a camera script rendered in a world, with the exact ground truth of every frame.

An event that happens at once falls in the middle of the time in which neither the state it ends nor the one
it leaves behind is in view. A lasting event begins while the target can still be seen, and then follows the
clock of the film. Frames of equal poses share one view, whose pictures are drawn when they are asked for, so
a film of 81 frames out and back costs 41 views for the truth and all models.

Scripts that have a name (how the camera, the lights or a screen lose sight of the target and find it again) are rows of
scripts.yaml.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import UsageError
from revisit.core.text import read_package_yaml
from revisit.geometry.camera_script import Step, camera_path, light_or_screen_levels, parse_script
from revisit.media import save_npz
from revisit.worlds.events import EVENTS, possible_event_by_name
from revisit.worlds.render import Camera, intrinsics_from_fov
from revisit.worlds.state import SCREEN, TARGET, State
from revisit.worlds.world import Shot, World, WorldView

FPS = 16.0
BEGINS = 0.4  # a lasting event begins after this share of the time until the target leaves the view
DEPTH_EVERY = 4  # frames; depth is the largest part of the truth
STATES = ("place", "look", "amount", "roll")
DARK = 0.25  # share of the light below which the target counts as not seen


@dataclass(frozen=True)
class Script:
    """What is done, as a sentence, and its steps: moves and their share of the clip."""

    what: str
    steps: Sequence[tuple[str, float]]

    def text_with_frame_counts(self, world: World, frames: int) -> str:
        """The camera script of a clip of some frames in a world."""
        total, elapsed, at, parts = sum(share for _, share in self.steps), 0.0, 0, []
        for moves, share in self.steps:
            elapsed += share
            end = round((frames - 1) * elapsed / total)
            parts.append(f"{moves.format(**world.away_and_back)}@{max(end - at, 1)}")
            at = end
        return ",".join(parts)


SCRIPTS = {name: Script(**script) for name, script in read_package_yaml(__package__, "scripts.yaml").items()}


def resolve_camera_script(world: World, script: str, frames: int) -> str:
    """The camera script of a name in a world; what is no name is a script already."""
    return SCRIPTS[script].text_with_frame_counts(world, frames) if script in SCRIPTS else script


def describe_steps(world: World, steps: Sequence[Step]) -> str:
    """What the steps do, as a sentence; rests and numbers of frames make no difference."""
    moves = [step.moves for step in steps if step.moves]
    for script in SCRIPTS.values():
        steps_of_script = parse_script(script.text_with_frame_counts(world, 100))
        if [step.moves for step in steps_of_script if step.moves] == moves:
            return script.what
    return world.prompt.removeprefix(world.scene).strip()


@dataclass(frozen=True, eq=False)
class Film:
    """Frames of a world along a path, the state of the target in each, and when it was hidden."""

    world: World
    event: str
    script: str
    K: np.ndarray
    poses: np.ndarray  # (n, 4, 4) camera-to-world
    states: tuple[State, ...]
    phases: tuple[int, int]  # first hidden frame, first returned frame
    fps: float
    begins: float  # frame at which the event begins; it need not be whole
    light: np.ndarray  # (n,) share of the light that is on
    screen: np.ndarray  # (n,) share of its way that the screen has come
    size: tuple[int, int]  # height, width
    camera_words: str  # what the camera, the lights or the screen do, as a sentence
    _seen: dict[bytes, WorldView] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.poses)

    @cached_property
    def views(self) -> tuple[WorldView, ...]:
        """A view for each pose; equal poses share one, also with the views seen before."""
        keys = [(np.round(pose, 9) + 0.0).tobytes() for pose in self.poses]  # adding zero makes -0.0 and 0.0 one key
        for key, pose in zip(keys, self.poses, strict=True):
            if key not in self._seen:
                self._seen[key] = WorldView(self.world, Camera(self.K, pose, self.size))
        return tuple(self._seen[key] for key in keys)

    def shot(self, frame: int, *states: State | None) -> Shot:
        """A frame with a target in each of the states, or without any: what a model makes of it."""
        import cv2

        shot = self.views[frame].shot(*states, screen=float(self.screen[frame]))
        light = float(self.light[frame])
        return shot if light == 1 else replace(shot, rgb=cv2.convertScaleAbs(shot.rgb, alpha=light))

    def truth(self, frame: int) -> Shot:
        """A frame as it really is."""
        return self.shot(frame, self.states[frame])

    def state_at(self, frame: float) -> State:
        """The true state at any moment, also between and after the frames."""
        return EVENTS[self.event].at(self.world, (frame - self.begins) / self.fps)

    def target_visible(self, frame: int, state: State | None = None) -> bool:
        """Whether a frame shows the target, in its true state or another."""
        pixels = self.views[frame].target_pixel_count(state or self.states[frame], float(self.screen[frame]))
        return pixels > 0 and bool(self.light[frame] >= DARK)

    def along(self, poses: np.ndarray | Sequence[np.ndarray]) -> Film:
        """The same story (world, states, light) filmed from other camera-to-world poses, one for each frame."""
        poses = np.asarray(poses, dtype=float)
        if poses.shape != self.poses.shape:
            raise UsageError(f"a film of {len(self)} frames needs poses of shape {self.poses.shape}, not {poses.shape}")
        return replace(self, poses=poses)

    def in_world(self, world: World) -> Film:
        """The same poses and states in another place, which `make_world(..., like=)` made for this film's target."""
        return replace(self, world=world, _seen={})

    @property
    def prompt(self) -> str:
        """The scene, how it is filmed and what happens meanwhile, in words."""
        return f"{self.world.scene} {self.camera_words} Meanwhile {EVENTS[self.event].what}."

    @property
    def instances(self) -> Mapping[int, str]:
        """What each instance id of the masks is."""
        return {**self.world.instances, SCREEN: "screen"} if self.screen.any() else self.world.instances

    def target_box(self) -> tuple[float, float, float, float]:
        """Where the target is in the first frame, as fractions x0, y0, x1, y1."""
        rows, columns = np.nonzero(self.truth(0).mask == TARGET)
        height, width = self.size
        edges = columns.min() / width, rows.min() / height, (columns.max() + 1) / width, (rows.max() + 1) / height
        return tuple(round(float(edge), 4) for edge in edges)  # type: ignore[return-value]

    def manifest_line(self, name: str, seed: int) -> dict[str, Any]:
        """What a manifest says of the scene, whoever makes a clip of it; the truth lies beside the clips."""
        return {
            "id": name,
            "reference": f"truth/{name}.mp4",
            "prompt": self.prompt,
            "target": {"name": self.world.instances[TARGET], "box": self.target_box()},
            "camera": self.script,
            "phases": self.phases,
            "group": name,
            "seed": seed,
        }


def play(
    world: World,
    script: str,
    event: str = "none",
    size: tuple[int, int] = (480, 832),
    *,
    frames: int = 81,
    fps: float = FPS,
) -> Film:
    """The film of a script (text, or a name of SCRIPTS for a clip of `frames`) in a world in which an event happens."""
    happening = possible_event_by_name(world, event)
    script = resolve_camera_script(world, script, frames)
    steps = parse_script(script)
    before, after = happening.state_before(world), happening.state_after(world)
    poses = camera_path(steps, world.start, pivot=np.array(before.place))
    K = intrinsics_from_fov(size, world.fov)
    light, screen = light_or_screen_levels(steps, "light", 1.0), light_or_screen_levels(steps, "screen")
    still, words = (before,) * len(poses), describe_steps(world, steps)
    film = Film(world, event, script, K, poses, still, (0, 0), fps, 0.0, light, screen, size, words)
    if happening.in_view:  # well before the target leaves the view
        begins = max(1, int(BEGINS * _first_stretch_without_states(film, {before})[0]))
    else:  # in the middle of the first stretch in which it would be seen in neither state
        begins = sum(_first_stretch_without_states(film, {before, after})) // 2
    states = tuple(happening.at(world, (frame - begins) / fps) for frame in range(len(poses)))
    film = replace(film, states=states, begins=float(begins))
    return replace(film, phases=_first_hidden_and_returned_frames(film))


def save_truth(film: Film, path: Path, *, depth_every: int = DEPTH_EVERY) -> None:
    """Write what is true of a film to an npz file, as plain arrays (docs/worlds.md lists them)."""
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


def _first_hidden_and_returned_frames(film: Film) -> tuple[int, int]:
    """The first frame that does not show the target, and the first that shows it again."""
    shows = [film.target_visible(frame) for frame in range(len(film))]
    if all(shows):
        raise UsageError(
            f"the target never leaves the view of {film.script!r}, because it moves too; turn further away"
        )
    hidden = shows.index(False)
    after = max(hidden, int(film.begins))
    if not any(shows[after:]):
        raise UsageError(f"the target is not in view when {film.script!r} comes back; end where it began")
    return hidden, shows.index(True, after)


def _first_stretch_without_states(film: Film, states: set[State]) -> tuple[int, int]:
    """The first stretch in which the target would be seen in none of the states: its first frame and its end."""
    visible = np.array([any(film.target_visible(frame, state) for state in states) for frame in range(len(film))])
    if not visible[0]:
        raise UsageError("the target is not in the first view; begin where it can be seen")
    if visible.all():
        raise UsageError(
            f"the camera script {film.script!r} never loses sight of the target; turn further away, such as 60"
        )
    leaves = int(np.argmin(visible))
    if not visible[leaves:].any():
        raise UsageError(f"the camera script {film.script!r} never comes back to the target; add moves back")
    return leaves, leaves + int(np.argmax(visible[leaves:]))
