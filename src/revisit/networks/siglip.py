"""SigLIP (Zhai et al. 2023): joint embedding of pictures and captions, trained with a sigmoid loss.

Read from a folder of transformers: config.json, model.safetensors, and tokenizer.json or spiece.model for captions.
Pictures are squashed to a square by PIL's bicubic filter and brought to -1 ... 1. Captions lose capitals and
punctuation and are padded to 64 tokens, as in training; longer ones are cut between sentences, and their vectors
averaged. A GPU computes in float16 (autocast); vectors are float32 of length 1.
"""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from revisit.networks import compiled, hub, preprocessing, runtime
from revisit.networks.clip import JointEmbedding
from revisit.networks.tokenizing import read_siglip_captions

HALF = "float16"


class Siglip(JointEmbedding):
    """SiglipModel of transformers with its preprocessing and its vocabulary."""

    read_captions = staticmethod(read_siglip_captions)

    def images(self, pictures: Tensor) -> Tensor:
        """(B, D) unit vectors of RGB pictures (B, 3, H, W) with levels from 0 to 255."""
        return preprocessing.unit_vectors(compiled.run(self._pooled_image_features, pictures))

    def _pooled_image_features(self, pictures: Tensor) -> Tensor:
        square = preprocessing.resize_levels(pictures, (self.side, self.side), "bicubic")
        pixels = preprocessing.normalise_by_channel(square, preprocessing.HALF_MEAN, preprocessing.HALF_STD)
        return self.model.vision_model(pixel_values=pixels).pooler_output

    def text_vectors(self, tokens: Tensor, ends: Tensor) -> Tensor:
        return self.model.text_model(input_ids=tokens).pooler_output


def network(id: str) -> Siglip:
    """The SigLIP network of these weights, on the device."""
    return runtime.network(id, build)


def build(path: Path) -> Siglip:
    """The network in a folder of transformers, named by one of its files."""
    folder = path if path.is_dir() else path.parent
    return Siglip(hub.load_model(folder, model_types={"siglip": "SiglipModel"}), folder)
