"""A small OpenAI-compatible server around a Qwen2.5-VL of a stated size with random weights, to load a GPU with.

    python benchmarks/throughput/vision_language_server.py [--size 7B] [--port 8000] [--device cuda]

POST /v1/chat/completions takes the messages that a judge sends: text and JPEG pictures as data URLs. Pictures are cut
into patches as for the real model, read, and some tokens are written greedily, one request at a time. The reply is
always "Yes": what a network with random weights writes means nothing; the time it takes is that of the real one.
"""

from __future__ import annotations

import argparse
import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import torch

from revisit.judges.patches import PatchRule, patches_and_grid
from revisit.judges.protocol import decode_jpeg

TEXT = {
    "7B": {"hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28,
           "num_key_value_heads": 4, "vocab_size": 152064},
    "3B": {"hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36, "num_attention_heads": 16,
           "num_key_value_heads": 2, "vocab_size": 151936},
    "tiny": {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
             "num_key_value_heads": 2, "vocab_size": 151936},
}  # fmt: skip
VISION = {
    "depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16, "patch_size": 14,
    "spatial_merge_size": 2, "temporal_patch_size": 2, "window_size": 112, "fullatt_block_indexes": [7, 15, 23, 31],
}  # fmt: skip
TINY_VISION = {"depth": 2, "hidden_size": 16, "intermediate_size": 24, "num_heads": 2, "fullatt_block_indexes": [1]}
START, END, PATCH, VIDEO = 151652, 151653, 151655, 151656  # tokens around a picture, of a patch, of a video
RULE = PatchRule(14, 2, 2, (0.481, 0.458, 0.408), (0.269, 0.261, 0.276), 56 * 56, 1280 * 28 * 28)
MOST_TOKENS = 16


def build(size: str, device: str) -> Any:
    """The model with random weights in bfloat16."""
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

    text: dict[str, Any] = dict(TEXT[size])
    section = [1, 1, 2] if size == "tiny" else [16, 24, 24]
    text |= {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": section}}
    vision = VISION | (TINY_VISION if size == "tiny" else {}) | {"out_hidden_size": text["hidden_size"]}
    config = Qwen2_5_VLConfig(
        text_config=text, vision_config=vision, image_token_id=PATCH, video_token_id=VIDEO,
        vision_start_token_id=START, vision_end_token_id=END, tie_word_embeddings=False,
    )  # fmt: skip
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(device):
            return Qwen2_5_VLForConditionalGeneration(config).eval()
    finally:
        torch.set_default_dtype(before)


class Answers:
    """Requests to the model, one at a time."""

    def __init__(self, size: str, device: str) -> None:
        self.model, self.device, self.lock = build(size, device), device, threading.Lock()

    def reply(self, messages: list[dict[str, Any]], most: int) -> dict[str, int]:
        """Read the messages, write tokens; how many of each."""
        ids: list[int] = []
        pictures: list[np.ndarray] = []
        for message in messages:
            content = message["content"]
            parts: list[dict[str, Any]] = content if isinstance(content, list) else [{"type": "text", "text": content}]
            for part in parts:
                if part["type"] == "text":
                    ids += list(part["text"].encode())[::4]  # about as many tokens as words have
                else:
                    pictures.append(decode_jpeg(base64.b64decode(part["image_url"]["url"].partition(",")[2])))
                    ids.append(-len(pictures))
        patches, grid = patches_and_grid(pictures, RULE) if pictures else (np.zeros((0, 1)), np.zeros((0, 3), np.int64))
        tokens: list[int] = []
        for number in ids:
            if number >= 0:
                tokens.append(number)
            else:
                _, rows, columns = grid[-number - 1] // (1, RULE.merge, RULE.merge)
                tokens += [START, *[PATCH] * int(rows * columns), END]
        row = torch.tensor([tokens], device=self.device)
        kinds = (row == PATCH).int()
        shown = {}
        if pictures:
            pixels = torch.from_numpy(patches).to(self.device, torch.bfloat16)
            shown = {"pixel_values": pixels, "image_grid_thw": torch.from_numpy(grid).to(self.device)}
            shown["mm_token_type_ids"] = kinds
        with self.lock, torch.inference_mode():
            out = self.model.generate(
                input_ids=row, attention_mask=torch.ones_like(row), max_new_tokens=most, min_new_tokens=most,
                do_sample=False, pad_token_id=0, **shown,
            )  # fmt: skip
        return {"prompt_tokens": len(tokens), "completion_tokens": int(out.shape[1]) - len(tokens)}


def handler(answers: Answers) -> type[BaseHTTPRequestHandler]:
    """What answers HTTP requests."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send({"object": "list", "data": [{"id": "random", "object": "model"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            most = int(body.get("max_tokens") or body.get("max_completion_tokens") or MOST_TOKENS)
            usage = answers.reply(body["messages"], min(most, MOST_TOKENS))
            message = {"role": "assistant", "content": "Yes"}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            usage["total_tokens"] = sum(usage.values())
            self.send({"object": "chat.completion", "model": "random", "choices": [choice], "usage": usage})

        def send(self, content: dict[str, Any]) -> None:
            data = json.dumps(content).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    return Handler


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", choices=TEXT, default="7B")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    chosen = parser.parse_args()
    answers = Answers(chosen.size, chosen.device)
    server = ThreadingHTTPServer(("127.0.0.1", chosen.port), handler(answers))
    count = sum(weight.numel() for weight in answers.model.parameters())
    print(f"{count / 1e9:.2f} billion weights on {chosen.device}, port {server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
