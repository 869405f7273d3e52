"""ImageReward (Xu et al. 2023): how well a picture fits a prompt, as people would judge it; about -2 to 2.

BLIP: a ViT-L/16 sees the picture, and BERT reads the prompt; each of its layers looks at the picture, too. The vector
of the first word goes through five linear layers, and the number that comes out is put on mean 0 and deviation 1.

Layers are named as in ImageReward.pt; what that file holds besides (projections of BLIP's training) is left out. Words
are those of bert-base-uncased: the prompt is cut at 35, with the marks at both ends. Pictures: shorter side to 224 by
PIL's bicubic filter, the middle square, CLIP's mean and deviation. Runs in float32; sizes are read from the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from revisit import weights
from revisit.core import MissingPrerequisite
from revisit.networks.aesthetic import Layers
from revisit.networks.loading import fill
from revisit.networks.pictures import CLIP_MEAN, CLIP_STD, centre_crop, normalised, resized, short_side

MEAN, DEVIATION = 0.16717362830052426, 1.0333394966054072
WORDS = 35
HEAD_WIDTH = 64
VOCABULARY = ("tokenizer.json", "vocab.txt")
USED = ("blip.visual_encoder.", "blip.text_encoder.", "mlp.")


def attended(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
    """(B, N, width) of values, by heads of 64 channels; `mask` (B, 1, 1, M) says which may be looked at."""
    query, key, value = (part.unflatten(2, (-1, HEAD_WIDTH)).transpose(1, 2) for part in (query, key, value))
    seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    return seen.transpose(1, 2).flatten(2)


class SeenAttention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.proj(attended(*self.qkv(x).chunk(3, 2)))
        return made


class SeenBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.attn = SeenAttention(width)
        self.mlp = nn.ModuleDict({"fc1": nn.Linear(width, 4 * width), "fc2": nn.Linear(4 * width, width)})

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        made: Tensor = x + self.mlp["fc2"](functional.gelu(self.mlp["fc1"](self.norm2(x))))
        return made


class Seen(nn.Module):
    """The ViT: (B, 1 + patches, width) for normalised pictures."""

    def __init__(self, width: int, depth: int, places: int, patch: int) -> None:
        super().__init__()
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, places, width))
        self.patch_embed = nn.ModuleDict({"proj": nn.Conv2d(3, width, patch, patch)})
        self.blocks = nn.ModuleList(SeenBlock(width) for _ in range(depth))
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.side = patch * round((places - 1) ** 0.5)

    def forward(self, pictures: Tensor) -> Tensor:
        x = self.patch_embed["proj"](pictures).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        made: Tensor = self.norm(x)
        return made


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
        made: Tensor = self.output["LayerNorm"](x + self.output["dense"](seen))
        return made


class ReadLayer(nn.Module):
    def __init__(self, width: int, hidden: int, seen: int) -> None:
        super().__init__()
        self.attention, self.crossattention = Attention(width, width), Attention(width, seen)
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(width, hidden)})
        self.output = nn.ModuleDict({"dense": nn.Linear(hidden, width), "LayerNorm": nn.LayerNorm(width, eps=1e-12)})

    def forward(self, x: Tensor, mask: Tensor, seen: Tensor) -> Tensor:
        x = self.crossattention(self.attention(x, x, mask), seen, None)
        inner = functional.gelu(self.intermediate["dense"](x))
        made: Tensor = self.output["LayerNorm"](x + self.output["dense"](inner))
        return made


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

    def __init__(self, seen: Seen, read: Read, width: int) -> None:
        super().__init__()
        self.blip = nn.ModuleDict({"visual_encoder": seen, "text_encoder": read})
        self.mlp = Layers(width)
        self.side = seen.side

    def forward(self, pictures: Tensor, tokens: Tensor, known: Tensor) -> Tensor:
        """(B,) for levels (B, 3, H, W) from 0 to 255, tokens (B, 35), and which of these are words."""
        seen = self.blip["visual_encoder"](prepared(pictures, self.side))
        first = self.blip["text_encoder"](tokens, known, seen)[:, 0]
        made: Tensor = self.mlp(first.float())[:, 0]
        return (made - MEAN) / DEVIATION


def prepared(shown: Tensor, side: int) -> Tensor:
    """Pictures as the network was trained with them."""
    height, width = shown.shape[-2:]
    smaller = resized(shown, short_side((height, width), side), "bicubic")
    return normalised(centre_crop(smaller, (side, side), odd="even"), CLIP_MEAN, CLIP_STD)


def load(path: Path) -> ImageReward:
    """The network of a checkpoint."""
    found = {
        name: value
        for name, value in weights.tensors(path).items()
        if name.startswith(USED) and not name.endswith("position_ids")
    }
    return fill(_empty(found, path), found, path)


def _empty(found: Mapping[str, Tensor], path: Path) -> ImageReward:
    """The network whose sizes the tensors tell."""
    eye, text = "blip.visual_encoder.", "blip.text_encoder."

    def count(start: str, end: str) -> int:
        return sum(name.startswith(start) and name.endswith(end) for name in found)

    try:
        wide, _, patch, _ = found[f"{eye}patch_embed.proj.weight"].shape
        places = found[f"{eye}pos_embed"].shape[1]
        words, width = found[f"{text}embeddings.word_embeddings.weight"].shape
        length = found[f"{text}embeddings.position_embeddings.weight"].shape[0]
        hidden = found[f"{text}encoder.layer.0.intermediate.dense.weight"].shape[0]
    except (KeyError, ValueError, IndexError):
        raise MissingPrerequisite(
            f"{path}: this is not a weights file of ImageReward; expected ImageReward.pt. Remove it and fetch the "
            "published "
            "weights with `revisit weights pull`"
        ) from None
    seen = Seen(wide, count(f"{eye}blocks.", ".norm1.weight"), places, patch)
    read = Read(words, length, width, hidden, count(f"{text}encoder.", ".intermediate.dense.weight"), wide)
    return ImageReward(seen, read, width)


class Words:
    """The vocabulary of bert-base-uncased, in the folder of the network."""

    def __init__(self, folder: Path) -> None:
        try:
            import tokenizers
        except ImportError as error:
            raise MissingPrerequisite("tokenizers is not installed: pip install 'revisit-bench[networks]'") from error
        whole, listed = (folder / name for name in VOCABULARY)
        if not whole.is_file() and not listed.is_file():
            raise MissingPrerequisite(
                f"{folder}: prompts need the words of bert-base-uncased: {' or '.join(VOCABULARY)}"
            )
        try:
            self.vocabulary: Any = (
                tokenizers.Tokenizer.from_file(str(whole))
                if whole.is_file()
                else tokenizers.BertWordPieceTokenizer(str(listed), lowercase=True)
            )
        except Exception as error:  # the library raises plain Exception
            raise MissingPrerequisite(f"{folder}: its vocabulary cannot be read ({error}); fetch it again") from error
        self.vocabulary.enable_truncation(WORDS)
        self.vocabulary.enable_padding(length=WORDS)

    def __call__(self, prompts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """((B, 35) tokens, (B, 35) which of them are words and marks)."""
        read = [self.vocabulary.encode(prompt) for prompt in prompts]
        return torch.tensor([one.ids for one in read]), torch.tensor([one.attention_mask for one in read]).bool()
