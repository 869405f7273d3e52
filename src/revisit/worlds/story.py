"""Story: the facts of a film, frame by frame: where its camera is, when the target is hidden, what happens to it.

The event of a film is a path of states; its length is counted in metres, or as much as a change of look or amount, or a
quarter turn. Failures of memory are places on that path, or off it. Failures of the camera are its poses, shortened,
delayed or changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from revisit.geometry.rotations import angle_between_rotations, slerp
from revisit.worlds import effects
from revisit.worlds.film import Film
from revisit.worlds.places import make_world
from revisit.worlds.state import State

ELSEWHERE = 0.5  # metres from where the target ought to be
OTHER = 5003  # added to a seed for the place that is not this one
CLEAR = 0.4  # metres between the middle of the block and that of a target beside it
SUDDEN = 0.25  # length of path within a frame that is a jump

GRADUAL = ("amount", "turn", "roll")  # what of a state changes little by little, besides its place

Weighted = list[tuple[float, State]]  # states of a path with how much of it lies behind, or with their shares


def frames_with_memory_failed(film: Film) -> Iterator[tuple[int, bool]]:
    """Every frame, and whether memory has failed by then: from the middle of the time out of view."""
    switch = sum(film.phases) // 2
    return ((frame, frame >= switch) for frame in range(len(film)))


def hidden_share(film: Film) -> np.ndarray:
    """0 before the target leaves, 1 when it returns, and in between evenly more: how far a place has changed."""
    left, back = film.phases
    return np.clip((np.arange(len(film)) - left) / (back - left), 0, 1)


def replaced_share_by_frame_and_instance(film: Film) -> np.ndarray:
    """How far every thing (n, 256) has become another in each frame, from 0 before the target leaves to 1 on return."""
    left, back = film.phases
    come = np.repeat(hidden_share(film)[:, None], 256, axis=1).astype(np.float32)
    in_view = np.stack([np.bincount(film.shot(k).mask.ravel(), minlength=256) > 0 for k in range(left, back)])
    for thing in np.flatnonzero(~in_view.all(axis=0)):
        come[:, thing] = np.arange(len(film)) >= left + int(np.argmin(in_view[:, thing]))
    return come


def frames_with_wrong_state(film: Film, change_state: Callable[[State], State]) -> Iterator[np.ndarray]:
    """The truth, with the target in a wrong state on return."""
    for frame, away in frames_with_memory_failed(film):
        state = film.states[frame]
        yield film.shot(frame, change_state(state) if away else state).rgb


def frames_with_event_position(film: Film, change_position: Callable[[np.ndarray], np.ndarray]) -> Iterator[np.ndarray]:
    """The truth, with the event elsewhere on its path on return: `change_position` of the true position."""
    path, progress = event_path_and_progress(film)
    for (frame, away), position in zip(frames_with_memory_failed(film), change_position(progress), strict=True):
        weighted = weighted_states_at_path_position(path, position) if away else [(1.0, film.states[frame])]
        yield effects.weighted_mean_picture((weight, film.shot(frame, state).rgb) for weight, state in weighted)


def event_path_and_progress(film: Film) -> tuple[Weighted, np.ndarray]:
    """The event as states with the length of path behind each, and how far along it every frame is."""
    states = film.states
    steps = [state_distance(one, following) for one, following in pairwise(states)]
    progress = np.concatenate([[0.0], np.cumsum(steps)])
    return list(zip(progress.tolist(), states, strict=True)), progress


def weighted_states_at_path_position(path: Weighted, position: float) -> Weighted:
    """The state at a position of a path, as weighted states: two where it changes its look."""
    after = next((k for k, (progress, _) in enumerate(path) if progress >= position), len(path) - 1)
    if after == 0 or path[after][0] == position:
        return [(1.0, path[after][1])]
    (start, one), (end, other) = path[after - 1], path[after]
    share = (position - start) / (end - start)
    between = {name: (1 - share) * getattr(one, name) + share * getattr(other, name) for name in GRADUAL}
    mixed = replace(state_with_target_moved(one, share * np.subtract(other.place, one.place)), **between)
    if one.look == other.look:
        return [(1.0, mixed)]
    return [(1 - share, mixed), (share, replace(mixed, look=other.look))]


def state_distance(one: State, other: State) -> float:
    """How far two states are apart: metres, or as much as a change of look, amount, or of a quarter turn."""
    distance = float(np.linalg.norm(np.subtract(one.place, other.place)))
    distance += abs(one.amount - other.amount) + float(one.look != other.look)
    return distance + (abs(one.turn - other.turn) + abs(one.roll - other.roll)) / 90


def state_with_target_moved(state: State, offset: np.ndarray) -> State:
    """The target some way from where it is."""
    x, y, z = (float(a + b) for a, b in zip(state.place, offset, strict=True))
    return replace(state, place=(x, y, z))


def states_without_visible_jumps(film: Film) -> list[State]:
    """The states of a film, with a sudden change put off while it would be seen: things do not jump in view."""
    states, frozen = [film.states[0]], False
    for frame in range(1, len(film)):
        before, now = film.states[frame - 1], film.states[frame]
        frozen = frozen or state_distance(before, now) > SUDDEN
        frozen = frozen and any(film.target_visible(frame, state) for state in (states[-1], now))
        states.append(states[-1] if frozen else now)
    return states


def sideways_step_for_target(film: Film) -> np.ndarray:
    """A step sideways, on from where the target came; upwards where it would hardly be in view, or in the block."""
    right = right_direction_of_last_view(film)
    came = float(right @ np.subtract(film.states[-1].place, film.states[0].place))
    step = ELSEWHERE * right * (np.sign(came) if abs(came) > 0.05 else sign_towards_view_middle(film))
    soon = (film.phases[1] + len(film)) // 2
    visible = all(target_fits_in_view(film, frame, film.states[frame].place + step) for frame in (soon, len(film) - 1))
    block = film.world.perch
    free = block is None or np.hypot(*(film.states[-1].place + step - block)[[0, 2]]) > CLEAR
    return step if visible and free else np.array([0, -0.9 * ELSEWHERE, 0])


def right_direction_of_last_view(film: Film) -> np.ndarray:
    """The horizontal direction to the right in the last view."""
    right = film.poses[-1, :3, 0] * (1, 0, 1)
    return np.asarray(right / np.linalg.norm(right))


def sign_towards_view_middle(film: Film) -> float:
    """1 if the middle of the last view is to the right of the target, -1 if it is to the left."""
    pose = film.poses[-1]
    sideways = pose[:3, 0] @ (np.array(film.states[-1].place) - pose[:3, 3])
    return -1.0 if sideways > 0 else 1.0


def target_fits_in_view(film: Film, frame: int, place: np.ndarray) -> bool:
    """Whether a target that stands at a place is whole in the view of a frame."""
    pose, (height, width) = film.poses[frame], film.size
    x, y, depth = film.K @ (pose[:3, :3].T @ (place - (0, 0.15, 0) - pose[:3, 3]))
    reach = 0.2 * film.K[0, 0]  # 20 cm around its middle
    return bool(depth > 0 and reach < x < width * depth - reach and reach < y < height * depth - reach)


def support_instance(film: Film) -> int:
    """The instance that the target stands on, if that is more than the ground; 0 if it is the ground."""
    place, pose = np.array(film.states[-1].place), film.poses[-1]
    x, y, depth = film.K @ (pose[:3, :3].T @ (place + np.array([0, 0.01, 0]) - pose[:3, 3]))
    mask = film.shot(len(film) - 1).mask
    row, column = round(y / depth), round(x / depth)
    on_ground = place[1] > -0.1  # y points down, and the ground is at 0
    return 0 if on_ground or not (0 <= row < mask.shape[0] and 0 <= column < mask.shape[1]) else int(mask[row, column])


@lru_cache(maxsize=2)
def film_in_another_place(film: Film) -> Film:
    """The same film in another place of the kind, with the target where it was."""
    return film.in_world(make_world(film.world.seed + OTHER, film.world.place, like=film.world))


def distance_from_first_pose(poses: np.ndarray) -> np.ndarray:
    """How far every pose is from the first: metres and, for a turn of a radian, another metre."""
    turned = np.radians(angle_between_rotations(poses[0, :3, :3], poses[:, :3, :3]))
    return np.asarray(np.linalg.norm(poses[:, :3, 3] - poses[0, :3, 3], axis=1) + turned)


def last_farthest_frame(film: Film) -> int:
    """The last frame in which the camera is as far away as it gets."""
    away = distance_from_first_pose(film.poses)
    return int(np.flatnonzero(away >= away.max() - 1e-6)[-1])


def interpolate_pose(start: np.ndarray, end: np.ndarray, progress: float) -> np.ndarray:
    """The pose at a share of the way from one pose to another."""
    if progress in (0, 1):
        return end if progress else start
    pose = np.eye(4)
    pose[:3, :3] = slerp(start[:3, :3], end[:3, :3], progress)
    pose[:3, 3] = (1 - progress) * start[:3, 3] + progress * end[:3, 3]
    return pose


def poses_at_times(poses: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The poses at times counted in frames."""
    first = np.minimum(times.astype(int), len(poses) - 2)
    pairs = zip(first.tolist(), times.tolist(), strict=True)
    return np.stack([interpolate_pose(poses[k], poses[k + 1], t - k) for k, t in pairs])


def pixel_directions_in_world(film: Film, frame: int) -> np.ndarray:
    """The direction (height, width, 3) in the world in which every pixel looks."""
    height, width = film.truth(frame).mask.shape
    x, y = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
    rays = np.stack([x, y, np.ones_like(x)], axis=-1) @ np.linalg.inv(film.K).T.astype(np.float32)
    rays /= np.linalg.norm(rays, axis=-1, keepdims=True)
    return np.asarray(rays @ film.poses[frame][:3, :3].T.astype(np.float32))


def film_along_poses(film: Film, poses: np.ndarray) -> Film:
    """The film from other poses, whose views are forgotten with it: the film would hold those of every strength."""
    return replace(film, _seen=dict(film._seen)).along(poses)
