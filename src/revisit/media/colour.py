"""Colour: decoded planes to RGB and back, by arithmetic that gives the same pixels on every machine (docs/media.md).

Decoders are exact, so the planes of a frame are the same everywhere; what swscale makes of them is not. Two ways lead
there. 8-bit 4:2:0 in BT.601 and limited range, nearly every clip, goes through OpenCV, in whole numbers
with weights of three decimals and samples below black as black; that is fast, and within 0.2 levels of the exact sum.
All else adds up whole numbers of 1/64 levels in 16 bits: of chroma, and of luma above 8 bits, from tables with an entry
for each sample value; of 8-bit luma by its weight in 1/128. That is within 0.1 levels of the exact sum.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from revisit.core import MediaError

_SHIFT = 6
UNITS = 1 << _SHIFT  # of a level
BLACK = 768 * UNITS  # where sums begin, so that they fit 16 bits and what is above white ends at white
LIMITED_RANGE = 1  # as FFmpeg numbers it; 0 is unknown, 2 is full
UNKNOWN_MATRIX = 2
RED_AND_BLUE = {  # shares of luma, by FFmpeg's number of the matrix
    1: (0.2126, 0.0722),  # BT.709
    UNKNOWN_MATRIX: (0.299, 0.114),
    4: (0.30, 0.11),  # FCC
    5: (0.299, 0.114),  # BT.601, 625 lines
    6: (0.299, 0.114),  # BT.601, 525 lines
    7: (0.212, 0.087),  # SMPTE 240M
    9: (0.2627, 0.0593),  # BT.2020
}
_BT601 = (UNKNOWN_MATRIX, 5, 6)
_OTHER_MATRICES = {8: "YCgCo", 10: "BT.2020 with constant luminance", 14: "ICtCp"}
_PIXELS_OF_CHROMA = {"410": (4, 4), "411": (4, 1), "420": (2, 2), "422": (2, 1), "440": (1, 2), "444": (1, 1)}
_ROWS = 128  # are converted at a time; a multiple of 4


@dataclass(frozen=True)
class Plane:
    """One plane of a frame: its samples in memory, padding aside."""

    rows: int
    columns: int
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class PixelLayout:
    """How a pixel format keeps a frame."""

    kind: str  # yuv, levels (grey or RGB), palette, bits
    bits: int
    planes: tuple[Plane, ...]
    chroma: tuple[int, int] = (1, 1)  # yuv: pixels that a sample is taken from, across and down
    channels: tuple[tuple[int, int], ...] = ()  # levels: the plane of red, green and blue, and the first sample in it
    step: int = 1  # levels: from one pixel to the next in a plane
    full_range: bool = True  # where the frame does not say


def pixel_layout_of_format(pixel_format: str, width: int, height: int) -> PixelLayout:
    """The layout of a frame in the pixel format FFmpeg calls `pixel_format`."""
    if match := re.fullmatch(r"yuv([ja]?)(410|411|420|422|440|444)p(\d*)(?:le|be)?", pixel_format):
        mark, ratio, bits = match.groups()
        horizontal, vertical = _PIXELS_OF_CHROMA[ratio]
        luma = Plane(height, width, _sample_dtype(pixel_format, bits))
        chroma = Plane(-(-height // vertical), -(-width // horizontal), luma.dtype)
        return PixelLayout(
            "yuv", int(bits or 8), (luma, chroma, chroma), (horizontal, vertical), full_range=mark == "j"
        )
    if match := re.fullmatch(r"(gray|gbra?p)(\d*)(?:le|be)?", pixel_format):
        kind, bits = match.groups()
        plane = Plane(height, width, _sample_dtype(pixel_format, bits))
        where = ((0, 0),) * 3 if kind == "gray" else ((2, 0), (0, 0), (1, 0))
        return PixelLayout("levels", int(bits or 8), (plane,) * (1 + max(p for p, _ in where)), channels=where)
    if match := re.fullmatch(r"(ya|[rgba0]{3,4})(8|16|24|48|64)?(?:le|be)?", pixel_format):
        letters, size = match.groups()
        bits = size if letters == "ya" else str(int(size) // len(letters)) if size else "8"
        plane = Plane(height, len(letters) * width, _sample_dtype(pixel_format, bits))
        at = [0 if letters == "ya" else letters.find(letter) for letter in "rgb"]
        if bits in ("8", "16") and min(at) >= 0:
            return PixelLayout("levels", int(bits), (plane,), channels=tuple((0, k) for k in at), step=len(letters))
    if pixel_format == "pal8":
        return PixelLayout("palette", 8, (Plane(height, width, np.dtype("u1")), Plane(1, 256, np.dtype("=u4"))))
    if pixel_format in ("monob", "monow"):
        return PixelLayout("bits", 1, (Plane(height, -(-width // 8), np.dtype("u1")),))
    raise MediaError(f"its pixel format {pixel_format} is not read; convert it to yuv420p or, for images, to RGB")


def rgb_of(
    pixel_format: str, matrix: int, range_: int, width: int, height: int, planes: list[np.ndarray]
) -> np.ndarray:
    """The frame as height x width x 3 bytes. `planes` are those of its layout, an array of rows x columns each."""
    layout = pixel_layout_of_format(pixel_format, width, height)
    full = layout.full_range if range_ == 0 else range_ != LIMITED_RANGE
    if layout.kind == "yuv":
        as_most = layout.bits == 8 and layout.chroma == (2, 2) and not full and matrix in _BT601
        return _yuv420_to_rgb_by_opencv(planes) if as_most else _yuv_to_rgb_by_tables(layout, matrix, full, planes)
    if layout.kind == "palette":
        argb = planes[1][0]
        return np.stack([(argb >> shift).astype(np.uint8) for shift in (16, 8, 0)], axis=-1)[planes[0]]
    if layout.kind == "bits":
        white = np.unpackbits(planes[0], axis=1)[:, :width] ^ (pixel_format == "monow")
        return np.repeat(white[..., None] * np.uint8(255), 3, axis=2)
    out = np.empty((height, width, 3), np.uint8)
    levels = None if layout.bits == 8 and full else _sample_to_level_table(layout.bits, full)
    for channel, (plane, first) in enumerate(layout.channels):
        samples = planes[plane][:, first :: layout.step]
        out[..., channel] = samples if levels is None else levels[samples]
    return out


def rgb_to_yuv420_planes(rgb: np.ndarray) -> list[np.ndarray]:
    """The planes of a frame in 4:2:0, BT.601, limited range; what the encoder is given. Sizes are even.

    Chroma is the mean over four pixels. All sums are whole numbers of 1/65536 levels.
    """
    red, blue = RED_AND_BLUE[UNKNOWN_MATRIX]
    luma = np.array([red, 1 - red - blue, blue])
    rows = [219 * luma, 112 * (np.eye(3)[2] - luma) / (1 - blue), 112 * (np.eye(3)[0] - luma) / (1 - red)]
    weights = np.rint(np.array(rows) / 255 * (1 << 16)).astype(np.int32)
    pixels = rgb.astype(np.int32)
    blocks = (pixels[0::2, 0::2] + pixels[0::2, 1::2]) + (pixels[1::2, 0::2] + pixels[1::2, 1::2])
    y = pixels @ weights[0] + (16 << 16) + (1 << 15) >> 16
    u, v = (blocks @ row + (128 << 18) + (1 << 17) >> 18 for row in weights[1:])
    return [plane.astype(np.uint8) for plane in (y, u, v)]


def _sample_dtype(name: str, bits: str) -> np.dtype[Any]:
    if int(bits or 8) <= 8:
        return np.dtype("u1")
    return np.dtype(">u2" if name.endswith("be") else "<u2")


def _yuv420_to_rgb_by_opencv(planes: list[np.ndarray]) -> np.ndarray:
    import cv2

    (height, width), half = planes[0].shape, planes[1].shape
    even = 2 * half[0], 2 * half[1]
    samples = np.empty((3 * half[0], even[1]), np.uint8)  # the planes without gaps
    samples[:height, :width] = planes[0]
    samples[height : even[0], :width] = planes[0][-1:]  # OpenCV takes even sizes only; what is added is cut off below
    samples[: even[0], width:] = samples[: even[0], width - 1 : width]
    chroma = samples[even[0] :].reshape(2, *half)
    chroma[0], chroma[1] = planes[1:]
    rgb = cv2.cvtColor(samples, cv2.COLOR_YUV2RGB_I420)
    return np.ascontiguousarray(rgb[:height, :width])


def _yuv_to_rgb_by_tables(layout: PixelLayout, matrix: int, full: bool, planes: list[np.ndarray]) -> np.ndarray:
    import cv2

    horizontal, vertical = layout.chroma
    luma, chroma = _luma_factor_or_table(layout.bits, full), _chroma_tables(layout.bits, matrix, full, horizontal)
    height, width = planes[0].shape
    out = np.empty((height, width, 3), np.uint8)
    # What is in between is made anew for some rows at a time, in the same memory: that keeps it in the cache.
    y, total = (np.empty((_ROWS, width), np.uint16) for _ in range(2))
    black = np.full((_ROWS, width), BLACK, np.uint16)
    shares = [np.empty((_ROWS // vertical, planes[1].shape[1]), chroma[0][0][1].dtype) for _ in range(2)]
    # Three planes that lie whole pages apart push each other out of the cache when they are merged: ten times slower.
    apart = -(-_ROWS * width // 4096) * 4096 + 1088
    channels = [plane[: _ROWS * width].reshape(_ROWS, width) for plane in np.empty((3, apart), np.uint8)]
    for top in range(0, height, _ROWS):
        rows, lines = min(_ROWS, height - top), slice(top // vertical, -(-min(top + _ROWS, height) // vertical))
        _write_luma_contributions(luma, planes[0][top : top + rows], y[:rows])
        for channel, tables in zip(channels, chroma, strict=True):
            for share, (plane, table) in zip(shares, tables, strict=False):
                _look_up_in_table(table, planes[plane][lines], share[: lines.stop - lines.start])
            terms = _repeat_chroma_per_pixel(shares[0], horizontal)
            if len(tables) > 1:
                terms += _repeat_chroma_per_pixel(shares[1], horizontal)
            for k in range(vertical):
                part = slice(k, rows, vertical)
                cv2.add(y[part], terms[: len(y[part]), :width], dst=total[part])  # 16 bits end at white
            np.maximum(total[:rows], black[:rows], out=total[:rows])
            np.right_shift(total[:rows], _SHIFT, out=total[:rows])
            np.copyto(channel[:rows], total[:rows], casting="unsafe")  # black is a multiple of 256 levels: it falls off
        cv2.merge([channel[:rows] for channel in channels], dst=out[top : top + rows])
    return out


def _write_luma_contributions(luma: int | np.ndarray, samples: np.ndarray, out: np.ndarray) -> None:
    if isinstance(luma, int):
        np.multiply(samples, luma, out=out, dtype=np.uint16)
        np.right_shift(out, 1, out=out)
    else:
        np.take(luma, samples, out=out, mode="clip")  # some 10-bit files hold larger samples


def _look_up_in_table(table: np.ndarray, samples: np.ndarray, out: np.ndarray) -> None:
    import cv2

    if samples.dtype == np.uint8:
        cv2.LUT(samples, table, dst=out)
    else:
        np.take(table, samples, out=out, mode="clip")


def _repeat_chroma_per_pixel(shares: np.ndarray, horizontal: int) -> np.ndarray:
    """Contributions of chroma for every pixel of a row; an entry of the table holds two where pixels share it."""
    pairs = shares.view(np.uint16)
    return np.repeat(pairs, 2, axis=1) if horizontal == 4 else pairs


@lru_cache(maxsize=16)
def _luma_factor_or_table(bits: int, full: bool) -> int | np.ndarray:
    """What a sample contributes to all three, counted from sample 0, in units: twice its weight, or a table."""
    _, luma_range, _ = _black_level_and_sample_ranges(bits, full)
    if bits == 8:
        return round(2 * UNITS * 255 / luma_range)
    return np.rint(np.arange(1 << bits) * (UNITS * 255 / luma_range)).astype(np.uint16)


@lru_cache(maxsize=16)
def _chroma_tables(bits: int, matrix: int, full: bool, horizontal: int) -> list[list[tuple[int, np.ndarray]]]:
    """What samples contribute to red, green and blue, in units: a table for each plane that does.

    The first to each channel brings along what its sum needs: black, half a level to round to the nearest, and the
    luma of the sample that means black, which is taken off.
    """
    weights, (zero, luma_range, steps) = _yuv_to_rgb_matrix(matrix), _black_level_and_sample_ranges(bits, full)
    apart = (np.arange(1 << bits) - (128 << (bits - 8))) / steps
    base = BLACK + UNITS // 2 - round(zero * UNITS * 255 / luma_range)

    def plane_and_contribution_table(channel: int, plane: int, offset: int) -> tuple[int, np.ndarray]:
        units = np.rint(weights[channel, plane] * apart * UNITS).astype(np.int64) + offset
        wrapped = (units & 0xFFFF).astype(np.uint16)  # the second to green may be below 0; its sum is not
        # Where pixels share a sample, an entry holds its number twice.
        return plane, np.repeat(wrapped, 2).view(np.int32) if horizontal > 1 else wrapped

    return [
        [plane_and_contribution_table(0, 2, base)],
        [plane_and_contribution_table(1, 1, base), plane_and_contribution_table(1, 2, 0)],
        [plane_and_contribution_table(2, 1, base)],
    ]


def _black_level_and_sample_ranges(bits: int, full: bool) -> tuple[int, int, int]:
    """The sample that means black, and how many samples make the whole range of luma and of chroma."""
    if full:
        return 0, (1 << bits) - 1, (1 << bits) - 1
    return 16 << (bits - 8), 219 << (bits - 8), 224 << (bits - 8)


def _yuv_to_rgb_matrix(matrix: int) -> np.ndarray:
    """RGB from luma (0 to 1) and chroma (-1/2 to 1/2), in levels."""
    if matrix not in RED_AND_BLUE:
        name = _OTHER_MATRICES.get(matrix, f"number {matrix}")
        raise MediaError(f"its colour matrix ({name}) is not read; convert it to BT.709")
    red, blue = RED_AND_BLUE[matrix]
    green = 1 - red - blue
    u, v = 2 * (1 - blue), 2 * (1 - red)
    return 255 * np.array([[1, 0, v], [1, -u * blue / green, -v * red / green], [1, u, 0]])


@lru_cache(maxsize=16)
def _sample_to_level_table(bits: int, full: bool) -> np.ndarray:
    """The level of each sample of grey or RGB."""
    black, luma_range, _ = _black_level_and_sample_ranges(bits, full)
    sample = np.arange(1 << bits)
    return np.clip((2 * 255 * (sample - black) + luma_range) // (2 * luma_range), 0, 255).astype(np.uint8)
