"""CLIP (Radford et al. 2021): joint embedding of pictures and captions; CLIPModel of transformers.

Three published formats are read: a folder of transformers; OpenCLIP's names; and OpenAI's own file (ViT-B-32.pt), a
TorchScript archive, whose tensors are taken out and whose code is not run.

OpenAI trained with QuickGELU and LAION with GELU. Tensors do not tell which, and the wrong one shifts every vector
without a warning: `ACTIVATIONS` says it for the weights that Revisit names, and for others the file beside them must.

Pictures: shorter side to 224 by PIL's bicubic filter, the middle square. Captions over 77 tokens are cut between
sentences, and their vectors averaged. A GPU computes in float16 (autocast); vectors are float32 of length 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from revisit import weights
from revisit.core import MissingPrerequisite
from revisit.networks import compiled, gpu_layers, hub, preprocessing, runtime
from revisit.networks.tokenizing import Captions, read_clip_captions

HALF = "float16"
QUICK, PLAIN = "quick_gelu", "gelu"
ACTIVATIONS = {
    "clip-vit-b-32-openai": QUICK,
    "clip-vit-l-14-openai": QUICK,
    "clip-vit-b-32-laion2b": PLAIN,
}
HEAD = 64  # channels of an attention head, where no file says otherwise
OPEN_CONFIG = "open_clip_config.json"
CHUNK = 64  # captions at a time
# Parts of OpenAI's and OpenCLIP's names -> those of transformers, below `vision_model` or `text_model`.
NAMES = (
    (".transformer.resblocks.", ".encoder.layers."),
    (".attn.", ".self_attn."),
    (".ln_1.", ".layer_norm1."),
    (".ln_2.", ".layer_norm2."),
    (".mlp.c_fc.", ".mlp.fc1."),
    (".mlp.c_proj.", ".mlp.fc2."),
    (".class_embedding", ".embeddings.class_embedding"),
    (".positional_embedding", ".embeddings.position_embedding.weight"),
    (".token_embedding.", ".embeddings.token_embedding."),
    (".conv1.", ".embeddings.patch_embedding."),
    (".ln_pre.", ".pre_layrnorm."),
    (".ln_post.", ".post_layernorm."),
    (".ln_final.", ".final_layer_norm."),
)
PROJECTIONS = {"visual.proj": "visual_projection.weight", "text_projection": "text_projection.weight"}
UNUSED = ("input_resolution", "context_length", "vocab_size", "attn_mask")  # kept among OpenAI's tensors


class JointEmbedding(nn.Module):
    """A network of transformers that embeds pictures and captions, with its vocabulary."""

    read_captions: Callable[[Path, int], Captions]  # of a folder, so many tokens at a time

    def __init__(self, model: Any, folder: Path) -> None:
        super().__init__()
        self.model, self.folder = model, folder
        self.side = int(model.config.vision_config.image_size)
        self._captions: Captions | None = None

    def texts(self, captions: Sequence[str]) -> tuple[Tensor, bool]:
        """((M, D) unit vectors of captions, means of their parts, whether one of them had to be cut)."""
        if self._captions is None:
            self._captions = self.read_captions(self.folder, self.model.config.text_config.max_position_embeddings)
        parts = [self._captions.split_into_token_lists(caption) for caption in captions]
        rows = [tokens for caption in parts for tokens in caption]
        device = self.model.logit_scale.device
        table = torch.tensor([self._captions.pad_tokens(tokens) for tokens in rows], device=device)
        vectors = self.text_vectors(table, torch.tensor([len(tokens) - 1 for tokens in rows], device=device))
        vectors_of_each = preprocessing.unit_vectors(vectors).split([len(caption) for caption in parts])
        means = [part.mean(dim=0) for part in vectors_of_each]
        return preprocessing.unit_vectors(torch.stack(means)), any(len(caption) > 1 for caption in parts)

    def text_vectors(self, tokens: Tensor, ends: Tensor) -> Tensor:
        """(R, D) vectors of tokens (R, length) with the place of the end of each (R,)."""
        raise NotImplementedError


class ClipNetwork(JointEmbedding):
    """CLIPModel of transformers with its preprocessing and its vocabulary."""

    read_captions = staticmethod(read_clip_captions)

    def __init__(self, model: Any, folder: Path) -> None:
        super().__init__(gpu_layers.use_compiled_layers(model), folder)

    def images(self, pictures: Tensor) -> Tensor:
        """(B, D) unit vectors of RGB pictures (B, 3, H, W) with levels from 0 to 255."""
        pooled = compiled.run(self._preprocess_and_pool, pictures)
        return preprocessing.unit_vectors(_apply_in_float32(self.model.visual_projection, pooled))

    def _preprocess_and_pool(self, pictures: Tensor) -> Tensor:
        return self._pooled_vision_output(self.prepared(pictures))

    def prepared(self, pictures: Tensor) -> Tensor:
        """Pictures as the network was trained with them."""
        return preprocessing.preprocess_for_clip(pictures, self.side)

    def embed_preprocessed(self, pixels: Tensor) -> Tensor:
        """(B, D) vectors, of any length, of normalised pictures of the network's size."""
        return _apply_in_float32(self.model.visual_projection, self._pooled_vision_output(pixels))

    def _pooled_vision_output(self, pixels: Tensor) -> Tensor:
        return self.model.vision_model(pixel_values=pixels).pooler_output

    def text_vectors(self, tokens: Tensor, ends: Tensor) -> Tensor:
        vectors = []
        for some, end in zip(tokens.split(CHUNK), ends.split(CHUNK), strict=True):
            hidden = self.model.text_model(input_ids=some).last_hidden_state
            # The vector stands at the end token; what follows it cannot be seen from there.
            at_end = hidden[torch.arange(len(some), device=some.device), end]
            vectors.append(_apply_in_float32(self.model.text_projection, at_end))
        return torch.cat(vectors)


def _apply_in_float32(layer: nn.Module, x: Tensor) -> Tensor:
    """The last layer in float32: it costs nothing, and half precision would round every vector once more."""
    with torch.autocast(x.device.type, enabled=False):
        return layer(x.float())


def network(id: str) -> ClipNetwork:
    """The CLIP network of these weights, on the device."""
    return runtime.network(id, partial(build, id=id))


def build(path: Path, id: str) -> ClipNetwork:
    """The network of a file or folder in one of the three formats."""
    folder = path if path.is_dir() else path.parent
    if (folder / hub.CONFIG).is_file() and (folder / hub.WEIGHTS).is_file():
        model = hub.load_model(folder, model_types={"clip": "CLIPModel"})
        for side in (model.config.vision_config, model.config.text_config):
            _require_trained_activation(id, side.hidden_act, folder / hub.CONFIG)
        return ClipNetwork(model, folder)
    stated, head = _activation_and_head_width(folder)
    expected = ACTIVATIONS.get(id)
    if stated is None and expected is None:
        raise MissingPrerequisite(
            f"{path}: nothing tells whether {id} was trained with QuickGELU or GELU, and the vectors differ. Put "
            f'{OPEN_CONFIG} beside it, with {{"model_cfg": {{"quick_gelu": true}}}} or false'
        )
    # OpenAI's weights are also published with a configuration that leaves QuickGELU out: only a plain "false" counts.
    if stated is not None:
        _require_trained_activation(id, stated, folder / OPEN_CONFIG)
    return clip_from_openai_or_openclip_names(weights.tensors(path), path, expected or str(stated), head)


def _require_trained_activation(id: str, activation: str, source: Path) -> None:
    """Raise unless a file says the activation that these weights were trained with."""
    expected = ACTIVATIONS.get(id, activation)
    if activation != expected:
        raise MissingPrerequisite(
            f"{source}: it says {activation}, and {id} was trained with {expected}: these are the settings of other "
            "weights. Remove them and fetch the published ones with `revisit weights pull`"
        )


def _activation_and_head_width(folder: Path) -> tuple[str | None, int]:
    """The activation that open_clip_config.json states, if it does, and the width of an attention head for pictures."""
    if not (folder / OPEN_CONFIG).is_file():
        return None, HEAD
    settings = hub.read_json_object(folder / OPEN_CONFIG).get("model_cfg")
    settings = settings if isinstance(settings, Mapping) else {}
    vision = settings.get("vision_cfg")
    head = vision.get("head_width", HEAD) if isinstance(vision, Mapping) else HEAD
    if "quick_gelu" not in settings:
        return None, int(head)
    return (QUICK if settings["quick_gelu"] else PLAIN), int(head)


def clip_from_openai_or_openclip_names(
    state: Mapping[str, Tensor], source: Path, activation: str, head: int = HEAD
) -> ClipNetwork:
    """CLIP from a state dict with OpenAI's or OpenCLIP's names."""
    needed = ("visual.conv1.weight", "visual.positional_embedding", "visual.proj", "positional_embedding",
              "text_projection", "token_embedding.weight")  # fmt: skip
    missing = [name for name in needed if name not in state]
    if missing:
        other = "a CLIP with a ResNet" if "visual.layer1.0.conv1.weight" in state else "not a state dict of a CLIP ViT"
        raise MissingPrerequisite(
            f"{source}: this is {other}: it lacks {', '.join(missing)}. Expected open_clip_model.safetensors "
            "or OpenAI's file such as ViT-B-32.pt"
        )
    width, _, _, patch = state["visual.conv1.weight"].shape
    words, text_width = state["token_embedding.weight"].shape
    renamed = rename_tensors_for_transformers(state)
    settings: dict[str, object] = {
        "projection_dim": state["text_projection"].shape[1],
        "vision_config": {
            **_transformer_settings(renamed, "vision_model", width, head, activation),
            "patch_size": patch,
            "image_size": patch * math.isqrt(len(state["visual.positional_embedding"]) - 1),
        },
        "text_config": {
            **_transformer_settings(renamed, "text_model", text_width, HEAD, activation),
            "vocab_size": words,
            "max_position_embeddings": len(state["positional_embedding"]),
        },
    }
    return ClipNetwork(hub.model_from_tensors("CLIPModel", settings, renamed, source), source.parent)


def _transformer_settings(
    state: Mapping[str, Tensor], side: str, width: int, head: int, activation: str
) -> dict[str, object]:
    """Settings of the transformer of one side."""
    first = state.get(f"{side}.encoder.layers.0.mlp.fc1.weight")
    return {
        "hidden_size": width,
        "intermediate_size": 4 * width if first is None else len(first),  # a missing one is refused by name
        "num_hidden_layers": hub.layer_count(state, f"{side}.encoder.layers."),
        "num_attention_heads": max(1, width // head),
        "hidden_act": activation,
    }


def rename_tensors_for_transformers(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """OpenAI's or OpenCLIP's tensors under the names that transformers publishes."""
    renamed: dict[str, Tensor] = {}
    for name, tensor in state.items():
        if name in PROJECTIONS:
            renamed[PROJECTIONS[name]] = tensor.t().contiguous()
        elif name == "logit_scale":
            renamed[name] = tensor
        elif name not in UNUSED:
            side = "vision_model." if name.startswith("visual.") else "text_model."
            target = hub.replace_name_parts(side + name.removeprefix("visual."), NAMES)
            before, fused, kind = target.partition("in_proj_")  # queries, keys and values in one
            if fused:
                parts = zip("qkv", tensor.chunk(3), strict=True)
                renamed |= {f"{before}{part}_proj.{kind}": piece.clone() for part, piece in parts}
            else:
                renamed[target] = tensor
    return renamed
