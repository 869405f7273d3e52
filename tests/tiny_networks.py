"""Small random networks of the paper set's real architectures, saved in the published formats."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np

from tests.later import later

transformers = later("transformers", reason="needs transformers")

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "?", "a", "red", "cup", "cat", "the"]


def save_sam2(folder: Path, *, sees: bool = False) -> None:
    """SAM 2; one that `sees` has biases by which it finds a large thing in every frame, wherever it is pointed at."""
    backbone = {
        "hidden_size": 16, "image_size": [128, 128], "blocks_per_stage": [1, 1, 2, 1],
        "embed_dim_per_stage": [16, 32, 64, 128], "num_attention_heads_per_stage": [1, 2, 4, 8],
        "window_size_per_stage": [4, 4, 4, 4], "global_attention_blocks": [3], "model_type": "sam2_hiera_det_model",
        "window_positional_embedding_background_size": [2, 2],
    }  # fmt: skip
    vision = {
        "backbone_config": backbone, "backbone_channel_list": [128, 64, 32, 16], "fpn_hidden_size": 128,
        "backbone_feature_sizes": [[32, 32], [16, 16], [8, 8]], "model_type": "sam2_vision_model",
    }  # fmt: skip
    config = transformers.Sam2VideoConfig(
        vision_config=vision,
        prompt_encoder_config={"hidden_size": 128, "image_size": 128, "patch_size": 16},
        mask_decoder_config={"hidden_size": 128, "mlp_dim": 64, "num_attention_heads": 4, "iou_head_hidden_dim": 128},
        image_size=128, memory_attention_hidden_size=128, memory_attention_num_layers=1,
        memory_attention_feed_forward_hidden_size=64, memory_attention_rope_feat_sizes=[8, 8],
        memory_encoder_hidden_size=128, memory_encoder_output_channels=64, mask_downsampler_embed_dim=128,
        memory_fuser_embed_dim=128, memory_fuser_intermediate_dim=64, memory_fuser_num_layers=1,
    )  # fmt: skip
    model = transformers.Sam2VideoModel(config).eval()
    if sees:
        decoder = model.mask_decoder
        decoder.pred_obj_score_head.proj_out.bias.data += 10
        for part in decoder.output_hypernetworks_mlps:
            part.proj_out.bias.data += 10
        decoder.upscale_conv2.bias.data += 1
    model.save_pretrained(folder, safe_serialization=True)


def save_sam3(folder: Path) -> None:
    vision = {
        "backbone_config": {
            "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
            "image_size": 112, "patch_size": 14, "window_size": 4, "global_attn_indexes": [1],
            "pretrain_image_size": 56, "model_type": "sam3_vit_model",
        },
        "fpn_hidden_size": 32, "backbone_feature_sizes": [[32, 32], [16, 16], [8, 8]],
    }  # fmt: skip
    small = {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 64}
    config = transformers.Sam3Config(
        vision_config=vision,
        text_config={
            "vocab_size": 12, "hidden_size": 32, "intermediate_size": 64, "projection_dim": 32,
            "num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 32,
            "bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0,
        },
        geometry_encoder_config={**small, "num_layers": 1},
        detr_encoder_config={**small, "num_layers": 1},
        detr_decoder_config={**small, "num_layers": 1, "num_queries": 12},
        mask_decoder_config={"hidden_size": 32, "num_attention_heads": 4, "num_upsampling_stages": 3},
    )  # fmt: skip
    transformers.Sam3Model(config).eval().save_pretrained(folder, safe_serialization=True)
    save_words(folder)


def save_grounding_dino(folder: Path) -> None:
    swin = {
        "embed_dim": 16, "depths": [1, 1, 1, 1], "num_heads": [1, 1, 2, 2], "window_size": 4, "image_size": 64,
        "out_features": ["stage2", "stage3", "stage4"], "model_type": "swin",
    }  # fmt: skip
    text = {
        "vocab_size": 12, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 64, "max_position_embeddings": 64, "model_type": "bert",
    }  # fmt: skip
    config = transformers.GroundingDinoConfig(
        backbone_config=swin, text_config=text, d_model=32, encoder_layers=1, encoder_ffn_dim=32,
        encoder_attention_heads=4, decoder_layers=2, decoder_ffn_dim=32, decoder_attention_heads=4, num_queries=10,
        max_text_len=32,
    )  # fmt: skip
    transformers.GroundingDinoForObjectDetection(config).eval().save_pretrained(folder, safe_serialization=True)
    save_words(folder)


def save_words(folder: Path) -> None:
    transformers.BertTokenizer(vocab={word: k for k, word in enumerate(VOCABULARY)}).save_pretrained(folder)


def save_dinov2(folder: Path) -> None:
    config = transformers.Dinov2Config(hidden_size=64, num_hidden_layers=1, num_attention_heads=1, image_size=224)
    transformers.Dinov2Model(config).eval().save_pretrained(folder, safe_serialization=True)


def fill_by_name(folder: Path) -> None:
    """Replaces the tensors of a saved network by random ones that depend on nothing but their names and shapes."""
    from safetensors.numpy import load_file, save_file

    path = folder / "model.safetensors"
    tensors = {}
    for name, tensor in load_file(path).items():
        values = 0.1 * np.random.RandomState(zlib.crc32(name.encode())).standard_normal(tuple(tensor.shape))
        scales = name.endswith(("norm1.weight", "norm2.weight", "layernorm.weight", "lambda1"))
        tensors[name] = np.asarray(values + scales, np.float32)
    save_file(tensors, path, metadata={"format": "pt"})
