"""Fidelity of MIND and MemoBench, integrity of WRBench and lighting: our observers against the evaluators' loops.

    python benchmarks/reference_loops.py [CLIP.mp4 ... REFERENCE.mp4] [--frames 24]

The loops are written from what is known of the evaluators. Each goes through the clips of its own, model by model and
frame by frame:

- MIND: torch, 1280 x 720 bilinear without antialiasing; PSNR, SSIM with a window of 11 x 11 that is not separated, and
  LPIPS (AlexNet).
- MemoBench: OpenCV, both at a longer side of 640; PSNR, SSIM by blurs of grey pictures, and LPIPS (AlexNet), for each
  of three phases and then once more for the whole clip, decoded each time.
- WRBench: three frames a second, the middle of each through a network of patches (EfficientNet-Lite0 here, on both
  sides), best cosines of neighbours in both directions.
- Lighting: scikit-image's CIELAB of whole frames.

Told are seconds of the processor on one thread, those of decoding processes among them: each suite by itself, and all
together, where ours decodes every video once. LPIPS runs on torch in the loops, as in the evaluators, and by OpenVINO
in ours where it is installed (`REVISIT_OPENVINO=off` leaves it out). On the same frames every number must be equal to a
stated tolerance, or else the script fails. Over clips they differ a little more, because the loops' frames come from
swscale and ours from the stated arithmetic of docs/media.md.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import processor_time

Numbers = dict[str, np.ndarray]  # measure -> values, by frame or one
# How far a number may be from ours on the same frames: dB, SSIM, distance, score, and CIELAB's lightness of 0 to 100.
EQUAL = {"PSNR": 1e-4, "SSIM": 1e-4, "LPIPS": 1e-5, "integrity": 1e-3, "lightness": 0.1}
MIND: dict[str, Any] = {"families": "torchmetrics", "resize": "mind", "rate": None}
MEMO: dict[str, Any] = {"families": "gray_border", "resize": "area", "long_side": 640, "rate": None}
C1, C2 = 0.01**2, 0.03**2
FPS = 24  # of the clips that are rendered, and taken for those that are given


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


def lightness(a: np.ndarray) -> float:
    from skimage.color import rgb2lab

    return float(rgb2lab(a)[..., 0].mean())


@cache
def alexnet() -> dict[str, Any]:
    """The weights of LPIPS by name."""
    from safetensors.torch import load_file

    from revisit.media.cache_folders import cache_root

    return load_file(cache_root() / "weights" / "lpips_alex" / "model.safetensors")


def lpips(x: Any, y: Any) -> float:
    """LPIPS of two pictures (1, 3, H, W), from -1 to 1, as Zhang et al. (2018) describe it."""
    import torch
    from torch.nn import functional

    known = {name: tensor.float() for name, tensor in alexnet().items()}
    shift, scale = torch.tensor([-0.030, -0.088, -0.188]), torch.tensor([0.458, 0.448, 0.450])
    layers = (("slice1.0", 4, 2), ("slice2.3", 1, 2), ("slice3.6", 1, 1), ("slice4.8", 1, 1), ("slice5.10", 1, 1))
    seen = [(one - shift[:, None, None]) / scale[:, None, None] for one in (x, y)]
    total = 0.0
    for depth, (name, stride, padding) in enumerate(layers):
        for number, one in enumerate(seen):
            inside = functional.max_pool2d(one, 3, 2) if depth in (1, 2) else one
            weight, bias = known[f"net.{name}.weight"], known[f"net.{name}.bias"]
            seen[number] = functional.conv2d(inside, weight, bias, stride, padding).relu()
        a, b = (one / ((one**2).sum(1, keepdim=True).sqrt() + 1e-10) for one in seen)
        total += float(functional.conv2d((a - b) ** 2, known[f"lin{depth}.model.1.weight"]).mean())
    return total


def mind(shown: Iterator[np.ndarray], truth: Iterator[np.ndarray]) -> Numbers:
    """The measures of MIND, frame by frame."""
    found: dict[str, list[float]] = {"MIND PSNR": [], "MIND SSIM": [], "MIND LPIPS": []}
    for a, b in zip(shown, truth, strict=False):
        found["MIND PSNR"].append(mind_psnr(a, b))
        found["MIND SSIM"].append(mind_ssim(a, b))
        found["MIND LPIPS"].append(lpips(covered(a) * 2 - 1, covered(b) * 2 - 1))
    return {name: np.array(values) for name, values in found.items()}


def memobench(shown: Iterator[np.ndarray], truth: Iterator[np.ndarray]) -> Numbers:
    """The measures of MemoBench, frame by frame."""
    import torch

    found: dict[str, list[float]] = {"MemoBench PSNR": [], "MemoBench SSIM": [], "MemoBench LPIPS": []}
    for a, b in zip(shown, truth, strict=False):
        found["MemoBench PSNR"].append(memo_psnr(a, b))
        found["MemoBench SSIM"].append(memo_ssim(a, b))
        x, y = (torch.from_numpy(one).permute(2, 0, 1)[None].float() / 127.5 - 1 for one in at_640(a, b))
        found["MemoBench LPIPS"].append(lpips(x, y))
    return {name: np.array(values) for name, values in found.items()}


def wrbench(shown: Sequence[np.ndarray], fps: float) -> Numbers:
    """WRBench's integrity of a clip: about three frames a second, each through the network by itself."""
    import torch

    from revisit.networks import preprocessing
    from revisit.networks.efficientnet_lite import unit_patch_and_picture_descriptors

    count = len(shown)
    sampled = sorted({0, count - 1, *(round(at) for at in np.arange(0, count, max(fps / 3, 1)) if round(at) < count)})
    patches, whole = [], []
    with torch.inference_mode():
        for number in sampled:
            tokens, one = unit_patch_and_picture_descriptors(
                preprocessing.resize_256_and_crop_224(torch.from_numpy(shown[number]).permute(2, 0, 1)[None])
            )
            patches.append(tokens.flatten(0, 2).numpy().astype(np.float64))
            whole.append(one[0].numpy().astype(np.float64))
    low = []
    for a, b in pairwise(patches):
        cosines = a @ b.T
        low.append(np.percentile(np.clip([*cosines.max(1), *cosines.max(0)], 0, 1), 20))
    return {"WRBench integrity": np.array([min(np.clip(whole[0] @ whole[-1], 0, 1), np.percentile(low, 20))])}


def looped_mind(clip: Path, reference: Path, count: int) -> Numbers:
    return mind(frames(clip, count), frames(reference, count))


def looped_memobench(clip: Path, reference: Path, count: int) -> Numbers:
    """The three phases, and then all frames once more, as its table has them."""
    for phase in np.array_split(np.arange(count), 3):
        wanted = set(phase.tolist())
        memobench(
            *((f for k, f in enumerate(frames(path, phase[-1] + 1)) if k in wanted) for path in (clip, reference))
        )
    return memobench(frames(clip, count), frames(reference, count))


def looped_wrbench(clip: Path, reference: Path, count: int) -> Numbers:
    return wrbench(list(frames(clip, count)), FPS)


def looped_lighting(clip: Path, reference: Path, count: int) -> Numbers:
    return {"lightness": np.array([lightness(frame) for frame in frames(clip, count)])}


LOOPS = {
    "MIND": looped_mind, "MemoBench": looped_memobench, "WRBench": looped_wrbench, "lighting": looped_lighting,
}  # fmt: skip


def ours(clips: Sequence[Path], reference: Path, count: int, suites: Sequence[str]) -> tuple[np.ndarray, list[Any]]:
    """The frames of the reference, and for each clip its frames and numbers; every video is decoded once."""
    import revisit
    from revisit.core import Score
    from revisit.metrics.fidelity import psnr_per_frame
    from revisit.metrics.integrity import wr_integrity
    from revisit.networks import lpips, output_cache, runtime

    runtime.network(
        "lpips_alex", lpips.lpips_alex
    ).kept = output_cache.FeatureCache()  # what an earlier call saw in the reference
    truth = decoded(reference, count) if {"MIND", "MemoBench"} & set(suites) else np.zeros((0, 1, 1, 3), np.uint8)
    made = []
    for clip in clips:
        shown, found = decoded(clip, count), dict[str, np.ndarray]()
        for suite, rule, ssim in (("MIND", MIND, "ssim_torchmetrics"), ("MemoBench", MEMO, "ssim_gray_border")):
            if suite in suites:
                pixels = revisit.observe(shown, "lite.fidelity", reference=truth, fps=FPS, **rule)
                sized = {name: rule[name] for name in ("resize", "long_side", "rate") if name in rule}
                network = revisit.observe(shown, "torch.lpips_alex", reference=truth, fps=FPS, **sized)
                found |= {f"{suite} PSNR": psnr_per_frame(pixels.mse), f"{suite} SSIM": getattr(pixels, ssim)}
                found[f"{suite} LPIPS"] = network.distance
        if "WRBench" in suites:
            tokens = revisit.observe(shown, "small.integrity", fps=FPS, crop=True)
            score = wr_integrity(tokens, revisit.observe(shown, "lite.frames", fps=FPS))
            assert isinstance(score, Score)
            found["WRBench integrity"] = np.array([score.value])
        if "lighting" in suites:
            found["lightness"] = revisit.observe(shown, "lite.lab", fps=FPS).mean[:, 0]
        made.append((shown, found))
    return truth, made


def decoded(path: Path, count: int) -> np.ndarray:
    from revisit.core import Clip
    from revisit.media import open_clip

    with open_clip(Clip(path), wanted=np.arange(count)) as stream:
        return np.stack([frame.rgb for frame in stream])


def apart(shown: np.ndarray, truth: np.ndarray, mine: Numbers) -> dict[str, float]:
    """How far the loops' numbers are from ours on our frames: of the last frame, and of the clip where there is one."""
    last = mind(iter(shown[-1:]), iter(truth[-1:])) | memobench(iter(shown[-1:]), iter(truth[-1:]))
    last |= wrbench(list(shown), FPS) | {"lightness": np.array([lightness(shown[-1])])}
    return {name: abs(float(value[-1]) - float(mine[name][-1])) for name, value in last.items()}


def rendered(folder: Path, count: int, models: int) -> list[Path]:
    """A turn in a room at 480p by several models, each a little darker than the last, and as it is."""
    from revisit.media import encode_mp4
    from revisit.worlds.film import play
    from revisit.worlds.places import make_world

    film = play(make_world(7, "room", "vase", block=False), "yaw", "none", (480, 832), frames=count, fps=FPS)
    shown = [film.truth(frame).rgb for frame in range(count)]
    darker = [1 - 0.1 * (model + 1) for model in range(models)] + [1.0]
    made = [folder / f"{number}.mp4" for number in range(models + 1)]
    for path, level in zip(made, darker, strict=True):
        encode_mp4(path, [(rgb * level).astype(np.uint8) for rgb in shown], fps=FPS)
    return made


def spent() -> float:
    """Seconds of the processor so far, of this process and of those that it started and that have ended."""
    return processor_time.so_far()


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = spent()
    made = work()
    return spent() - start, made


def main() -> None:
    import torch

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("videos", type=Path, nargs="*", help="clips and, last, their reference; else they are rendered")
    parser.add_argument("--frames", type=int, default=24, help="three or more, one for each phase")
    parser.add_argument("--models", type=int, default=2, help="of the rendered clips")
    given = parser.parse_args()
    if len(given.videos) == 1:
        parser.error("give clips and their reference")
    torch.set_num_threads(1)
    folder = tempfile.TemporaryDirectory()
    *clips, reference = given.videos or rendered(Path(folder.name), given.frames, given.models)
    count = min(given.frames, *(sum(1 for _ in frames(path, given.frames)) for path in (*clips, reference)))

    ours(clips[:1], reference, 2, list(LOOPS))  # networks are loaded once, by both sides
    looped: dict[str, float] = {}
    theirs: list[Numbers] = [{} for _ in clips]
    for suite, loop in LOOPS.items():
        looped[suite] = 0.0
        for number, clip in enumerate(clips):
            seconds, numbers = timed(partial(loop, clip, reference, count))
            looped[suite] += seconds
            theirs[number] |= numbers
    alone = {suite: timed(partial(ours, clips, reference, count, [suite]))[0] for suite in LOOPS}
    together, (truth, made) = timed(partial(ours, clips, reference, count, list(LOOPS)))

    print(f"{len(clips)} clips of {count} frames; seconds of the processor")
    print(f"{'':20}{'loop':>10}{'ours':>10}{'ratio':>8}")
    for suite in LOOPS:
        print(f"{suite:20}{looped[suite]:10.2f}{alone[suite]:10.2f}{looped[suite] / alone[suite]:8.1f}")
    whole = sum(looped.values())
    print(f"{'all together':20}{whole:10.2f}{together:10.2f}{whole / together:8.1f}")
    print(f"{'':20}{'loop, mean':>12}{'ours':>12}{'apart':>10}{'same frames':>14}")
    unequal = []
    differences = [apart(shown, truth, mine) for shown, mine in made]
    for name in theirs[0]:
        values = (np.mean([one[name].mean() for one in told]) for told in (theirs, [mine for _, mine in made]))
        loop_mean, own_mean = map(float, values)
        same = max(found[name] for found in differences)
        print(f"{name:20}{loop_mean:12.5f}{own_mean:12.5f}{abs(loop_mean - own_mean):10.5f}{same:14.1e}")
        if same > EQUAL[name.split()[-1]]:
            unequal.append(name)
    if unequal:
        raise SystemExit(f"not equal on the same frames: {', '.join(unequal)}")


if __name__ == "__main__":
    main()
