"""How far fidelity is from what the public evaluators of MemoBench and MIND compute, by whose pixels are taken.

    python benchmarks/upstream_pixels.py FOLDER [--frames 9] [--lpips] [--suite memobench]

FOLDER holds clips called {clip}_{model}.mp4 and {clip}_gt.mp4. Frames are spread evenly over each clip and its truth.
The loops of `reference_loops.py` read them as the evaluators do, MemoBench through cv2.VideoCapture and MIND through
PyAV's rgb24, and compute with OpenCV and torch alone. Our observers get them from the guarded decoder, once by our own
rules (`corrected`) and once by the library's (`upstream`). Told is the distance between means over a clip's frames, the
median over clips and the largest. Both are told twice: of the clips as they are, and MemoBench with the truth as a
folder of JPEG files, MIND with predictions encoded again in 4:4:4.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from reference_loops import MEMO, MIND, at_640, covered, lpips, memo_psnr, memo_ssim, mind_psnr, mind_ssim

Distances = dict[tuple[str, str], list[float]]  # (measure, whose pixels) -> a number for each clip


def by_opencv(path: Path) -> Iterator[np.ndarray]:
    import cv2

    if path.is_dir():
        for image in sorted(path.iterdir()):
            yield np.ascontiguousarray(np.asarray(cv2.imread(str(image)))[..., ::-1])
        return
    capture = cv2.VideoCapture(str(path))
    while (read := capture.read())[0]:
        yield np.ascontiguousarray(read[1][..., ::-1])


def by_pyav(path: Path) -> Iterator[np.ndarray]:
    import av

    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            yield frame.to_rgb().to_ndarray()


def spread(path: Path, frames: int) -> np.ndarray:
    """Numbers of frames, evenly spread over a clip."""
    from revisit.core import Clip
    from revisit.media import open_clip

    with open_clip(Clip(path), wanted=np.arange(0)) as stream:
        return np.unique(np.linspace(0, stream.info.count - 1, frames).round().astype(int))


def guarded(path: Path, wanted: np.ndarray, decoding: str) -> list[np.ndarray]:
    """These frames, as the engine gets them under a protocol that names the decoding."""
    from revisit.core import Clip
    from revisit.media import open_clip

    with open_clip(Clip(path, decoding=decoding), wanted=wanted) as stream:
        return [frame.rgb for frame in stream]


def observed(shown: list[np.ndarray], truth: list[np.ndarray], params: dict[str, Any]) -> dict[str, float]:
    """Means over frames by our observer."""
    from revisit.metrics.fidelity import psnr_per_frame
    from revisit.observers.fidelity import frame_fidelity

    seen = frame_fidelity(np.stack(shown), reference=np.stack(truth), **params)
    similar = getattr(seen, f"ssim_{params['families']}")
    return {"PSNR": float(psnr_per_frame(seen.mse).mean()), "SSIM": float(similar.mean())}


def network(shown: list[np.ndarray], truth: list[np.ndarray], params: dict[str, Any]) -> float:
    """Mean LPIPS by our observer."""
    from revisit.core import OBSERVERS

    given = {name: value for name, value in params.items() if name != "families"}
    return float(OBSERVERS["torch.lpips_alex"](np.stack(shown), reference=np.stack(truth), **given).distance.mean())


def looped(shown: list[np.ndarray], truth: list[np.ndarray], suite: str, with_lpips: bool) -> dict[str, float]:
    """Means over frames by loops as the evaluators run them."""
    import torch

    pairs = list(zip(shown, truth, strict=True))
    psnr, ssim = (memo_psnr, memo_ssim) if suite == "memobench" else (mind_psnr, mind_ssim)
    made = {"PSNR": np.mean([psnr(*pair) for pair in pairs]), "SSIM": np.mean([ssim(*pair) for pair in pairs])}
    if with_lpips:
        values = []
        for a, b in pairs:
            if suite == "memobench":
                x, y = (torch.from_numpy(one).permute(2, 0, 1)[None] / 255 for one in at_640(a, b))
            else:
                x, y = covered(a), covered(b)
            values.append(lpips(2 * x - 1, 2 * y - 1))
        made["LPIPS"] = np.mean(values)
    return {name: float(value) for name, value in made.items()}


def measure(suite: str, clips: list[tuple[Path, Path]], frames: int, with_lpips: bool) -> Distances:
    library, read, params = ("opencv", by_opencv, MEMO) if suite == "memobench" else ("pyav", by_pyav, MIND)
    found: Distances = {}
    for clip, truth in clips:
        wanted = [spread(path, frames) for path in (clip, truth)]
        theirs = [
            [rgb for number, rgb in zip(count(), read(path), strict=False) if number in set(numbers.tolist())]
            for path, numbers in zip((clip, truth), wanted, strict=True)
        ]
        expected = looped(theirs[0], theirs[1], suite, with_lpips)
        for decoding in ("", library):
            mine = [guarded(path, numbers, decoding) for path, numbers in zip((clip, truth), wanted, strict=True)]
            got = observed(mine[0], mine[1], params)
            if with_lpips:
                got["LPIPS"] = network(mine[0], mine[1], params)
            for name, value in got.items():
                found.setdefault((name, decoding or "ours"), []).append(abs(value - expected[name]))
    return found


def in_444(path: Path, place: Path) -> Path:
    """The clip in 4:4:4, as some generators write it."""
    import av

    made = place / path.name
    with av.open(str(made), "w") as container:
        stream: Any = container.add_stream("libx264", rate=24, options={"crf": "14"})
        pictures = list(by_pyav(path))
        stream.height, stream.width, stream.pix_fmt = *pictures[0].shape[:2], "yuv444p"
        for rgb in pictures:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(rgb, format="rgb24")))
        container.mux(stream.encode())
    return made


def in_jpeg(path: Path, place: Path) -> Path:
    """The frames of a clip as JPEG files, as MemoBench keeps its synthetic truth."""
    import cv2

    made = place / path.stem
    if not made.is_dir():
        made.mkdir()
        for number, rgb in enumerate(by_opencv(path)):
            cv2.imwrite(str(made / f"{number:04d}.jpg"), rgb[..., ::-1])  # quality 95, chroma halved
    return made


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--frames", type=int, default=9)
    options.add_argument("--lpips", action="store_true")
    options.add_argument("--suite", choices=["memobench", "mind"], action="append")
    options.add_argument("--models", default="", help="only these, separated by commas")
    given = options.parse_args()
    from revisit.observers.sets import load_roles

    load_roles("perceptual")
    models = set(filter(None, given.models.split(",")))
    clips = []
    for path in sorted(given.folder.glob("*.mp4")):
        clip, _, model = path.stem.rpartition("_")
        if model != "gt" and (not models or model in models):
            clips.append((path, path.with_name(f"{clip}_gt.mp4")))
    print(f"{len(clips)} clips of {given.folder.name}, {given.frames} frames each")
    print("| suite | measure | pixels | median | largest |\n|---|---|---|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for suite in given.suite or ("memobench", "mind"):
            sets = {suite: clips}
            if suite == "memobench":
                sets["memobench, truth in JPEG"] = [(clip, in_jpeg(truth, Path(folder))) for clip, truth in clips]
            else:
                sets["mind, 4:4:4"] = [(in_444(clip, Path(folder)), truth) for clip, truth in clips]
            for title, those in sets.items():
                for (name, whose), values in measure(suite, those, given.frames, given.lpips).items():
                    print(f"| {title} | {name} | {whose} | {np.median(values):.2g} | {max(values):.2g} |", flush=True)


if __name__ == "__main__":
    main()
