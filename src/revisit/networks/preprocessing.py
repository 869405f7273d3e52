"""Pictures as networks want them, made on the device: resized, cropped, padded, normalised.

Pictures come in as (B, 3, H, W) tensors of levels from 0 to 255 and stay levels, in float32, until
`normalise_by_channel`. `resize_levels` follows the two passes of PIL, each rounded to whole levels, because that is
what networks were trained and published with; `exact=True` leaves the levels as they fall, as processors do that resize
numbers from 0 to 1.
All filters widen when a picture shrinks (antialias), and a bicubic one has a = -0.5. Sizes are (height, width).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Literal

import torch
from torch.nn import functional

from revisit.networks import compiled

Size = tuple[int, int]
Taps = list[tuple[torch.Tensor, torch.Tensor]]
Method = Literal["bilinear", "bicubic"]
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
CLIP_MEAN, CLIP_STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
HALF_MEAN, HALF_STD = (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)


def resize_levels(
    pictures: torch.Tensor, size: Size, method: Method = "bicubic", *, unrounded: bool = False
) -> torch.Tensor:
    """Levels of the pictures at another size."""
    if unrounded:
        return _resize_antialiased(pictures.contiguous().float(), size, method)
    passes = _passes((pictures.shape[-2], pictures.shape[-1]), size, method)
    return passes.resize(pictures) if torch.compiler.is_compiling() else compiled.run(passes.resize, pictures)


class _Passes:
    """Two passes between two sizes, each rounded to whole levels.

    The library's filter is as slow as a small network on a GPU. Compiled code adds up the few pixels that each pixel is
    made of instead, with the weights that the filter gives them; sums differ in their last bits.
    """

    def __init__(self, before: Size, after: Size, method: Method) -> None:
        self.before, self.after, self.method = before, after, method
        self.across: Taps | None = None
        self.down: Taps | None = None

    def resize(self, pictures: torch.Tensor) -> torch.Tensor:
        """The pictures at the other size."""
        (height, width), size = self.before, self.after
        if torch.compiler.is_compiling() and self.across is not None and self.down is not None:
            levels = pictures
            if width != size[1]:
                levels = _round_and_clamp_levels(sum(levels[..., at].float() * weight for at, weight in self.across))
            if height != size[0]:
                lines = (levels[..., at, :].float() * weight[:, None] for at, weight in self.down)
                levels = _round_and_clamp_levels(sum(lines))
            return levels.float()
        if compiled.is_compilation_enabled() and self.across is None:  # while these are traced it would be too late
            self.across = _filter_table(width, size[1], self.method, pictures.device)
            self.down = _filter_table(height, size[0], self.method, pictures.device)
        levels = pictures.contiguous().float()  # a GPU filters planes faster than pixels
        if width != size[1]:
            levels = _round_and_clamp_levels(_resize_antialiased(levels, (height, size[1]), self.method))
        if height != size[0]:
            levels = _round_and_clamp_levels(_resize_antialiased(levels, size, self.method))
        return levels


_passes = cache(_Passes)


def resize_bytes_as_on_cpu(pictures: torch.Tensor, size: Size) -> torch.Tensor:
    """(B, H, W, C) bytes at a smaller size: bit by bit what `observers.pictures.resize_by_halving` makes on a CPU.

    Halved as often as that goes, and the rest by OpenCV's exact bilinear interpolation, which weighs by 256ths: all
    sums are whole numbers below 2^24, which float32 holds exactly whatever the order. `can_resize_bytes_as_on_cpu`
    says for which sizes.
    """
    before = pictures.shape[1], pictures.shape[2]
    return pictures if before == size else compiled.run(_fit(before, size, pictures.device).resize, pictures)


def can_resize_bytes_as_on_cpu(before: Size, after: Size) -> bool:
    """Whether `resize_bytes_as_on_cpu` brings pictures from one size to another; far larger ones are averaged."""
    rows, columns = (have // 2 ** _count_halvings(before, after) for have in before)
    return after[0] <= rows <= 2 * after[0] + 1 and after[1] <= columns <= 2 * after[1] + 1


def _count_halvings(before: Size, after: Size) -> int:
    """How often both sides can be halved without becoming smaller than wanted."""
    count, (rows, columns) = 0, before
    while rows % 2 == columns % 2 == 0 and rows >= 2 * after[0] and columns >= 2 * after[1]:
        count, rows, columns = count + 1, rows // 2, columns // 2
    return count


class _Fit:
    """What takes bytes from one size to another, with its tables."""

    def __init__(self, before: Size, after: Size, device: torch.device) -> None:
        self.halvings, self.after = _count_halvings(before, after), after
        self.halved = before[0] >> self.halvings, before[1] >> self.halvings
        self.tables = [_bilinear_table_in_256ths(*sides, device) for sides in zip(self.halved, after, strict=True)]

    def resize(self, pictures: torch.Tensor) -> torch.Tensor:
        levels = pictures.float()
        for _ in range(self.halvings):
            rows, columns = levels.shape[1] // 2, levels.shape[2] // 2
            levels = levels.unflatten(2, (columns, 2)).unflatten(1, (rows, 2)).sum(dim=(2, 4))
            levels = ((levels + 2) / 4).floor()
        if self.halved != self.after:
            (top, bottom, low), (left, right, near) = self.tables
            low, near = low[:, None, None], near[:, None]

            def interpolate_across(rows: torch.Tensor) -> torch.Tensor:
                here = levels[:, rows]
                return here[:, :, left] * (256 - near) + here[:, :, right] * near

            levels = interpolate_across(top) * (256 - low) + interpolate_across(bottom) * low
            levels = ((levels + 32768) / 65536).floor()
        return levels.to(torch.uint8)


_fit = cache(_Fit)


def _bilinear_table_in_256ths(before: int, after: int, device: torch.device) -> tuple[torch.Tensor, ...]:
    """The neighbour before each pixel of a line of another length, the one behind, and the weight of that in 256ths."""
    places = (torch.arange(after, dtype=torch.float64) + 0.5) * (1 / (after / before)) - 0.5
    first = places.floor()
    weight = ((places - first) * 256).round().float()
    first = first.long()
    return tuple(one.to(device) for one in (first.clamp(0, before - 1), (first + 1).clamp(0, before - 1), weight))


def _filter_table(before: int, after: int, method: Method, device: torch.device) -> Taps:
    """The pixels that make the pixels of a line of another length: for each of a few places, which and how much."""
    line = torch.eye(before, device=device)[None, :, None]
    weights = _resize_antialiased(line, (1, after), method)[0, :, 0].T
    there = (weights != 0).float()
    first, last = there.argmax(dim=1), before - 1 - there.flip(1).argmax(dim=1)
    count = int((last - first).max()) + 1
    places = first.clamp(max=before - count)[:, None] + torch.arange(count, device=device)
    taps = zip(places.T, weights.gather(1, places).T, strict=True)
    return [(at.contiguous(), weight.contiguous()) for at, weight in taps]


def _resize_antialiased(levels: torch.Tensor, size: Size, method: Method) -> torch.Tensor:
    if tuple(levels.shape[-2:]) == size:
        return levels
    return functional.interpolate(levels, size=size, mode=method, align_corners=False, antialias=True)


def _round_and_clamp_levels(levels: torch.Tensor) -> torch.Tensor:
    """Levels rounded and held within 0 and 255; halves go up on every device, whichever way their last bit falls."""
    return (levels + 0.5001).floor_().clamp_(0, 255)


def resize_to_cover_and_crop(pictures: torch.Tensor, size: Size) -> torch.Tensor:
    """Levels of the middle of the pictures, scaled to cover this size: bilinear, no antialias, not rounded.

    The middle is that of torchvision, because MIND cuts it out with its function.
    """
    height, width = pictures.shape[-2:]
    scale = max(size[0] / height, size[1] / width)
    covers = round(height * scale), round(width * scale)
    levels = pictures.float()
    if covers != (height, width):
        levels = functional.interpolate(levels, size=covers, mode="bilinear", align_corners=False)
    return centre_crop(levels, size, odd="even")


def size_with_short_side(size: Size, side: int) -> Size:
    """The size whose shorter side is `side`; the longer one is cut to a whole number."""
    height, width = size
    if height <= width:
        return side, max(1, int(side * width / height))
    return max(1, int(side * height / width)), side


def size_with_long_side(size: Size, side: int) -> Size:
    """The size whose longer side is `side`; the shorter one is rounded."""
    scale = side / max(size)
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def nearest_size_of_multiples(size: Size, factor: int) -> Size:
    """The nearest size with sides that are whole multiples, one at least."""
    return max(1, math.floor(size[0] / factor + 0.5)) * factor, max(1, math.floor(size[1] / factor + 0.5)) * factor


def centre_crop(pictures: torch.Tensor, size: Size, *, odd: Literal["before", "even"] = "before") -> torch.Tensor:
    """The middle of the pictures, which are no smaller.

    Where one pixel more must go on one side, transformers takes it from the end ("before": the crop starts early), and
    torchvision, which rounds halves to even numbers, from either end ("even"). Features differ, so protocols say which.
    """
    spare = pictures.shape[-2] - size[0], pictures.shape[-1] - size[1]
    top, left = (n // 2 if odd == "before" else round(n / 2) for n in spare)
    return pictures[..., top : top + size[0], left : left + size[1]]


def resize_256_and_crop_224(pictures: torch.Tensor, *, odd: Literal["before", "even"] = "before") -> torch.Tensor:
    """Levels of the middle 224 x 224 of a shorter side of 256, as networks with square inputs take it."""
    smaller = resize_levels(pictures, size_with_short_side(tuple(pictures.shape[-2:]), 256))
    return centre_crop(smaller, (224, 224), odd=odd)


def preprocess_for_clip(pictures: torch.Tensor, side: int) -> torch.Tensor:
    """Normalised pictures as CLIP takes them: shorter side to `side` by PIL's bicubic filter, the middle square."""
    height, width = pictures.shape[-2:]
    smaller = resize_levels(pictures, size_with_short_side((height, width), side), "bicubic")
    return normalise_by_channel(centre_crop(smaller, (side, side), odd="even"), CLIP_MEAN, CLIP_STD)


def pad_to_whole_patches(pictures: torch.Tensor, patch: int, fill: float = 0.0) -> tuple[torch.Tensor, torch.Tensor]:
    """The pictures in the middle of whole patches, and which patches (rows, columns) hold nothing but picture."""
    height, width = pictures.shape[-2:]
    rows, columns = math.ceil(height / patch), math.ceil(width / patch)
    spare = rows * patch - height, columns * patch - width
    top, left = spare[0] // 2, spare[1] // 2
    padded = functional.pad(pictures, (left, spare[1] - left, top, spare[0] - top), value=fill)
    down, across = (
        (torch.arange(1, count + 1) * patch).clamp(max=start + length) - (torch.arange(count) * patch).clamp(min=start)
        for start, length, count in ((top, height, rows), (left, width, columns))
    )
    return padded, down[:, None] * across[None, :] >= patch**2


def normalise_by_channel(
    levels: torch.Tensor, mean: Sequence[float] = IMAGENET_MEAN, std: Sequence[float] = IMAGENET_STD
) -> torch.Tensor:
    """(levels / 255 - mean) / std by channel, float32."""
    shift, scale = (_channel_constants(tuple(values), levels.device) for values in (mean, std))
    return (levels.float() / 255 - shift) / scale


def _channel_constants(values: tuple[float, ...], device: torch.device) -> torch.Tensor:
    """A number for each channel; kept on the device, because a copy to a GPU waits for all work before it."""
    if torch.compiler.is_compiling():  # what is made while a network is traced has no numbers
        return torch.tensor(values, device=device)[:, None, None]
    return _kept_constants(values, device)


@cache
def _kept_constants(values: tuple[float, ...], device: torch.device) -> torch.Tensor:
    return torch.tensor(values, device=device)[:, None, None]


def unit_vectors(vectors: torch.Tensor) -> torch.Tensor:
    """Vectors of length 1 along the last axis, in float32 whatever precision they come in."""
    return functional.normalize(vectors.float(), dim=-1, eps=1e-12)
