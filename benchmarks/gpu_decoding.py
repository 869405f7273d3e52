"""Whether a GPU decodes clips to the same pixels as the CPU, and how long both take.

Every clip is decoded by both (`REVISIT_DECODE=cuda`), through the process that decodes clips in an evaluation, and the
digests of all its frames are compared. Clips in other formats are made beside them: what the GPU refuses is decoded on
the CPU, and the table says why. Rates are those of many processes that decode clips side by side.
Run on a machine with a GPU: python benchmarks/gpu_decoding.py CLIPS [--workers 14] [--each 4] [--out FILE.json]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from network_throughput import make_clip

from revisit.core import Clip, MediaError
from revisit.media import open_clip
from revisit.media.decoder_process import GPU_DECODING

Format = tuple[str, str, str, tuple[int, int], dict[str, str]]  # name, encoder, pixel format, size, options
FORMATS: tuple[Format, ...] = (
    ("h264, B frames", "libx264", "yuv420p", (640, 360), {"bf": "3"}),
    ("h264, full range", "libx264", "yuvj420p", (640, 360), {}),
    ("h264, BT.709", "libx264", "yuv420p", (640, 360), {"colorprim": "bt709", "x264-params": "colormatrix=bt709"}),
    ("h264, size that is no multiple of 16", "libx264", "yuv420p", (426, 238), {}),
    ("h264, small", "libx264", "yuv420p", (64, 48), {}),
    ("h264, 10 bits", "libx264", "yuv420p10le", (640, 360), {}),
    ("h264, 4:2:2", "libx264", "yuv422p", (640, 360), {}),
    ("h264, 4:4:4", "libx264", "yuv444p", (640, 360), {}),
    ("hevc", "libx265", "yuv420p", (640, 360), {}),
    ("hevc, 10 bits", "libx265", "yuv420p10le", (640, 360), {}),
    ("vp8", "libvpx", "yuv420p", (640, 360), {}),
    ("vp9", "libvpx-vp9", "yuv420p", (640, 360), {}),
    ("av1", "libsvtav1", "yuv420p", (640, 360), {}),
    ("mpeg4", "mpeg4", "yuv420p", (640, 360), {}),
    ("ffv1", "ffv1", "yuv420p", (640, 360), {}),
)


@dataclass
class Comparison:
    """One clip, decoded by both."""

    name: str
    frames: int
    same: bool
    on_gpu: bool
    reason: str


def make_format(folder: Path, number: int) -> Path | None:
    """A clip in one of the formats; None where this machine has no such encoder."""
    import av
    import cv2

    _, encoder, pixels, (width, height), options = FORMATS[number]
    os.environ[GPU_DECODING] = "cpu"
    source = make_clip(folder / f"source-{number}.mp4", number, 24)
    path = folder / f"{number}.mkv"
    try:
        with av.open(str(path), "w") as container, open_clip(Clip(source)) as frames:
            stream = container.add_stream(encoder, rate=16, options=dict(options))
            stream.width, stream.height, stream.pix_fmt = width, height, pixels
            for frame in frames:
                small = cv2.resize(frame.rgb, (width, height), interpolation=cv2.INTER_AREA)
                container.mux(stream.encode(av.VideoFrame.from_ndarray(small, format="rgb24")))
            container.mux(stream.encode(None))
    except (ValueError, av.error.FFmpegError):
        return None
    return path


def decode(path: Path, where: str) -> tuple[str, int, tuple[str, ...]]:
    """(digest of all pixels, number of frames, notes) of a clip."""
    os.environ[GPU_DECODING] = where
    digest, count = hashlib.sha256(), 0
    with open_clip(Clip(path)) as frames:
        for frame in frames:
            digest.update(np.ascontiguousarray(frame.rgb).data)
            count += 1
        notes = frames.notes
    return digest.hexdigest(), count, notes


def compare(name: str, path: Path) -> Comparison:
    try:
        (expected, count, _), (digest, others, notes) = (decode(path, where) for where in ("cpu", "cuda"))
    except MediaError as error:
        return Comparison(name, 0, False, False, str(error))
    reason = next((note for note in notes if note.startswith("decoded on the CPU")), "")
    return Comparison(name, count, (digest, others) == (expected, count), not reason, reason)


def compare_format(folder: Path, number: int) -> Comparison:
    """A clip in one of the formats, made and decoded by both."""
    name = FORMATS[number][0]
    path = make_format(folder, number)
    return Comparison(name, 0, False, False, "no encoder here") if path is None else compare(name, path)


def _decode_on(path: Path, where: str) -> int:
    return decode(path, where)[1]


def rate(paths: list[Path], where: str, workers: int) -> float:
    """Frames a second of processes that decode these clips side by side."""
    with ProcessPoolExecutor(workers) as pool:
        list(pool.map(_decode_on, paths[:workers], [where] * workers))  # processes start, files are read
        started = time.perf_counter()
        frames = sum(pool.map(_decode_on, paths, [where] * len(paths)))
        return frames / (time.perf_counter() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("clips", nargs="*", type=Path)
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 1) - 2))
    parser.add_argument("--each", type=int, default=4, help="clips of 81 frames at 480p for each worker")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    chosen = parser.parse_args()
    comparisons = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        paths = [folder / f"rate-{number}.mp4" for number in range(chosen.workers * chosen.each)]
        with ProcessPoolExecutor(chosen.workers) as pool:
            clips = pool.map(compare, [path.name for path in chosen.clips], chosen.clips)
            formats = pool.map(compare_format, [folder] * len(FORMATS), range(len(FORMATS)))
            for one in chain(clips, formats):
                print(f"{one.name:40s} {one.frames:4d} frames  same: {one.same!s:5}  {one.reason}", flush=True)
                comparisons.append(one)
            list(pool.map(make_clip, paths, range(len(paths)), [81] * len(paths)))
        rates = {where: rate(paths, where, chosen.workers) for where in ("cpu", "cuda")}
    print(f"{chosen.workers} processes: CPU {rates['cpu']:.0f} frames/s, GPU {rates['cuda']:.0f} frames/s")
    if chosen.out:
        figures = {"clips": [asdict(one) for one in comparisons], "frames a second": rates}
        chosen.out.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
