"""Fidelity of MIND and MemoBench, and lighting of whole frames: our observers against loops as evaluators run them.

    python benchmarks/reference_loops.py [CLIP.mp4 REFERENCE.mp4] [--frames 8]

The loops are written from what is known of the evaluators: every measure opens and decodes both videos again and goes
frame by frame. MIND: torch, 1280 x 720 bilinear without antialiasing, SSIM with a window of 11 x 11 that is not
separated. MemoBench: OpenCV, both at a longer side of 640, SSIM by blurs of grey pictures. Lighting: scikit-image's
CIELAB. Told are seconds of the processor on one thread, those of decoding processes among them, and how far each
measure is from ours: over the clip, where their frames come from swscale and ours from the stated arithmetic of
docs/media.md, and on one pair of our frames. Networks (LPIPS, DINO) are not part of it: they cost both sides the same.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

MIND: dict[str, Any] = {"families": "torchmetrics", "resize": "mind", "rate": None}
MEMO: dict[str, Any] = {"families": "gray_border", "resize": "area", "long_side": 640, "rate": None}
C1, C2 = 0.01**2, 0.03**2


def frames(path: Path, count: int) -> Iterator[np.ndarray]:
    """The first frames of a video, as most evaluators decode them."""
    import av

    with av.open(str(path)) as container:
        for number, frame in enumerate(container.decode(video=0)):
            if number == count:
                return
            yield frame.to_ndarray(format="rgb24")


def covered(rgb: np.ndarray) -> Any:
    """A frame as MIND sees it: 1280 x 720, values from 0 to 1."""
    import torch

    picture = torch.from_numpy(rgb).permute(2, 0, 1)[None].float()
    scale = max(1280 / rgb.shape[1], 720 / rgb.shape[0])
    size = round(rgb.shape[0] * scale), round(rgb.shape[1] * scale)
    picture = torch.nn.functional.interpolate(picture, size, mode="bilinear", antialias=False)
    top, left = round((size[0] - 720) / 2), round((size[1] - 1280) / 2)
    return (picture[..., top : top + 720, left : left + 1280] / 255).clamp(0, 1)


def mind_psnr(a: np.ndarray, b: np.ndarray) -> float:
    return float(-10 * ((covered(a) - covered(b)) ** 2).mean().log10())


def mind_ssim(a: np.ndarray, b: np.ndarray) -> float:
    import torch

    line = torch.exp(-((torch.arange(11) - 5.0) ** 2) / (2 * 1.5**2))
    window = torch.outer(line, line) / line.sum() ** 2
    x, y = (torch.nn.functional.pad(covered(one), (5, 5, 5, 5), mode="reflect") for one in (a, b))
    stack = torch.cat([x, y, x * x, y * y, x * y])
    means = torch.nn.functional.conv2d(stack, window.expand(3, 1, 11, 11), groups=3)
    mx, my, xx, yy, xy = means
    upper = (2 * mx * my + C1) * (2 * (xy - mx * my) + C2)
    return float((upper / ((mx**2 + my**2 + C1) * (xx - mx**2 + yy - my**2 + C2))).mean())


def at_640(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A pair as MemoBench compares it."""
    import cv2

    scale = min(1.0, 640 / max(a.shape[:2]))
    size = round(a.shape[1] * scale), round(a.shape[0] * scale)
    made = [cv2.resize(one, size, interpolation=cv2.INTER_AREA) for one in (a, b)]
    return np.asarray(made[0]), np.asarray(made[1])


def memo_psnr(a: np.ndarray, b: np.ndarray) -> float:
    x, y = (one.astype(np.float32) for one in at_640(a, b))
    return float(20 * np.log10(255.0) - 10 * np.log10(((x - y) ** 2).mean()))


def memo_ssim(a: np.ndarray, b: np.ndarray) -> float:
    import cv2

    x, y = (cv2.cvtColor(one, cv2.COLOR_RGB2GRAY).astype(np.float64) for one in at_640(a, b))
    mx, my, xx, yy, xy = (cv2.GaussianBlur(one, (11, 11), 1.5) for one in (x, y, x * x, y * y, x * y))
    upper = (2 * mx * my + C1 * 65025) * (2 * (xy - mx * my) + C2 * 65025)
    return float((upper / ((mx**2 + my**2 + C1 * 65025) * (xx - mx**2 + yy - my**2 + C2 * 65025) + 1e-8)).mean())


def lightness(a: np.ndarray, b: np.ndarray) -> float:
    from skimage.color import rgb2lab

    return float(rgb2lab(a)[..., 0].mean())


def looped(measure: Callable[[np.ndarray, np.ndarray], float], clip: Path, reference: Path, count: int) -> float:
    return float(np.mean([measure(a, b) for a, b in zip(frames(clip, count), frames(reference, count), strict=False)]))


def rendered(folder: Path, count: int) -> tuple[Path, Path]:
    """A turn in a room at 480p, a little too dark, and as it is."""
    from revisit.media import encode_mp4
    from revisit.worlds.film import play
    from revisit.worlds.places import make_world

    film = play(make_world(7, "room", "vase", block=False), "yaw", "none", (480, 832), frames=count, fps=24)
    shown = [film.truth(frame).rgb for frame in range(count)]
    encode_mp4(folder / "reference.mp4", shown, fps=24)
    encode_mp4(folder / "clip.mp4", [(rgb * 0.9).astype(np.uint8) for rgb in shown], fps=24)
    return folder / "clip.mp4", folder / "reference.mp4"


def spent() -> float:
    """Seconds of the processor so far, of this process and of those that it started and that have ended."""
    return sum(os.times()[:4])


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = spent()
    made = work()
    return spent() - start, made


def main() -> None:
    import torch

    import revisit
    from revisit.core import Clip
    from revisit.media import open_clip
    from revisit.metrics.fidelity import psnr_per_frame

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("videos", type=Path, nargs="*", help="a clip and its reference; rendered where none are given")
    parser.add_argument("--frames", type=int, default=8)
    given = parser.parse_args()
    if len(given.videos) not in (0, 2):
        parser.error("give a clip and its reference")
    torch.set_num_threads(1)
    count = given.frames
    folder = tempfile.TemporaryDirectory()
    pair = tuple(given.videos) or rendered(Path(folder.name), count)

    def ours() -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
        """Each video is decoded once."""
        shown = []
        for path in pair:
            with open_clip(Clip(path), wanted=np.arange(count)) as stream:
                shown.append(np.stack([frame.rgb for frame in stream]))
        mind, memo = (revisit.observe(shown[0], "lite.fidelity", reference=shown[1], **rule) for rule in (MIND, MEMO))
        lab = revisit.observe(shown[0], "lite.lab")
        return shown, {
            "MIND PSNR": psnr_per_frame(mind.mse), "MIND SSIM": mind.ssim_torchmetrics,
            "MemoBench PSNR": psnr_per_frame(memo.mse), "MemoBench SSIM": memo.ssim_gray_border,
            "lightness": lab.mean[:, 0],
        }  # fmt: skip

    ours()  # tables of OpenCV are made once
    our_seconds, (shown, mine) = timed(ours)
    loops = {
        "MIND PSNR": mind_psnr, "MIND SSIM": mind_ssim, "MemoBench PSNR": memo_psnr, "MemoBench SSIM": memo_ssim,
        "lightness": lightness,
    }  # fmt: skip
    total = 0.0
    print(f"{'':16}{'loop, s':>10}{'its mean':>12}{'ours':>12}{'apart':>10}{'same frames':>14}")
    for name, measure in loops.items():
        seconds, value = timed(partial(looped, measure, pair[0], pair[1], count))
        total += seconds
        own, same = float(mine[name].mean()), abs(measure(shown[0][-1], shown[1][-1]) - float(mine[name][-1]))
        print(f"{name:16}{seconds:10.2f}{value:12.5f}{own:12.5f}{abs(value - own):10.5f}{same:14.1e}")
    print(f"{count} frames: loops {total:.2f} s, ours {our_seconds:.2f} s: {total / our_seconds:.1f} x")


if __name__ == "__main__":
    main()
