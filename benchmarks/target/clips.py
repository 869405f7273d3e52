"""Clips whose target is known pixel by pixel: rendered worlds, and cut-outs moved over photographs.

Each clip has a box of the target in its first frame and a label counted from masks: never hidden; hidden, returned; or
hidden, not returned. Clips between two labels (a target that is nearly out, or out for an instant) are left out.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from revisit.core import Clip
from revisit.media import open_clip
from revisit.worlds.events import EVENTS
from revisit.worlds.failures import FAILURES, camera_path, generate
from revisit.worlds.film import Film, play
from revisit.worlds.places import make_world
from revisit.worlds.state import TARGET, State
from revisit.worlds.targets import TARGETS

NEVER, RETURNED, AWAY = "never hidden", "hidden, returned", "hidden, not returned"
GONE, IN_VIEW = 0.02, 0.12  # share of the first area: at most, where hidden; at least, where not
BACK = 0.3  # share of the first area of what came back
LASTING = 0.5  # seconds of hiding, and of being back, that leave no doubt
FIRST_SEED = 7000  # no place of the audit's grid, of its situations, the demo or the exam
SIZES = ((180, 320), (208, 368), (240, 240))
QUICK = 2.7  # seconds in which a fast camera leaves and returns
SIDE = 3.0  # metres to the side: outside of every picture of a table
VP9 = {"b": "0", "deadline": "realtime", "cpu-used": "8"}
CODECS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("libx264", ".mp4", {"crf": "20", "preset": "veryfast"}),
    ("libx264", ".mp4", {"crf": "28", "preset": "veryfast"}),
    ("libx264", ".mp4", {"crf": "34", "preset": "veryfast"}),
    ("mpeg4", ".mp4", {"b": "120k"}),
    ("libvpx-vp9", ".webm", {**VP9, "crf": "40"}),
)

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class LabelledClip:
    """Frames with the truth about their target."""

    name: str
    scenes: tuple[str, ...]  # what it shares pictures with
    frames: np.ndarray  # (count, height, width, 3) of bytes
    fps: float
    box: Box
    label: str


def label_of(area: np.ndarray, fps: float) -> str:
    """The label of a target with these areas, frame by frame, or nothing where it lies between two."""
    share = area / max(float(area[0]), 1.0)
    hidden = share <= GONE
    if not hidden.any():
        return NEVER if share.min() >= IN_VIEW else ""
    first = int(hidden.argmax())
    after = share[first:]
    if (after <= GONE).sum() < LASTING * fps:
        return ""
    back = after >= BACK
    if back.sum() >= LASTING * fps:
        return RETURNED
    return AWAY if after.max() <= GONE * 2 else ""


# Rendered worlds


@dataclass(frozen=True)
class Take:
    """The frames of a variant and the area of the target in each."""

    frames: list[np.ndarray]
    area: np.ndarray


def _shots(film: Film, state_at: Callable[[int], State | None], still: bool = False) -> Take:
    shots = [film.shot(0 if still else frame, state_at(frame)) for frame in range(len(film))]
    return Take([shot.rgb for shot in shots], np.array([(shot.mask == TARGET).sum() for shot in shots]))


def _aside(state: State, share: float, turn: float = 0.0) -> State:
    x, y, z = state.place
    return replace(state, place=(x + share * float(np.copysign(SIDE, x)), y, z), turn=turn)


def world_variants(film: Film, rng: np.random.Generator) -> Iterator[tuple[str, Take]]:
    """What models might make of a film: its truth, failures of memory and of the camera, and a camera that rests."""
    count, first = len(film), film.states[0]
    middle = sum(film.phases) // 2
    states = film.states
    yield "truth", _shots(film, lambda k: states[k])
    yield "forgotten", _shots(film, lambda k: states[k] if k < middle else None)
    wrong = replace(states[-1], turn=float(rng.uniform(30, 180)), scale=float(rng.uniform(0.7, 1.4)))
    yield "turned", _shots(film, lambda k: states[k] if k < middle else wrong)
    yield (
        "gone_at_once",
        _shots(film, lambda k: first if k < 1 + int(rng.integers(0, 2)) else None, bool(rng.random() < 0.7)),
    )
    leaves = int(count * rng.uniform(0.2, 0.6))
    yield "gone_in_view", _shots(film, lambda k: first if k < leaves else None, True)
    blinks = leaves + max(int(count * 0.25), int(0.8 * film.fps))
    yield "gone_and_back_in_view", _shots(film, lambda k: first if not leaves <= k < blinks else None, True)
    yield (
        "moves_in_view",
        _shots(film, lambda k: _aside(first, 0.05 * float(np.sin(4 * k / count)), 60.0 * k / count), True),
    )
    yield "changes_in_view", _shots(film, lambda k: replace(first, amount=k / count, look=int(k > leaves)), True)
    start, way = 0.15 * count, 0.25 * count
    yield "walks_out", _shots(film, lambda k: _aside(first, float(np.clip((k - start) / way, 0, 1))), True)
    back_at = count * 0.9
    yield (
        "walks_out_and_back",
        _shots(
            film,
            lambda k: _aside(first, float(np.clip(min(k - start, back_at - k) / way, 0, 1)), 180.0 * (k > count / 2)),
            True,
        ),
    )
    for kind in rng.permutation(["frozen_camera", "timid_camera", "camera_drift", "late_return", "partial_return"])[:3]:
        strength = float(rng.uniform(0.4, 1.0))
        other = film.along(camera_path(str(kind), film, strength, 0))
        yield str(kind), _shots(other, lambda k: states[k])
    areas = _shots(film, lambda k: states[k]).area
    looks = ["style", "lighting", "flicker", "blur", "background", "colour_drift", "texture_drift", "shape_drift"]
    looks += ["teleport", "duplicate", "cut"]
    for kind in rng.permutation(looks)[:3]:
        if FAILURES[str(kind)].applies(film):
            frames = list(generate(str(kind), film, float(rng.uniform(0.3, 0.7)), 0))
            yield str(kind), Take(frames, areas)


def _play_world(number: int, rng: np.random.Generator, seconds: float = 4.0) -> Film:
    """The film of a rendered world, at the rate and of the size that its number draws."""
    kind = str(rng.choice(list(TARGETS)))
    events = [
        name for name, event in EVENTS.items() if not event.needs_perch and (not event.kinds or kind in event.kinds)
    ]
    script = str(rng.choice(["yaw", "yaw", "yaw", "tilt", "pan", "orbit", "occluder", "uturn"]))
    size, fps = SIZES[int(rng.integers(len(SIZES)))], float(rng.choice([6, 8]))
    world = make_world(FIRST_SEED + number, str(rng.choice(["room", "yard"])), kind, block=False)
    return play(world, script, str(rng.choice(events)), size, frames=int(seconds * fps) + 1, fps=fps)


def _labelled(
    number: int, film: Film, takes: Iterator[tuple[str, Take]], rng: np.random.Generator
) -> Iterator[LabelledClip]:
    """Takes that have a label, disturbed as videos are."""
    for name, take in takes:
        label = label_of(take.area, film.fps)
        if label:
            scene = f"world{number:03d}"
            frames, box = np.stack(take.frames), film.target_box()
            yield disturbed(LabelledClip(f"{scene}-{name}", (scene,), frames, film.fps, box, label), rng)


def world_clips(number: int) -> Iterator[LabelledClip]:
    """All clips of one rendered world."""
    rng = np.random.default_rng([number, 39])
    film = _play_world(number, rng)
    yield from _labelled(number, film, world_variants(film, rng), rng)


def forgetful_clips(number: int) -> Iterator[LabelledClip]:
    """Clips of the same rendered world that leave the target and come back, most of them without it.

    In `world_clips` nearly all cameras that move bring the target back, so that a camera's speed would tell the label.
    """
    film = _play_world(number, np.random.default_rng([number, 39]))
    quick = _play_world(number, np.random.default_rng([number, 39]), QUICK)
    rng = np.random.default_rng([number, 41])
    yield from _labelled(number, film, forgetful_variants(film, rng), rng)
    yield from _labelled(number, quick, quick_variants(quick, rng), rng)


def _forgetting(film: Film) -> Callable[[int], State | None]:
    """The state of a target that is gone from the middle of its hiding on."""
    middle = sum(film.phases) // 2
    return lambda frame: film.states[frame] if frame < middle else None


def forgetful_variants(film: Film, rng: np.random.Generator) -> Iterator[tuple[str, Take]]:
    """A film whose target is gone on return, by cameras with faults and in pictures with faults."""
    state_at = _forgetting(film)
    for kind in rng.permutation(["timid_camera", "camera_drift", "late_return", "partial_return"])[:2]:
        other = film.along(camera_path(str(kind), film, float(rng.uniform(0.3, 0.8)), 0))
        yield f"forgotten-{kind}", _shots(other, state_at)
    states = tuple(state_at(frame) for frame in range(len(film)))
    without = replace(film, states=states)  # type: ignore[arg-type]
    areas = _shots(film, state_at).area
    for kind in rng.permutation(["style", "lighting", "flicker", "blur"])[:2]:
        yield f"forgotten-{kind}", Take(list(generate(str(kind), without, float(rng.uniform(0.3, 0.7)), 0)), areas)


def quick_variants(film: Film, rng: np.random.Generator) -> Iterator[tuple[str, Take]]:
    """A film of a fast camera: with its target, with another side of it, and twice without it."""
    states, state_at = film.states, _forgetting(film)
    wrong = replace(states[-1], turn=float(rng.uniform(30, 180)), scale=float(rng.uniform(0.7, 1.4)))
    yield "quick", _shots(film, lambda k: states[k])
    yield "quick-turned", _shots(film, lambda k: states[k] if state_at(k) is not None else wrong)
    yield "quick-forgotten", _shots(film, state_at)
    drifting = film.along(camera_path("camera_drift", film, float(rng.uniform(0.2, 0.6)), 0))
    yield "quick-forgotten-camera_drift", _shots(drifting, state_at)


# Cut-outs over photographs


@dataclass(frozen=True)
class Photograph:
    """A picture and the scene that it is of."""

    scene: str
    rgb: np.ndarray


def _ellipse(height: int, width: int) -> np.ndarray:
    y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    return np.clip((1.05 - np.sqrt(x**4 + y**4)) * 6, 0, 1).astype(np.float32)


def _piece(photograph: Photograph, rng: np.random.Generator, side: float) -> np.ndarray:
    """A textured piece of a photograph of about `side` of its width."""
    height, width = photograph.rgb.shape[:2]
    best, most = None, -1.0
    for _ in range(6):
        w = int(width * side * rng.uniform(0.7, 1.3))
        h = min(int(w * rng.uniform(0.6, 1.6)), height - 2)
        x, y = int(rng.integers(0, width - w)), int(rng.integers(0, height - h))
        piece = photograph.rgb[y : y + h, x : x + w]
        contrast = float(piece.astype(np.float32).std(axis=(0, 1)).mean())
        if contrast > most:
            best, most = piece, contrast
    assert best is not None
    return best


STORIES = (
    "look_away", "look_away_forgotten", "look_away_stays", "look_away_replaced", "rests", "pans_a_little", "walks_out",
    "walks_out_and_back", "covered_and_back", "half_covered", "gone_at_once", "gone_in_view", "replaced_in_view",
    "changes_in_view", "look_away_changed",
)  # fmt: skip


def composite(number: int, photographs: Sequence[Photograph]) -> Iterator[LabelledClip]:
    """A few clips of one cut-out over one photograph, under a virtual camera."""
    import cv2

    rng = np.random.default_rng([number, 40])
    ground, source, other = (photographs[int(k)] for k in rng.choice(len(photographs), 3, replace=False))
    height, width = SIZES[int(rng.integers(len(SIZES)))]
    fps = float(rng.choice([6, 8, 12]))
    count = int(rng.uniform(3, 4.5) * fps)
    plane = cv2.resize(ground.rgb, None, fx=2.2 * width / ground.rgb.shape[1], fy=2.2 * width / ground.rgb.shape[1])
    if plane.shape[0] < 1.3 * height:
        factor = 1.3 * height / plane.shape[0]
        plane = cv2.resize(plane, None, fx=factor, fy=factor)
    side = float(rng.uniform(0.12, 0.3)) * width
    piece = _piece(source, rng, 0.25)
    sprite = cv2.resize(piece, (int(side), max(12, int(side * piece.shape[0] / piece.shape[1]))))
    sprite = sprite[: int(0.7 * height)]
    piece = _piece(other, rng, 0.25)
    stranger = cv2.resize(piece, sprite.shape[1::-1])
    # windows start in the left part of the plane, with the target in their middle
    left = float(rng.uniform(0.0, 0.2)) * width
    top = float(rng.uniform(0, plane.shape[0] - height))
    x0 = left + float(rng.uniform(0.15, 0.85)) * (width - sprite.shape[1])
    y0 = top + float(rng.uniform(0.1, 0.9)) * (height - sprite.shape[0])
    far = plane.shape[1] - width - left
    for story in rng.permutation(STORIES)[:5]:
        frames, area = [], []
        draws = np.random.default_rng([number, STORIES.index(str(story))])
        depart, arrive = sorted(draws.uniform(0.1, 0.9, 2))
        if arrive - depart < 0.4:
            depart, arrive = 0.2, 0.75
        tint, zoom = draws.normal(0, 6, 3), float(draws.uniform(0.85, 1.2))
        dx, dy, mirror = (
            float(draws.normal(0, 0.06)) * width,
            float(draws.normal(0, 0.03)) * height,
            draws.random() < 0.3,
        )
        shake = draws.normal(0, 1.0, (count, 2)).cumsum(axis=0) * 0.3
        for k in range(count):
            t = k / (count - 1)
            there = float(np.clip(min((t - depart) / 0.2, (arrive - t) / 0.2), 0, 1))  # 1 while away
            gone = t > (depart + arrive) / 2
            x, y, scale, picture, shows, cover, pan = x0, y0, 1.0, sprite, True, 0.0, 0.0
            if story.startswith("look_away"):
                pan = there * far
                if story == "look_away_stays":
                    pan = float(np.clip((t - depart) / 0.2, 0, 1)) * far
                if story == "look_away_forgotten":
                    shows = not gone
                if story == "look_away_replaced" and gone:
                    picture, shows = stranger, False
                if story == "look_away_changed" and gone:
                    x, y, scale = x + dx, y + dy, zoom
                    picture = sprite[:, ::-1] if mirror else sprite
            elif story == "pans_a_little":
                pan = there * 0.25 * (x0 - left)
            elif story.startswith("walks_out"):
                away = there if story.endswith("back") else float(np.clip((t - depart) / 0.2, 0, 1))
                x -= away * (x0 - left + sprite.shape[1] + 8)
            elif story in ("covered_and_back", "half_covered"):
                cover = there * (1.0 if story == "covered_and_back" else 0.5)
            elif story == "gone_at_once":
                shows = k < 1 + number % 2
            elif story == "gone_in_view":
                shows = t < depart
            elif story == "replaced_in_view":
                picture, shows = (stranger, False) if t > depart else (sprite, True)
            elif story == "changes_in_view":
                scale = 1 + (zoom - 1) * t
                x += dx * t
            window, seen = _window(
                plane, picture, (x, y), scale, (left + pan + shake[k, 0], top + shake[k, 1]), (height, width), shows,
                picture is stranger,
            )  # fmt: skip
            if cover:
                seen = _cover(window, seen, stranger, (x0 - left, y0 - top), sprite.shape[:2], cover)
            window = np.clip(window + tint * t, 0, 255).astype(np.uint8)
            frames.append(window)
            area.append(float(seen.sum()))
        label = label_of(np.array(area), fps)
        if not label or area[0] < 100:
            continue
        box = np.array([x0 - left, y0 - top, x0 - left + sprite.shape[1], y0 - top + sprite.shape[0]])
        x_from, y_from, x_to, y_to = np.clip(box / [width, height, width, height], 0, 1).tolist()
        clip = LabelledClip(
            f"photo{number:03d}-{story}", (ground.scene, source.scene, other.scene), np.stack(frames), fps,
            (x_from, y_from, x_to, y_to), label,
        )  # fmt: skip
        yield disturbed(clip, rng)


def _window(
    plane: np.ndarray, picture: np.ndarray, at: tuple[float, float], scale: float, corner: tuple[float, float],
    size: tuple[int, int], shows: bool, strange: bool,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The part of a plane with a cut-out on it that a camera sees, and where the target shows."""
    import cv2

    height, width = size
    warp = np.array([[1.0, 0, -corner[0]], [0, 1.0, -corner[1]]])
    window = cv2.warpAffine(plane, warp, (width, height), borderMode=cv2.BORDER_REFLECT).astype(np.float32)
    alpha = np.zeros((height, width), np.float32)
    if shows or strange:
        place = np.array([[scale, 0, at[0] - corner[0]], [0, scale, at[1] - corner[1]]])
        alpha = cv2.warpAffine(_ellipse(*picture.shape[:2]), place, (width, height))
        thing = cv2.warpAffine(np.ascontiguousarray(picture), place, (width, height), borderMode=cv2.BORDER_REPLICATE)
        window += alpha[..., None] * (thing - window)
    return window, (alpha > 0.5) & shows


def _cover(
    window: np.ndarray,
    seen: np.ndarray,
    picture: np.ndarray,
    at: tuple[float, float],
    size: tuple[int, int],
    share: float,
) -> np.ndarray:
    """Slide a plain board over a share of the target; return where it still shows."""
    height, width = size
    bottom, right = int(at[1] + height + 12), int(at[0] + width + 12)
    top, left = max(int(at[1] - 12), 0), max(int(at[0] - 12), 0)
    end = left + int((right - left) * share)
    window[top:bottom, left:end] = picture.mean(axis=(0, 1))
    seen = seen.copy()
    seen[top:bottom, left:end] = False
    return seen


def disturbed(clip: LabelledClip, rng: np.random.Generator) -> LabelledClip:
    """The clip with faint noise, sometimes in another light, encoded and decoded again."""
    frames: np.ndarray = clip.frames.astype(np.float32)
    if rng.random() < 0.3:
        frames = 255 * (frames / 255) ** float(rng.uniform(0.8, 1.25))
    noise = rng.normal(0, float(rng.uniform(0.3, 2.0)), (frames.shape[1] + 32, frames.shape[2] + 32, 3))
    for frame, (y, x) in zip(frames, rng.integers(0, 33, (len(frames), 2)), strict=True):
        frame += noise[y : y + frame.shape[0], x : x + frame.shape[1]]
    frames = np.clip(frames, 0, 255).astype(np.uint8)
    codec, suffix, options = CODECS[int(rng.integers(len(CODECS)))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"clip{suffix}"
        encode(path, frames, clip.fps, codec, options)
        with open_clip(Clip(path)) as stream:
            frames = np.stack([frame.rgb for frame in stream])
    return replace(clip, frames=frames)


def encode(path: Path, frames: np.ndarray, fps: float, codec: str, options: dict[str, str]) -> None:
    """Write RGB frames with a codec of PyAV, on one thread."""
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=round(fps))
        stream.pix_fmt, stream.options = "yuv420p", options
        stream.codec_context.thread_count = 1
        stream.height, stream.width = frames.shape[1:3]
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(np.ascontiguousarray(frame), format="rgb24")))
        container.mux(stream.encode(None))
