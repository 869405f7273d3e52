"""Tiny random checkpoints of the Qwen-VL family, written to disk as real ones are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

SPECIAL = ("<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
MERGES = ("y e", "ye s", "Y e", "Ye s", "Ġ yes", "n o", "N o", "Ġ no", "t h", "th e", "Ġ the", "i s")
PROCESSOR = {
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
    "min_pixels": 56 * 56,
    "max_pixels": 28 * 28 * 64,
    "patch_size": 14,
    "temporal_patch_size": 2,
    "merge_size": 2,
    "image_processor_type": "Qwen2VLImageProcessor",
}


def save_tokenizer(folder: Path) -> dict[str, int]:
    """A byte-level tokenizer with a few words; gives the ids of its control tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # type: ignore[import-not-found]
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [tuple(merge.split()) for merge in MERGES]
    words = [*letters, *("".join(merge) for merge in merges)]
    made = Tokenizer(models.BPE(vocab={word: id for id, word in enumerate(words)}, merges=merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(list(SPECIAL))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|im_end|>", pad_token="<|im_end|>")
    tokenizer.save_pretrained(folder)
    return {name: tokenizer.convert_tokens_to_ids(name) for name in SPECIAL}


def save_checkpoint(folder: Path, family: str = "qwen2_5_vl", seed: int = 0) -> Path:
    """A random checkpoint of a family, with tokenizer and image processor file."""
    import torch
    import transformers

    ids = save_tokenizer(folder)
    text = {
        "vocab_size": max(ids.values()) + 1, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 4096, "head_dim": 8,
        "rope_scaling": {"type": "mrope", "rope_type": "default", "mrope_section": [1, 1, 2]},
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [1, 1, 2]},
        "tie_word_embeddings": False,
    }  # fmt: skip
    vision: dict[str, object] = {
        "depth": 2,
        "num_heads": 2,
        "patch_size": 14,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
    }
    own: dict[str, dict[str, object]] = {
        "qwen2_vl": {"embed_dim": 16, "hidden_size": 32, "mlp_ratio": 2},
        "qwen2_5_vl": {
            "hidden_size": 16, "out_hidden_size": 32, "intermediate_size": 24, "window_size": 56,
            "fullatt_block_indexes": [1],
        },
        "qwen3_vl": {
            "hidden_size": 16, "out_hidden_size": 32, "intermediate_size": 24, "num_position_embeddings": 64,
            "deepstack_visual_indexes": [0],
        },
    }  # fmt: skip
    names = {"qwen2_vl": "Qwen2VL", "qwen2_5_vl": "Qwen2_5_VL", "qwen3_vl": "Qwen3VL"}
    config = getattr(transformers, f"{names[family]}Config")(
        text_config=text,
        vision_config=vision | own[family],
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
        tie_word_embeddings=False,
    )
    torch.manual_seed(seed)
    net = getattr(transformers, f"{names[family]}ForConditionalGeneration")(config).float()
    with torch.no_grad():  # the usual small weights would hardly tell one picture from another
        for name, weight in net.named_parameters():
            if weight.ndim > 1:
                weight.mul_(40.0 if "merger" in name else 12.0)
    net.generation_config.eos_token_id = ids["<|im_end|>"]
    net.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(PROCESSOR), encoding="utf-8")
    return folder


def save_talker(folder: Path, tokens: Sequence[str], family: str = "qwen2_5_vl", also: str = "") -> Path:
    """A checkpoint that replies with these tokens, whatever it is shown: each token alone decides the next.

    Every layer adds nothing, so the last token's embedding, one axis for each of these tokens, reaches the head. The
    first token follows the line end that closes a prompt; `also` is nearly as likely to. The last is repeated, if it
    does not end the turn.
    """
    import torch
    import transformers

    save_checkpoint(folder, family)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    net = transformers.AutoModelForImageTextToText.from_pretrained(folder)
    chain = [tokenizer.convert_tokens_to_ids(token) for token in ("Ċ", *tokens)]
    assert None not in chain and tokenizer.unk_token_id not in chain[1:]
    with torch.no_grad():
        for name, weight in net.named_parameters():
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                weight.zero_()
        embeddings, head = net.get_input_embeddings().weight, net.get_output_embeddings().weight
        embeddings.zero_()
        head.zero_()
        for axis, token in enumerate(dict.fromkeys(chain)):
            embeddings[token, axis] = 1.0
        for one, following in zip(chain, [*chain[1:], chain[-1]], strict=True):
            head[following] += 3.0 * embeddings[one]
        if also:
            head[tokenizer.convert_tokens_to_ids(also)] += 2.9 * embeddings[chain[0]]
    net.save_pretrained(folder)
    return folder
