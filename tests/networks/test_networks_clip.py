"""CLIP and SigLIP from their published formats, and the observer of captions: random numbers, real architectures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.later import later

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'revisit-bench[networks]'")
transformers = later("transformers", reason="transformers is not installed")
tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
pytest.importorskip("safetensors", reason="safetensors is not installed")

from safetensors.torch import save_file  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from revisit.core import OBSERVERS, MissingPrerequisite  # noqa: E402
from revisit.networks import clip, preprocessing, runtime, siglip  # noqa: E402
from revisit.networks.tokenizing import Captions, read_clip_captions, read_siglip_captions  # noqa: E402

WIDTH, TEXT_WIDTH, SIZE, LAYERS, PATCH = 128, 64, 32, 2, 32
MERGES = [
    "t h",
    "th e</w>",
    "r e",
    "re d</w>",
    "c u",
    "cu p</w>",
    "o n</w>",
    "a n",
    "an d</w>",
    "t a",
    "b l",
    "bl e</w>",
]


@pytest.fixture(autouse=True)
def without_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


# --- CLIP under its first names, as OpenAI's own code computes it ---------------------------------------------------


def vocabulary() -> dict[str, int]:
    """CLIP's vocabulary with twelve merges: bytes, bytes that end a word, merges, both ends."""
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    words = [*letters, *(f"{one}</w>" for one in letters), *(pair.replace(" ", "") for pair in MERGES)]
    return {word: number for number, word in enumerate([*words, "<|startoftext|>", "<|endoftext|>"])}


def open_clip_state(seed: int = 0) -> dict[str, Any]:
    """A small CLIP under the names of OpenAI and OpenCLIP."""
    generator = torch.Generator().manual_seed(seed)

    def noise(*shape: int, scale: float = 0.2, around: float = 0.0) -> Any:
        return around + scale * torch.randn(shape, generator=generator)

    made = {
        "visual.class_embedding": noise(WIDTH),
        "visual.positional_embedding": noise(50, WIDTH),
        "visual.proj": noise(WIDTH, SIZE),
        "visual.conv1.weight": noise(WIDTH, 3, PATCH, PATCH, scale=0.02),
        "positional_embedding": noise(77, TEXT_WIDTH),
        "token_embedding.weight": noise(len(vocabulary()), TEXT_WIDTH),
        "text_projection": noise(TEXT_WIDTH, SIZE),
        "logit_scale": torch.tensor(4.6),
    }
    norms = {"visual.ln_pre": WIDTH, "visual.ln_post": WIDTH, "ln_final": TEXT_WIDTH}
    for side, wide in (("visual.", WIDTH), ("", TEXT_WIDTH)):
        for layer in range(LAYERS):
            block = f"{side}transformer.resblocks.{layer}"
            norms |= {f"{block}.ln_1": wide, f"{block}.ln_2": wide}
            for name, shape in {
                "attn.in_proj_weight": (3 * wide, wide),
                "attn.in_proj_bias": (3 * wide,),
                "attn.out_proj.weight": (wide, wide),
                "attn.out_proj.bias": (wide,),
                "mlp.c_fc.weight": (4 * wide, wide),
                "mlp.c_fc.bias": (4 * wide,),
                "mlp.c_proj.weight": (wide, 4 * wide),
                "mlp.c_proj.bias": (wide,),
            }.items():
                made[f"{block}.{name}"] = noise(*shape)
    for name, wide in norms.items():
        made |= {f"{name}.weight": noise(wide, around=1.0), f"{name}.bias": noise(wide)}
    return made


def blocks(state: dict[str, Any], side: str, x: Any, quick: bool, mask: Any = None) -> Any:
    """The transformer of one side, with torch's own attention, which these names come from."""
    wide = x.shape[-1]
    for layer in range(LAYERS):
        own = {
            name.removeprefix(f"{side}transformer.resblocks.{layer}."): value
            for name, value in state.items()
            if name.startswith(f"{side}transformer.resblocks.{layer}.")
        }
        attention = nn.MultiheadAttention(wide, wide // 64, batch_first=True).eval()
        attention.load_state_dict({k.removeprefix("attn."): v for k, v in own.items() if k.startswith("attn.")})
        y = functional.layer_norm(x, (wide,), own["ln_1.weight"], own["ln_1.bias"])
        x = x + attention(y, y, y, need_weights=False, attn_mask=mask)[0]
        y = functional.layer_norm(x, (wide,), own["ln_2.weight"], own["ln_2.bias"])
        y = functional.linear(y, own["mlp.c_fc.weight"], own["mlp.c_fc.bias"])
        y = y * torch.sigmoid(1.702 * y) if quick else functional.gelu(y)
        x = x + functional.linear(y, own["mlp.c_proj.weight"], own["mlp.c_proj.bias"])
    return x


def image_vectors(state: dict[str, Any], pixels: Any, quick: bool) -> Any:
    x = functional.conv2d(pixels, state["visual.conv1.weight"], stride=PATCH).flatten(2).transpose(1, 2)
    x = torch.cat([state["visual.class_embedding"].expand(len(x), 1, -1), x], dim=1)
    x = x + state["visual.positional_embedding"]
    x = functional.layer_norm(x, (WIDTH,), state["visual.ln_pre.weight"], state["visual.ln_pre.bias"])
    x = blocks(state, "visual.", x, quick)[:, 0]
    return (
        functional.layer_norm(x, (WIDTH,), state["visual.ln_post.weight"], state["visual.ln_post.bias"])
        @ (state["visual.proj"])
    )


def text_vectors(state: dict[str, Any], ids: list[int], quick: bool) -> Any:
    padded = torch.tensor([ids + [0] * (77 - len(ids))])
    x = state["token_embedding.weight"][padded] + state["positional_embedding"]
    mask = torch.full((77, 77), float("-inf")).triu(1)
    x = blocks(state, "", x, quick, mask)
    x = functional.layer_norm(x, (TEXT_WIDTH,), state["ln_final.weight"], state["ln_final.bias"])
    return x[:, padded[0].argmax()] @ state["text_projection"]  # the end has the highest number


@pytest.fixture(scope="module")
def state() -> dict[str, Any]:
    return open_clip_state()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of weights, with the vocabulary of all CLIPs in it."""
    monkeypatch.setenv("REVISIT_WEIGHTS", str(tmp_path))
    monkeypatch.setenv("REVISIT_DEVICE", "cpu")
    folder = tmp_path / "clip-vocabulary"
    folder.mkdir()
    write_vocabulary(folder)
    runtime.forget_cached_networks()
    yield tmp_path
    runtime.forget_cached_networks()


def write_vocabulary(folder: Path) -> None:
    (folder / "vocab.json").write_text(json.dumps(vocabulary()))
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *MERGES]) + "\n")
    transformers.CLIPTokenizer.from_pretrained(folder).save_pretrained(folder)
    assert (folder / "tokenizer.json").is_file()


def photos(count: int, size: tuple[int, int] = (48, 83)) -> Any:
    return torch.randint(0, 256, (count, 3, *size), dtype=torch.uint8, generator=torch.Generator().manual_seed(3))


def pil_processor(name: str, **settings: Any) -> Any:
    """The processor of transformers that works with Pillow; the only one in its first versions of 5."""
    kind = getattr(transformers, f"{name}ImageProcessorPil", None) or getattr(transformers, f"{name}ImageProcessor")
    return kind(**settings)


def cosines(a: Any, b: Any) -> Any:
    return functional.cosine_similarity(a, b, dim=-1)


@pytest.mark.parametrize(
    ("id", "quick"),
    [("clip-vit-b-32-openai", True), ("clip-vit-l-14-openai", True), ("clip-vit-b-32-laion2b", False)],
)
def test_each_weights_have_the_activation_they_were_trained_with(
    root: Path, state: dict[str, Any], id: str, quick: bool
) -> None:
    save_file(state, root / f"{id}.safetensors")
    network = clip.network(id)
    shown = photos(2)
    ours = network.images(shown)
    pixels = network.prepared(shown)
    right, wrong = (functional.normalize(image_vectors(state, pixels, kind), dim=-1) for kind in (quick, not quick))
    assert ours.shape == (2, SIZE) and ours.dtype == torch.float32
    assert torch.allclose(ours, right, atol=1e-5)
    assert (ours - wrong).abs().max() > 1e-3  # the trap is one: the other activation gives other vectors
    ids = read_clip_captions(root / "clip-vocabulary", 77).split_into_token_lists("the red cup")[0]
    made, cut = network.texts(["the red cup", "the table"])
    expected = functional.normalize(text_vectors(state, ids, quick), dim=-1)
    assert torch.allclose(made[:1], expected, atol=1e-5) and not cut
    assert not torch.allclose(made[:1], functional.normalize(text_vectors(state, ids, not quick), dim=-1), atol=1e-3)


@pytest.mark.filterwarnings("ignore:.torch.jit")
def test_every_format_is_the_same_network(root: Path, state: dict[str, Any]) -> None:
    id = "clip-vit-b-32-openai"
    shown = photos(2)
    folders = {name: root / name for name in ("open", "pickle", "script", "halves", "hf")}
    for folder in folders.values():
        folder.mkdir()
    save_file(state, folders["open"] / "open_clip_model.safetensors")
    torch.save(state, folders["pickle"] / "open_clip_pytorch_model.bin")
    save_as_torchscript(state, folders["script"] / "ViT-B-32.pt")
    save_file({name: value.half() for name, value in state.items()}, folders["halves"] / "model.safetensors")
    files = [next(folders[name].iterdir()) for name in ("open", "pickle", "script", "halves")]
    networks = [clip.build(file, id) for file in files]
    save_as_transformers(state, folders["hf"])
    networks.append(clip.build(folders["hf"] / "model.safetensors", id))
    expected = networks[0].images(shown)
    for network, exact in zip(networks, (True, True, True, False, True), strict=True):
        assert network.model.visual_projection.weight.dtype == torch.float32
        assert torch.allclose(network.images(shown), expected, atol=1e-6 if exact else 1e-2)


def save_as_transformers(state: dict[str, Any], folder: Path) -> None:
    """Saves the network of transformers with these numbers."""
    side = {"num_hidden_layers": LAYERS, "projection_dim": SIZE, "hidden_act": "quick_gelu"}
    config = transformers.CLIPConfig(
        projection_dim=SIZE,
        vision_config={
            **side, "hidden_size": WIDTH, "intermediate_size": 4 * WIDTH, "num_attention_heads": WIDTH // 64,
            "patch_size": PATCH, "image_size": 224,
        },
        text_config={
            **side, "hidden_size": TEXT_WIDTH, "intermediate_size": 4 * TEXT_WIDTH,
            "num_attention_heads": TEXT_WIDTH // 64, "vocab_size": len(vocabulary()), "max_position_embeddings": 77,
        },
    )  # fmt: skip
    model = transformers.CLIPModel(config).eval()
    lacking = model.load_state_dict(clip.rename_tensors_for_transformers(state), strict=False)
    assert not lacking.unexpected_keys and all(name.endswith("position_ids") for name in lacking.missing_keys)
    model.save_pretrained(folder)


def save_as_torchscript(state: dict[str, Any], path: Path) -> None:
    """An archive as OpenAI publishes them: halves, sizes among the tensors, and code."""

    class Part(nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return x

    whole = Part()
    for name, value in state.items():
        *parents, last = name.split(".")
        at: nn.Module = whole
        for parent in parents:
            if parent not in dict(at.named_children()):
                at.add_module(parent, Part())
            at = dict(at.named_children())[parent]
        at.register_parameter(last, nn.Parameter(value, requires_grad=False))
    whole.register_buffer("input_resolution", torch.tensor(224))
    torch.jit.trace(whole, torch.zeros(1)).save(str(path))


def activation(network: clip.ClipNetwork) -> Any:
    config = network.model.config
    assert config.text_config.hidden_act == config.vision_config.hidden_act
    return config.vision_config.hidden_act


def test_settings_of_other_weights_are_refused(root: Path, state: dict[str, Any]) -> None:
    path = root / "mine" / "model.safetensors"
    path.parent.mkdir()
    save_file(state, path)
    with pytest.raises(MissingPrerequisite, match="nothing tells whether my-clip was trained with QuickGELU or GELU"):
        clip.build(path, "my-clip")
    settings = path.with_name("open_clip_config.json")
    settings.write_text('{"model_cfg": {"quick_gelu": true}}')
    assert activation(clip.build(path, "my-clip")) == "quick_gelu"
    settings.write_text('{"model_cfg": {"quick_gelu": false}}')
    assert activation(clip.build(path, "my-clip")) == "gelu"
    with pytest.raises(MissingPrerequisite, match="says gelu, and clip-vit-b-32-openai was trained with quick_gelu"):
        clip.build(path, "clip-vit-b-32-openai")
    settings.write_text('{"model_cfg": {"embed_dim": 32}}')  # says nothing: the table decides
    assert activation(clip.build(path, "clip-vit-b-32-openai")) == "quick_gelu"
    folder = root / "hf"
    save_as_transformers(state, folder)
    with pytest.raises(MissingPrerequisite, match="says quick_gelu, and clip-vit-b-32-laion2b was trained with gelu"):
        clip.build(folder, "clip-vit-b-32-laion2b")
    config = json.loads((folder / "config.json").read_text())
    config["text_config"]["hidden_act"] = "gelu"
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(MissingPrerequisite, match="says gelu, and clip-vit-b-32-openai was trained with quick_gelu"):
        clip.build(folder, "clip-vit-b-32-openai")


def test_files_of_other_networks_are_refused_by_name(root: Path, state: dict[str, Any]) -> None:
    path = root / "model.safetensors"
    for said, tensors in {
        "not a state dict of a CLIP ViT: it lacks visual.conv1.weight": {"conv.weight": torch.ones(1)},
        "a CLIP with a ResNet": {"visual.layer1.0.conv1.weight": torch.ones(1)},
        "lacks text_model.final_layer_norm.bias": {k: v for k, v in state.items() if k != "ln_final.bias"},
        "lacks vision_model.embeddings.class_embedding": {
            k: v for k, v in state.items() if k != "visual.class_embedding"
        },
        "has besides text_model.visual2.proj": {**state, "visual2.proj": torch.ones(1)},
        "has other shapes of": {**state, "visual.ln_post.weight": torch.ones(5)},
    }.items():
        save_file(tensors, path)
        with pytest.raises(MissingPrerequisite, match=said) as caught:
            clip.build(path, "clip-vit-b-32-openai")
        assert str(path) in str(caught.value)


def test_a_picture_has_one_vector_in_any_company(root: Path, state: dict[str, Any]) -> None:
    save_file(state, root / "clip-vit-b-32-laion2b.safetensors")
    network = clip.network("clip-vit-b-32-laion2b")
    shown = photos(5)
    together = network.images(shown)
    for row in range(5):
        assert torch.allclose(network.images(shown[row : row + 1]), together[row : row + 1], atol=1e-5)
    captions = ["the cup", "red", "a table and a cup on the table"]
    made, _ = network.texts(captions)
    for row, caption in enumerate(captions):
        assert torch.allclose(network.texts([caption])[0], made[row : row + 1], atol=1e-5)


def test_pictures_are_prepared_as_transformers_does(root: Path, state: dict[str, Any]) -> None:
    image = pytest.importorskip("PIL.Image")
    save_file(state, root / "clip-vit-b-32-openai.safetensors")
    network = clip.network("clip-vit-b-32-openai")
    shown = photos(1, (480, 832))  # 224 x 388: both sides of the crop lose 82
    theirs = pil_processor("CLIP")(image.fromarray(shown[0].permute(1, 2, 0).numpy()))["pixel_values"][0]
    difference = np.abs(network.prepared(shown)[0].numpy() - np.asarray(theirs))
    assert difference.max() < 1.01 / 255 / min(preprocessing.CLIP_STD) and difference.mean() < 1e-3


# --- captions -------------------------------------------------------------------------------------------------------


def test_the_vocabulary_of_clip(root: Path, tmp_path: Path) -> None:
    folder = root / "clip-vocabulary"
    theirs = transformers.CLIPTokenizer.from_pretrained(folder)
    plain = tmp_path / "plain"
    plain.mkdir()
    for name in ("vocab.json", "merges.txt"):
        (plain / name).write_text(
            {"vocab.json": json.dumps(vocabulary()), "merges.txt": "\n".join(["#version: 0.2", *MERGES]) + "\n"}[name]
        )
    for captions in (read_clip_captions(folder, 77), read_clip_captions(plain, 77)):
        for caption in ("The red cup", "the  table\nand 12 cups, it's ré!", "", "tables &amp; cups"):
            expected = theirs(caption.replace("&amp;", "&"))["input_ids"]
            assert captions.split_into_token_lists(caption) == [expected]
    with pytest.raises(
        MissingPrerequisite, match=r"vocabulary of CLIP: tokenizer\.json, or vocab\.json and merges\.txt"
    ):
        (plain / "merges.txt").unlink()
        read_clip_captions(plain, 77)


def letters(length: int) -> Captions:
    """A reading in which every letter is a token."""
    return Captions(lambda text: [ord(one) for one in text if one != " "], (1,), 2, 0, length)


def test_long_captions_are_cut_between_sentences() -> None:
    captions = letters(8)
    assert captions.split_into_token_lists("abcdef") == [[1, *map(ord, "abcdef"), 2]]
    assert captions.split_into_token_lists("abc. def. gh.") == [
        [1, *map(ord, "abc."), 2],
        [1, *map(ord, "def."), 2],
        [1, *map(ord, "gh."), 2],
    ]
    assert captions.split_into_token_lists("ab. cd. ef.") == [[1, *map(ord, "ab.cd."), 2], [1, *map(ord, "ef."), 2]]
    assert captions.split_into_token_lists("abcdefghij") == [[1, *map(ord, "abcdef"), 2], [1, *map(ord, "ghij"), 2]]
    assert captions.pad_tokens([1, 5, 2]) == [1, 5, 2, 0, 0, 0, 0, 0]


def test_a_cut_caption_is_the_mean_of_its_parts(root: Path, state: dict[str, Any]) -> None:
    save_file(state, root / "clip-vit-b-32-laion2b.safetensors")
    network = clip.network("clip-vit-b-32-laion2b")
    first, second = "the red cup on the table. " * 6, "a cup and a cup and a cup. " * 4
    made, cut = network.texts([first + second, "red"])
    captions = read_clip_captions(root / "clip-vocabulary", 77)
    parts = captions.split_into_token_lists(first + second)
    assert cut and len(parts) > 1 and max(map(len, parts)) <= 77
    vectors = [functional.normalize(text_vectors(state, part, quick=False), dim=-1) for part in parts]
    expected = functional.normalize(torch.cat(vectors).mean(dim=0), dim=-1)
    assert torch.allclose(made[0], expected, atol=1e-5)


# --- SigLIP ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def siglip_folder(root: Path) -> Path:
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -4.0)]
    pieces += [(f"▁{word}", -2.0) for word in ("the", "red", "cup", "table")]
    pieces += [(letter, -6.0) for letter in "abcdefghijklmnopqrstuvwxyz"]
    made = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, unk_id=2))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    sides = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 96}
    config = transformers.SiglipConfig(
        vision_config={**sides, "image_size": 64, "patch_size": 16},
        text_config={**sides, "vocab_size": len(pieces), "max_position_embeddings": 16, "projection_size": 64},
    )
    torch.manual_seed(0)
    folder = root / "siglip-base"
    transformers.SiglipModel(config).save_pretrained(folder)
    made.save(str(folder / "tokenizer.json"))
    return folder


def test_siglip_as_transformers_has_it(siglip_folder: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    network = siglip.network("siglip-base")
    theirs = transformers.SiglipModel.from_pretrained(siglip_folder).eval()
    shown = photos(3)
    processor = pil_processor("Siglip", size={"height": 64, "width": 64}, resample=3)
    pixels = processor([image.fromarray(one.permute(1, 2, 0).numpy()) for one in shown], return_tensors="pt")
    expected = theirs.vision_model(**pixels).pooler_output
    assert (1 - cosines(network.images(shown), expected)).max() < 1e-4
    assert torch.allclose(network.images(shown[1:2]), network.images(shown)[1:2], atol=1e-5)
    captions = read_siglip_captions(siglip_folder, 16)
    ids = captions.pad_tokens(captions.split_into_token_lists("The red, cup!")[0])
    assert ids[:4] == [4, 5, 6, 1] and set(ids[4:]) == {1} and len(ids) == 16
    made, cut = network.texts(["The red, cup!", "table"])
    assert torch.allclose(
        made[0],
        functional.normalize(theirs.text_model(input_ids=torch.tensor([ids])).pooler_output, dim=-1)[0],
        atol=1e-5,
    )
    assert not cut and network.texts(["the red cup. " * 9])[1]


def test_siglip_refuses_a_folder_without_vocabulary(siglip_folder: Path) -> None:
    (siglip_folder / "tokenizer.json").unlink()
    with pytest.raises(MissingPrerequisite, match=r"vocabulary of SigLIP: tokenizer\.json or spiece\.model"):
        read_siglip_captions(siglip_folder, 16)


# --- the observer ---------------------------------------------------------------------------------------------------


def observed(observer: Any, frames: list[np.ndarray], annotations: dict[str, Any], prompt: str) -> Any:
    wanted = observer.wanted_frame_numbers(len(frames), 8.0, [annotations, prompt], dict(observer.params)).tolist()
    return wanted, observer(frames, fps=8.0, annotations=annotations, prompt=prompt)


def test_frames_and_captions_of_segments(root: Path, state: dict[str, Any]) -> None:
    save_file(state, root / "clip-vit-b-32-laion2b.safetensors")
    frames = [one.permute(1, 2, 0).numpy() for one in photos(21)]
    wanted, seen = observed(OBSERVERS["paper.text"], frames, {"segments": ["the red cup", "the table"]}, "ignored")
    assert len(wanted) == 16 and seen.frame.tolist() == wanted
    assert seen.segment.tolist() == [0] * 8 + [1] * 8 and min(wanted) == 0 and max(wanted) == 20
    assert seen.image.shape == (16, SIZE) and seen.text.shape == (2, SIZE) and not seen.cut
    assert seen.maker == "clip-vit-b-32-laion2b" and seen.image.dtype == np.float32
    network = clip.network("clip-vit-b-32-laion2b")
    with torch.no_grad():
        assert np.allclose(seen.image[9], network.images(photos(21)[wanted[9]][None])[0].numpy(), atol=1e-5)
        assert np.allclose(seen.text[1], network.texts(["the table"])[0][0].numpy(), atol=1e-5)
    wanted, seen = observed(OBSERVERS["paper.text"], frames[:3], {}, "the cup")
    assert wanted == [0, 1, 2] and seen.segment.tolist() == [0, 0, 0] and seen.text.shape == (1, SIZE)
    wanted, seen = observed(OBSERVERS["paper.text"], frames[:3], {}, " ")
    assert wanted == [] and len(seen.image) == len(seen.text) == 0


def test_siglip_observes_too(siglip_folder: Path) -> None:
    frames = [one.permute(1, 2, 0).numpy() for one in photos(4)]
    _, seen = observed(OBSERVERS["paper.text_siglip"], frames, {}, "the red cup")
    assert seen.image.shape == (4, 64) and seen.text.shape == (1, 64) and seen.maker == "siglip-base"
