"""Clips as arrays: frames in npy and npz files, as samplers write them, by stated layouts (docs/media.md).

Read by `npz.py`: without pickles, sizes checked before data. Nothing is guessed in silence: what was taken for time,
height, width, channels and levels is a note, and what fits no layout is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from revisit.core import MediaError
from revisit.media.error_names import printable_line, raise_media_errors_naming_file
from revisit.media.limits import Limits
from revisit.media.npz import ArrayHeader, load_npz, read_array_headers

_LAYOUTS = {"THWC": (0, 1, 2, 3), "TCHW": (0, 2, 3, 1), "CTHW": (1, 2, 3, 0)}  # axes of frames, rows, columns, channels
_LEAST = 8  # rows and columns: below, an array is no picture
_SLACK = 0.1  # decoders of latents overshoot their range by so much
_STATED = "frames are (T, H, W, 3), (T, 3, H, W) or (3, T, H, W), as uint8, or as floats in 0..1, -1..1 or 0..255"


def is_npy_or_zip_file(path: Path) -> bool:
    """Whether a file holds numpy arrays, by its first bytes."""
    with path.open("rb") as file:
        start = file.read(6)
    return start.startswith((b"\x93NUMPY", b"PK\x03\x04"))


def has_array_shaped_like_frames(path: Path) -> bool:
    """Whether a npy or npz file has an array with the shape of frames, from its headers; False for what is damaged."""
    try:
        return bool(_names_of_frame_arrays(read_array_headers(path)))
    except (MediaError, OSError):
        return False


def why_picture_arrays_are_no_clip(path: Path) -> str:
    """Why a npy or npz file is no clip, where it might be meant as one: it has pictures, but not as stated."""
    try:
        headers = read_array_headers(path)
        if not any(
            len(header.shape) >= 3 and sum(n >= 2 * _LEAST for n in header.shape) >= 2 for header in headers.values()
        ):
            return ""
        _name_of_only_frame_array(headers)
    except (MediaError, OSError) as error:
        return str(error).removeprefix(f"{path.name}: ")
    return ""


def read_array_clip(path: Path, limits: Limits) -> tuple[np.ndarray, float | None, str]:
    """Frames (count, height, width, 3) of bytes, their rate where the file says one, and how they were read."""
    headers = read_array_headers(path)
    with raise_media_errors_naming_file(path):
        name = _name_of_only_frame_array(headers)
        header = headers[name]
        layout, *others = _fitting_axis_layouts(header)
        if others:
            raise MediaError(
                f"its shape {header.shape} may be {' or '.join([layout, *others])}; save (T, H, W, 3) with another "
                "number of frames than 3, or write a video"
            )
        shape = _without_batch_axis_of_one(header.shape)
        count, height, width, _ = (shape[axis] for axis in _LAYOUTS[layout])
        _require_frames_within_limits(count, height, width, limits)
        has_rate = "fps" in headers and headers["fps"].shape in ((), (1,))
    arrays = load_npz(path, max_bytes=limits.memory, members=[name, "fps"] if has_rate else [name])
    with raise_media_errors_naming_file(path):
        frames = arrays[name].reshape(shape).transpose(_LAYOUTS[layout])
        rate = arrays["fps"].reshape(-1)[0] if has_rate else None
        if rate is not None and not (rate.dtype.kind in "iuf" and 0 < rate < math.inf):
            raise MediaError(f"its fps is {printable_line(str(rate), 40)}; write a number above zero")
        rgb, levels = _frames_to_uint8_and_range_text(frames)
    fps = None if rate is None else float(rate)
    return rgb, fps, f"the array {printable_line(name)} {header.shape} was read as {layout}{levels}"


def _names_of_frame_arrays(headers: Mapping[str, ArrayHeader]) -> list[str]:
    return [name for name, header in headers.items() if _fitting_axis_layouts(header)]


def _name_of_only_frame_array(headers: Mapping[str, ArrayHeader]) -> str:
    """The name of the array with the frames."""
    names = _names_of_frame_arrays(headers)
    if len(names) == 1:
        return names[0]
    shapes = ", ".join(
        f"{printable_line(name, 40)} {header.dtype} {header.shape}" for name, header in list(headers.items())[:5]
    )
    if not names:
        raise MediaError(f"it has no array of frames ({shapes or 'no array at all'}); {_STATED}")
    raise MediaError(f"it has several arrays of frames ({shapes}); keep one of them in the file")


def _fitting_axis_layouts(header: ArrayHeader) -> list[str]:
    """Layouts that fit an array, the usual one first."""
    if header.dtype != np.uint8 and header.dtype.kind != "f":
        return []
    shape = _without_batch_axis_of_one(header.shape)
    if len(shape) != 4 or min(shape) < 1:
        return []
    return [
        layout
        for layout, (_, rows, columns, channels) in _LAYOUTS.items()
        if shape[channels] == 3 and min(shape[rows], shape[columns]) >= _LEAST
    ]


def _without_batch_axis_of_one(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape without a batch of one before it."""
    return shape[1:] if len(shape) == 5 and shape[0] == 1 else shape


def _require_frames_within_limits(count: int, height: int, width: int, limits: Limits) -> None:
    if height * width > limits.pixels:
        raise MediaError(
            f"a frame has {width}x{height} pixels, more than the {limits.pixels / 1e6:.3g} million allowed; if this is "
            f"intended, raise the limit with --limits pixels={width * height}"
        )
    if count > limits.frames:
        raise MediaError(
            f"it has {count} frames, more than the {limits.frames} allowed; cut it, or raise the limit with --limits "
            f"frames={count}"
        )


def _frames_to_uint8_and_range_text(frames: np.ndarray) -> tuple[np.ndarray, str]:
    """Frames as bytes, and in words the range that floats were taken to have."""
    if frames.dtype == np.uint8:
        return np.ascontiguousarray(frames), ""
    low, high = float(frames.min()), float(frames.max())
    if not (math.isfinite(low) and math.isfinite(high)):
        raise MediaError("its values are not all finite; save frames without nan and inf")
    if low >= -_SLACK and high <= 1 + _SLACK:
        offset, scale, range_text = 0.0, 255.0, "0..1"
    elif low >= -1 - _SLACK and high <= 1 + _SLACK:
        offset, scale, range_text = 1.0, 127.5, "-1..1"
    elif low >= -_SLACK and 2 < high <= 255.5:
        offset, scale, range_text = 0.0, 1.0, "0..255"
    else:
        raise MediaError(f"its values go from {low:.4g} to {high:.4g}; {_STATED}")
    out = np.empty(frames.shape, np.uint8)
    for k, frame in enumerate(frames):  # one by one: floats take four times the room
        out[k] = np.clip(np.rint((frame.astype(np.float64) + offset) * scale), 0, 255)
    return out, f", with levels in {range_text}"
