"""Situations that fooled gates on real clips, rendered with what is true of them, as a labelled folder.

A target that grows, fills, foams or melts in front of a camera that rests; a thin stick that is moved in view; one that
walks out of the picture by itself, for good or back from another side; one that the camera, or a screen, loses and
finds again, as it was or changed, or does not. Verdicts and frames are counted from the masks of the truth, not written
by hand.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from revisit.audit.labelled import BY_HAND
from revisit.media import encode_mp4
from revisit.worlds.film import Film, play
from revisit.worlds.places import make_world
from revisit.worlds.state import TARGET, State
from revisit.worlds.world import Shot

SIZE, FRAMES, FPS = (240, 416), 41, 10.0
OUT_OF_VIEW = 3.0  # metres to the side: outside of every picture of a table
FIRST = 3000  # added to a seed, so that no place of the audit's grid, the demo or the exam is among these
Moment = Callable[[Film, int, float], Shot]  # of a film, at a frame, which is so far through the clip (0 to 1)


@dataclass(frozen=True)
class Situation:
    """What is shown, of which target, in which film."""

    kind: str
    script: str
    shown: Moment
    view: str  # what becomes of the first view, in the words of its gate; empty where that is not asked
    event: str = "none"


def draw_growing_target(film: Film, frame: int, progress: float) -> Shot:
    """The first view all along, with a target that changes in place."""
    return film.shot(0, replace(film.world.first_state, amount=progress))


def state_moved_sideways(film: Film, share: float, turn: float = 0.0) -> State:
    """The target so far on its way out of the picture, to the nearer side."""
    x, y, z = film.world.first_state.place
    return replace(film.world.first_state, place=(x + share * float(np.copysign(OUT_OF_VIEW, x)), y, z), turn=turn)


def draw_pushed_target(film: Film, frame: int, progress: float) -> Shot:
    """The first view all along; the target is pushed a little to the side and back."""
    return film.shot(0, state_moved_sideways(film, 0.06 * float(np.sin(np.pi * progress))))


def draw_target_walking_out(film: Film, frame: int, progress: float) -> Shot:
    """The first view all along; the target leaves it and does not come back."""
    return film.shot(0, state_moved_sideways(film, min(max(progress - 0.25, 0.0) / 0.3, 1.0)))


def draw_target_walking_out_and_back(film: Film, frame: int, progress: float) -> Shot:
    """The first view all along; the target leaves, and comes back turned round."""
    distance = min(max(progress - 0.15, 0.0) / 0.25, 1.0, max(0.85 - progress, 0.0) / 0.25)
    return film.shot(0, state_moved_sideways(film, distance, 180.0 if progress > 0.5 else 0.0))


def draw_truth(film: Film, frame: int, progress: float) -> Shot:
    """What the film shows."""
    return film.truth(frame)


def draw_forgotten_target(film: Film, frame: int, progress: float) -> Shot:
    """The film without the target from the moment on at which it is hidden."""
    return film.truth(frame) if frame < film.phases[0] else film.shot(frame, None)


SITUATIONS = {
    "grows_in_view": Situation("plant", "yaw", draw_growing_target, "never left"),
    "fills_in_view": Situation("cup", "yaw", draw_growing_target, "never left"),
    "melts_in_view": Situation("snowman", "yaw", draw_growing_target, "never left"),
    "walks_out": Situation("figure", "yaw", draw_target_walking_out, "never left"),
    "walks_out_and_back": Situation("figure", "yaw", draw_target_walking_out_and_back, "never left"),
    "behind_a_screen": Situation("gift", "occluder", draw_truth, ""),
    "looked_away": Situation("rocket", "yaw", draw_truth, "left, returned"),
    "looked_away_and_gone": Situation("vase", "yaw", draw_forgotten_target, "left, returned"),
    "foams_in_view": Situation("flask", "yaw", draw_growing_target, "never left"),
    "thin_stick_in_view": Situation("rod", "yaw", draw_pushed_target, "never left"),
    "thin_stick_looked_away": Situation("rod", "yaw", draw_truth, "left, returned"),
    "foams_unseen": Situation("flask", "yaw", draw_truth, "left, returned", "foaming"),
}


def render_situations(folder: Path, seeds: Sequence[int] = (0,), *, fresh: bool = False) -> Path:
    """Render the situations in the places of some seeds; return the labelled folder. What is there is kept."""
    folder.mkdir(parents=True, exist_ok=True)
    labels_path = folder / BY_HAND
    rows = json.loads(labels_path.read_text(encoding="utf-8")) if labels_path.is_file() and not fresh else {}
    for seed in seeds:
        for number, (name, situation) in enumerate(SITUATIONS.items()):
            title = f"{name}-{seed:02d}"
            if title in rows and (folder / f"{title}.mp4").is_file():
                continue
            place = ("room", "yard")[(seed + number) % 2]
            film = play(
                make_world(FIRST + 100 * seed + number, place, situation.kind, block=False), situation.script,
                situation.event, SIZE, frames=FRAMES, fps=FPS,
            )  # fmt: skip
            shots = [situation.shown(film, frame, frame / (len(film) - 1)) for frame in range(len(film))]
            encode_mp4(folder / f"{title}.mp4", (shot.rgb for shot in shots), fps=film.fps)
            rows[title] = _label_row(film, name, situation, shots)
            labels_path.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return folder


def _label_row(film: Film, name: str, situation: Situation, shots: Sequence[Shot]) -> dict[str, object]:
    visible = np.array([bool((shot.mask == TARGET).any()) for shot in shots])
    hidden_at = int(visible.argmin()) if not visible.all() else None
    back_at = (
        None if hidden_at is None or not visible[hidden_at:].any() else hidden_at + int(visible[hidden_at:].argmax())
    )
    verdict = "never hidden" if hidden_at is None else "hidden, not returned" if back_at is None else "hidden, returned"
    return {
        "box": list(film.target_box()), "gate": verdict, "class": name, "target": situation.kind,
        "scene": film.world.name, "view": situation.view, "first_hidden_frame": hidden_at,
        "first_returned_frame": back_at,
    }  # fmt: skip
