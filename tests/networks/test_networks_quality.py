"""Networks that rate frames: real architectures with small random weights, loaded by the path that users take.

The numbers of MUSIQ and CLIP-IQA+ were frozen from pyiqa 0.1.16, which had the same weights and pictures (drawn by
`drawn` and `pictures`, whose streams numpy keeps for good); it is not needed to run the tests.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revisit.core import Batch, MissingPrerequisite

torch = pytest.importorskip("torch", reason="needs torch: pip install 'revisit-bench[networks]'")
pytest.importorskip("safetensors", reason="needs safetensors: pip install 'revisit-bench[networks]'")

from revisit import weights  # noqa: E402
from revisit.networks import aesthetic, clip_iqa, image_reward, musiq, runtime  # noqa: E402
from revisit.weights.tensors import is_torchscript, read_torchscript_tensors  # noqa: E402

Shapes = Mapping[str, Any]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of weights of the user's own."""
    monkeypatch.setenv("REVISIT_WEIGHTS", str(tmp_path / "weights"))
    runtime.forget_cached_networks()
    (tmp_path / "weights").mkdir()
    return tmp_path / "weights"


def drawn(shapes: Shapes) -> dict[str, Any]:
    """Random tensors of these shapes, the same everywhere: each name has a stream of its own."""
    found = {}
    for name, shape in shapes.items():
        values = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(tuple(shape))
        scale = 0.05 if len(shape) > 1 else 0.2
        if name.endswith("running_var"):
            values = 1 + 0.3 * np.abs(values)
        else:
            values = (1 if name.endswith("weight") and len(shape) == 1 else 0) + scale * values
        found[name] = torch.tensor(values, dtype=torch.float32)
    return found


def pictures(count: int, height: int, width: int) -> np.ndarray:
    """Pictures of coloured squares."""
    small = np.random.RandomState(7).randint(0, 256, (count, height // 8, width // 8, 3)).astype(np.uint8)
    return small.repeat(8, 1).repeat(8, 2)


def batch_of(shown: np.ndarray, prompts: tuple[str, ...] = ()) -> Batch:
    return Batch(np.arange(len(shown)), np.arange(len(shown)) / 8, list(shown), inputs=[(one,) for one in prompts])


def shapes_of(net: Any, called: Callable[[str], str] = str) -> dict[str, Any]:
    return {called(name): tuple(value.shape) for name, value in net.state_dict().items()}


def rows_are_independent(observe: Callable[[Batch], Any], shown: np.ndarray, prompts: tuple[str, ...] = ()) -> Any:
    """The evidence of all frames, which is that of each frame alone."""
    together = observe(batch_of(shown, prompts))
    alone = [observe(batch_of(shown[k : k + 1], prompts[k : k + 1])).value[0] for k in range(len(shown))]
    assert together.value == pytest.approx(alone, abs=1e-5) and together.value.dtype == np.float32
    assert together.index.tolist() == list(range(len(shown)))
    return together


# MUSIQ


def small_musiq() -> dict[str, Any]:
    return drawn(shapes_of(musiq.Musiq(64, 96, 2)))


def test_musiq_gives_the_numbers_of_another_implementation(folder: Path) -> None:
    torch.save(small_musiq(), folder / "musiq.pth")
    net = musiq.load(folder / "musiq.pth").eval()
    for size, expected in (((96, 160), (0.3623932, 0.3871893)), ((200, 136), (0.3864172, 0.3554455))):
        shown = torch.from_numpy(pictures(2, *size)).permute(0, 3, 1, 2) / 255
        with torch.inference_mode():
            assert net(shown).tolist() == pytest.approx(expected, abs=2e-6)


def test_the_published_musiq_has_the_published_size() -> None:
    net = musiq.Musiq()
    assert sum(value.numel() for value in net.parameters()) == 27_125_825
    assert "transformer_encoder.transformer.encoderblock_13.attention.query.weight" in shapes_of(net)


def test_imaging_covers_720p_and_divides_by_a_hundred(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from revisit.observers import frame_quality as quality

    assert quality.MIND_SIZE == (720, 1280)
    monkeypatch.setattr(quality, "MIND_SIZE", (90, 160))  # a sixty-fourth of the work
    state = small_musiq()
    state["head.bias"] = torch.tensor([50.0])
    torch.save(state, folder / "musiq-spaq.pth")
    found = rows_are_independent(quality.imaging_quality_by_musiq.fn, pictures(2, 96, 160))
    assert found.net == "musiq-spaq" and (np.abs(found.value - 0.5) < 0.05).all()


def test_another_network_is_refused_by_name(folder: Path) -> None:
    torch.save({"weight": torch.zeros(3)}, folder / "other.pth")
    for load in (musiq.load, image_reward.load, lambda path: clip_iqa.load(path, path), aesthetic.load_aesthetic_head):
        with pytest.raises(MissingPrerequisite, match=r"other\.pth"):
            load(folder / "other.pth")


# CLIP-IQA+


def small_clip() -> dict[str, Any]:
    net = clip_iqa.ResNetClip((1, 2, 1, 1), 8, 5, 49408, 64, 2, 77, 64)
    state = {name: value for name, value in drawn(shapes_of(net)).items() if not name.endswith("num_batches_tracked")}
    for name in state:
        if ".conv" in name or "downsample.0" in name:
            state[name] = state[name] * 6
    return state | {"logit_scale": torch.tensor(3.0)}


def small_words() -> Any:
    return drawn({"ctx": (2, 16, 64)})["ctx"] * 10


def test_clip_iqa_gives_the_numbers_of_another_implementation(folder: Path) -> None:
    torch.save(small_clip(), folder / "clip.pth")
    torch.save(small_words(), folder / "words.pth")
    net = clip_iqa.load(folder / "clip.pth", folder / "words.pth")
    for size, expected in (((96, 160), (0.4986396, 0.4801424)), ((200, 136), (0.5023044, 0.4561696))):
        shown = torch.from_numpy(pictures(2, *size)).permute(0, 3, 1, 2)
        with torch.inference_mode():
            assert net(shown).tolist() == pytest.approx(expected, abs=2e-6)


def test_image_quality_reads_openais_archive_without_running_it(folder: Path) -> None:
    from revisit.suites.memobench.observers.quality import image_quality

    net = clip_iqa.ResNetClip((1, 2, 1, 1), 8, 5, 49408, 64, 2, 77, 64)
    net.load_state_dict(small_clip(), strict=False)
    net.register_buffer("input_resolution", torch.tensor(64))
    save_torchscript(net.half(), folder / "clip-rn50.pt")
    torch.save(torch.nn.Parameter(small_words()), folder / "clip-iqa-plus.pth")
    found = rows_are_independent(image_quality.fn, pictures(2, 96, 160))
    assert found.maker == "clip-iqa-plus" and found.value == pytest.approx([0.4986396, 0.4801424], abs=3e-3)
    assert image_quality.wanted_frame_numbers(10, 8.0, (), image_quality.params).tolist() == [0, 4, 8]
    assert image_quality.long_side_pixels(image_quality.params) == 640
    assert (
        image_quality.wanted_frame_numbers(10, 8.0, (), {"step": 5}).tolist() == [0, 5]
        and image_quality.long_side_pixels({"long_side": 320}) == 320
    )


def test_words_for_another_clip_are_refused(folder: Path) -> None:
    torch.save(small_clip(), folder / "clip.pth")
    torch.save(torch.zeros(2, 16, 512), folder / "words.pth")
    with pytest.raises(MissingPrerequisite, match=r"words\.pth: it holds words of shape \(2, 16, 512\)"):
        clip_iqa.load(folder / "clip.pth", folder / "words.pth")


# TorchScript archives


STORAGES = {torch.float16: "HalfStorage", torch.float32: "FloatStorage", torch.int64: "LongStorage"}


def save_torchscript(net: Any, path: Path) -> None:
    """An archive as torch.jit.save writes it: modules as objects of classes that only torch knows."""
    stored: list[bytes] = []

    def pickled(module: Any) -> bytes:
        own = {**dict(module.named_parameters(recurse=False)), **dict(module.named_buffers(recurse=False))}
        parts = {name: tensor(value.detach()) for name, value in own.items()}
        parts |= {name: pickled(child) for name, child in module.named_children()}
        inner = b"".join(f"X{len(name):c}\0\0\0{name}".encode() + part for name, part in parts.items())
        return b"c__torch__.module.Net\nNet\n)\x81}(" + inner + b"ub"

    def tensor(value: Any) -> bytes:
        stored.append(value.contiguous().numpy().tobytes())
        storage = f"(S'storage'\nctorch\n{STORAGES[value.dtype]}\nS'{len(stored) - 1}'\nS'cpu'\nI{value.numel()}\ntQ"
        shape, stride = ("(" + "".join(f"I{n}\n" for n in sizes) + "t" for sizes in (value.shape, value.stride()))
        return f"ctorch._utils\n_rebuild_tensor_v2\n({storage}I0\n{shape}{stride}I00\n}}tR".encode()

    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("net/data.pkl", b"\x80\x02" + pickled(net) + b".")
        archive.writestr("net/constants.pkl", b"\x80\x02).")
        archive.writestr("net/code/__torch__/module.py", "import os\nos.system('false')\n")
        for key, data in enumerate(stored):
            archive.writestr(f"net/data/{key}", data)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
def test_tensors_of_a_torchscript_archive(tmp_path: Path) -> None:
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Linear(4, 2).half())
    torch.jit.save(torch.jit.script(net), tmp_path / "theirs.pt")
    save_torchscript(net, tmp_path / "ours.pt")
    torch.save(net.state_dict(), tmp_path / "plain.pt")
    assert not is_torchscript(tmp_path / "plain.pt") and not is_torchscript(tmp_path / "none.pt")
    for name in ("theirs.pt", "ours.pt"):
        assert is_torchscript(tmp_path / name)
        found = weights.tensors(tmp_path / name)
        assert found.keys() == net.state_dict().keys()
        assert all(torch.equal(found[key], value) for key, value in net.state_dict().items())


HOSTILE = {
    "code": (b"cos\nsystem\n(S'touch ran'\ntR.", "asks for os.system"),
    "builtins": (b"cbuiltins\neval\n(S'1'\ntR.", "asks for builtins.eval"),
    "torch": (b"ctorch\nload\n(S'x'\ntR.", "asks for torch.load"),
    "short": (b"\x80\x02}", "EOFError"),
    "other": (b"(S'no'\nctorch\nFloatStorage\nS'0'\nS'cpu'\nI4\ntQ.", "no storage"),
    "length": (b"(S'storage'\nctorch\nFloatStorage\nS'0'\nS'cpu'\nI4000\ntQ.", "has 16 bytes instead of 16000"),
    "beyond": (
        b"ctorch._utils\n_rebuild_tensor_v2\n((S'storage'\nctorch\nFloatStorage\nS'0'\nS'cpu'\nI4\ntQI0\n(I9\nt(I0\ntI00\n}tR.",
        "lies in a storage of 4 numbers",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_runs_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "bad.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("net/data.pkl", HOSTILE[name][0])
        archive.writestr("net/constants.pkl", b"\x80\x02).")
        archive.writestr("net/data/0", b"\0" * 16)
    with pytest.raises(MissingPrerequisite, match=rf"bad\.pt: .*{HOSTILE[name][1]}"):
        read_torchscript_tensors(path)
    assert not (tmp_path / "ran").exists()
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(MissingPrerequisite, match=r"bad\.pt"):
        read_torchscript_tensors(path)


# Aesthetic predictors


def test_both_predictors_are_linear(folder: Path) -> None:
    layers = drawn(shapes_of(aesthetic.ScoreHead(768)))
    assert sorted({name.split(".")[1] for name in layers}) == ["0", "2", "4", "6", "7"]
    torch.save(layers, folder / "mlp.pth")
    torch.save(drawn({"weight": (1, 768), "bias": (1,)}), folder / "linear.pth")
    given = drawn({"embedding": (3, 768)})["embedding"]
    length = given.numpy() / np.linalg.norm(given.numpy(), axis=1, keepdims=True)
    expected = length
    for place in (0, 2, 4, 6, 7):
        expected = expected @ layers[f"layers.{place}.weight"].numpy().T + layers[f"layers.{place}.bias"].numpy()
    assert aesthetic.aesthetic_scores(
        aesthetic.load_aesthetic_head(folder / "mlp.pth"), given
    ).tolist() == pytest.approx(expected[:, 0], abs=1e-5)
    line = weights.tensors(folder / "linear.pth")
    expected = length @ line["weight"].numpy().T + line["bias"].numpy()
    found = aesthetic.aesthetic_scores(aesthetic.load_aesthetic_head(folder / "linear.pth"), 7 * given)
    assert found.tolist() == pytest.approx(expected[:, 0], abs=1e-5), "of embeddings of any length"


def test_minds_square_is_that_of_opencv() -> None:
    """Bicubic with a = -0.75 and no antialiasing is OpenCV's; of 398 columns the middle 224 begin at 87."""
    cv2 = pytest.importorskip("cv2")
    shown = pictures(1, 720, 1280)
    found = aesthetic.preprocess_for_clip_without_antialias(torch.from_numpy(shown).permute(0, 3, 1, 2).float(), 224)
    small = cv2.resize(shown[0].astype(np.float32), (398, 224), interpolation=cv2.INTER_CUBIC)[:, 87 : 87 + 224]
    mean, std = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
    # torch takes the exact share of both sizes, as OpenCV does: 1280 / 398 columns
    expected = (small / 255 - mean) / std
    assert found.shape == (1, 3, 224, 224)
    assert np.abs(found[0].permute(1, 2, 0).numpy() - expected).max() < 2e-3


def small_vit(folder: Path, id: str) -> None:
    """A CLIP ViT of OpenAI's names whose vectors have 768 numbers."""
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    sides = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 1}
    config = transformers.CLIPConfig(
        projection_dim=768,
        vision_config={**sides, "image_size": 32, "patch_size": 16, "projection_dim": 768, "hidden_act": "quick_gelu"},
        text_config={**sides, "vocab_size": 100, "max_position_embeddings": 16, "hidden_act": "quick_gelu"},
    )
    torch.manual_seed(0)
    transformers.CLIPModel(config).save_pretrained(folder / id)


def test_aesthetic_observers(folder: Path) -> None:
    from revisit.observers.frame_quality import aesthetic_quality_as_mind
    from revisit.suites.memobench.observers import quality

    small_vit(folder, "clip-vit-l-14-openai")
    torch.save(drawn(shapes_of(aesthetic.ScoreHead(768))), folder / "laion-aesthetic-v2.pth")
    torch.save(drawn({"weight": (1, 768), "bias": (1,)}), folder / "laion-aesthetic-v1.pth")
    assert rows_are_independent(quality.aesthetic.fn, pictures(2, 96, 160)).maker == "laion-aesthetic-v2"
    assert rows_are_independent(aesthetic_quality_as_mind.fn, pictures(2, 96, 160)).net == "laion-aesthetic-v1"


# ImageReward


def eye_shapes(width: int, depth: int, places: int, patch: int) -> Shapes:
    """The tensors of a ViT as ImageReward.pt names them."""
    shapes: dict[str, Any] = {"cls_token": (1, 1, width), "pos_embed": (1, places, width)}
    sizes: dict[str, tuple[int, ...]] = {"patch_embed.proj": (width, 3, patch, patch), "norm": (width,)}
    for k in range(depth):
        sizes |= {f"blocks.{k}.norm1": (width,), f"blocks.{k}.norm2": (width,)}
        sizes |= {f"blocks.{k}.attn.qkv": (3 * width, width), f"blocks.{k}.attn.proj": (width, width)}
        sizes |= {f"blocks.{k}.mlp.fc1": (4 * width, width), f"blocks.{k}.mlp.fc2": (width, 4 * width)}
    for name, size in sizes.items():
        shapes |= {f"{name}.weight": size, f"{name}.bias": size[:1]}
    return {f"blip.visual_encoder.{name}": shape for name, shape in shapes.items()}


def text_shapes(words: int, length: int, width: int, hidden: int, depth: int, image: int) -> Shapes:
    """The tensors of BERT with cross-attention as ImageReward.pt names them."""
    shapes: dict[str, Any] = {"word_embeddings.weight": (words, width), "position_embeddings.weight": (length, width)}
    shapes = {f"embeddings.{name}": shape for name, shape in shapes.items()}
    sizes: dict[str, tuple[int, ...]] = {"embeddings.LayerNorm": (width,)}
    for k in range(depth):
        layer = f"encoder.layer.{k}"
        for part, source in (("attention", width), ("crossattention", image)):
            sizes |= {f"{layer}.{part}.self.query": (width, width), f"{layer}.{part}.self.key": (width, source)}
            sizes |= {f"{layer}.{part}.self.value": (width, source), f"{layer}.{part}.output.dense": (width, width)}
            sizes |= {f"{layer}.{part}.output.LayerNorm": (width,)}
        sizes |= {f"{layer}.intermediate.dense": (hidden, width), f"{layer}.output.dense": (width, hidden)}
        sizes |= {f"{layer}.output.LayerNorm": (width,)}
    for name, size in sizes.items():
        shapes |= {f"{name}.weight": size, f"{name}.bias": size[:1]}
    return {f"blip.text_encoder.{name}": shape for name, shape in shapes.items()}


def small_reward() -> dict[str, Any]:
    words = text_shapes(300, 40, 64, 96, 2, 128)
    layers = shapes_of(aesthetic.ScoreHead(64), lambda name: f"mlp.{name}")
    return drawn({**eye_shapes(128, 2, 17, 16), **words, **layers})


def test_image_reward_gives_the_numbers_it_always_gave(folder: Path) -> None:
    """Numbers of Revisit's own BLIP, which agreed with the package image-reward 1.5 at the published size to 1e-7."""
    pytest.importorskip("transformers", reason="needs transformers")
    state = small_reward()
    torch.save(state | {"blip.vision_proj.weight": torch.zeros(2, 2)}, folder / "reward.pt")
    net = image_reward.load(folder / "reward.pt").eval()
    shown = torch.from_numpy(pictures(2, 96, 160)).permute(0, 3, 1, 2)
    tokens = torch.from_numpy(np.random.RandomState(0).randint(0, 300, (2, 35)))
    mask = torch.ones(2, 35, dtype=torch.bool)
    mask[0, 20:] = False
    with torch.inference_mode():
        assert net(shown, tokens, mask).tolist() == pytest.approx([0.075775, 0.086636], abs=2e-6)


def test_image_reward_reads_35_words_of_a_prompt(folder: Path) -> None:
    pytest.importorskip("tokenizers", reason="needs tokenizers")
    from revisit.suites.memobench.observers.quality import five_evenly_spread_frames
    from revisit.suites.memobench.observers.quality import image_reward as rate

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "dog", "leaves", "and", "re", "##turns", "."]
    (folder / "bert-words").mkdir()
    (folder / "bert-words" / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    read = image_reward.Words(folder / "bert-words")
    tokens, known = read(["A dog returns.", "dog " * 50])
    assert tokens[0, :8].tolist() == [2, 5, 6, 9, 10, 11, 3, 0] and known.sum(1).tolist() == [7, 35]
    assert tokens[1, -1] == 3 and tokens.shape == (2, 35)

    torch.save(small_reward(), folder / "image-reward.pt")
    prompts = ("a dog leaves and returns", "a dog . " * 20)
    found = rows_are_independent(rate.fn, pictures(2, 96, 160), prompts)
    assert found.maker == "image-reward-1.0" and len(set(found.value.tolist())) == 2
    longer = rate.fn(batch_of(pictures(2, 96, 160), (prompts[0], prompts[1] + "and leaves")))
    assert longer.value.tolist() == found.value.tolist(), "what is said beyond them is never read"
    assert five_evenly_spread_frames(81, 16.0, "x").tolist() == [0, 20, 40, 60, 80] and five_evenly_spread_frames(
        7, 16.0, "x"
    ).tolist() == [
        0,
        1,
        3,
        4,
        6,
    ]


# The set


def test_the_paper_set_rates_frames_by_these_networks() -> None:
    from revisit.observers.sets import load_roles
    from revisit.weights.lock import read_lock_entries

    roles = load_roles("paper")
    for kind in ("aesthetic_scores", "image_quality", "image_rewards", "imaging_quality", "aesthetic_quality"):
        assert roles[kind].id.startswith("paper.") and all(id in read_lock_entries() for id in roles[kind].weights)


def test_a_missing_weight_is_a_sentence(folder: Path) -> None:
    from revisit.observers.frame_quality import imaging_quality_by_musiq

    said = weights.why_missing(imaging_quality_by_musiq.weights)
    assert said is not None and "musiq-spaq" in said and "revisit weights pull" in said
