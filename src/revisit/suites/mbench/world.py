"""MBench: a set with its samples, and the videos and camera artifacts of models, in the layout of docs/mbench.md.

A film is called {subset}__{sample_id}__{condition_id}; a set holds films of one setting. The artifact holds exactly
what a depth and pose network would give of every fourth frame; `convention` and `frame_indices` say so, because files
in the wild do not. Depth is that of the place along the model's own camera path, with the target as it really is.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from revisit.core.text import read_package_yaml
from revisit.media.files import write_json_lines, write_text_atomically
from revisit.worlds.events import EVENTS
from revisit.worlds.film import Film
from revisit.worlds.layouts import common
from revisit.worlds.layouts.common import Model, Row
from revisit.worlds.layouts.film_orders import CAST, Layout, Order, layout, place_of
from revisit.worlds.story import film_along_poses
from revisit.worlds.workers import StepCallback

WORDS = read_package_yaml(__package__, "world.yaml")
EVERY = 4  # frames of which the artifact tells
TEXT = "text"  # the condition of films in a set by text


def write_film(folder: Path, name: str, film: Film, models: Sequence[Model], seed: int, tell: StepCallback) -> Row:
    """Write the sample and the videos of one film that are not there, and return what the lists say of it."""
    subset, sample, condition = name.split("__")
    _write_sample(folder / "samples" / subset / sample, sample, subset, film, condition)
    model_names = []
    for model in common.each_that_applies(models, film, name, tell):
        model_names.append(model.name)
        model_folder, place = folder / "models" / model.name, Path(subset) / sample / condition
        output, artifact = model_folder / "outputs" / place / "video.mp4", model_folder / "artifacts" / place / "da3"
        if not (output.is_file() and (artifact / "results.npz").is_file()):
            frames = list(model.frames(film, seed))
            common.video(output, frames, film.fps)
            _write_pose_artifact(artifact, frames[::EVERY], film_along_poses(film, model.poses(film, seed)))
    return {"subset": subset, "sample": sample, "condition": condition, "models": model_names}


def _write_sample(place: Path, sample_id: str, subset: str, film: Film, condition: str) -> None:
    """Write a sample with its ground truth."""
    common.video(place / "source_video.mp4", common.true_frames(film), film.fps)
    common.write_missing_picture(place / "first_frame.png", film.truth(0).rgb)
    common.write_missing_picture(place / "reference.png", film.truth(len(film) - 1).rgb)
    height, width = film.size
    x0, y0, x1, y1 = film.target_box()
    caption = film.prompt
    anchor = {
        "center_x": (x0 + x1) / 2 * width, "center_y": (y0 + y1) / 2 * height, "width": width, "height": height,
        "source": "exact",
    }  # fmt: skip
    name = film.world.instances[1]
    metadata: dict[str, object] = {"caption": caption, "phases": list(film.phases)}
    annotations: dict[str, object] = {"event": film.event}
    if condition == TEXT:  # the object has a name and no place, as in the published set
        words = {"scene": film.world.scene, "camera": film.camera_words, "event": EVENTS[film.event].what, "name": name}
        captions = [text.format(**words) for text in WORDS["captions"]]
        metadata |= {"object_card": {"name": name, "attributes": []}, "caption_segments": captions}
    else:
        metadata |= {"object_anchor": anchor, "object_name": name}
        annotations["action"] = film.script
    content = {
        "sample_id": sample_id,
        "subset": subset,
        "caption": caption,
        "ground_truth_media": {
            "source_video": "source_video.mp4", "first_frame": "first_frame.png", "reference": "reference.png",
        },
        "metadata": metadata,
        "annotations": annotations,
    }  # fmt: skip
    write_text_atomically(place / "sample.json", json.dumps(content, indent=1))


def _write_pose_artifact(place: Path, frames: Sequence[np.ndarray], film: Film) -> None:
    """Write depth, poses, intrinsics and the images they belong to, at half the size of the video."""
    import cv2

    numbers = np.arange(0, len(film), EVERY)
    small = film.size[1] // 2, film.size[0] // 2
    shrunk = (cv2.resize(rgb, small, interpolation=cv2.INTER_AREA) for rgb in frames)
    common.write_missing_pictures(place / "input_images", lambda k: f"{k:06d}.png", shrunk)
    K = film.K.copy()
    K[:2] /= 2
    K[:2, 2] -= 0.25  # pixel centres are whole numbers on either grid
    common.write_missing_arrays(
        place / "results.npz",
        depth=np.stack([_depth_at_half_size(film.truth(int(k)).depth) for k in numbers]),
        extrinsics=np.linalg.inv(film.poses[numbers])[:, :3],
        intrinsics=np.tile(K, (len(numbers), 1, 1)),
        frame_indices=numbers,
        convention=np.array("w2c_opencv"),
    )


def _depth_at_half_size(depth: np.ndarray) -> np.ndarray:
    """Depth at the middle of every two by two pixels; inverse depth is what is linear across a plane."""
    inverse = 1 / depth
    mean = (inverse[::2, ::2] + inverse[1::2, ::2] + inverse[::2, 1::2] + inverse[1::2, 1::2]) / 4
    return (1 / mean).astype(np.float32)


def write_lists(folder: Path, rows: Sequence[Row]) -> None:
    """Write the card of the set and the list of videos of every model."""
    subsets = {row["subset"] for row in rows}
    present = {subset: text for subset, text in WORDS["subsets"].items() if subset in subsets}
    listed = "\n".join(f"  {subset}: {{description: {json.dumps(text)}}}" for subset, text in present.items())
    by_text = all(row["condition"] == TEXT for row in rows)
    dataset_id, pattern = ("mbencht", TEXT) if by_text else ("mbencha", "{action}_{length}")
    write_text_atomically(folder / "dataset.yaml", WORDS["card"].format(id=dataset_id, pattern=pattern, subsets=listed))
    for model in dict.fromkeys(model for row in rows for model in row["models"]):
        items = [_list_item_row(row, model) for row in rows if model in row["models"]]
        write_json_lines(folder / "models" / model / "samples.jsonl", items, ascii=True)


def _list_item_row(row: Row, model: str) -> Row:
    place = f"{row['subset']}/{row['sample']}/{row['condition']}"
    return {
        "item_id": place.replace("/", ":"), "dataset_id": "mbencht" if row["condition"] == TEXT else "mbencha",
        "subset": row["subset"],
        "sample_id": row["sample"], "condition_id": row["condition"], "model_id": model,
        "media": {"videos": [{"path": f"outputs/{place}/video.mp4", "role": "generated"}]},
        "artifacts": {"da3": {"path": f"artifacts/{place}/da3/results.npz"}}, "annotations": {}, "metadata": {},
    }  # fmt: skip


def film_orders_of_seed(seed: int) -> list[Order]:
    """The films of a seed, one for each subset, by actions."""
    cast = {"environment": ("gift", "none"), "object": ("gift", "none"), "human": ("figure", "none"),
            "causal": CAST[1::2][seed % 5]}  # fmt: skip
    return [
        Order(f"{subset}__sample_{seed:03d}__{{action}}_3s", seed, place_of(seed), kind, event)
        for subset, (kind, event) in cast.items()
    ]


def film_orders_by_text(seed: int) -> list[Order]:
    """The same by text."""
    return [replace(order, name=order.name.replace("{action}_3s", TEXT)) for order in film_orders_of_seed(seed)]


MODELS = (
    "perfect", "frozen_camera", "texture_drift", "shape_drift", "state_reset", "background", "lighting", "style",
)  # fmt: skip
MODELS_OF_TEXT = ("perfect", "frozen_camera", "texture_drift", "state_reset", "lighting")
LAYOUT = layout(Layout("mbench", film_orders_of_seed, MODELS, write_film, write_lists, options="--suite mbench"))
LAYOUT_OF_TEXT = layout(
    Layout("mbench-t", film_orders_by_text, MODELS_OF_TEXT, write_film, write_lists, options="--suite mbench")
)
