"""DINO networks from their published formats, and the observers that ask them: random numbers, real architectures."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.later import later
from tests.tiny_networks import fill_by_name

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'revisit-bench[networks]'")
transformers = later("transformers", reason="transformers is not installed")
pytest.importorskip("safetensors", reason="safetensors is not installed")

from safetensors.torch import load_file, save_file  # noqa: E402
from torch.nn import functional  # noqa: E402

from revisit import weights  # noqa: E402
from revisit.core import OBSERVERS, Batch, Frame, MissingPrerequisite  # noqa: E402
from revisit.networks import dino, preprocessing, runtime  # noqa: E402
from revisit.suites.mbench.observers import returned_pairs  # noqa: E402
from revisit.suites.mind.observers import resize_pair_to_cover  # noqa: E402

WIDTH, LAYERS, HEADS = 128, 2, 2


@pytest.fixture(autouse=True)
def without_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def shaken(model: Any) -> Any:
    """A network whose every number matters: none of the zeros and ones that networks begin with."""
    generator = torch.Generator().manual_seed(0)
    for one in model.parameters():
        one.data = one.data + 0.1 * torch.randn(one.shape, generator=generator)
    return model.eval()


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of three small networks as transformers saves them."""
    root = tmp_path_factory.mktemp("published")
    sizes: dict[str, Any] = {"hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
    v2 = {**sizes, "image_size": 518, "patch_size": 14}
    models = {
        "dinov2-base": transformers.Dinov2Model(transformers.Dinov2Config(**v2)),
        "dinov2-registers": transformers.Dinov2WithRegistersModel(transformers.Dinov2WithRegistersConfig(**v2)),
        "dinov3-base": transformers.DINOv3ViTModel(
            transformers.DINOv3ViTConfig(**sizes, intermediate_size=256, num_register_tokens=4)
        ),
    }
    for name, model in models.items():
        shaken(model).save_pretrained(root / name)
    return root


@pytest.fixture
def here(published: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("REVISIT_WEIGHTS", str(published))
    monkeypatch.setenv("REVISIT_DEVICE", "cpu")
    runtime.forget_cached_networks()
    yield published
    runtime.forget_cached_networks()


def hub_names(state: dict[str, Any]) -> dict[str, Any]:
    """The state dict that Meta would publish, from one of transformers."""
    made = {}
    for name, value in state.items():
        if ".attention.attention." in name:
            continue
        parts = name.split(".")
        if parts[0] == "embeddings":
            short = {"position_embeddings": "pos_embed", "patch_embeddings": "patch_embed"}.get(parts[1], parts[1])
            made[".".join([short, *parts[2:]]).replace("projection", "proj")] = value
        elif parts[0] == "layernorm":
            made[f"norm.{parts[1]}"] = value
        else:
            rest = ".".join(parts[3:]).replace("attention.output.dense", "attn.proj")
            rest = rest.replace("layer_scale1.lambda1", "ls1.gamma").replace("layer_scale2.lambda1", "ls2.gamma")
            made[f"blocks.{parts[2]}.{rest}"] = value
    for layer in range(LAYERS):
        for kind in ("weight", "bias"):
            start = f"encoder.layer.{layer}.attention.attention"
            made[f"blocks.{layer}.attn.qkv.{kind}"] = torch.cat(
                [state[f"{start}.{part}.{kind}"] for part in ("query", "key", "value")]
            )
    return made


def by_hand(state: dict[str, Any], pixels: Any) -> Any:
    """All tokens of DINOv2, step by step from torch.hub's names, positions with torch.hub's offset."""
    rows, columns = pixels.shape[-2] // 14, pixels.shape[-1] // 14
    x = functional.conv2d(pixels, state["patch_embed.proj.weight"], state["patch_embed.proj.bias"], stride=14)
    x = torch.cat([state["cls_token"].expand(len(pixels), -1, -1), x.flatten(2).transpose(1, 2)], dim=1)
    side = math.isqrt(state["pos_embed"].shape[1] - 1)
    table = state["pos_embed"][:, 1:].reshape(1, side, side, -1).permute(0, 3, 1, 2)
    scale = ((rows + 0.1) / side, (columns + 0.1) / side)
    table = functional.interpolate(table, scale_factor=scale, mode="bicubic").permute(0, 2, 3, 1)
    x = x + torch.cat([state["pos_embed"][:, :1], table.reshape(1, rows * columns, -1)], dim=1)

    def normed(x: Any, name: str) -> Any:
        return functional.layer_norm(x, (WIDTH,), state[f"{name}.weight"], state[f"{name}.bias"], 1e-6)

    def linear(x: Any, name: str) -> Any:
        return x @ state[f"{name}.weight"].T + state[f"{name}.bias"]

    for layer in range(LAYERS):
        block = f"blocks.{layer}"
        q, k, v = linear(normed(x, f"{block}.norm1"), f"{block}.attn.qkv").chunk(3, dim=-1)
        heads = []
        for a, b, c in zip(*(part.split(64, dim=-1) for part in (q, k, v)), strict=True):
            heads.append((a @ b.transpose(1, 2) / 8).softmax(dim=-1) @ c)
        x = x + linear(torch.cat(heads, dim=-1), f"{block}.attn.proj") * state[f"{block}.ls1.gamma"]
        inside = functional.gelu(linear(normed(x, f"{block}.norm2"), f"{block}.mlp.fc1"))
        x = x + linear(inside, f"{block}.mlp.fc2") * state[f"{block}.ls2.gamma"]
    return normed(x, "norm")


def pixels(count: int, height: int, width: int) -> Any:
    return torch.randn(count, 3, height, width, generator=torch.Generator().manual_seed(1))


def test_every_format_of_dinov2_is_the_same_network(published: Path, tmp_path: Path) -> None:
    folder = published / "dinov2-base"
    state = load_file(folder / "model.safetensors")
    save_file(state, tmp_path / "alone.safetensors")
    torch.save(hub_names(state), tmp_path / "dinov2_vitb14_pretrain.pth")
    shown = pixels(2, 28, 56)
    files = folder / "model.safetensors", tmp_path / "alone.safetensors", tmp_path / "dinov2_vitb14_pretrain.pth"
    networks = [dino.build(file).eval() for file in files]
    whole, patches = networks[0](shown)
    assert whole.shape == (2, WIDTH) and patches.shape == (2, 8, WIDTH) and patches.dtype == torch.float32
    for other in networks[1:]:
        assert torch.equal(other(shown)[1], patches) and torch.equal(other(shown)[0], whole)


FORMER = {  # of Revisit's own ViT, which these networks had before: CLS token and last patch, four numbers each
    "dinov2": ((0.166168, -0.252024, -2.021947, -0.867133), (-0.142476, -0.208243, -1.258251, -0.380057)),
    "swiglu": ((-0.292005, 0.688111, 0.065886, 0.272418), (0.176340, -0.218411, 0.015820, -2.249317)),
    "registers": ((0.030878, -0.353294, -2.069109, -0.683113), (-0.048089, -0.378267, -1.239840, -0.398954)),
}


@pytest.mark.parametrize("name", FORMER)
def test_dinov2_gives_the_numbers_it_always_gave(tmp_path: Path, name: str) -> None:
    kind = "Dinov2WithRegisters" if name == "registers" else "Dinov2"
    config = getattr(transformers, f"{kind}Config")(
        hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, image_size=518, patch_size=14,
        use_swiglu_ffn=name == "swiglu",
    )  # fmt: skip
    getattr(transformers, f"{kind}Model")(config).save_pretrained(tmp_path / "folder")
    fill_by_name(tmp_path / "folder")
    alone = tmp_path / "alone.safetensors"
    alone.write_bytes((tmp_path / "folder" / "model.safetensors").read_bytes())
    for path in (tmp_path / "folder", alone):
        whole, patches = dino.build(path)(pixels(2, 56, 84))
        assert whole[0, :4].tolist() == pytest.approx(FORMER[name][0], abs=1e-5)
        assert patches[1, 23, :4].tolist() == pytest.approx(FORMER[name][1], abs=1e-5)


@pytest.mark.long
def test_modules_are_imported_without_what_takes_seconds_to_import() -> None:
    code = (
        "import sys; from revisit.networks import clip, depth_anything, dino, image_reward, siglip;"
        "print({'transformers', 'sympy', 'torch._dynamo'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_positions_as_torch_hub_resizes_them(published: Path) -> None:
    network = dino.build(published / "dinov2-base")
    state = hub_names(load_file(published / "dinov2-base" / "model.safetensors"))
    shown = pixels(2, 56, 84)
    whole, patches = network(shown, as_hub=True)
    expected = by_hand(state, shown)
    assert torch.allclose(torch.cat([whole[:, None], patches], dim=1), expected, atol=2e-5)
    assert not torch.allclose(network(shown)[1], patches, atol=1e-3)  # the offset shows
    table = network.model.embeddings.position_embeddings
    assert torch.equal(
        dino.resize_positions_as_torch_hub(table, 37, 37), table
    )  # at 518 pixels there is nothing to resize


@pytest.mark.parametrize(("name", "patch"), [("dinov2-registers", 14), ("dinov3-base", 16)])
def test_register_tokens_are_no_patches(published: Path, name: str, patch: int) -> None:
    network = dino.build(published / name / "model.safetensors")
    shown = pixels(2, 3 * patch, 5 * patch)
    theirs = transformers.AutoModel.from_pretrained(published / name)(pixel_values=shown).last_hidden_state
    whole, patches = network(shown, as_hub=True)
    assert theirs.shape[1] == 1 + 4 + 15 and patches.shape == (2, 15, WIDTH)
    assert torch.equal(patches, theirs[:, 5:]) and torch.equal(whole, theirs[:, 0])


def test_registers_of_torch_hub(published: Path, tmp_path: Path) -> None:
    folder = published / "dinov2-registers"
    torch.save(hub_names(load_file(folder / "model.safetensors")), tmp_path / "dinov2_vitb14_reg4_pretrain.pth")
    shown = pixels(1, 42, 42)
    ours = dino.build(tmp_path / "dinov2_vitb14_reg4_pretrain.pth")
    assert ours.prefix_tokens == 5
    assert torch.equal(ours(shown)[1], dino.build(folder)(shown)[1])


@pytest.mark.parametrize("name", ["dinov2-base", "dinov3-base"])
def test_a_picture_is_described_alike_in_any_company(published: Path, name: str) -> None:
    network = dino.build(published / name)
    shown = pixels(5, 112, 112)
    together = network(shown)[1]
    for row in range(5):
        assert torch.allclose(network(shown[row : row + 1])[1], together[row : row + 1], atol=1e-5)


def test_pictures_must_be_whole_patches(published: Path) -> None:
    with pytest.raises(ValueError, match="30 x 28 are not whole patches of 14"):
        dino.build(published / "dinov2-base")(pixels(1, 28, 30))


def test_a_file_of_another_network_is_refused_by_name(published: Path, tmp_path: Path) -> None:
    state = load_file(published / "dinov2-base" / "model.safetensors")
    lacking = {name: value for name, value in state.items() if "layer.1.norm1" not in name}
    other = {**state, "encoder.layer.0.mlp.fc2.weight": state["encoder.layer.0.mlp.fc2.weight"][:64].contiguous()}
    cases = {
        "lacks encoder.layer.1.norm1.bias": lacking,
        "has besides head.weight": {**state, "head.weight": torch.ones(3)},
        "has besides encoder.layer.x.norm1": {**state, "encoder.layer.x.norm1": torch.ones(3)},
        "has other shapes of encoder.layer.0.mlp.fc2.weight": other,
        "not a state dict of DINOv2": {"conv1.weight": torch.ones(3)},
    }
    for number, (said, tensors) in enumerate(cases.items()):
        path = tmp_path / f"{number}" / "model.safetensors"
        path.parent.mkdir()
        save_file(tensors, path)
        with pytest.raises(MissingPrerequisite, match=said) as caught:
            dino.build(path)
        assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", ["dinov2-base", "dinov3-base"])
def test_a_damaged_or_foreign_folder_is_refused(published: Path, tmp_path: Path, name: str) -> None:
    config = (published / name / "config.json").read_text()
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "config.json").write_text(config)
    with pytest.raises(MissingPrerequisite, match=r"no model\.safetensors"):
        dino.build(folder)
    whole = (published / name / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(MissingPrerequisite, match=r"broken.model\.safetensors: .*cannot be read"):
        dino.build(folder)
    (folder / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(MissingPrerequisite, match="its model_type is 'bert'; expected dinov2 or"):
        dino.build(folder)
    (folder / "config.json").write_text("[1")
    with pytest.raises(MissingPrerequisite, match="cannot be read as JSON"):
        dino.build(folder)


# --- observers ------------------------------------------------------------------------------------------------------


def photo(size: tuple[int, int], seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (size[0] // 8 + 1, size[1] // 8 + 1, 3)).repeat(8, axis=0).repeat(8, axis=1)
    return np.clip(coarse[: size[0], : size[1]] + rng.normal(0, 9, (*size, 3)), 0, 255).astype(np.uint8)


def batch(*shown: np.ndarray, reference: tuple[np.ndarray, ...] = ()) -> Batch:
    index = np.arange(len(shown))
    return Batch(index, index / 8, list(shown), list(reference), 100 + index[: len(reference)])


def test_identity_as_memobench_prepares_it(here: Path) -> None:
    Image = pytest.importorskip("PIL.Image")
    shown = photo((96, 171), 0)  # 256 x 456, so that the crop starts at (456 - 224) / 2
    seen = OBSERVERS["paper.identity"].fn(batch(shown), crop=True)
    assert seen.tokens.shape == (1, 256, WIDTH) and seen.tokens.dtype == np.float16 and seen.cropped
    picture = np.asarray(Image.fromarray(shown).resize((456, 256), Image.Resampling.BICUBIC))[16:240, 116:340]
    levels = torch.from_numpy(picture.copy()).permute(2, 0, 1)[None]
    state = hub_names(load_file(here / "dinov2-base" / "model.safetensors"))
    expected = preprocessing.unit_vectors(by_hand(state, preprocessing.normalise_by_channel(levels))[:, 1:])
    assert (torch.from_numpy(seen.tokens.astype(np.float32)) * expected).sum(dim=-1).min() > 0.9995


def test_identity_of_the_whole_field(here: Path) -> None:
    shown = [photo((96, 170), seed) for seed in range(3)]
    seen = OBSERVERS["paper.identity"].fn(batch(*shown))
    assert seen.tokens.shape == (3, 16 * 28, WIDTH) and seen.maker == "dinov2-base" and not seen.cropped
    assert np.abs(np.linalg.norm(seen.tokens.astype(float), axis=2) - 1).max() < 2e-3
    alone = OBSERVERS["paper.identity"].fn(batch(shown[1]))
    assert np.abs(alone.tokens[0].astype(float) - seen.tokens[1]).max() < 1e-3  # half floats
    chosen = OBSERVERS["paper.identity"].wanted_frame_numbers(40, 8.0, [(10, 20)], {"samples": 9, "crop": False})
    assert chosen.tolist() == [0, 20, 22, 24, 27, 29, 31, 34, 36, 39]


def test_integrity_counts_patches_that_are_picture(here: Path) -> None:
    seen = OBSERVERS["paper.integrity"].fn(batch(photo((60, 104), 0), photo((60, 104), 1)))
    assert seen.tokens.shape == (2, 19 * 32, WIDTH) and seen.whole.shape == (2, WIDTH)
    inside = seen.valid[0].reshape(19, 32)
    assert inside[1:-1].all() and not inside[0].any() and not inside[-1].any()  # 258 of 266 rows are picture
    wide = OBSERVERS["paper.integrity"].fn(batch(photo((90, 160), 0)))
    assert wide.valid.shape == (1, 18 * 32) and wide.valid.all()  # 16:9 needs no padding
    cropped = OBSERVERS["paper.integrity"].fn(batch(photo((60, 104), 0)), crop=True)
    assert cropped.tokens.shape == (1, 256, WIDTH) and cropped.valid.all() and cropped.cropped


def test_feature_error_of_mind(here: Path) -> None:
    pair = Frame(0, 0.0, photo((72, 128), 0), ""), Frame(0, 0.0, photo((36, 64), 1), "")
    shown, truth = resize_pair_to_cover(pair, rescaled_twice=False)
    assert shown.shape == truth.shape == (720, 1280, 3) and shown.dtype == np.uint8
    alike = pair[0], Frame(3, 0.0, photo((72, 128), 2), "")
    assert all(a is b.rgb for a, b in zip(resize_pair_to_cover(alike, rescaled_twice=False), alike, strict=True))
    shown, truth = pair[0].rgb, alike[1].rgb
    seen = OBSERVERS["paper.feature_error"].fn(batch(shown, shown, reference=(truth, truth)))
    assert seen.reference.tolist() == [100, 101] and seen.net == "dinov3-base"
    network = dino.network("dinov3-base")

    def described(picture: np.ndarray) -> Any:
        levels = torch.from_numpy(picture.copy()).permute(2, 0, 1)[None].float()
        large = functional.interpolate(levels, size=(720, 1280), mode="bilinear")
        small = functional.interpolate(large, size=(224, 224), mode="bilinear", antialias=True)
        return functional.normalize(network(preprocessing.normalise_by_channel(small))[1], dim=-1)

    cosines = (described(shown) * described(truth)).sum(dim=-1)
    assert np.allclose(seen.mse, float((2 - 2 * cosines).mean()) / WIDTH, rtol=1e-4)
    same = OBSERVERS["paper.feature_error"].fn(batch(shown, reference=(shown,)))
    assert same.mse[0] == 0
    dark = OBSERVERS["paper.feature_error"].fn(batch(shown, reference=(truth,)), rescaled_twice=True)
    assert 0 < dark.mse[0] < seen.mse[0] / 100 and "twice" in dark.net


@pytest.mark.slow
def test_gram_distances_of_vgg19(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REVISIT_WEIGHTS", str(tmp_path))
    runtime.forget_cached_networks()
    generator = torch.Generator().manual_seed(0)
    layout = [64, 64, "M", 128, 128, "M", 256, 256, 256, 256, "M", 512, 512, 512, 512, "M", 512, 512, 512, 512, "M"]
    state, inside, number = {"classifier.0.weight": torch.ones(2, 2)}, 3, 0
    for entry in layout:
        if isinstance(entry, int):
            shape = (entry, inside, 3, 3)
            state[f"features.{number}.weight"] = torch.randn(shape, generator=generator) * (2 / 9 / inside) ** 0.5
            state[f"features.{number}.bias"] = torch.randn(entry, generator=generator) * 0.1
            inside = entry
        number += 2 if isinstance(entry, int) else 1
    torch.save(state, tmp_path / "vgg19.pth")
    shown = [photo((64, 96), seed) for seed in range(2)]
    matrices = returned_pairs.gram_matrices_of_pictures("vgg19", shown)
    x, number, found = preprocessing.normalise_by_channel(torch.from_numpy(np.stack(shown)).permute(0, 3, 1, 2)), 0, []
    for position, entry in enumerate(layout[:-4]):
        if isinstance(entry, int):
            x = functional.conv2d(x, state[f"features.{number}.weight"], state[f"features.{number}.bias"], padding=1)
            x = x.relu()
            if position == 0 or layout[position - 1] == "M":
                maps = x.flatten(2)
                found.append(torch.einsum("bin,bjn->bij", maps, maps) / maps[0].numel())
            number += 2
        else:
            x, number = functional.max_pool2d(x, 2), number + 1
    assert len(matrices) == len(found) == 5
    for ours, expected in zip(matrices, found, strict=True):
        assert torch.allclose(ours, expected, rtol=1e-4, atol=1e-6)
    runtime.forget_cached_networks()


def test_missing_weights_are_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REVISIT_WEIGHTS", str(tmp_path))
    for observer in (OBSERVERS[f"paper.{name}"] for name in ("identity", "integrity", "feature_error", "grams")):
        said = weights.why_missing(observer.weights)
        assert said is not None and f"revisit weights pull {observer.weights[0]}" in said
    assert "accept the licence at https://huggingface.co/facebook/dinov3" in str(weights.why_missing(("dinov3-base",)))
