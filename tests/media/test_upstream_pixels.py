"""Fidelity under `upstream` against the public evaluators' reader and independent formulas, from files to scores.

Clips are read in this process through OpenCV (MemoBench) or PyAV (MIND), as the evaluators do. PSNR and SSIM are
scikit-image's, LPIPS is a forward written here. SSIM with the border kept is scikit-image's of pictures that are
reflected by half a window on all sides.
"""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revisit.core import SUITES
from revisit.engine.in_memory import observe_and_score_cases
from revisit.engine.plan import make_plan
from revisit.engine.request import load_observer_set
from revisit.results import Results
from tests.media.test_media_decode import write_video
from tests.painted_datasets import actions, film

SOME = (0, 9, 40, 71, 80)  # frames of 81 that are compared one by one
DB, SHARE = 0.002, 0.0002


def scores(suite: str, folder: Path, metrics: tuple[str, ...], set: str = "lite", **given: Any) -> Results:
    plan = make_plan(SUITES[suite], folder, load_observer_set(set), protocol="upstream", metrics=metrics, **given)
    return observe_and_score_cases(plan)


def only_clips(source: Path, place: Path, *names: str) -> Path:
    """A folder with these clips, and the truth of each."""
    place.mkdir()
    for name in {*names, *(f"{name.rpartition('_')[0]}_gt" for name in names)}:
        (place / f"{name}.mp4").symlink_to(source / f"{name}.mp4")
    return place


def value(results: Results, clip: Path, metric: str) -> float:
    """The score of a clip."""
    (record,) = (one for one in results.scores(metric) if one.case.clip.path == clip)
    assert record.value is not None
    return record.value


def by_frame(results: Results, clip: Path, metric: str) -> np.ndarray:
    """The values behind the score of a clip."""
    (case,) = (one for one in results.cases if one.clip.path == clip)
    found = results.series(case, metric)
    assert found is not None
    return found["value"]


def by_opencv(path: Path) -> list[np.ndarray]:
    import cv2

    capture, made = cv2.VideoCapture(str(path)), []
    while (read := capture.read())[0]:
        made.append(read[1])
    return made


def as_memobench(shown: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A pair at one size: at most 640 pixels, by area; the truth is stretched to it."""
    import cv2

    height, width = shown.shape[:2]
    if max(height, width) > 640:
        scale = 640 / max(height, width)
        shown = cv2.resize(shown, (round(width * scale), round(height * scale)), interpolation=cv2.INTER_AREA)
    return shown, cv2.resize(truth, shown.shape[1::-1], interpolation=cv2.INTER_AREA)


def psnr(a: np.ndarray, b: np.ndarray, peak: float = 255) -> float:
    from skimage.metrics import peak_signal_noise_ratio

    return float(peak_signal_noise_ratio(a, b, data_range=peak))


def ssim(a: np.ndarray, b: np.ndarray, peak: float = 255) -> float:
    from skimage.metrics import structural_similarity

    edges = [(5, 5), (5, 5), (0, 0)][: a.ndim]
    a, b = (np.pad(one.astype(np.float64), edges, mode="reflect") for one in (a, b))
    axis = 2 if a.ndim == 3 else None
    return float(
        structural_similarity(
            a, b, gaussian_weights=True, sigma=1.5, use_sample_covariance=False, data_range=peak, channel_axis=axis
        )
    )


def grey(bgr: np.ndarray) -> np.ndarray:
    import cv2

    return np.asarray(cv2.cvtColor(bgr, cv2.COLOR_BGR2GRAY))


def check_memobench(source: Path, place: Path, *names: str) -> None:
    """PSNR and SSIM of some frames of clips, one by one."""
    results = scores("memobench", only_clips(source, place, *names), ("memo_psnr", "memo_ssim"))
    for name in names:
        clip = place / f"{name}.mp4"
        shown, truth = (by_opencv(source / f"{one}.mp4") for one in (name, f"{name.rpartition('_')[0]}_gt"))
        assert len(shown) == len(truth) == 81
        pairs = [as_memobench(shown[k], truth[k]) for k in SOME]
        of_psnr, of_ssim = (by_frame(results, clip, metric) for metric in ("memo_psnr", "memo_ssim"))
        assert of_psnr[list(SOME)] == pytest.approx([psnr(*pair) for pair in pairs], abs=DB), name
        expected = [ssim(grey(a), grey(b)) for a, b in pairs]
        assert of_ssim[list(SOME)] == pytest.approx(expected, abs=SHARE), name
        assert value(results, clip, "memo_psnr") == round(float(of_psnr.mean()), 4)


@pytest.mark.long
@pytest.mark.slow
def test_memobench_by_opencv_and_scikit_image(shared: Path, tmp_path: Path) -> None:
    """Clips of 336 x 192, which are not reduced, and of 832 x 480, which become 640 x 369."""
    check_memobench(shared / "memobench_more", tmp_path / "clips", "Real_024_opensora", "ZenGarden_001_cogvideo")


@pytest.mark.slow
@pytest.mark.long
def test_memobench_by_opencv_and_scikit_image_on_all_clips(shared: Path, tmp_path: Path) -> None:
    source = shared / "memobench_more"
    names = [path.stem for path in sorted(source.glob("*.mp4")) if not path.stem.endswith("_gt")]
    assert len(names) == 16
    check_memobench(source, tmp_path / "clips", *names)


def check_oracle(shared: Path, place: Path, *keys: str) -> None:
    """PSNR and SSIM of whole clips against those that the public functions returned."""
    import cv2

    if platform.machine() not in ("x86_64", "AMD64") or not cv2.__version__.startswith("5."):
        pytest.skip("the public functions ran with OpenCV 5 on x86-64, whose pixels others do not have")
    oracle = json.loads((shared / "oracle/memobench/oracle.json").read_text())["psnr_ssim_site_videos"]
    names = {key: key.replace("/", "_") for key in keys or oracle if not key.endswith("/gt")}
    source = only_clips(shared / "memobench/videos", place, *names.values())
    results = scores("memobench", source, ("memo_psnr", "memo_ssim"))
    for key, name in names.items():
        clip = place / f"{name}.mp4"
        assert value(results, clip, "memo_psnr") == pytest.approx(oracle[key]["psnr"], abs=DB), key
        assert value(results, clip, "memo_ssim") == pytest.approx(oracle[key]["ssim"], abs=SHARE), key


@pytest.mark.long
@pytest.mark.slow
def test_memobench_by_its_public_functions(shared: Path, tmp_path: Path) -> None:
    check_oracle(shared, tmp_path / "clips", "Barnyard_001/opensora", "HongKong_001/opensora", "Real_007/opensora")


@pytest.mark.slow
@pytest.mark.long
def test_memobench_by_its_public_functions_on_all_clips(shared: Path, tmp_path: Path) -> None:
    check_oracle(shared, tmp_path / "clips")


@pytest.mark.long
@pytest.mark.slow
def test_lpips_of_memobench_by_an_independent_forward(shared: Path, small_weights: Path, tmp_path: Path) -> None:
    """AlexNet's convolutions and the learned weights of channels, in plain torch, on what OpenCV reads."""
    import torch
    from safetensors.torch import load_file
    from torch.nn import functional

    known = load_file(small_weights / "lpips_alex/model.safetensors")
    name = "Real_024_opensora"
    source = shared / "memobench_more"
    results = scores("memobench", only_clips(source, tmp_path / "clips", name), ("memo_lpips",), "perceptual")
    clip = tmp_path / f"clips/{name}.mp4"
    of_lpips = by_frame(results, clip, "memo_lpips")
    shown, truth = (by_opencv(source / f"{one}.mp4") for one in (name, "Real_024_gt"))
    shift, scale = (torch.tensor(v).view(1, 3, 1, 1) for v in ([-0.030, -0.088, -0.188], [0.458, 0.448, 0.450]))
    convolutions = (("slice1.0", 4, 2), ("slice2.3", 1, 2), ("slice3.6", 1, 1), ("slice4.8", 1, 1), ("slice5.10", 1, 1))

    def distance(a: np.ndarray, b: np.ndarray) -> float:
        x = torch.from_numpy(np.stack([one[..., ::-1] for one in (a, b)])).permute(0, 3, 1, 2).float()
        x = (x / 127.5 - 1 - shift) / scale
        total = 0.0
        for depth, (layer, stride, padding) in enumerate(convolutions):
            if depth in (1, 2):
                x = functional.max_pool2d(x, 3, 2)
            weight, bias = known[f"net.{layer}.weight"].float(), known[f"net.{layer}.bias"].float()
            x = functional.relu(functional.conv2d(x, weight, bias, stride, padding))
            unit = x / (x.square().sum(1, keepdim=True).sqrt() + 1e-10)
            weights = known[f"lin{depth}.model.1.weight"].float().view(-1, 1, 1)
            total += float((weights * (unit[0] - unit[1]).square()).sum(0).mean())
        return total

    expected = [distance(*as_memobench(shown[k], truth[k])) for k in SOME]
    assert of_lpips[list(SOME)] == pytest.approx(expected, abs=1e-5)
    assert value(results, clip, "memo_lpips") == round(float(of_lpips.mean()), 4)


def as_mind(rgb: np.ndarray) -> np.ndarray:
    """A picture that covers 1280 x 720, bilinear without antialiasing, from 0 to 1."""
    import torch

    height, width = rgb.shape[:2]
    scale = max(1280 / width, 720 / height)
    size = round(height * scale), round(width * scale)
    picture = torch.from_numpy(rgb).permute(2, 0, 1)[None].float()
    picture = torch.nn.functional.interpolate(picture, size, mode="bilinear", antialias=False)
    top, left = round((size[0] - 720) / 2), round((size[1] - 1280) / 2)
    return np.asarray(picture[0, :, top : top + 720, left : left + 1280].permute(1, 2, 0) / 255)


@pytest.mark.slow
def test_mind_by_pyav_and_scikit_image(tmp_path: Path) -> None:
    """A prediction in 4:4:4 of another shape against a recording in 4:2:0, where pixels differ most."""
    import av

    pytest.importorskip("torch", reason="needs torch: pip install 'revisit-bench[networks]'")
    gt, models = tmp_path / "MIND-Data", tmp_path / "predictions"
    recording = gt / "1st_data/test/mem_test/data-25/video.mp4"
    prediction = models / "copy/1st_data/mem_test/data-25/video.mp4"
    actions(recording.with_name("action.json"), film("yaw:right:10@5")[1], 2, third=False)
    prediction.parent.mkdir(parents=True)
    rng = np.random.default_rng(2)
    tiles = rng.integers(0, 256, (6, 10, 20, 3)).repeat(9, axis=1).repeat(5, axis=2).astype(np.uint8)
    write_video(recording, list(tiles[:, :, :98]), "libx264", "yuv420p", options={"crf": "10"})
    write_video(prediction, list(tiles[2:, :88, :98]), "libx264", "yuv444p", options={"crf": "10"})
    results = scores(
        "mind", models / "copy", ("mind_lcm_psnr", "mind_lcm_ssim"), options={"gt": str(gt)},
        overrides={id: {"rule": "corrected"} for id in ("mind_lcm_psnr", "mind_lcm_ssim")},
    )  # fmt: skip
    with av.open(str(prediction)) as shown, av.open(str(recording)) as true:
        a = [as_mind(frame.to_rgb().to_ndarray()) for frame in shown.decode(video=0)]
        b = [as_mind(frame.to_rgb().to_ndarray()) for frame in true.decode(video=0)][2:]
    of_psnr, of_ssim = (by_frame(results, prediction, f"mind_lcm_{name}") for name in ("psnr", "ssim"))
    assert len(of_psnr) == len(a) == len(b) == 4
    assert of_psnr == pytest.approx([psnr(x, y, 1) for x, y in zip(a, b, strict=True)], abs=DB)
    assert of_ssim[[0, 3]] == pytest.approx([ssim(a[k], b[k], 1) for k in (0, 3)], abs=SHARE)
