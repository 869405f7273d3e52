"""What the target gate costs per clip: the layout's follower alone, and with the network that looks.

    python benchmarks/target_gate.py [CLIP.mp4 X0 Y0 X1 Y1] [--device cuda] [--times 3]

The box of the target is in fractions of the first frame. Without a clip, one of 81 frames of 832x480 is rendered, in
which the camera looks away from a vase and comes back. Both observers run on the same clip, decoding included. Seconds
are of the processor (one core, if OMP_NUM_THREADS=1) and of the clock, the least of several runs; the first run, which
loads the network, is not counted.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np

Box = tuple[float, ...]


def rendered(folder: Path) -> tuple[Path, Box]:
    """A clip whose target leaves the view and comes back, and the target's box."""
    from revisit.media import encode_mp4
    from revisit.worlds.film import play
    from revisit.worlds.places import make_world
    from revisit.worlds.state import TARGET

    film = play(make_world(7, "room", "vase", block=False), "yaw", "none", (480, 832), frames=81, fps=24)
    shots = [film.truth(frame) for frame in range(len(film))]
    encode_mp4(folder / "rendered.mp4", [shot.rgb for shot in shots], fps=film.fps)
    rows, columns = np.nonzero(shots[0].mask == TARGET)
    height, width = film.size
    ends = columns.min() / width, rows.min() / height, (columns.max() + 1) / width, (rows.max() + 1) / height
    return folder / "rendered.mp4", tuple(map(float, ends))


def measure(clip: Path, box: Box, times: int) -> None:
    """Print a line per observer."""
    import revisit
    from revisit.networks import runtime

    print(f"{clip.name} on {runtime.described()}")
    print(f"{'observer':<18}{'looks':>7}{'processor, s':>14}{'clock, s':>10}{'ms a look':>11}")
    for observer in ("lite.target", "small.looks"):
        spent = []
        for _ in range(times + 1):
            processor, clock = time.process_time(), time.perf_counter()
            found = revisit.observe(clip, observer, target=box)
            spent.append((time.process_time() - processor, time.perf_counter() - clock))
        cpu, wall = (min(column) for column in zip(*spent[1:], strict=True))
        count = len(found.index)
        print(f"{observer:<18}{count:>7}{cpu:>14.2f}{wall:>10.2f}{1000 * wall / count:>11.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clip", type=Path, nargs="?")
    parser.add_argument("box", type=float, nargs="*")
    parser.add_argument("--device", help="cpu or cuda; by default what is there")
    parser.add_argument("--times", type=int, default=3)
    given = parser.parse_args()
    if given.clip is not None and len(given.box) != 4:
        parser.error("a clip needs the box of its target: X0 Y0 X1 Y1, in fractions of the first frame")
    if given.device:
        os.environ["REVISIT_DEVICE"] = given.device
    with tempfile.TemporaryDirectory() as folder:
        clip, box = (given.clip, tuple(given.box)) if given.clip else rendered(Path(folder))
        measure(clip, box, given.times)


if __name__ == "__main__":
    main()
