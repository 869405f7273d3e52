"""CLIP-IQA+ (Wang et al. 2023): technical quality of a picture, as nearness to one of two learnt sentences.

The picture goes, at its own size, through the modified ResNet-50 of OpenAI's CLIP; its attention pooling leaves out
the position embedding, so that any size fits. The prompts are "good photo.." and "bad photo.." between eight learnt
context tokens on either side (CoOp); their text features are computed once, when the network is loaded. The score is
the softmax over both cosines times CLIP's logit scale. Input: RGB from 0 to 1, normalised by CLIP's mean and std.

Layers are named as in OpenAI's RN50.pt, whose tensors are read without running it, and as in open_clip's safetensors.
Runs in float32: batch normalisation at native sizes leaves too little of float16 to promise a tolerance.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from revisit import weights
from revisit.core import MissingPrerequisite
from revisit.networks.loading import load_tensors_strictly
from revisit.networks.preprocessing import CLIP_MEAN, CLIP_STD, normalise_by_channel, unit_vectors

START, END = 49406, 49407  # of a sentence, in CLIP's vocabulary
SENTENCES = ((886, 1125, 852), (2103, 1125, 852))  # "good photo ..", "bad photo .."
LEARNT = 16  # words around each, half of them before it
HEAD_WIDTH = 64
UNUSED = ("input_resolution", "context_length", "vocab_size")  # numbers that RN50.pt keeps among its tensors


class ClipBottleneck(nn.Module):
    """ResNet bottleneck block with anti-aliased strides: average pooling before the 1 x 1 convolution."""

    def __init__(self, inside: int, width: int, stride: int) -> None:
        super().__init__()
        outside = 4 * width
        self.conv1, self.bn1 = nn.Conv2d(inside, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, outside, 1, bias=False), nn.BatchNorm2d(outside)
        self.stride = stride
        self.downsample: nn.Module = nn.Identity()
        if stride > 1 or inside != outside:
            self.downsample = nn.Sequential(nn.Conv2d(inside, outside, 1, bias=False), nn.BatchNorm2d(outside))

    def average_pool_by_stride(self, x: Tensor) -> Tensor:
        return functional.avg_pool2d(x, self.stride) if self.stride > 1 else x

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn1(self.conv1(x)).relu()
        y = self.average_pool_by_stride(self.bn2(self.conv2(y)).relu())
        return (self.bn3(self.conv3(y)) + self.downsample(self.average_pool_by_stride(x))).relu()


class AttentionPool(nn.Module):
    """Attention pooling: the mean of the feature map is the query, mean and map are keys and values."""

    def __init__(self, width: int, out: int, places: int) -> None:
        super().__init__()
        self.positional_embedding = nn.Parameter(torch.zeros(places, width))  # in the file, and not used here
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(width, width) for _ in range(3))
        self.c_proj = nn.Linear(width, out)
        self.heads = width // HEAD_WIDTH

    def forward(self, field: Tensor) -> Tensor:
        x = field.flatten(2).transpose(1, 2)
        mean = x.mean(1, keepdim=True)
        x = torch.cat([mean, x], 1)
        projections = (self.q_proj(mean), self.k_proj(x), self.v_proj(x))
        query, key, value = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in projections)
        attended = functional.scaled_dot_product_attention(query, key, value)
        return self.c_proj(attended.transpose(1, 2).flatten(1))


class ResNet(nn.Module):
    """CLIP's modified ResNet: a stem of three convolutions, four stages of bottlenecks, attention pooling."""

    def __init__(self, blocks: tuple[int, ...], width: int, out: int, places: int) -> None:
        super().__init__()
        half = width // 2
        self.conv1, self.bn1 = nn.Conv2d(3, half, 3, 2, 1, bias=False), nn.BatchNorm2d(half)
        self.conv2, self.bn2 = nn.Conv2d(half, half, 3, 1, 1, bias=False), nn.BatchNorm2d(half)
        self.conv3, self.bn3 = nn.Conv2d(half, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        inside = width
        for k, count in enumerate(blocks):
            layer = []
            for number in range(count):
                layer.append(ClipBottleneck(inside, width << k, 2 if k and not number else 1))
                inside = 4 * (width << k)
            self.add_module(f"layer{k + 1}", nn.Sequential(*layer))
        self.layers = len(blocks)
        self.attnpool = AttentionPool(inside, out, places)

    def forward(self, x: Tensor) -> Tensor:
        x = self.bn1(self.conv1(x)).relu()
        x = self.bn2(self.conv2(x)).relu()
        x = functional.avg_pool2d(self.bn3(self.conv3(x)).relu(), 2)
        for k in range(self.layers):
            x = self.get_submodule(f"layer{k + 1}")(x)
        return self.attnpool(x)


class TextBlock(nn.Module):
    """Pre-norm transformer block of the text encoder, with QuickGELU; the mask makes it causal."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attn = nn.MultiheadAttention(width, width // HEAD_WIDTH, batch_first=True)
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(width, 4 * width), "c_proj": nn.Linear(4 * width, width)})

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        y = self.ln_1(x)
        x = x + self.attn(y, y, y, need_weights=False, attn_mask=mask)[0]
        y = self.mlp["c_fc"](self.ln_2(x))
        return x + self.mlp["c_proj"](y * torch.sigmoid(1.702 * y))


class ResNetClip(nn.Module):
    """OpenAI's CLIP with a ResNet."""

    def __init__(
        self, blocks: tuple[int, ...], width: int, places: int, words: int, text: int, depth: int, length: int, out: int
    ) -> None:
        super().__init__()
        self.visual = ResNet(blocks, width, out, places)
        self.transformer = nn.ModuleDict({"resblocks": nn.ModuleList(TextBlock(text) for _ in range(depth))})
        self.token_embedding = nn.Embedding(words, text)
        self.positional_embedding = nn.Parameter(torch.zeros(length, text))
        self.ln_final = nn.LayerNorm(text)
        self.text_projection = nn.Parameter(torch.zeros(text, out))
        self.logit_scale = nn.Parameter(torch.zeros(()))

    def prompt_features(self, learnt: Tensor) -> Tensor:
        """(sentences, out) for the learnt words (sentences, 16, width) around our own."""
        rows = []
        for own, around in zip(SENTENCES, learnt, strict=True):
            start, middle, end = (self.token_embedding(torch.tensor(words)) for words in ([START], own, [END]))
            rows.append(torch.cat([start, around[: LEARNT // 2], middle, around[LEARNT // 2 :], end]))
        x = torch.stack(rows)
        length = x.shape[1]
        x = x + self.positional_embedding[:length]
        mask = torch.full((length, length), -torch.inf).triu(1)
        for block in self.transformer["resblocks"]:
            x = block(x, mask)
        return self.ln_final(x[:, -1]) @ self.text_projection


class ClipIqa(nn.Module):
    """The image encoder and the text features of both prompts."""

    anchors: Tensor

    def __init__(self, clip: ResNetClip, learnt: Tensor) -> None:
        super().__init__()
        self.visual = clip.visual
        with torch.inference_mode():
            anchors = clip.logit_scale.exp() * unit_vectors(clip.prompt_features(learnt.float()))
        self.register_buffer("anchors", anchors.clone())

    def forward(self, pictures: Tensor) -> Tensor:
        """(B,) from 0 to 1 for pictures (B, 3, H, W) of levels from 0 to 255."""
        features = unit_vectors(self.visual(normalise_by_channel(pictures, CLIP_MEAN, CLIP_STD)))
        return (features @ self.anchors.T).softmax(1)[:, 0]


def load(path: Path, prompts: Path) -> ClipIqa:
    """The network of a file of CLIP RN50 and a file of learnt words."""
    state = {name: value.float() for name, value in weights.tensors(path).items() if name not in UNUSED}
    clip = load_tensors_strictly(ResNetClip(*resnet_clip_arguments(state, path)), state, path).eval()
    tensors = weights.tensors(prompts)
    if len(tensors) != 1:
        raise MissingPrerequisite(f"{prompts}: it holds {len(tensors)} tensors; the learnt words of CLIP-IQA+ are one")
    learnt = next(iter(tensors.values()))
    width = clip.positional_embedding.shape[1]
    if learnt.shape != (len(SENTENCES), LEARNT, width):
        raise MissingPrerequisite(
            f"{prompts}: it holds words of shape {tuple(learnt.shape)}; {path.name} takes "
            f"{(len(SENTENCES), LEARNT, width)}"
        )
    return ClipIqa(clip, learnt).eval()


def resnet_clip_arguments(
    state: Mapping[str, Tensor], path: Path
) -> tuple[tuple[int, ...], int, int, int, int, int, int, int]:
    """The arguments of Clip that a file's tensors tell."""
    try:
        blocks: list[int] = []
        while (name := f"visual.layer{len(blocks) + 1}.") and f"{name}0.conv1.weight" in state:
            blocks.append(sum(key.startswith(name) and key.endswith(".conv1.weight") for key in state))
        depth = sum(key.startswith("transformer.") and key.endswith(".ln_1.weight") for key in state)
        words, text = state["token_embedding.weight"].shape
        out = state["text_projection"].shape[1]
        places, length = (state[f"{side}positional_embedding"].shape[0] for side in ("visual.attnpool.", ""))
        return tuple(blocks), state["visual.conv3.weight"].shape[0], places, words, text, depth, length, out
    except (KeyError, ValueError, IndexError):
        raise MissingPrerequisite(
            f"{path}: this is not a weights file of CLIP with a ResNet (such as OpenAI's RN50.pt); remove it and fetch "
            "the published weights with `revisit weights pull`"
        ) from None
