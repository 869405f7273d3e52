"""Frames in any layout and range that is stated, as bytes: what samplers have in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from revisit.core import UsageError
from revisit.core.frames import as_pixel_array

AXES = "THWC"
SLACK = 0.1  # of the range: decoders overshoot a little, and another range lies farther off
ValueRange = tuple[float, float]


class NotFinite(ValueError):
    """Frames with values that are no numbers."""


def require_valid_layout(layout: str, value_range: ValueRange | None) -> None:
    """Raise UsageError for a layout or range that nothing can be made of."""
    if sorted(layout.removeprefix("B")) != sorted(AXES):
        raise UsageError(f"layout={layout!r}: write T, H, W and C in the order of your axes, such as 'TCHW' or 'BCTHW'")
    if value_range is not None and not value_range[0] < value_range[1]:
        raise UsageError(f"value_range={value_range}: give the values of black and white, such as (0, 1) or (-1, 1)")


def frames_to_uint8(frames: Any, layout: str, value_range: ValueRange | None, name: str = "frames") -> np.ndarray:
    """(count, height, width, 3) bytes of one clip; a tensor is converted where it lies, and copied to memory once."""
    shape = tuple(getattr(frames, "shape", ()))
    if len(shape) != 4 or shape[layout.index("C")] != 3:
        axes = ", ".join(layout)
        raise UsageError(f"{name}: frames of shape {shape} are no ({axes}) with three channels; say layout=")
    if not all(shape):
        raise UsageError(f"{name}: frames of shape {shape} hold no pixel; a clip has a frame at least")
    is_tensor = hasattr(frames, "detach")
    frames = frames.detach() if is_tensor else np.asarray(frames)
    if str(frames.dtype).removeprefix("torch.") != "uint8":
        frames = _floats_to_uint8(frames, value_range, name, is_tensor)
    elif value_range not in (None, (0, 255)):
        raise UsageError(f"{name}: bytes range from 0 to 255; value_range={value_range} is for floats")
    order = [layout.index(axis) for axis in AXES]
    ordered = _tensor_to_cpu(frames.permute(order)) if is_tensor else frames.transpose(order)
    return np.ascontiguousarray(as_pixel_array(ordered, name))


def _tensor_to_cpu(frames: Any) -> Any:
    """A tensor in the memory of the CPU; a GPU puts its bytes in order first, and writes to memory that stays put."""
    if not frames.is_cuda:
        return frames
    import torch

    pinned = torch.empty(frames.shape, dtype=frames.dtype, pin_memory=True)  # torch reuses it from clip to clip
    return pinned.copy_(frames.contiguous())


def _floats_to_uint8(frames: Any, value_range: ValueRange | None, name: str, is_tensor: bool) -> Any:
    """Floats as bytes, rounded to the nearest."""
    if value_range is None:
        raise UsageError(
            f"{name}: {frames.dtype} frames need a value_range: (0, 1) or (-1, 1), the values of black and white"
        )
    frames = frames.float() if is_tensor else frames.astype(np.float32)
    low, high = value_range
    least, most = map(float, frames.aminmax() if is_tensor else (frames.min(), frames.max()))
    if not (np.isfinite(least) and np.isfinite(most)):
        raise NotFinite(f"{name} has values that are not finite")
    margin = SLACK * (high - low)
    if least < low - margin or most > high + margin:
        raise UsageError(f"{name}: values go from {least:.3g} to {most:.3g}, but value_range is {value_range}")
    if low < most <= 1 and high > 2:  # a black clip has no other range
        raise UsageError(f"{name}: values go from {least:.3g} to {most:.3g}: is value_range {value_range} meant?")
    levels = frames - low
    levels *= 255 / (high - low)
    if is_tensor:
        import torch

        return levels.round_().clamp_(0, 255).to(torch.uint8)
    return np.clip(np.rint(levels), 0, 255).astype(np.uint8)
