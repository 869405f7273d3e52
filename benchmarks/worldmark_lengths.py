"""Processor time and memory of clips of WorldMark's lengths (docs/worldmark.md): 20, 40 and 60 s at 16 frames a second.

python benchmarks/worldmark_lengths.py --clip CLIP [--seconds 20 40 60] [--set small] [--out FILE]

Longer clips are the given one, forth and back. Each is evaluated by the command in a new process with one worker and an
empty cache; memory is the largest resident set of any one process.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from revisit.core import Clip
from revisit.media import encode_mp4, open_clip

RATE = 16.0
SIZE = (384, 576)  # height, width
NAMES = {20: "005_001", 40: "006_007", 60: "016_014"}  # one, two and three keys


def forth_and_back(frames: list[np.ndarray]) -> Iterator[np.ndarray]:
    """The frames without end, as a camera would see them that goes back and forth."""
    while True:
        yield from frames
        yield from frames[-2:0:-1]


def measure(folder: Path, seconds: int, frames: list[np.ndarray], set_name: str) -> dict[str, float]:
    """Evaluate one clip of a length in a process of its own."""
    clip = folder / f"{seconds}/delivery/real/first/model/{NAMES[seconds]}.mp4"
    clip.parent.mkdir(parents=True)
    count = round(seconds * RATE) + 1
    encode_mp4(clip, islice(forth_and_back(frames), count), RATE)
    words = ["eval", str(folder / f"{seconds}/delivery"), "--suite", "worldmark", "--set", set_name, "--workers", "1"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = (
        "import json, resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    command = [sys.executable, "-c", code, sys.executable, "-m", "revisit", *words, "--no-report"]
    environment = {**os.environ, "REVISIT_CACHE": str(folder / f"{seconds}/cache"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, "--out", str(folder / f"{seconds}/run")], env=environment, check=True, capture_output=True, text=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    evidence = sum(path.stat().st_size for path in (folder / f"{seconds}/cache/evidence").rglob("*") if path.is_file())
    return {
        "seconds": seconds, "frames": count, "processor_seconds": round(spent, 1),
        "largest_process_mb": round(int(done.stdout.split()[-1]) / 1024), "evidence_mb": round(evidence / 1e6, 2),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clip", type=Path, required=True)
    parser.add_argument("--seconds", type=int, nargs="+", choices=list(NAMES), default=list(NAMES))
    parser.add_argument("--set", default="small")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    import cv2

    with open_clip(Clip(given.clip)) as stream:
        frames = [cv2.resize(frame.rgb, SIZE[::-1], interpolation=cv2.INTER_AREA) for frame in stream]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for seconds in given.seconds:
            rows.append(measure(Path(folder), seconds, frames, given.set))
            print(json.dumps(rows[-1]), flush=True)
    if given.out:
        given.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
