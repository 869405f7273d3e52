"""Pictures for networks, against PIL, OpenCV and the processors of transformers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'revisit-bench[networks]'")
Image = pytest.importorskip("PIL.Image", reason="Pillow is what resizing is checked against")

from revisit.networks import preprocessing  # noqa: E402
from revisit.observers.fidelity import resize_to_cover_and_crop  # noqa: E402

SIZES = [((480, 832), (256, 443)), ((90, 64), (224, 159)), ((37, 61), (14, 28)), ((360, 640), (224, 224))]


def photo(size: tuple[int, int], seed: int = 0) -> np.ndarray:
    """A picture with smooth parts, noise and hard edges."""
    rng = np.random.default_rng(seed)
    height, width = size
    y, x = np.mgrid[:height, :width]
    waves = 127 + 100 * np.sin(x / 9 + seed)[..., None] * np.cos(y[..., None] / np.array([5.0, 11.0, 17.0]))
    noisy = waves + rng.normal(0, 20, (height, width, 3))
    noisy[height // 3 : height // 2, width // 4 : width // 2] = (255, 0, 255)
    return np.clip(noisy, 0, 255).astype(np.uint8)


def tensor(*shown: np.ndarray) -> Any:
    return torch.from_numpy(np.stack(shown)).permute(0, 3, 1, 2)


def array(levels: Any) -> np.ndarray:
    return np.asarray(levels[0].permute(1, 2, 0).numpy())


@pytest.mark.parametrize("method", ["bicubic", "bilinear"])
@pytest.mark.parametrize(("size", "wanted"), SIZES)
def test_resized_is_what_pil_makes_but_for_single_levels(size: Any, wanted: Any, method: Any) -> None:
    shown = photo(size)
    kind = {"bicubic": Image.Resampling.BICUBIC, "bilinear": Image.Resampling.BILINEAR}[method]
    theirs = np.asarray(Image.fromarray(shown).resize(wanted[::-1], kind), dtype=float)
    ours = array(preprocessing.resize_levels(tensor(shown), wanted, method))
    assert ours.dtype == np.float32 and (ours == ours.round()).all()
    assert np.abs(ours - theirs).max() <= 1
    assert (ours != theirs).mean() < 0.02  # where a half is rounded the other way


def test_exact_levels_are_not_rounded() -> None:
    shown = photo((90, 160))
    ours = array(preprocessing.resize_levels(tensor(shown), (56, 56), "bilinear", unrounded=True))
    for channel in range(3):
        single = Image.fromarray(shown[..., channel].astype(np.float32))
        theirs = np.asarray(single.resize((56, 56), Image.Resampling.BILINEAR))
        assert np.abs(ours[..., channel] - theirs).max() < 1e-3


def test_pictures_of_a_batch_do_not_mix() -> None:
    shown = [photo((60, 100), seed) for seed in range(3)]
    together = preprocessing.resize_levels(tensor(*shown), (28, 42))
    for row, one in enumerate(shown):
        assert torch.equal(together[row : row + 1], preprocessing.resize_levels(tensor(one), (28, 42)))


def test_the_same_size_costs_nothing() -> None:
    shown = tensor(photo((30, 40)))
    assert torch.equal(preprocessing.resize_levels(shown, (30, 40)), shown.float())


def test_sizes() -> None:
    transforms = pytest.importorskip("transformers.image_transforms", reason="transformers is not installed")
    for height, width in [(480, 832), (720, 1280), (832, 480), (333, 1001), (224, 224), (1080, 1919)]:
        blank = np.zeros((height, width, 3), np.uint8)
        theirs = transforms.get_resize_output_image_size(blank, 256, default_to_square=False)
        assert preprocessing.size_with_short_side((height, width), 256) == tuple(theirs)
    assert preprocessing.size_with_long_side((480, 832), 448) == (258, 448)
    assert preprocessing.size_with_long_side((1280, 720), 448) == (448, 252)
    assert preprocessing.nearest_size_of_multiples((224, 398), 14) == (224, 392)
    assert preprocessing.nearest_size_of_multiples((5, 7), 14) == (14, 14)


@pytest.mark.parametrize(
    ("size", "before", "even"), [((224, 455), 115, 116), ((224, 457), 116, 116), ((224, 459), 117, 118)]
)
def test_the_odd_pixel_of_a_crop(size: tuple[int, int], before: int, even: int) -> None:
    columns = torch.arange(size[1]).expand(1, 3, *size)
    assert preprocessing.centre_crop(columns, (224, 224))[0, 0, 0, 0] == before
    assert preprocessing.centre_crop(columns, (224, 224), odd="even")[0, 0, 0, 0] == even == round((size[1] - 224) / 2)


@pytest.mark.parametrize("size", [(480, 832), (333, 500)])
def test_the_processor_of_dinov2(size: tuple[int, int]) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    shown = photo(size)
    kind = getattr(transformers, "BitImageProcessorPil", None) or transformers.BitImageProcessor
    processor = kind(
        size={"shortest_edge": 256}, crop_size={"height": 224, "width": 224}, image_mean=preprocessing.IMAGENET_MEAN,
        image_std=preprocessing.IMAGENET_STD, resample=3,
    )  # fmt: skip
    theirs = processor(Image.fromarray(shown), return_tensors="pt")["pixel_values"]
    smaller = preprocessing.resize_levels(tensor(shown), preprocessing.size_with_short_side(size, 256))
    ours = preprocessing.normalise_by_channel(preprocessing.centre_crop(smaller, (224, 224)))
    assert (ours - theirs).abs().max() < 1.01 / 255 / min(preprocessing.IMAGENET_STD)
    assert (ours - theirs).abs().mean() < 1e-3


def test_covering_is_that_of_the_pixel_metrics() -> None:
    for size in ((90, 160), (48, 83), (150, 100)):
        shown = photo(size)
        ours = array(preprocessing.resize_to_cover_and_crop(tensor(shown), (72, 128)))
        assert np.abs(ours - resize_to_cover_and_crop(shown, 128, 72)).max() < 0.01


@pytest.mark.parametrize("size", [(768, 1360), (384, 672), (720, 1280), (480, 853), (1080, 1920), (767, 601)])
def test_covering_is_cut_out_as_torchvision_does(size: tuple[int, int]) -> None:
    """MIND's pictures for MUSIQ, CLIP and DINO; `top` and `left` are those of torchvision's center_crop."""
    shown = tensor(photo(size)).float()
    scale = max(1280 / size[1], 720 / size[0])
    scaled = torch.nn.functional.interpolate(
        shown, size=(round(size[0] * scale), round(size[1] * scale)), mode="bilinear", antialias=False
    )
    top, left = (round((have - want) / 2.0) for have, want in zip(scaled.shape[-2:], (720, 1280), strict=True))
    wanted = scaled[..., top : top + 720, left : left + 1280]
    assert torch.equal(preprocessing.resize_to_cover_and_crop(shown, (720, 1280)), wanted)


def test_padding_to_whole_patches() -> None:
    shown = torch.full((2, 3, 30, 28), 7.0)
    padded, inside = preprocessing.pad_to_whole_patches(shown, 14, fill=-1)
    assert padded.shape == (2, 3, 42, 28)
    assert (padded[:, :, 6:36] == 7).all() and (padded[:, :, :6] == -1).all() and (padded[:, :, 36:] == -1).all()
    assert inside.tolist() == [[False, False], [True, True], [False, False]]
    assert preprocessing.pad_to_whole_patches(torch.zeros(1, 3, 28, 42), 14)[1].all()


def test_normalised_and_unit_are_float32() -> None:
    levels = tensor(photo((8, 8)))
    made = preprocessing.normalise_by_channel(levels)
    mean, std = np.array(preprocessing.IMAGENET_MEAN), np.array(preprocessing.IMAGENET_STD)
    assert made.dtype == torch.float32
    assert np.allclose(array(made), (array(levels) / 255.0 - mean) / std, atol=1e-6)
    vectors = preprocessing.unit_vectors(torch.randn(4, 9).half())
    assert vectors.dtype == torch.float32 and torch.allclose(vectors.norm(dim=1), torch.ones(4), atol=1e-6)
