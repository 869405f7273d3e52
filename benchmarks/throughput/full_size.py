"""Networks at their full size with random numbers, in the formats they are published in.

Run: python benchmarks/throughput/full_size.py FOLDER; then REVISIT_WEIGHTS=FOLDER. Numbers of what such networks see
mean nothing; the time they take is that of the real ones, and so is the size of rounding errors. About 8 GB, most of it
SAM 3; names of weights behind the folder choose some. What decides between yes and no leans towards yes (there is an
object, there is a face), or metrics would have nothing to compare; flow is made small, so that frames can be warped.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

ALEX = ((1, 0, 64, 3, 11), (2, 3, 192, 64, 5), (3, 6, 384, 192, 3), (4, 8, 256, 384, 3), (5, 10, 256, 256, 3))
FOUR = ("dinov2-base", "depth-anything-v2-small", "clip-vit-b-32-openai", "lpips_alex")


def write_checkpoints(root: Path, ids: Iterable[str] = FOUR) -> None:
    """Write these weights below a folder; each has a seed of its own."""
    for id in ids:
        torch.manual_seed(zlib.crc32(id.encode()))
        (root / id).mkdir(parents=True, exist_ok=True)
        CHECKPOINTS[id](root / id)


def saved(folder: Path, state: dict[str, Tensor] | nn.Module) -> None:
    """Tensors as the one file of their id."""
    from safetensors.torch import save_file

    tensors = state.state_dict() if isinstance(state, nn.Module) else state
    save_file({name: value.contiguous() for name, value in tensors.items()}, folder / f"{folder.name}.safetensors")


def dinov2_base(folder: Path) -> None:
    """DINOv2-B in the format of transformers."""
    from transformers import Dinov2Config, Dinov2Model

    Dinov2Model(Dinov2Config(image_size=518)).save_pretrained(folder)


def depth_anything_small(folder: Path) -> None:
    """Depth Anything V2 Small in the format of transformers."""
    from transformers import DepthAnythingConfig, DepthAnythingForDepthEstimation, Dinov2Config

    backbone = Dinov2Config(
        hidden_size=384, num_attention_heads=6, image_size=518, out_indices=[3, 6, 9, 12], apply_layernorm=True,
        reshape_hidden_states=False,
    )  # fmt: skip
    config = DepthAnythingConfig(
        backbone_config=backbone, reassemble_hidden_size=384, neck_hidden_sizes=[48, 96, 192, 384],
        fusion_hidden_size=64, patch_size=14,
    )  # fmt: skip
    DepthAnythingForDepthEstimation(config).save_pretrained(folder)


def open_clip_tensors(
    width: int = 768, layers: int = 12, patch: int = 32, text_width: int = 512, size: int = 512, words: int = 49408
) -> dict[str, Tensor]:
    """CLIP ViT-B/32, or another size, under OpenCLIP's names."""
    positions = (224 // patch) ** 2 + 1
    made = {
        "visual.class_embedding": noise(width),
        "visual.positional_embedding": noise(positions, width),
        "visual.proj": noise(width, size),
        "visual.conv1.weight": noise(width, 3, patch, patch),
        **norm("visual.ln_pre", width),
        **norm("visual.ln_post", width),
        "positional_embedding": noise(77, text_width),
        "token_embedding.weight": noise(words, text_width),
        "text_projection": noise(text_width, size),
        "logit_scale": torch.tensor(4.6),
        **norm("ln_final", text_width),
    }
    for prefix, wide in (("visual.", width), ("", text_width)):
        for layer in range(layers):
            block = f"{prefix}transformer.resblocks.{layer}"
            made |= norm(f"{block}.ln_1", wide) | norm(f"{block}.ln_2", wide)
            made |= {
                f"{block}.attn.in_proj_weight": noise(3 * wide, wide),
                f"{block}.attn.in_proj_bias": noise(3 * wide),
                f"{block}.attn.out_proj.weight": noise(wide, wide),
                f"{block}.attn.out_proj.bias": noise(wide),
                f"{block}.mlp.c_fc.weight": noise(4 * wide, wide),
                f"{block}.mlp.c_fc.bias": noise(4 * wide),
                f"{block}.mlp.c_proj.weight": noise(wide, 4 * wide),
                f"{block}.mlp.c_proj.bias": noise(wide),
            }
    return made


def lpips_alex_tensors() -> dict[str, Tensor]:
    """LPIPS on AlexNet under the names of the lpips package."""
    made: dict[str, Tensor] = {}
    for depth, number, outside, inside, kernel in ALEX:
        made[f"net.slice{depth}.{number}.weight"] = noise(outside, inside, kernel, kernel)
        made[f"net.slice{depth}.{number}.bias"] = noise(outside)
        made[f"lin{depth - 1}.model.1.weight"] = noise(1, outside, 1, 1).abs()
    return made


def norm(name: str, width: int) -> dict[str, Tensor]:
    """A normalisation that does nothing more."""
    return {f"{name}.weight": torch.ones(width), f"{name}.bias": torch.zeros(width)}


def noise(*shape: int) -> Tensor:
    """Small random numbers."""
    return torch.randn(shape) * 0.02


def dinov3_base(folder: Path) -> None:
    """DINOv3 ViT-B/16 in the format of transformers."""
    from transformers import DINOv3ViTConfig, DINOv3ViTModel

    config = DINOv3ViTConfig(hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12,
                             num_register_tokens=4, patch_size=16, image_size=224)  # fmt: skip
    DINOv3ViTModel(config).save_pretrained(folder)


def clip_large(folder: Path) -> None:
    """CLIP ViT-L/14: its text side has 12 layers, its picture side 24."""
    made = open_clip_tensors(width=1024, layers=24, patch=14, text_width=768, size=768)
    saved(folder, {name: value for name, value in made.items() if name.startswith("visual.") or _early(name)})


def _early(name: str) -> bool:
    return ".resblocks." not in name or int(name.split(".")[2]) < 12


def clip_agreeing(folder: Path) -> None:
    """CLIP ViT-B/32 whose pictures and words have something in common, as a negative cosine would count as 0."""
    made = open_clip_tensors()
    made["text_projection"] = made["visual.proj"][: len(made["text_projection"])].clone()
    for name in ("visual.ln_post.bias", "ln_final.bias"):
        made[name] = torch.full_like(made[name], 0.5)
    saved(folder, made)


def raft(folder: Path) -> None:
    """RAFT-Large, whose steps are a hundredth of what chance makes them."""
    from revisit.networks.raft import RAFT

    net = RAFT()
    with torch.no_grad():
        net.update_block.flow_head.conv2.weight.mul_(0.01)
        net.update_block.flow_head.conv2.bias.zero_()
    saved(folder, net)


def sam2(folder: Path) -> None:
    """SAM 2.1 Hiera-T with its video memory; its object is always there, and its masks fill most of a frame."""
    from transformers import Sam2VideoConfig, Sam2VideoModel

    net = Sam2VideoModel(Sam2VideoConfig())
    with torch.no_grad():
        net.mask_decoder.pred_obj_score_head.proj_out.bias.fill_(10)
        net.mask_decoder.upscale_conv2.bias[0] = 5  # one channel that says the same everywhere
        for head in net.mask_decoder.output_hypernetworks_mlps:
            head.proj_out.weight.mul_(30)
            head.proj_out.weight[0] = 0
            head.proj_out.bias[0] = 0.035
    net.save_pretrained(folder)


def sam3(folder: Path) -> None:
    """SAM 3 with CLIP's kind of words, which finds what it is asked for, more or less surely."""
    from transformers import Sam3Config, Sam3Model

    net = Sam3Model(Sam3Config())
    with torch.no_grad():
        net.detr_decoder.presence_head.layer3.bias.fill_(2)
        for side in (net.dot_product_scoring.text_proj, net.dot_product_scoring.query_proj):
            side.weight.mul_(2)
            side.bias.fill_(0.3)  # their product, over 256 channels and divided by 16, is a logit of 1.4
    net.save_pretrained(folder)
    clip_words(folder)


def clip_words(folder: Path) -> None:
    """A vocabulary of CLIP's size, in which every character is a word."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = [*letters, *(letter + "</w>" for letter in letters)]
    names += [f"<|{k}|>" for k in range(49406 - len(names))] + ["<|startoftext|>", "<|endoftext|>"]
    ends = {name: names.index(name) for name in names[-2:]}
    made = Tokenizer(models.BPE({name: k for k, name in enumerate(names)}, [], end_of_word_suffix="</w>"))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.post_processor = processors.RobertaProcessing(
        ("<|endoftext|>", ends["<|endoftext|>"]), ("<|startoftext|>", ends["<|startoftext|>"]), add_prefix_space=False
    )
    made.save(str(folder / "tokenizer.json"))
    told = {"tokenizer_class": "CLIPTokenizerFast", "bos_token": "<|startoftext|>", "eos_token": "<|endoftext|>",
            "pad_token": "<|endoftext|>", "unk_token": "<|endoftext|>", "model_max_length": 77}  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(told))


def bert_words(folder: Path) -> None:
    """A vocabulary of BERT's size, in which every letter is a word."""
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = [chr(k) for k in range(33, 127) if not chr(k).isupper()]
    names = [*marks, *letters, *("##" + letter for letter in letters)]
    names += [f"[{k}]" for k in range(30522 - len(names))]
    (folder / "vocab.txt").write_text("\n".join(names) + "\n")


def grounding_dino(folder: Path) -> None:
    """Grounding DINO tiny: Swin-T and BERT-base."""
    from transformers import BertTokenizer, GroundingDinoConfig, GroundingDinoForObjectDetection, SwinConfig

    swin = SwinConfig(
        embed_dim=96, depths=[2, 2, 6, 2], num_heads=[3, 6, 12, 24], window_size=7, image_size=224,
        out_features=["stage2", "stage3", "stage4"],
    )  # fmt: skip
    net = GroundingDinoForObjectDetection(GroundingDinoConfig(backbone_config=swin))
    net.save_pretrained(folder)
    bert_words(folder)
    names = (folder / "vocab.txt").read_text().split()
    BertTokenizer(vocab={name: number for number, name in enumerate(names)}).save_pretrained(folder)


def image_reward(folder: Path) -> None:
    """ImageReward 1.0: ViT-L/16 and BERT-base."""
    from transformers import BlipTextConfig, BlipTextModel

    from revisit.networks.aesthetic import ScoreHead
    from revisit.networks.image_reward import TEXT, VISION

    wide, depth, sizes = 1024, 24, {"patch_embed.proj": (1024, 3, 16, 16), "norm": (1024,)}
    for k in range(depth):
        sizes |= {f"blocks.{k}.norm1": (wide,), f"blocks.{k}.norm2": (wide,), f"blocks.{k}.attn.proj": (wide, wide)}
        sizes |= {f"blocks.{k}.attn.qkv": (3 * wide, wide), f"blocks.{k}.mlp.fc1": (4 * wide, wide)}
        sizes |= {f"blocks.{k}.mlp.fc2": (wide, 4 * wide)}
    eye = {"cls_token": noise(1, 1, wide), "pos_embed": noise(1, 197, wide)}
    for name, size in sizes.items():
        eye |= {f"{name}.weight": noise(*size), f"{name}.bias": noise(size[0])}
    settings = BlipTextConfig(
        vocab_size=30524, hidden_size=768, encoder_hidden_size=wide, intermediate_size=3072, num_hidden_layers=12,
        num_attention_heads=12, max_position_embeddings=512,
    )  # fmt: skip
    text = BlipTextModel(settings, add_pooling_layer=False).state_dict()
    parts = {VISION: eye, TEXT: text, "mlp.": ScoreHead(768).state_dict()}
    saved(folder, {start + name: value for start, part in parts.items() for name, value in part.items()})


def clip_resnet(folder: Path) -> None:
    """CLIP RN50, with the scale that CLIP has."""
    from revisit.networks.clip_iqa import ResNetClip

    net = ResNetClip((3, 4, 6, 3), 64, 50, 49408, 512, 12, 77, 1024)
    with torch.no_grad():
        net.logit_scale.fill_(4.6)
        net.text_projection.normal_(std=0.04)
        net.positional_embedding.normal_(std=0.01)
    saved(folder, net)


def face_detector(folder: Path) -> None:
    """What has the inputs and outputs of SCRFD-10G, one convolution each: a few faces, all on the coarsest grid."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    nodes, outputs, tensors = [], [], []
    for part, (kind, width) in enumerate((("score", 1), ("box", 4), ("points", 10))):
        for stride in (8, 16, 32):
            name = f"{kind}{stride}"
            weight = rng.normal(0, (1.0, 0.2, 0.2)[part] / stride, (2 * width, 3, stride, stride))
            bias = (-2.0 if stride == 32 else -50.0, 2.0, 0.0)[part]
            tensors += [
                numpy_helper.from_array(weight.astype(np.float32), f"{name}w"),
                numpy_helper.from_array(np.full(2 * width, bias, np.float32), f"{name}b"),
                numpy_helper.from_array(np.array([-1, width], np.int64), f"{name}s"),
            ]
            nodes += [
                helper.make_node("Conv", ["input.1", f"{name}w", f"{name}b"], [f"{name}c"], strides=[stride, stride]),
                helper.make_node("Transpose", [f"{name}c"], [f"{name}t"], perm=[0, 2, 3, 1]),
                helper.make_node("Reshape", [f"{name}t", f"{name}s"], [f"{name}r"]),
                helper.make_node("Sigmoid" if kind == "score" else "Identity", [f"{name}r"], [name]),
            ]
            outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [f"n{stride}", width]))
    _graph(folder / "det_10g.onnx", nodes, [1, 3, "height", "width"], outputs, tensors)


def face_descriptor(folder: Path) -> None:
    """What has the inputs and outputs of ArcFace R50: means of 28 x 28 pixels, and one layer."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    weight = np.random.default_rng(1).normal(size=(48, 512)).astype(np.float32)
    nodes = [
        helper.make_node("AveragePool", ["input.1"], ["pooled"], kernel_shape=[28, 28], strides=[28, 28]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("MatMul", ["flat", "weight"], ["683"]),
    ]
    output = helper.make_tensor_value_info("683", TensorProto.FLOAT, ["n", 512])
    tensors = [numpy_helper.from_array(weight, "weight")]
    _graph(folder / "w600k_r50.onnx", nodes, ["n", 3, 112, 112], [output], tensors)


def _graph(path: Path, nodes: list[Any], shape: list[Any], outputs: list[Any], tensors: list[Any]) -> None:
    from onnx import TensorProto, helper, save

    source = helper.make_tensor_value_info("input.1", TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, "random", [source], outputs, tensors)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    made.ir_version = 8
    save(made, str(path))


def _musiq() -> nn.Module:
    from revisit.networks.musiq import Musiq

    return Musiq()


def _transnet() -> nn.Module:
    from revisit.networks.transnet import TransNetV2

    return TransNetV2()


def _i3d() -> nn.Module:
    from revisit.networks.i3d import I3D

    return I3D()


def _efficientnet() -> nn.Module:
    from revisit.networks.efficientnet_lite import EfficientNetLite0

    return EfficientNetLite0()


def _vgg19() -> nn.Module:
    from revisit.networks.gram import VGG19, Vgg

    return Vgg(VGG19)


def _aesthetic() -> nn.Module:
    from revisit.networks.aesthetic import ScoreHead

    return ScoreHead(768)


CHECKPOINTS: dict[str, Callable[[Path], None]] = {
    "dinov2-base": dinov2_base,
    "depth-anything-v2-small": depth_anything_small,
    "clip-vit-b-32-openai": lambda folder: saved(folder, open_clip_tensors()),
    "lpips_alex": lambda folder: saved(folder, lpips_alex_tensors()),
    "clip-vit-b-32-laion2b": clip_agreeing,
    "clip-vocabulary": clip_words,
    "clip-vit-l-14-openai": clip_large,
    "laion-aesthetic-v1": lambda folder: saved(folder, nn.Linear(768, 1)),
    "laion-aesthetic-v2": lambda folder: saved(folder, _aesthetic()),
    "clip-rn50": clip_resnet,
    "clip-iqa-plus": lambda folder: saved(folder, {"ctx": noise(2, 16, 512)}),
    "musiq-spaq": lambda folder: saved(folder, _musiq()),
    "image-reward": image_reward,
    "bert-words": bert_words,
    "dinov3-base": dinov3_base,
    "vgg19": lambda folder: saved(folder, _vgg19()),
    "raft-large": raft,
    "sam2.1-hiera-tiny": sam2,
    "sam3": sam3,
    "grounding-dino-tiny": grounding_dino,
    "transnetv2": lambda folder: saved(folder, _transnet()),
    "i3d-kinetics-400": lambda folder: saved(folder, _i3d()),
    "efficientnet-lite0": lambda folder: saved(folder, _efficientnet()),
    "buffalo-detector": face_detector,
    "buffalo-arcface": face_descriptor,
}


if __name__ == "__main__":
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= CHECKPOINTS.keys():
        raise SystemExit(__doc__)
    write_checkpoints(Path(sys.argv[1]), sys.argv[2:] or CHECKPOINTS)
