"""What the separate decoding process and our own colours cost, against decoding in this one with swscale's.

Run: python benchmarks/decode.py [video ...]. Without arguments clips of two sizes and four pixel formats are made.
Each clip is decoded both ways in turn, several times; the best of each counts, and the ratios are
what to compare between machines: of wall time, and of processor time, which a busy machine does not
change much. Both ways make RGB frames and digest each of them.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import processor_time

from revisit.core import Clip
from revisit.core.frames import frame_digest
from revisit.media import open_clip
from revisit.media.decoder_process import THREADS

REPEATS = 5


def in_process(path: Path) -> int:
    import av

    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.thread_type, stream.codec_context.thread_count = "AUTO", THREADS
        return sum(1 for frame in container.decode(stream) if frame_digest(frame.to_ndarray(format="rgb24")))


def in_child(path: Path) -> int:
    with open_clip(Clip(path)) as stream:
        return sum(1 for _ in stream)


def first_frame(path: Path) -> int:
    with open_clip(Clip(path)) as stream:
        next(iter(stream))
    return 1


def measure(run: Callable[[Path], int], path: Path) -> tuple[np.ndarray, int]:
    """Seconds of wall time and of processor time, and the frames seen."""
    start = clocks()
    count = run(path)
    return clocks() - start, count


def clocks() -> np.ndarray:
    return np.array([time.perf_counter(), processor_time.so_far()])


FORMATS = {  # name -> pixel format and what the encoder says of it
    "420": ("yuv420p", {}),
    "420-709": ("yuv420p", {"x264-params": "colormatrix=bt709"}),
    "420-10bit": ("yuv420p10le", {}),
    "444": ("yuv444p", {}),
}


def synthetic(folder: Path, width: int, height: int, count: int, format: str) -> Path:
    """A drifting texture with some noise, so that the encoder has something to keep."""
    import av

    rng = np.random.default_rng(0)
    texture = rng.integers(0, 256, (height // 8 + 64, width // 8 + 64, 3), dtype=np.uint8)
    wide = np.kron(texture, np.ones((8, 8, 1), dtype=np.uint8))
    path = folder / f"{width}x{height}-{format}.mp4"
    pixels, options = FORMATS[format]
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=24)
        stream.width, stream.height, stream.pix_fmt = width, height, pixels
        stream.options = {"crf": "16", "preset": "veryfast", **options}
        for i in range(count):
            picture = np.ascontiguousarray(wide[i : i + height, 2 * i : 2 * i + width])
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    return path


def main(paths: list[Path]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        if not paths:
            sizes = ((832, 480, 120), (1920, 1080, 60))
            paths = [synthetic(Path(folder), *size, format) for size in sizes for format in FORMATS]
        print(f"{'clip':24} {'frames':>6} {'in process':>12} {'child':>12} {'wall':>6} {'cpu':>6} {'first frame':>12}")
        for path in paths:
            best = {run: np.full(2, np.inf) for run in (in_process, in_child, first_frame)}
            count = 0
            for _ in range(REPEATS):
                for run in best:
                    took, seen = measure(run, path)
                    best[run], count = np.minimum(best[run], took), max(count, seen)
            wall, cpu = best[in_child] / best[in_process]
            rates = [f"{count / best[run][0]:8.0f} f/s" for run in (in_process, in_child)]
            print(
                f"{path.name[:24]:24} {count:6d} {rates[0]} {rates[1]} {wall:6.2f} {cpu:6.2f} "
                f"{1000 * best[first_frame][0]:9.0f} ms"
            )


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
