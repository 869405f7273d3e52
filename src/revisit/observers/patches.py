"""Dense patch descriptors: by classical means, or by a network (`small.patches`, EfficientNet-Lite0).

A classical patch of 16 pixels (at a longer side of 320) is described by

- histograms of signed gradient orientation, 8 bins, in the 2 x 2 cells of the patch and in the 2 x 2
  cells of a window twice as wide, with one more bin that stands for "flat";
- its mean CIELAB colour in overlapping bins, with a third of the weight.

Histograms enter by their square roots (Hellinger), lose their common mean and become unit vectors, so
that unrelated patches have a cosine near 0.2, the same place a few pixels off near 0.85, and the same
place after compression or a mild change of brightness above 0.97. Cosines below 0 mean no likeness.
Not a substitute for semantics: another cup of the same colour and outline is the same patch here.

WRBench's integrity compares patches and whole frames by networks, about three frames a second. The whole field is
padded to whole patches, with what the network takes for nothing; patches with padding do not count. `crop` as
upstream's extractor: shorter side 256, the middle 224 x 224 as transformers cuts it. WRBench does not say which DINOv2,
size, padding and filter it means: B, 448, centred and bicubic are ours.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from revisit.core import Batch, observer, per_second, register_observer_per_network
from revisit.evidence.appearance import IntegrityTokens, NetworkPatches, PatchFeatures
from revisit.observers.pictures import VIEWED, rgb_at_shared_size

EFFICIENTNET = "efficientnet-lite0"
LONG_SIDE = 320
PATCH = 16
CELL = PATCH // 2
ORIENTATIONS = 8
WIDER_WEIGHT = 0.7  # of the wider window against the patch itself
FLAT = 0.02  # gradient per pixel (luma 0-1) below which a patch counts as flat: about 5 of 255
COLOUR_WEIGHT = 0.35  # share of the squared length
COLOUR_BINS = {0: np.linspace(0, 100, 6), 1: np.linspace(-40, 40, 6), 2: np.linspace(-40, 40, 6)}
STEPS = 256  # of 1 to which tokens are rounded: half the bytes once packed, and cosines move by a thousandth
NEXT = 11  # frames that are compared with the very next one
REGIONS = (1, 3)  # the whole frame: mean token of the frame and of 3 x 3 regions
DINO_LONG_SIDE = 448  # 32 patches; 16:9 then needs no padding
GREY = 127.0  # the level that EfficientNet-Lite0 takes for nothing
THREE_A_SECOND = per_second(3, at_most=24)


def viewed_and_next_frame_numbers(count: int, fps: float, **_: Any) -> np.ndarray:
    """The frames whose views are compared and, after some of them, the next: how alike neighbours are."""
    frames = VIEWED.pick(count, fps)
    some = frames[np.linspace(0, max(len(frames) - 2, 0), min(NEXT, len(frames))).astype(int)]
    return np.union1d(frames, np.minimum(some + 1, max(count - 1, 0))) if count else frames


@observer(
    id="lite.patches",
    version=4,
    kind="frame",
    makes=PatchFeatures,
    choose=viewed_and_next_frame_numbers,
    prepare=rgb_at_shared_size,
    sets=("lite",),
)
def patch_features(frames: Batch) -> PatchFeatures:
    """Unit descriptors of a grid of patches, 20 on the longer side, and of the whole frame."""
    tokens = np.stack([patch_tokens(rgb) for rgb in frames.rgb])
    whole = np.stack([frame_token_of_regions(grid) for grid in tokens])
    tokens = np.round(tokens * STEPS) / STEPS
    return PatchFeatures(index=frames.index, tokens=tokens.astype(np.float16), whole=whole.astype(np.float32))


@observer(
    id="small.patches", version=2, kind="frame", makes=NetworkPatches, choose=viewed_and_next_frame_numbers,
    weights=(EFFICIENTNET,),
)  # fmt: skip
def network_patches(batch: Batch) -> NetworkPatches:
    """Unit descriptors of a grid of patches, 20 on the longer side, and of the whole frame."""
    from revisit.networks import runtime
    from revisit.networks.efficientnet_lite import resize_to_whole_patches, unit_patch_and_picture_descriptors

    with runtime.inference():
        pictures = resize_to_whole_patches(runtime.channels_first_on_device(batch.rgb))
        tokens, whole = unit_patch_and_picture_descriptors(pictures)
    return NetworkPatches(batch.index, runtime.to_numpy(tokens, np.float16), runtime.to_numpy(whole), EFFICIENTNET)


def patch_tokens(rgb: np.ndarray) -> np.ndarray:
    """(rows, columns, D) unit descriptors of one frame."""
    import cv2

    height, width = rgb.shape[:2]
    per_pixel = LONG_SIDE / max(height, width) / PATCH
    rows, columns = max(1, round(height * per_pixel)), max(1, round(width * per_pixel))
    size = columns * PATCH, rows * PATCH
    levels = cv2.resize(rgb, size, interpolation=cv2.INTER_AREA).astype(np.float32)
    levels /= 255
    lab = cv2.cvtColor(levels, cv2.COLOR_RGB2LAB)
    cells = gradient_orientation_cells(cv2.extractChannel(lab, 0) / 100)
    around = np.pad(cells, ((1, 1), (1, 1), (0, 0)), mode="edge")
    # Means of 2 x 2 cells around every corner between cells: the cells of the wider window.
    wider = (around[:-1, :-1] + around[1:, :-1] + around[:-1, 1:] + around[1:, 1:]) / 4
    parts = [cells[y::2, x::2] for y in (0, 1) for x in (0, 1)]
    parts += [WIDER_WEIGHT * wider[y : y + 2 * rows : 2, x : x + 2 * columns : 2] for y in (0, 2) for x in (0, 2)]
    parts.append(np.full((rows, columns, 1), FLAT, dtype=np.float32))
    shape = unit_vectors(np.sqrt(np.concatenate(parts, axis=2)), centred=True)
    mean_colours = cv2.resize(lab, (columns, rows), interpolation=cv2.INTER_AREA)
    colour = unit_vectors(soft_colour_bins(mean_colours), centred=True)
    return np.concatenate([np.sqrt(1 - COLOUR_WEIGHT) * shape, np.sqrt(COLOUR_WEIGHT) * colour], axis=2)


def gradient_orientation_cells(luma: np.ndarray) -> np.ndarray:
    """Mean gradient magnitude per cell and signed orientation; luma in 0-1."""
    import cv2

    smooth = cv2.GaussianBlur(luma, (0, 0), 1.0)
    dx, dy = (cv2.Sobel(smooth, cv2.CV_32F, *order, ksize=3, scale=0.25) for order in ((1, 0), (0, 1)))
    length = np.sqrt(dx * dx + dy * dy) + 1e-6
    size = luma.shape[1] // CELL, luma.shape[0] // CELL
    maps: list[np.ndarray] = [luma] * ORIENTATIONS
    derivative, energy = np.empty_like(dx), np.empty_like(dx)
    for k in range(ORIENTATIONS // 2):
        angle = 2 * np.pi * k / ORIENTATIONS
        np.multiply(dx, np.float32(np.cos(angle)), out=derivative)
        derivative += np.multiply(dy, np.float32(np.sin(angle)), out=energy)
        np.abs(derivative, out=energy)
        energy *= derivative
        energy /= length
        one_way = np.maximum(energy, 0, out=derivative)
        maps[k] = cv2.resize(one_way, size, interpolation=cv2.INTER_AREA)
        other_way = np.maximum(np.negative(energy, out=energy), 0, out=energy)
        maps[k + ORIENTATIONS // 2] = cv2.resize(other_way, size, interpolation=cv2.INTER_AREA)
    return np.stack(maps, axis=2)


def soft_colour_bins(lab: np.ndarray) -> np.ndarray:
    """Soft histogram of one colour per patch, bins of L, then a, then b."""
    parts = []
    for channel, centres in COLOUR_BINS.items():
        width = 0.7 * (centres[1] - centres[0])
        parts.append(np.exp(-0.5 * ((lab[:, :, channel, None] - centres) / width) ** 2))
    return np.concatenate(parts, axis=2).astype(np.float32)


def unit_vectors(vectors: np.ndarray, centred: bool = False) -> np.ndarray:
    """Vectors of length 1 along the last axis, after their own mean is taken away if asked."""
    if centred:
        vectors = vectors - vectors.mean(axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-9))


def frame_token_of_regions(tokens: np.ndarray) -> np.ndarray:
    """Unit descriptor of a frame: the mean token of the frame and of each of its regions."""
    parts = []
    for regions in REGIONS:
        for strip in np.array_split(tokens, min(regions, tokens.shape[0]), axis=0):
            for region in np.array_split(strip, min(regions, tokens.shape[1]), axis=1):
                parts.append(unit_vectors(region.mean(axis=(0, 1))))
    return unit_vectors(np.concatenate(parts))


@observer(
    id="small.integrity", version=1, kind="frame", makes=IntegrityTokens, frames=THREE_A_SECOND, weights=(EFFICIENTNET,)
)  # fmt: skip
def integrity_by_efficientnet(batch: Batch, *, crop: bool = False) -> IntegrityTokens:
    """Descriptors of patches and of whole frames, three frames a second."""
    from revisit.networks import preprocessing, runtime
    from revisit.networks.efficientnet_lite import LONG_SIDE, PATCH, unit_patch_and_picture_descriptors

    with runtime.inference():
        levels, inside = preprocessing.pad_to_whole_patches(cropped_or_whole_field(batch, crop, LONG_SIDE), PATCH, GREY)
        tokens, whole = unit_patch_and_picture_descriptors(levels)
    return integrity_record(batch, tokens.flatten(1, 2), inside, whole, EFFICIENTNET, crop)


@register_observer_per_network(
    {"paper.integrity": "dinov2-base", "paper.integrity_large": "dinov2-large"},
    version=1, kind="frame", makes=IntegrityTokens, frames=THREE_A_SECOND,
)  # fmt: skip
def integrity_by_dino(network: str, batch: Batch, *, crop: bool = False) -> IntegrityTokens:
    """Tokens by {network} of patches and of whole frames, three frames a second."""
    from revisit.networks import dino, preprocessing, runtime

    net = dino.network(network)
    with runtime.inference(dino.HALF):
        levels = cropped_or_whole_field(batch, crop, DINO_LONG_SIDE)
        # Padding after normalisation: zero is the mean colour.
        pixels, inside = preprocessing.pad_to_whole_patches(preprocessing.normalise_by_channel(levels), net.patch)
        whole, tokens = net(pixels)
        whole, tokens = preprocessing.unit_vectors(whole), preprocessing.unit_vectors(tokens)
    return integrity_record(batch, tokens, inside, whole, network, crop)


def cropped_or_whole_field(batch: Batch, crop: bool, long_side: int) -> Any:
    """Levels of the middle 224 x 224 of the frames, or of all of them at this longer side."""
    from revisit.networks import preprocessing, runtime

    pictures = runtime.channels_first_on_device(batch.rgb)
    if crop:
        return preprocessing.resize_256_and_crop_224(pictures)
    size = preprocessing.size_with_long_side(tuple(pictures.shape[-2:]), long_side)
    return preprocessing.resize_levels(pictures, size)


def integrity_record(batch: Batch, tokens: Any, inside: Any, whole: Any, maker: str, crop: bool) -> IntegrityTokens:
    """The evidence, from tensors; `inside` says of each patch whether it holds nothing but picture."""
    from revisit.networks import runtime

    valid = np.tile(inside.flatten().cpu().numpy(), (len(batch.index), 1))
    return IntegrityTokens(
        batch.index, runtime.to_numpy(tokens, np.float16), valid, runtime.to_numpy(whole), maker, crop
    )  # fmt: skip
