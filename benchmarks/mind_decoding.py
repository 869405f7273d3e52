"""Frames decoded for MIND: one pass per clip here, against the scheme of the public evaluator.

That evaluator reads, for every model and recording, the ground truth from its first frame to the end of the prediction
(nothing seeks to mark_time), and the prediction; then both again to cut them to 97 frames for the poses. Both ways are
run on the same files and counted; the second without its further passes inside the pose estimator.
Run: python benchmarks/mind_decoding.py [models]
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from revisit.core import SUITES
from revisit.engine.cache import EvidenceCache
from revisit.engine.dependencies import ObserverSet
from revisit.engine.plan import make_plan
from revisit.engine.run import evaluate
from revisit.media import encode_mp4
from revisit.observers.sets import load_roles

MARK, TOTAL, PREDICTED, CROP = 240, 480, 100, 97
NAMES, SIZE = ("data-0-1.0x-200",), (96, 160)


def frames(count: int, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    wall = np.kron(rng.integers(0, 255, (SIZE[0] // 8, 200, 3), dtype=np.uint8), np.ones((8, 8, 1), np.uint8))
    return [np.ascontiguousarray(wall[:, x : x + SIZE[1]]) for x in np.arange(count) % 400]


def write(root: Path, models: int) -> None:
    rows = [{"time": k, "ws": 1, "ad": 0, "ud": 0, "lr": 0} for k in range(TOTAL)]
    for seed, name in enumerate(NAMES):
        made = frames(TOTAL, seed)
        folder = root / "gt/1st_data/test/mem_test" / name
        encode_mp4(folder / "video.mp4", made, fps=24)
        (folder / "action.json").write_text(json.dumps({"mark_time": MARK, "total_time": TOTAL, "data": rows}))
        for model in range(models):
            shown = made[MARK + model :][:PREDICTED]  # equal clips of two models would be decoded once for both
            encode_mp4(root / f"made/model-{model}/1st_data/mem_test/{name}/video.mp4", shown, fps=24)


def read_until(path: Path, count: int) -> int:
    """Decode the first `count` frames and return how many there were."""
    import av

    done = 0
    with av.open(str(path)) as container:
        for frame in container.decode(container.streams.video[0]):
            frame.to_ndarray(format="rgb24")
            done += 1
            if done == count:
                break
    return done


def their_way(root: Path, models: int) -> int:
    done = 0
    for model in range(models):
        for name in NAMES:
            truth = root / "gt/1st_data/test/mem_test" / name / "video.mp4"
            made = root / f"made/model-{model}/1st_data/mem_test/{name}/video.mp4"
            done += read_until(truth, MARK + PREDICTED) + read_until(made, PREDICTED)
            done += read_until(truth, MARK + CROP) + read_until(made, CROP)
    return done


def our_way(root: Path) -> tuple[int, int]:
    plan = make_plan(
        SUITES["mind"], root / "made", ObserverSet("lite", load_roles("lite")),
        metrics=("mind_lcm_mse",), options={"gt": str(root / "gt")},
    )  # fmt: skip
    run = evaluate(plan, root / "run", workers=0, cache=EvidenceCache(root / "cache"))
    counters = run.facts["counters"]
    return counters["frames_decoded"], counters["most_decodes_of_one_clip"]


def main() -> None:
    models = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write(root, models)
        theirs = their_way(root, models)
        ours, most = our_way(root)
    print(f"models: {models}; recordings: {len(NAMES)} of {TOTAL} frames, marked at {MARK}, {PREDICTED} predicted")
    print(f"public evaluator's scheme: {theirs} frames decoded")
    print(f"here: {ours} frames decoded, no clip more than {most} time")
    print(f"ratio: {theirs / ours:.2f}")


if __name__ == "__main__":
    main()
