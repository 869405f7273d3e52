"""ImageReward (Xu et al. 2023): how well a picture fits a prompt, as people would judge it; about -2 to 2.

BLIP of transformers: a ViT-L/16 encodes the picture, and BERT the prompt, with cross-attention to the picture in each
layer. The state of the first token goes through five linear layers, and the reward is standardised.

Layers are named as in ImageReward.pt; what that file holds besides (projections of BLIP's training) is left out. Words
are those of bert-base-uncased: the prompt is cut at 35, with the marks at both ends. Pictures: shorter side to 224 by
PIL's bicubic filter, the middle square, CLIP's mean and deviation. Runs in float32; sizes are read from the file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from revisit import weights
from revisit.core import MissingPrerequisite
from revisit.networks import hub
from revisit.networks.aesthetic import ScoreHead
from revisit.networks.loading import load_tensors_strictly
from revisit.networks.preprocessing import preprocess_for_clip
from revisit.networks.tokenizing import import_tokenizer_library, load_plain_tokenizer

MEAN, DEVIATION = 0.16717362830052426, 1.0333394966054072
WORDS = 35
HEAD_WIDTH = 64
EPSILON = 1e-6  # of timm's LayerNorm
VOCABULARY = ("tokenizer.json", "vocab.txt")
VISION, TEXT = "blip.visual_encoder.", "blip.text_encoder."
# Parts of timm's names -> those of BlipVisionModel, in this order.
NAMES = (
    ("cls_token", "embeddings.class_embedding"),
    ("pos_embed", "embeddings.position_embedding"),
    ("patch_embed.proj", "embeddings.patch_embedding"),
    ("blocks.", "encoder.layers."),
    ("norm", "layer_norm"),
    ("attn.proj", "self_attn.projection"),
    ("attn.qkv", "self_attn.qkv"),
)


class ImageReward(nn.Module):
    """BlipVisionModel and BlipTextModel of transformers, and the five linear layers of the reward."""

    def __init__(self, vision: Any, text: Any) -> None:
        super().__init__()
        self.vision, self.text, self.mlp = vision, text, ScoreHead(text.config.hidden_size)

    def forward(self, pictures: Tensor, tokens: Tensor, mask: Tensor) -> Tensor:
        """(B,) for levels (B, 3, H, W) from 0 to 255, tokens (B, 35), and which of these are words."""
        pixels = preprocess_for_clip(pictures, self.vision.config.image_size)
        image = self.vision(pixel_values=pixels).last_hidden_state
        states = self.text(input_ids=tokens, attention_mask=mask.long(), encoder_hidden_states=image).last_hidden_state
        return (self.mlp(states[:, 0].float())[:, 0] - MEAN) / DEVIATION


def load(path: Path) -> ImageReward:
    """The network of a checkpoint, whose tensors tell its sizes."""
    state = {name: tensor for name, tensor in weights.tensors(path).items() if not name.endswith("position_ids")}
    image = {_blip_name(name): tensor for name, tensor in _tensors_below_prefix(VISION, state).items()}
    text = _tensors_below_prefix(TEXT, state)
    try:
        width, _, _, patch = image["embeddings.patch_embedding.weight"].shape
        words, text_width = text["embeddings.word_embeddings.weight"].shape
        vision_settings = {
            "hidden_size": width,
            "intermediate_size": len(image["encoder.layers.0.mlp.fc1.weight"]),
            "num_hidden_layers": hub.layer_count(image, "encoder.layers."),
            "num_attention_heads": width // HEAD_WIDTH,
            "patch_size": patch,
            "image_size": patch * math.isqrt(image["embeddings.position_embedding"].shape[1] - 1),
            "layer_norm_eps": EPSILON,
        }
        text_settings = {
            "vocab_size": words,
            "hidden_size": text_width,
            "encoder_hidden_size": width,
            "intermediate_size": len(text["encoder.layer.0.intermediate.dense.weight"]),
            "num_hidden_layers": hub.layer_count(text, "encoder.layer."),
            "num_attention_heads": text_width // HEAD_WIDTH,
            "max_position_embeddings": len(text["embeddings.position_embeddings.weight"]),
        }
    except (KeyError, ValueError, IndexError):
        raise MissingPrerequisite(
            f"{path}: this is not a weights file of ImageReward; expected ImageReward.pt. Remove it and fetch the "
            "published weights with `revisit weights pull`"
        ) from None
    vision_model = hub.model_from_tensors("BlipVisionModel", vision_settings, image, path)
    text_model = hub.model_from_tensors("BlipTextModel", text_settings, text, path, add_pooling_layer=False)
    net = ImageReward(vision_model, text_model)
    load_tensors_strictly(net.mlp, _tensors_below_prefix("mlp.", state), path)
    return net


def _tensors_below_prefix(prefix: str, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin so, without the prefix."""
    return {name.removeprefix(prefix): tensor for name, tensor in state.items() if name.startswith(prefix)}


def _blip_name(name: str) -> str:
    """The name in BlipVisionModel of a tensor that ImageReward.pt names as timm does."""
    return f"post_layer{name}" if name.startswith("norm.") else hub.replace_name_parts(name, NAMES)


class Words:
    """The vocabulary of bert-base-uncased, in the folder of the network."""

    def __init__(self, folder: Path) -> None:
        tokenizer_file, word_list = (folder / name for name in VOCABULARY)
        if tokenizer_file.is_file():
            self.vocabulary = load_plain_tokenizer(tokenizer_file)
        elif word_list.is_file():
            word_pieces = partial(import_tokenizer_library("tokenizers").BertWordPieceTokenizer, lowercase=True)
            self.vocabulary = load_plain_tokenizer(word_list, word_pieces)
        else:
            needed = " or ".join(VOCABULARY)
            raise MissingPrerequisite(f"{folder}: prompts need the words of bert-base-uncased: {needed}")
        self.vocabulary.enable_truncation(WORDS)
        self.vocabulary.enable_padding(length=WORDS)

    def __call__(self, prompts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """((B, 35) tokens, (B, 35) which of them are words and marks)."""
        encodings = [self.vocabulary.encode(prompt) for prompt in prompts]
        marks = torch.tensor([one.attention_mask for one in encodings]).bool()
        return torch.tensor([one.ids for one in encodings]), marks
