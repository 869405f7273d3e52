"""Encode: frames to an mp4 file, the same bytes for the same frames; and a frame to a picture."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import MediaError
from revisit.media.colour import rgb_to_yuv420_planes
from revisit.media.files import atomic_write_path


def encode_mp4(path: Path, frames: Iterable[np.ndarray], fps: float, crf: int = 16) -> int:
    """Write RGB frames (height x width x 3, uint8, even sizes) as H.264 in 4:2:0 and return how many.

    The same frames give the same bytes, on processors with the same instructions: one thread, and without x264's
    macroblock tree, with which every twentieth file, or of some clips nearly every one, came out a little different.
    The file appears when it is complete.
    """
    import av

    count = 0
    with atomic_write_path(path) as temporary:
        options = {"movflags": "+faststart", "fflags": "+bitexact"}
        with av.open(str(temporary), "w", format="mp4", container_options=options) as container:
            stream = container.add_stream("libx264", rate=Fraction(fps).limit_denominator(100_000))
            stream.pix_fmt = "yuv420p"
            stream.codec_context.thread_count = 1
            stream.options = {"crf": str(crf), "preset": "veryfast", "mbtree": "0"}
            for rgb in frames:
                _require_encodable_frame(rgb, (stream.height, stream.width, 3) if count else rgb.shape, path)
                if not count:
                    stream.height, stream.width = rgb.shape[:2]
                container.mux(stream.encode(_rgb_to_video_frame(rgb)))
                count += 1
            if not count:
                raise MediaError(f"{path.name}: there are no frames to encode; a clip needs at least one")
            container.mux(stream.encode())
    return count


def write_picture(path: Path, rgb: np.ndarray, quality: int = 95) -> None:
    """Write an RGB picture, whole or not at all; `quality` is that of a JPEG."""
    import cv2

    options = [cv2.IMWRITE_JPEG_QUALITY, quality] if path.suffix == ".jpg" else []
    encoded = cv2.imencode(path.suffix, np.ascontiguousarray(rgb[..., ::-1]), options)[1]
    with atomic_write_path(path) as temporary:
        temporary.write_bytes(encoded.tobytes())


def _rgb_to_video_frame(rgb: np.ndarray) -> Any:
    """The frame as the encoder takes it, without swscale, whose planes depend on the processor."""
    import av

    height, width = rgb.shape[:2]
    frame = av.VideoFrame(width, height, "yuv420p")
    for plane, samples in zip(frame.planes, rgb_to_yuv420_planes(rgb), strict=True):
        rows = np.zeros((len(samples), plane.line_size), np.uint8)
        rows[:, : samples.shape[1]] = samples
        plane.update(rows)
    return frame


def _require_encodable_frame(rgb: np.ndarray, shape: tuple[int, ...], path: Path) -> None:
    if rgb.dtype != np.uint8 or rgb.ndim != 3 or rgb.shape[2] != 3:
        raise MediaError(f"{path.name}: frames must be uint8 arrays of height x width x 3, not {rgb.dtype} {rgb.shape}")
    if rgb.shape != shape:
        raise MediaError(
            f"{path.name}: a frame of {rgb.shape} follows frames of {shape}; all frames must have the same size"
        )
    if rgb.shape[0] % 2 or rgb.shape[1] % 2 or not rgb.size:
        raise MediaError(
            f"{path.name}: frames of {rgb.shape[1]}x{rgb.shape[0]} pixels cannot be encoded as H.264 4:2:0, which "
            "needs even width and height; crop or pad them by one pixel"
        )
