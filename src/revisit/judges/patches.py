"""Pictures as Qwen-VL models take them: resized, normalised and cut into patches, without torchvision.

A picture is resized so that both sides are whole multiples of patch x merge and its pixels lie between two bounds,
then cut into patches; the patches that the model will merge into one token lie next to each other, and a still
picture fills both halves of a patch in time. Sizes and colours come from the checkpoint's own files.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import UsageError
from revisit.core.text import parse_json

FILES = ("preprocessor_config.json", "processor_config.json", "video_preprocessor_config.json")


@dataclass(frozen=True)
class PatchRule:
    """How a checkpoint wants its pictures."""

    patch: int
    merge: int
    frames: int  # of a patch, in time
    mean: tuple[float, ...]
    std: tuple[float, ...]
    least: int  # pixels of a picture
    most: int

    @property
    def merged_patch_side(self) -> int:
        return self.patch * self.merge


def patch_rule_from_config(
    vision_config: Mapping[str, int], processor_config: Mapping[str, Any], max_pixels: int | None = None
) -> PatchRule:
    """The rule of a checkpoint, from its vision config and image processor's file; `max_pixels` lowers the bound."""
    processor = processor_config.get("image_processor", processor_config)
    size = processor.get("size") or {}
    if "image_mean" not in processor or "image_std" not in processor:
        raise UsageError(
            "the checkpoint does not say how its pictures are normalised: image_mean and image_std are in none of "
            f"{', '.join(FILES)}; copy the file from the original checkpoint"
        )
    least = processor.get("min_pixels") or size.get("shortest_edge") or 56 * 56
    bound = processor.get("max_pixels") or size.get("longest_edge") or 1280 * 28 * 28
    return PatchRule(
        patch=int(vision_config["patch_size"]),
        merge=int(vision_config["spatial_merge_size"]),
        frames=int(vision_config["temporal_patch_size"]),
        mean=tuple(processor["image_mean"]),
        std=tuple(processor["image_std"]),
        least=int(least),
        most=min(int(bound), max_pixels or int(bound)),
    )


def read_processor_settings(folder: Path) -> Mapping[str, Any]:
    """The image processor's settings in the folder of a checkpoint; empty where there are none."""
    for name in FILES:
        path = folder / name
        if path.is_file():
            content = parse_json(path.read_text(encoding="utf-8"))
            if "image_mean" in content.get("image_processor", content):
                return dict(content)
    return {}


def patch_grid_height_width(height: int, width: int, rule: PatchRule) -> tuple[int, int]:
    """The size to which a picture is resized: nearest in shape, on the grid of the model, within its bounds."""
    step = rule.merged_patch_side
    rows, columns = (max(step, round(side / step) * step) for side in (height, width))
    if rows * columns > rule.most:
        shrink = math.sqrt(height * width / rule.most)
        rows, columns = (max(step, math.floor(side / shrink / step) * step) for side in (height, width))
    elif rows * columns < rule.least:
        grow = math.sqrt(rule.least / (height * width))
        rows, columns = (math.ceil(side * grow / step) * step for side in (height, width))
    return rows, columns


def patches_and_grid(pictures: Sequence[np.ndarray], rule: PatchRule) -> tuple[np.ndarray, np.ndarray]:
    """Patches (n, values) of RGB pictures, float32, and the grid (pictures, 3) of each: time, rows, columns."""
    cuts, grids = zip(*(_patches_and_grid_of_picture(picture, rule) for picture in pictures), strict=True)
    return np.concatenate(cuts), np.array(grids, np.int64)


def _patches_and_grid_of_picture(picture: np.ndarray, rule: PatchRule) -> tuple[np.ndarray, tuple[int, int, int]]:
    height, width = patch_grid_height_width(picture.shape[0], picture.shape[1], rule)
    mean, std = np.array(rule.mean, np.float32), np.array(rule.std, np.float32)
    colours = (_resize_bicubic(picture, height, width) / np.float32(255) - mean) / std
    rows, columns, merge, side = height // rule.patch, width // rule.patch, rule.merge, rule.patch
    blocks = colours.reshape(rows // merge, merge, side, columns // merge, merge, side, 3)
    still = blocks.transpose(0, 3, 1, 4, 6, 2, 5)[:, :, :, :, :, None]  # block, patch in it, colour, time, pixels
    filled = np.repeat(still, rule.frames, axis=5)
    return filled.reshape(rows * columns, -1).astype(np.float32), (1, rows, columns)


def _resize_bicubic(picture: np.ndarray, height: int, width: int) -> np.ndarray:
    """The picture in another size, by bicubic interpolation with a filter against aliasing, as 8-bit values."""
    import torch

    if picture.shape[:2] == (height, width):
        return picture
    values = torch.from_numpy(np.ascontiguousarray(picture)).permute(2, 0, 1)[None]
    output = torch.nn.functional.interpolate(values, (height, width), mode="bicubic", antialias=True)
    return np.asarray(output[0].permute(1, 2, 0).numpy())
