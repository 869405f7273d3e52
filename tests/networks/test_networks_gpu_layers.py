"""Layers as compiled networks have them: the same numbers as torch's own, whatever the sizes."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'revisit-bench[networks]'")

from torch import nn  # noqa: E402

from revisit.networks import dino, gpu_layers, lpips  # noqa: E402

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))]


@pytest.fixture
def compiling(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Layers take the form that a compiler would see."""

    def switch() -> None:
        monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)

    return switch


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (lambda: nn.Conv2d(3, 10, 14, 14), (2, 3, 45, 59)),  # pixels are left over
        (lambda: nn.Conv2d(3, 10, (4, 6), (4, 6), bias=False), (2, 3, 8, 12)),
        (lambda: nn.Conv2d(7, 5, 1), (1, 7, 3, 4)),
        (lambda: nn.Conv2d(7, 1, 1), (2, 7, 5, 6)),
        (lambda: nn.ConvTranspose2d(6, 5, 4, 4), (2, 6, 3, 5)),
        (lambda: nn.ConvTranspose2d(6, 5, (2, 3), (2, 3), bias=False), (2, 6, 3, 5)),
    ],
)
@torch.inference_mode()
def test_layers_without_overlap_are_matrix_products(layer, shape, compiling):
    torch.manual_seed(0)
    network = nn.Sequential(layer())
    pictures = torch.randn(shape)
    expected = network(pictures)
    names = list(network.state_dict())
    gpu_layers.use_compiled_layers(network)
    assert type(network[0]).__name__.startswith("Patch") and list(network.state_dict()) == names
    assert torch.equal(network(pictures), expected), "code that is not compiled stays as it is"
    compiling()
    assert torch.allclose(network(pictures), expected, atol=1e-5)


@pytest.mark.parametrize(
    "layer",
    [
        lambda: nn.Conv2d(3, 4, 3, 2),
        lambda: nn.Conv2d(3, 4, 2, 2, padding=1),
        lambda: nn.Conv2d(4, 4, 2, 2, groups=2),
        lambda: nn.Conv2d(3, 4, 2, 2, dilation=2),
        lambda: nn.ConvTranspose2d(3, 4, 3, 2),
        lambda: nn.ConvTranspose2d(3, 4, 2, 2, output_padding=1),
    ],
)
def test_other_layers_stay(layer):
    network = nn.Sequential(layer())
    kind = type(network[0])
    gpu_layers.use_compiled_layers(network)
    assert type(network[0]) is kind


@pytest.mark.parametrize("size", [(64, 64), (67, 93), (90, 101), (369, 640)])
@torch.inference_mode()
def test_a_convolution_with_a_stride_goes_over_tiles(size):
    torch.manual_seed(0)
    conv = nn.Conv2d(3, 8, 11, 4, 2)
    pictures = torch.randn(2, 3, *size)
    assert torch.allclose(lpips.strided_conv_as_unstrided(conv, pictures, 4, 2), conv(pictures), atol=1e-5)


@torch.inference_mode()
def test_lpips_is_the_same_in_compiled_code(compiling):
    torch.manual_seed(0)
    network = lpips.Lpips(lpips.ALEX).eval()
    pictures = torch.randint(0, 256, (2, 3, 75, 131)).float()
    expected = network._distances_of_pairs(pictures, pictures.flip(2))
    compiling()
    assert torch.allclose(network._distances_of_pairs(pictures, pictures.flip(2)), expected, rtol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("registers", [0, 4])
@torch.inference_mode()
def test_dinov2_is_the_same_in_compiled_code(device, registers, compiling):
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    torch.manual_seed(0)
    kind = "Dinov2WithRegisters" if registers else "Dinov2"
    settings = {"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 3, "image_size": 42, "patch_size": 14}
    settings |= {"num_register_tokens": registers} if registers else {}
    model = getattr(transformers, f"{kind}Model")(getattr(transformers, f"{kind}Config")(**settings)).eval().to(device)
    for parameter in model.parameters():
        parameter.uniform_(-0.3, 0.3)
    pictures = torch.randn(3, 3, 42, 42, device=device)
    expected = model(pixel_values=pictures).last_hidden_state
    names = list(model.state_dict())
    network = dino.Dino(model)
    assert list(model.state_dict()) == names
    assert torch.equal(network._normalised_tokens(pictures), expected), "as it is, unless it is compiled"
    compiling()
    # GELU of a GPU's matrix product is that by the hyperbolic tangent, which is up to 5e-4 from the exact one.
    assert torch.allclose(network._normalised_tokens(pictures), expected, atol=2e-3)
    if device == "cuda":
        with torch.autocast(device, dtype=torch.float16):
            half = network._normalised_tokens(pictures)
        assert torch.allclose(half.float(), expected, atol=2e-2)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_a_residual_is_added_and_normalised(device, dtype):
    torch.manual_seed(0)
    residual, branch = (torch.randn(5, 7, 40, device=device) for _ in range(2))
    scale, weight, bias = (torch.randn(40, device=device) for _ in range(3))
    branch = branch.to(dtype)
    total, normal = gpu_layers.add_and_normalise(residual, branch, scale, weight, bias, 1e-6)
    expected = residual.double() + scale.double() * branch.double()
    assert total.dtype == torch.float32 and torch.allclose(total.double(), expected, atol=1e-6)
    deviation = (expected.var(-1, unbiased=False, keepdim=True) + 1e-6).sqrt()
    expected = (expected - expected.mean(-1, keepdim=True)) / deviation * weight + bias
    assert normal.dtype == dtype
    assert torch.allclose(normal.double(), expected, atol=1e-5 if dtype == torch.float32 else 5e-3)
