"""Networks of depth: FastDepth with its real weights, Depth Anything V2 in a small random configuration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revisit.core import Batch, MissingPrerequisite, Score
from revisit.suites.memobench.evidence import DepthMaps
from revisit.suites.memobench.metrics.geometry import geo3d_consistency, successive_depth_cosines
from revisit.suites.memobench.observers.depth import depth_anything as sizes
from revisit.suites.memobench.observers.depth import fast_depth as fast
from revisit.suites.memobench.observers.depth import resize_to_224, sampled_frames_of_both_phases
from tests.looking import as_frames
from tests.memo import RULES, case
from tests.memo import frames as facts_of
from tests.tiny_networks import fill_by_name

torch = pytest.importorskip("torch", reason="needs torch: pip install 'revisit-bench[networks]'")

from revisit.networks import compiled, depth_anything, runtime  # noqa: E402

anything = sizes[0]
SMALL = "depth-anything-v2-small"
SIZES = ((360, 640), (480, 640), (640, 360), (357, 640), (64, 64), (518, 518), (1080, 1920), (200, 900))


@pytest.fixture(autouse=True)
def own_networks() -> Any:
    """No network of another test's weights."""
    runtime.forget_cached_networks()
    yield
    runtime.forget_cached_networks()


@pytest.fixture
def random_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Depth Anything in the published format, its trunk 24 numbers wide, where users have theirs."""
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    torch.manual_seed(0)
    trunk = transformers.Dinov2Config(
        hidden_size=24, num_hidden_layers=4, num_attention_heads=2, image_size=518, patch_size=14,
        out_indices=[1, 2, 3, 4], apply_layernorm=True, reshape_hidden_states=False,
    )  # fmt: skip
    config = transformers.DepthAnythingConfig(
        backbone_config=trunk, reassemble_hidden_size=24, neck_hidden_sizes=[8, 8, 12, 12], fusion_hidden_size=8,
        head_hidden_size=4,
    )  # fmt: skip
    folder = tmp_path / "weights" / SMALL
    transformers.DepthAnythingForDepthEstimation(config).save_pretrained(folder)
    monkeypatch.setenv("REVISIT_WEIGHTS", str(tmp_path / "weights"))
    return folder


def pictures(count: int, size: tuple[int, int], seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 256, (*size, 3), dtype=np.uint8) for _ in range(count)]


def batch(rgb: list[np.ndarray]) -> Batch:
    index = np.arange(len(rgb))
    return Batch(index, index / 8.0, rgb)


def test_frames_that_stand_for_a_phase_serve_every_rule() -> None:
    assert sampled_frames_of_both_phases(81, 16.0, (25, 55)).tolist() == [0, 12, 24, 25, 55, 67, 80]
    chosen = sampled_frames_of_both_phases(40, 16.0, (13, 25))
    seen = DepthMaps(chosen, np.random.default_rng(0).random((len(chosen), 4, 6)), inverse=True, maker="random")
    for rule in RULES:
        assert isinstance(geo3d_consistency(case((13, 25)), facts_of(), seen, rule=rule), Score), rule


@pytest.mark.parametrize("size", SIZES)
def test_depth_anything_sees_what_the_published_processor_makes(size: tuple[int, int]) -> None:
    module = pytest.importorskip("transformers.models.dpt.image_processing_pil_dpt", reason="needs transformers' Pil")
    processor = module.DPTImageProcessorPil(
        size={"height": 518, "width": 518}, keep_aspect_ratio=True, ensure_multiple_of=14, resample=3,
        image_mean=[0.485, 0.456, 0.406], image_std=[0.229, 0.224, 0.225],
    )  # fmt: skip
    (rgb,) = pictures(1, size)
    theirs = np.asarray(processor(rgb, return_tensors="np")["pixel_values"])
    ours = depth_anything.preprocess(runtime.channels_first_on_device([rgb])).numpy()
    assert ours.shape == theirs.shape
    off = np.abs(ours - theirs) * 255 * 0.225  # levels
    assert off.max() <= 1.2 and off.mean() < 0.01  # one level where two roundings fall on either side of a half


def test_depth_anything_from_a_folder_is_independent_of_its_batch(random_weights: Path) -> None:
    rgb = pictures(3, (36, 64))
    together: DepthMaps = anything.fn(batch(rgb))
    assert together.depth.shape == (3, 294, 518) and together.inverse and together.maker == SMALL
    alone: DepthMaps = anything.fn(batch(rgb[1:2]))
    assert together.depth.dtype == np.float32
    np.testing.assert_allclose(together.depth[1], alone.depth[0], rtol=1e-4, atol=1e-7)
    assert successive_depth_cosines(together.depth).shape == (2,)


FORMER = {  # of Revisit's own DPT, which this network had before: four numbers of the middle row, and the mean
    (294, 518): ((0.038298, 0.039932, 0.040497, 0.041947), 0.041717),
    (518, 518): ((0.038967, 0.041455, 0.041953, 0.042619), 0.041661),
    (322, 126): ((0.039563, 0.041310, 0.041441, 0.042397), 0.041741),
}


@pytest.mark.parametrize("size", FORMER)
def test_depth_anything_gives_the_numbers_it_always_gave(random_weights: Path, size: tuple[int, int]) -> None:
    fill_by_name(random_weights)
    config = random_weights / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "max_depth": None}))  # as published
    pixels = np.random.RandomState(1).standard_normal((2, 3, *size)).astype(np.float32)
    with torch.inference_mode():
        maps = depth_anything.build(random_weights / "model.safetensors").inverse_depth_of_preprocessed(
            torch.from_numpy(pixels)
        )
    assert maps.shape == (2, *size)
    assert maps[1, size[0] // 2, :4].tolist() == pytest.approx(FORMER[size][0], abs=2e-6)
    assert float(maps.mean()) == pytest.approx(FORMER[size][1], abs=2e-6)


def test_a_network_of_metres_is_refused(random_weights: Path) -> None:
    config = random_weights / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "depth_estimation_type": "metric"}))
    with pytest.raises(MissingPrerequisite, match="tells depth in metres"):
        anything.fn(batch(pictures(1, (36, 64))))


def test_a_folder_of_another_network_is_refused_by_name(random_weights: Path) -> None:
    config = random_weights / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "model_type": "dinov2"}))
    with pytest.raises(MissingPrerequisite, match="model_type is 'dinov2'; expected depth_anything"):
        anything.fn(batch(pictures(1, (36, 64))))


def test_fastdepth_agrees_with_stereo_ground_truth(small_weights: Path) -> None:
    """Middlebury's motorcycle: near is near. Rank correlation .775 was measured before, with another resize."""
    data = pytest.importorskip("skimage.data", reason="needs scikit-image for its stereo pair")
    stats = pytest.importorskip("scipy.stats", reason="needs scipy")
    import cv2

    left, _, disparity = data.stereo_motorcycle()
    (frame,) = as_frames([left])
    seen: DepthMaps = fast.fn(batch([resize_to_224(frame)]))
    assert seen.depth.shape == (1, 224, 224) and seen.depth.dtype == np.float32 and not seen.inverse
    depth = cv2.resize(seen.depth[0], disparity.shape[::-1])
    known = np.isfinite(disparity)
    assert stats.spearmanr(1 / depth[known], disparity[known]).statistic == pytest.approx(0.775, abs=0.02)


def test_likeness_of_depth_falls_as_a_picture_is_blurred(small_weights: Path) -> None:
    data = pytest.importorskip("skimage.data", reason="needs scikit-image for its pictures")
    import cv2

    left = data.stereo_motorcycle()[0]
    blurred = [cv2.GaussianBlur(left, (0, 0), sigma) for sigma in (2, 8, 32)]
    shown = [left, left, *blurred, data.astronaut()]
    maps = fast.fn(batch([resize_to_224(frame) for frame in as_frames(shown)])).depth
    alike = [float(successive_depth_cosines(np.stack([maps[0], other]))[0]) for other in maps[1:]]
    assert alike[0] == pytest.approx(1, abs=1e-9)
    *graded, elsewhere = alike
    assert graded == sorted(graded, reverse=True) and graded[1] > 0.95 and elsewhere < 0.85, alike


def test_fastdepth_is_independent_of_its_batch(small_weights: Path) -> None:
    rgb = pictures(2, (224, 224))
    together, alone = fast.fn(batch(rgb)), fast.fn(batch(rgb[1:]))
    assert np.array_equal(together.depth[1:], alone.depth)
    assert together.depth.min() >= 0


def test_fastdepth_says_so_when_the_file_is_another_network(
    small_weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from revisit import weights
    from revisit.networks import fastdepth

    monkeypatch.setattr(weights, "file", lambda id: small_weights / "sface" / "sface.onnx")
    with pytest.raises(MissingPrerequisite, match=r"sface\.onnx: this is a different network"):
        fastdepth.depth_maps(pictures(1, (224, 224)))


@pytest.mark.parametrize("size", [(70, 112), (98, 84)])
def test_maps_of_compiled_code_are_those_of_transformers(
    random_weights: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    fill_by_name(random_weights)
    network = depth_anything.build(random_weights / "model.safetensors").eval()
    pixels = torch.randn(2, 3, *size, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        expected = network.inverse_depth_of_preprocessed(pixels)
    assert expected.std() > 0.01 * expected.mean() > 0, "maps that say something"
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    with torch.inference_mode():
        assert torch.allclose(
            network.inverse_depth_of_preprocessed(pixels), expected, rtol=1e-4, atol=1e-5 * float(expected.max())
        )


def test_a_head_that_reads_another_map_runs_as_transformers_has_it(
    random_weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = depth_anything.build(random_weights / "model.safetensors").eval()
    network.model.config.head_in_index = network.model.head.head_in_index = -2
    network = depth_anything.DepthAnything(network.model)
    pixels = torch.randn(1, 3, 70, 112, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        expected = network.inverse_depth_of_preprocessed(pixels)
        monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
        assert torch.allclose(network.inverse_depth_of_preprocessed(pixels), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.long
def test_compiled_depth_is_that_of_the_network(random_weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_by_name(random_weights)
    monkeypatch.setattr(compiled, "_compiler", None)
    monkeypatch.setattr(compiled, "BACKEND", "aot_eager")
    shown = torch.randint(0, 256, (2, 3, 60, 90), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    expected = depth_anything.inverse_depth(SMALL, shown)
    compiled.enable_compilation(2, full_batches_before=1)
    depths = [depth_anything.inverse_depth(SMALL, shown) for _ in range(3)]
    assert compiled._compiler is not None and compiled._compiler.made
    for one in depths:
        assert torch.allclose(one, expected, rtol=1e-3, atol=1e-4 * float(expected.max()))
