"""ImageReward (Xu et al. 2023): how well a picture fits a prompt, as people would judge it; about -2 to 2.

BLIP: a ViT-L/16 sees the picture, and BERT reads the prompt; each of its layers looks at the picture, too. The vector
of the first word goes through five linear layers, and the number that comes out is put on mean 0 and deviation 1.

Layers are named as in ImageReward.pt; what that file holds besides (projections of BLIP's training) is left out. Words
are those of bert-base-uncased: the prompt is cut at 35, with the marks at both ends. Pictures: shorter side to 224 by
PIL's bicubic filter, the middle square, CLIP's mean and deviation. Runs in float32; sizes are read from the file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from revisit import weights
from revisit.core import MissingPrerequisite
from revisit.networks import dino
from revisit.networks.aesthetic import Layers
from revisit.networks.loading import fill
from revisit.networks.preprocessing import CLIP_MEAN, CLIP_STD, centre_crop, normalised, resized, short_side
from revisit.networks.tokenizing import library, vocabulary
from revisit.networks.vit import Transformer, published, shapes_only

MEAN, DEVIATION = 0.16717362830052426, 1.0333394966054072
WORDS = 35
HEAD_WIDTH = 64
VOCABULARY = ("tokenizer.json", "vocab.txt")
EYE, TEXT = "blip.visual_encoder.", "blip.text_encoder."


def attended(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
    """(B, N, width) of values, by heads of 64 channels; `mask` (B, 1, 1, M) says which may be looked at."""
    query, key, value = (part.unflatten(2, (-1, HEAD_WIDTH)).transpose(1, 2) for part in (query, key, value))
    seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    return seen.transpose(1, 2).flatten(2)


class Attention(nn.Module):
    """Attention of words to words, or to what is seen (`other` wide), added to the words and normalised."""

    def __init__(self, width: int, other: int) -> None:
        super().__init__()
        self.self = nn.ModuleDict(
            {"query": nn.Linear(width, width), "key": nn.Linear(other, width), "value": nn.Linear(other, width)}
        )
        self.output = nn.ModuleDict({"dense": nn.Linear(width, width), "LayerNorm": nn.LayerNorm(width, eps=1e-12)})

    def forward(self, x: Tensor, other: Tensor, mask: Tensor | None) -> Tensor:
        part = self.self
        seen = attended(part["query"](x), part["key"](other), part["value"](other), mask)
        return self.output["LayerNorm"](x + self.output["dense"](seen))


class ReadLayer(nn.Module):
    def __init__(self, width: int, hidden: int, seen: int) -> None:
        super().__init__()
        self.attention, self.crossattention = Attention(width, width), Attention(width, seen)
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(width, hidden)})
        self.output = nn.ModuleDict({"dense": nn.Linear(hidden, width), "LayerNorm": nn.LayerNorm(width, eps=1e-12)})

    def forward(self, x: Tensor, mask: Tensor, seen: Tensor) -> Tensor:
        x = self.crossattention(self.attention(x, x, mask), seen, None)
        inner = functional.gelu(self.intermediate["dense"](x))
        return self.output["LayerNorm"](x + self.output["dense"](inner))


class Read(nn.Module):
    """BERT with a view of the picture: (B, words, width)."""

    def __init__(self, words: int, length: int, width: int, hidden: int, depth: int, seen: int) -> None:
        super().__init__()
        self.embeddings = nn.ModuleDict(
            {
                "word_embeddings": nn.Embedding(words, width),
                "position_embeddings": nn.Embedding(length, width),
                "LayerNorm": nn.LayerNorm(width, eps=1e-12),
            }
        )
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(ReadLayer(width, hidden, seen) for _ in range(depth))})

    def forward(self, tokens: Tensor, known: Tensor, seen: Tensor) -> Tensor:
        part = self.embeddings
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x: Tensor = part["LayerNorm"](part["word_embeddings"](tokens) + part["position_embeddings"](places))
        mask = known[:, None, None, :]
        for layer in self.encoder["layer"]:
            x = layer(x, mask, seen)
        return x


class ImageReward(nn.Module):
    """Rewards of pictures with prompts."""

    def __init__(self, eye: Transformer, read: Read, width: int) -> None:
        super().__init__()
        self.eye, self.blip, self.mlp = eye, nn.ModuleDict({"text_encoder": read}), Layers(width)
        self.side = eye.patch * math.isqrt(eye.positions.shape[1] - 1)

    def forward(self, pictures: Tensor, tokens: Tensor, known: Tensor) -> Tensor:
        """(B,) for levels (B, 3, H, W) from 0 to 255, tokens (B, 35), and which of these are words."""
        seen = self.eye(prepared(pictures, self.side))
        first = self.blip["text_encoder"](tokens, known, seen)[:, 0]
        return (self.mlp(first.float())[:, 0] - MEAN) / DEVIATION


def prepared(shown: Tensor, side: int) -> Tensor:
    """Pictures as the network was trained with them."""
    height, width = shown.shape[-2:]
    smaller = resized(shown, short_side((height, width), side), "bicubic")
    return normalised(centre_crop(smaller, (side, side), odd="even"), CLIP_MEAN, CLIP_STD)


def load(path: Path) -> ImageReward:
    """The network of a checkpoint, whose tensors tell its sizes."""
    held = weights.tensors(path).items()
    tensors = {name: value.float() for name, value in held if not name.endswith("position_ids")}
    seen = {name.removeprefix(EYE): value for name, value in tensors.items() if name.startswith(EYE)}
    seen = dino.published_names(seen)
    try:
        words, width = tensors[f"{TEXT}embeddings.word_embeddings.weight"].shape
        length = tensors[f"{TEXT}embeddings.position_embeddings.weight"].shape[0]
        hidden = tensors[f"{TEXT}encoder.layer.0.intermediate.dense.weight"].shape[0]
        depth = sum(name.startswith(TEXT) and name.endswith(".intermediate.dense.weight") for name in tensors)
        with shapes_only():
            eye = Transformer(seen, dino.PUBLISHED, "gelu", dino.EPSILON)
            net = ImageReward(eye, Read(words, length, width, hidden, depth, eye.positions.shape[-1]), width)
    except (KeyError, ValueError, IndexError):
        raise MissingPrerequisite(
            f"{path}: this is not a weights file of ImageReward; expected ImageReward.pt. Remove it and fetch the "
            "published weights with `revisit weights pull`"
        ) from None

    def called(name: str) -> str:
        place, _, rest = name.partition(".")
        return EYE + published(rest, dino.PUBLISHED) if place == "eye" else name

    found = {name: value for name, value in tensors.items() if name.startswith((TEXT, "mlp."))}
    return fill(net, found | {EYE + name: value for name, value in seen.items()}, path, called)


class Words:
    """The vocabulary of bert-base-uncased, in the folder of the network."""

    def __init__(self, folder: Path) -> None:
        whole, listed = (folder / name for name in VOCABULARY)
        if whole.is_file():
            self.vocabulary = vocabulary(whole)
        elif listed.is_file():
            self.vocabulary = vocabulary(listed, partial(library("tokenizers").BertWordPieceTokenizer, lowercase=True))
        else:
            raise MissingPrerequisite(
                f"{folder}: prompts need the words of bert-base-uncased: {' or '.join(VOCABULARY)}"
            )
        self.vocabulary.enable_truncation(WORDS)
        self.vocabulary.enable_padding(length=WORDS)

    def __call__(self, prompts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """((B, 35) tokens, (B, 35) which of them are words and marks)."""
        read = [self.vocabulary.encode(prompt) for prompt in prompts]
        return torch.tensor([one.ids for one in read]), torch.tensor([one.attention_mask for one in read]).bool()
