"""What the target gate costs per clip: the layout's follower, and the network that looks. On one core, or on a GPU.

    python benchmarks/target_gate.py CLIP.mp4 X0 Y0 X1 Y1 [--times 3]

The box of the target is in fractions of the first frame. `REVISIT_DEVICE=cuda` measures on a GPU. Both run on the same
decoded frames; seconds are of the processor (one core) and of the clock, the least of several runs, the first of which
loads the network and is not counted.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import revisit
from revisit.networks import runtime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clip", type=Path)
    parser.add_argument("box", type=float, nargs=4)
    parser.add_argument("--times", type=int, default=3)
    given = parser.parse_args()
    print(f"{given.clip.name} on {runtime.described()}")
    print(f"{'observer':<18}{'looks':>7}{'processor, s':>14}{'clock, s':>10}{'ms a look':>11}")
    for observer in ("lite.target", "small.looks"):
        spent = []
        for _ in range(given.times + 1):
            processor, clock = time.process_time(), time.perf_counter()
            found = revisit.observe(given.clip, observer, target=tuple(given.box))
            spent.append((time.process_time() - processor, time.perf_counter() - clock))
        cpu, wall = (min(column) for column in zip(*spent[1:], strict=True))
        count = len(found.index)
        print(f"{observer:<18}{count:>7}{cpu:>14.2f}{wall:>10.2f}{1000 * wall / count:>11.1f}")


if __name__ == "__main__":
    main()
