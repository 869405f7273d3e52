"""Film: a camera script played in a world, with the exact truth of every frame.

The event happens halfway through the time in which neither the place the target leaves nor the place it
comes to is in view, so that it is never seen. Poses that come back share one view, and a view holds the
target in both states, so a film of 81 frames out and back costs 41 views for the truth and all models.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revisit.core import UsageError
from revisit.geometry.camera_script import camera_path, parse_script
from revisit.worlds.events import EVENTS
from revisit.worlds.render import Camera, intrinsics
from revisit.worlds.world import TARGET, Shot, State, View, World, take_view


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
    views: tuple[View, ...]

    def __len__(self) -> int:
        return len(self.poses)

    def shot(self, frame: int, state: State | None) -> Shot:
        """A frame with the target in some state, or without it: what a model makes of it."""
        return self.views[frame].shot(state)

    def truth(self, frame: int) -> Shot:
        """A frame as it really is."""
        return self.shot(frame, self.states[frame])

    def target_box(self) -> tuple[float, float, float, float]:
        """Where the target is in the first frame, as fractions x0, y0, x1, y1."""
        rows, columns = np.nonzero(self.truth(0).mask == TARGET)
        height, width = self.views[0].empty.mask.shape
        edges = columns.min() / width, rows.min() / height, (columns.max() + 1) / width, (rows.max() + 1) / height
        return tuple(round(float(edge), 4) for edge in edges)  # type: ignore[return-value]


def play(world: World, script: str, event: str = "none", size: tuple[int, int] = (480, 832)) -> Film:
    """The film of a script in a world, in which an event happens while the target is out of view."""
    if event not in EVENTS:
        raise UsageError(f"there is no event called {event!r}; known events: {', '.join(EVENTS)}")
    poses = camera_path(parse_script(script), world.start)
    K = intrinsics(size, world.fov)
    before, after = world.first_state, EVENTS[event].after(world)
    seen: dict[bytes, View] = {}
    views = []
    for pose in poses:
        key = (np.round(pose, 9) + 0.0).tobytes()  # adding zero makes -0.0 and 0.0 one key
        if key not in seen:
            seen[key] = take_view(world, Camera(K, pose, size), {before, after})
        views.append(seen[key])
    happens = _unseen_moment(views, before, after, script)
    states = tuple(before if frame < happens else after for frame in range(len(poses)))
    visible = [_shows(view, state) for view, state in zip(views, states, strict=True)]
    phases = visible.index(False), visible.index(True, happens)
    return Film(world, event, script, K, poses, states, phases, tuple(views))


def _unseen_moment(views: list[View], before: State, after: State, script: str) -> int:
    """The frame in the middle of the first stretch in which the target would be seen in neither state."""
    seen = np.array([_shows(view, before) or _shows(view, after) for view in views])
    if not seen[0]:
        raise UsageError("the target is not in the first view; begin where it can be seen")
    if seen.all():
        raise UsageError(f"the camera script {script!r} never loses sight of the target; turn further away, such as 60")
    leaves = int(np.argmin(seen))
    if not seen[leaves:].any():
        raise UsageError(f"the camera script {script!r} never comes back to the target; add the way back")
    return leaves + int(np.argmax(seen[leaves:])) // 2


def _shows(view: View, state: State) -> bool:
    return state in view.patches and bool((view.patches[state][1].mask == TARGET).any())
