"""Networks at their full size with random numbers, in the formats they are published in.

Run: python benchmarks/full_size.py FOLDER; then REVISIT_WEIGHTS=FOLDER. Numbers of what such networks see mean nothing,
and the time they take is that of the real ones. About 1 GB.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import Tensor

ALEX = ((1, 0, 64, 3, 11), (2, 3, 192, 64, 5), (3, 6, 384, 192, 3), (4, 8, 256, 384, 3), (5, 10, 256, 256, 3))


def write_checkpoints(root: Path, seed: int = 0) -> list[str]:
    """Ids of the weights written below a folder: DINOv2-B, CLIP ViT-B/32, Depth Anything V2 Small, LPIPS-Alex."""
    from safetensors.torch import save_file

    torch.manual_seed(seed)
    root.mkdir(parents=True, exist_ok=True)
    dinov2_base(root / "dinov2-base")
    depth_anything_small(root / "depth-anything-v2-small")
    save_file(open_clip_tensors(), root / "clip-vit-b-32-openai.safetensors")
    save_file(lpips_alex_tensors(), root / "lpips_alex.safetensors")
    return ["dinov2-base", "depth-anything-v2-small", "clip-vit-b-32-openai", "lpips_alex"]


def write_more(root: Path, seed: int = 0) -> list[str]:
    """Ids of further weights: what the other networks of the paper set need to give numbers for frames and pairs."""
    from safetensors.torch import save_file
    from transformers import DINOv3ViTConfig, DINOv3ViTModel

    from revisit.networks.aesthetic import Layers
    from revisit.networks.gram import VGG19, Vgg
    from revisit.networks.musiq import Musiq
    from revisit.networks.raft import RAFT

    torch.manual_seed(seed)
    config = DINOv3ViTConfig(hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12,
                             num_register_tokens=4, patch_size=16, image_size=224)  # fmt: skip
    DINOv3ViTModel(config).save_pretrained(root / "dinov3-base")
    large = open_clip_tensors(width=1024, layers=24, patch=14, text_width=768, size=768)
    large = {name: value for name, value in large.items() if ".resblocks." not in name or _kept(name)}
    modules = {"vgg19": Vgg(VGG19), "raft-large": RAFT(), "musiq-spaq": Musiq(), "laion-aesthetic-v2": Layers(768),
               "laion-aesthetic-v1": torch.nn.Linear(768, 1)}  # fmt: skip
    states = {id: made.state_dict() for id, made in modules.items()} | {"clip-vit-l-14-openai": large}
    for id, state in states.items():
        save_file({name: value.contiguous() for name, value in state.items()}, root / f"{id}.safetensors")
    return ["dinov3-base", *states]


def _kept(name: str) -> bool:
    """Whether CLIP ViT-L/14 has this tensor: its text side has 12 layers, its picture side 24."""
    return name.startswith("visual.") or int(name.split(".")[2]) < 12


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


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    print(", ".join([*write_checkpoints(Path(sys.argv[1])), *write_more(Path(sys.argv[1]))]))
