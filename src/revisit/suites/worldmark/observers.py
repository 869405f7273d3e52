"""Flow, parallax and frame vectors, as WorldMark's measures need them.

Flow is dense inverse search between a frame and the next but one, both squeezed to 640 x 432. Where the public
evaluator cached its own (`flow_cache/<model>__<name>.npz`: SEA-RAFT, and points of Depth Anything 3), that is taken
instead. The display that SANA-WM draws into its lower left corner is greyed.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import Batch, ClipInfo, Frame, FrameStream, MediaError, observer
from revisit.media import array_shapes_in_npz, load_npz
from revisit.media.error_names import raise_media_errors_naming_file
from revisit.observers.pictures import create_dis_flow, resize_by_halving, to_gray
from revisit.suites.worldmark.evidence import (
    APART,
    FLOW_SIZE,
    KEYS,
    FrameVectors,
    KeyFlow,
    KeyParallax,
    SmallFrameVectors,
    keys_of_condition,
)

DISPLAYS = {"sana-wm": (0.18, 0.22)}  # model -> height and width of what it draws into the lower left corner
GREY = 128
DIS, SEA_RAFT, DEPTH_ANYTHING = "dense inverse search", "sea-raft", "depth-anything-3"
PARALLAX_PART = (0.25, 0.9)  # of a key's time
LEAST_FRAMES = 3  # of a key
THIN = 6  # every so many pixels enter the line
TRIMMED, SPREAD = (1, 99), (5, 95)  # percentiles of inverse depth
NEAREST = 1e-3  # of depth
EFFICIENTNET, DINO = "efficientnet-lite0", "dinov2-base"
ALL_SETS = ("lite", "perceptual", "imported", "small", "paper")


def flow_input_picture(frame: Frame, model: str) -> np.ndarray:
    """Luma at the size of the flow, a model's display greyed."""

    def make_picture() -> np.ndarray:
        width, height = FLOW_SIZE
        picture = to_gray(resize_by_halving(frame.rgb, width, height))
        for name, (rows, columns) in DISPLAYS.items():
            if model.lower().startswith(name):
                picture = picture.copy()
                picture[int(height * (1 - rows)) :, : int(width * columns)] = GREY
        return picture

    return frame.once(("key flow", model), make_picture)


@observer(
    id="lite.key_flow", version=1, kind="sequence", makes=KeyFlow, inputs=("model", "artifacts.flow?"), sets=ALL_SETS
)
def observe_key_flow(clip: ClipInfo, model: str, flow_file: Path | None) -> FrameStream:
    """Mean flow to the right and away from the centre, between each frame and the next but one."""
    if flow_file is not None:
        while (yield) is not None:
            pass
        return read_cached_flow(flow_file, clip.count)
    maker, (width, height) = create_dis_flow(), FLOW_SIZE
    y, x = np.mgrid[:height, :width].astype(np.float32)
    x, y = x - width / 2, y - height / 2
    length = np.hypot(x, y) + 1e-6
    x, y = x / length, y / length
    waiting: deque[Frame] = deque(maxlen=APART)
    rows: list[tuple[int, float, float]] = []
    while (frame := (yield)) is not None:
        if len(waiting) == APART:
            flow = maker.calc(flow_input_picture(waiting[0], model), flow_input_picture(frame, model), None)
            u, v = flow[..., 0], flow[..., 1]
            rows.append((waiting[0].index, float(u.mean()), float((u * x + v * y).mean())))
        waiting.append(frame)
    index, horizontal, radial = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    return KeyFlow(index.astype(np.int64), horizontal, radial, DIS)


def read_cached_flow(path: Path, count: int) -> KeyFlow:
    """The flow that the public evaluator cached for a clip of so many frames."""
    with raise_media_errors_naming_file(path):
        names = array_shapes_in_npz(path)
        if not {"Sx", "Srad"} <= names.keys():
            raise MediaError(f"it has {', '.join(sorted(names)) or 'nothing'}; a cache of flow has Sx and Srad")
        arrays = load_npz(path, members=["Sx", "Srad"])
        lengths = {len(np.ravel(values)) for values in arrays.values()}
        if lengths != {max(count - APART, 0)}:
            raise MediaError(f"it has {max(lengths)} values, and a clip of {count} frames has {max(count - APART, 0)}")
        across, away = (np.ravel(arrays[name]).astype(np.float64) for name in ("Sx", "Srad"))
        return KeyFlow(np.arange(len(across)), across, away, SEA_RAFT)


def read_cached_parallax(path: Path) -> KeyParallax:
    """The lines through the points that the public evaluator cached."""
    with raise_media_errors_naming_file(path):
        numbers = sorted(
            int(name[3:]) for name in array_shapes_in_npz(path) if name.startswith("iv_") and name[3:].isdecimal()
        )
        arrays = load_npz(path, members=[f"{part}_{number}" for number in numbers for part in ("iv", "uu")])
        lines = [fit_parallax_line(arrays[f"iv_{number}"], arrays[f"uu_{number}"]) for number in numbers]
        near, far, spread = np.array(lines, dtype=np.float64).reshape(-1, 3).T
        frames = np.zeros(len(numbers), np.int64)
        return KeyParallax(np.array(numbers, dtype=np.int64), near, far, spread, frames, DEPTH_ANYTHING, SEA_RAFT)


def choose_parallax_frames(count: int, fps: float, condition: str, *, step: int | None) -> dict[int, list[int]]:
    """Key -> the earlier frames of the pairs that are looked at: one a second, or one in `step` frames."""
    keys, last = keys_of_condition(condition), count - APART - 1
    apart = step or max(1, round(fps))
    chosen = {}
    for number, key in enumerate(keys):
        if KEYS[key].axis == "forward" or last < 0:
            continue
        first, end = (int((number + share) * count / len(keys)) for share in PARALLAX_PART)
        frames = list(range(first, min(end, last), apart))
        if len(frames) < LEAST_FRAMES:
            frames = [int(at) for at in np.linspace(min(first, last), min(end, last), LEAST_FRAMES)]
        chosen[number] = sorted(set(frames))
    return chosen


def choose_parallax_pairs(
    count: int, fps: float, condition: str, model: str, flow_file: Path | None, *, step: int | None = None
) -> np.ndarray:
    """Both frames of all these pairs."""
    chosen = choose_parallax_frames(count, fps, condition, step=step)
    earlier = np.array([frame for frames in chosen.values() for frame in frames], dtype=np.int64)
    return np.concatenate([earlier, earlier + APART])


@observer(
    id="small.key_parallax", version=1, kind="sequence", makes=KeyParallax,
    inputs=("condition", "model", "artifacts.flow?"), weights=("fastdepth",), choose=choose_parallax_pairs,
    sets=("small", "paper"),
)  # fmt: skip
def observe_key_parallax(
    clip: ClipInfo, condition: str, model: str, flow_file: Path | None, *, step: int | None = None
) -> FrameStream:
    """The line of sideways flow over inverse depth by FastDepth, for each key that asks for a step or a turn."""
    import cv2

    if flow_file is not None:
        while (yield) is not None:
            pass
        return read_cached_parallax(flow_file)

    from revisit.networks import fastdepth

    maker = create_dis_flow()
    chosen = choose_parallax_frames(clip.count, clip.fps, condition, step=step)
    earlier = {frame: number for number, frames in chosen.items() for frame in frames}
    frames: dict[int, Frame] = {}
    points: dict[int, list[np.ndarray]] = {number: [] for number in chosen}
    while (frame := (yield)) is not None:
        frames[frame.index] = frame
        first = frames.get(frame.index - APART)
        if first is not None and first.index in earlier:
            flow = maker.calc(flow_input_picture(first, model), flow_input_picture(frame, model), None)
            (depth,) = fastdepth.depth_maps([resize_by_halving(first.rgb, fastdepth.SIDE, fastdepth.SIDE)])
            u = cv2.resize(np.ascontiguousarray(flow[..., 0]), depth.shape[::-1])
            points[earlier[first.index]].append(inverse_depth_and_flow(depth, u))
        frames = {number: picture for number, picture in frames.items() if number > frame.index - APART}
    numbers = [number for number, some in points.items() if some]
    lines = [fit_parallax_line(*np.concatenate(points[number], axis=1)) for number in numbers]
    near, far, spread = np.array(lines).reshape(-1, 3).T
    frames_of = np.array([len(points[number]) for number in numbers], dtype=np.int64)
    return KeyParallax(np.array(numbers, dtype=np.int64), near, far, spread, frames_of, fastdepth.ID, DIS)


def inverse_depth_and_flow(depth: np.ndarray, u: np.ndarray) -> np.ndarray:
    """(2, n) inverse depth and sideways flow of every sixth pixel, without the nearest and farthest hundredth."""
    inverse, flow = 1.0 / np.maximum(depth.ravel()[::THIN], NEAREST), u.ravel()[::THIN]
    low, high = np.percentile(inverse, TRIMMED)
    within = (inverse >= low) & (inverse <= high)
    return np.stack([inverse[within], flow[within]])


def fit_parallax_line(inverse_depth: np.ndarray, u: np.ndarray) -> tuple[float, float, float]:
    """Slope and intercept of the line u = near / Z + far by least squares, and the spread of inverse depth."""
    design = np.stack([inverse_depth, np.ones_like(inverse_depth)], axis=1)
    near, far = np.linalg.lstsq(design, u, rcond=None)[0]
    low, high = np.percentile(inverse_depth, SPREAD)
    return float(near), float(far), float(high - low)


def choose_frames_at_rate(count: int, fps: float, *, rate: float | None = 8.0) -> np.ndarray:
    """So many frames a second, or all."""
    return np.arange(count) if rate is None else np.arange(0, count, max(fps / rate, 1.0)).round().astype(np.int64)


@observer(
    id="small.frame_vectors", version=1, kind="frame", makes=SmallFrameVectors, choose=choose_frames_at_rate,
    weights=(EFFICIENTNET,), sets=("small", "paper"),
)  # fmt: skip
def small_frame_vectors(batch: Batch, *, rate: float | None = 8.0) -> SmallFrameVectors:
    """The mean patch descriptor of frames by EfficientNet-Lite0."""
    from revisit.networks import runtime
    from revisit.networks.efficientnet_lite import resize_to_whole_patches, unit_patch_and_picture_descriptors

    with runtime.inference():
        tokens, _ = unit_patch_and_picture_descriptors(
            resize_to_whole_patches(runtime.channels_first_on_device(batch.rgb))
        )
        return SmallFrameVectors(batch.index, mean_unit_vectors(tokens.flatten(1, 2)), EFFICIENTNET)


@observer(
    id="paper.frame_vectors", version=1, kind="frame", makes=FrameVectors, choose=choose_frames_at_rate,
    weights=(DINO,),
    sets=("paper",),
)  # fmt: skip
def dino_frame_vectors(batch: Batch, *, rate: float | None = 8.0) -> FrameVectors:
    """The mean patch token of the middle of frames by DINOv2-B, as the public evaluator takes it."""
    from revisit.networks import dino, preprocessing, runtime

    with runtime.inference(dino.HALF):
        levels = preprocessing.resize_256_and_crop_224(runtime.channels_first_on_device(batch.rgb))
        _, tokens = dino.network(DINO)(preprocessing.normalise_by_channel(levels))
        return FrameVectors(batch.index, mean_unit_vectors(preprocessing.unit_vectors(tokens)), DINO)


def mean_unit_vectors(tokens: Any) -> np.ndarray:
    """(N, D) unit vectors of the mean over patches (N, patches, D)."""
    from revisit.networks import preprocessing, runtime

    return runtime.to_numpy(preprocessing.unit_vectors(tokens.mean(dim=1)), np.float16)
