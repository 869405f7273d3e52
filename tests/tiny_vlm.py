"""A vision-language model of random numbers for llama.cpp, written by hand: a small Llama and a small LLaVA projector.

Its vocabulary holds bytes, letters and the spellings of yes and no; the rows of these are larger, so that it answers
with one of them. It knows nothing, but frames reach it through a real encoder and its log-probabilities are real.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

WIDTH, LAYERS, HEADS = 64, 2, 4  # of the language model
SIGHT, PATCH, IMAGE = 32, 14, 56  # of the encoder: (56 / 14)^2 = 16 tokens for each picture
WORDS = ("▁yes", "▁no", "▁Yes", "▁No", "Yes", "No", "yes", "no")
TEMPLATE = (
    "{% for message in messages %}{{ message['role'] + ': ' + message['content'] + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)


def write_tiny_vlm(folder: Path, seed: int = 0) -> tuple[Path, Path]:
    """Paths of the language model and of its projector."""
    rng = np.random.default_rng(seed)

    def random(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) * shape[-1] ** -0.5).astype(np.float32)

    model, projector = folder / "model.gguf", folder / "mmproj.gguf"
    _write_language_model(model, random)
    _write_projector(projector, random)
    return model, projector


def _write_language_model(path: Path, random: Any) -> None:
    import gguf

    tokens, kinds = [b"<unk>", b"<s>", b"</s>"], [2, 3, 3]
    tokens += [f"<0x{k:02X}>".encode() for k in range(256)]
    kinds += [6] * 256
    letters = ["▁", *"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:;?!'\"()-\n"]
    tokens += [word.encode() for word in (*letters, *WORDS)]
    kinds += [1] * (len(tokens) - len(kinds))
    output = random(len(tokens), WIDTH)
    output[-len(WORDS) :] *= 6

    file = gguf.GGUFWriter(str(path), "llama")
    file.add_name("tiny")
    file.add_context_length(4096)
    file.add_embedding_length(WIDTH)
    file.add_block_count(LAYERS)
    file.add_feed_forward_length(2 * WIDTH)
    file.add_head_count(HEADS)
    file.add_head_count_kv(HEADS)
    file.add_layer_norm_rms_eps(1e-5)
    file.add_rope_dimension_count(WIDTH // HEADS)
    file.add_vocab_size(len(tokens))
    file.add_tokenizer_model("llama")
    file.add_tokenizer_pre("default")
    file.add_token_list(tokens)
    file.add_token_scores([-float(k) for k in range(len(tokens))])
    file.add_token_types(kinds)
    file.add_bos_token_id(1)
    file.add_eos_token_id(2)
    file.add_unk_token_id(0)
    file.add_add_bos_token(True)
    file.add_chat_template(TEMPLATE)
    file.add_tensor("token_embd.weight", random(len(tokens), WIDTH))
    file.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    file.add_tensor("output.weight", output)
    for k in range(LAYERS):
        for name in ("attn_norm", "ffn_norm"):
            file.add_tensor(f"blk.{k}.{name}.weight", np.ones(WIDTH, np.float32))
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            file.add_tensor(f"blk.{k}.{name}.weight", random(WIDTH, WIDTH))
        for name in ("ffn_gate", "ffn_up"):
            file.add_tensor(f"blk.{k}.{name}.weight", random(2 * WIDTH, WIDTH))
        file.add_tensor(f"blk.{k}.ffn_down.weight", random(WIDTH, 2 * WIDTH))
    _finish(file)


def _write_projector(path: Path, random: Any) -> None:
    import gguf

    file = gguf.GGUFWriter(str(path), "clip")
    file.add_bool("clip.has_vision_encoder", True)
    file.add_bool("clip.has_llava_projector", True)
    file.add_string("clip.projector_type", "mlp")
    file.add_bool("clip.use_gelu", True)
    numbers = {
        "image_size": IMAGE, "patch_size": PATCH, "embedding_length": SIGHT, "feed_forward_length": 2 * SIGHT,
        "projection_dim": WIDTH, "attention.head_count": HEADS, "block_count": LAYERS,
    }  # fmt: skip
    for name, number in numbers.items():
        file.add_uint32(f"clip.vision.{name}", number)
    file.add_float32("clip.vision.attention.layer_norm_epsilon", 1e-5)
    for name in ("image_mean", "image_std"):
        file.add_array(f"clip.vision.{name}", [0.5, 0.5, 0.5])

    def layer(name: str, *shape: int, norm: bool = False) -> None:
        file.add_tensor(f"{name}.weight", np.ones(shape, np.float32) if norm else random(*shape))
        file.add_tensor(f"{name}.bias", np.zeros(shape[0], np.float32))

    file.add_tensor("v.class_embd", random(SIGHT))
    file.add_tensor("v.patch_embd.weight", random(SIGHT, 3, PATCH, PATCH))
    file.add_tensor("v.position_embd.weight", random((IMAGE // PATCH) ** 2 + 1, SIGHT))
    layer("v.pre_ln", SIGHT, norm=True)
    layer("v.post_ln", SIGHT, norm=True)
    for k in range(LAYERS):
        for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
            layer(f"v.blk.{k}.{name}", SIGHT, SIGHT)
        for name in ("ln1", "ln2"):
            layer(f"v.blk.{k}.{name}", SIGHT, norm=True)
        layer(f"v.blk.{k}.ffn_up", 2 * SIGHT, SIGHT)
        layer(f"v.blk.{k}.ffn_down", SIGHT, 2 * SIGHT)
    layer("mm.0", WIDTH, SIGHT)
    layer("mm.2", WIDTH, WIDTH)
    _finish(file)


def _finish(file: Any) -> None:
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()
