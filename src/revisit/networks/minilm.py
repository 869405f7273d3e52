"""all-MiniLM-L6-v2: sentence embeddings of 384 numbers, compared by cosine similarity.

An 8-bit ONNX file and the published tokenizer. Sequences are truncated at 256 tokens, as published; mean pooling over
tokens, then unit length. Eight-bit activations are scaled by what goes through the network at once, so
sentences go one at a time and do not depend on their company.

It sees what a sentence is about, hardly whether it is denied: "it stays" and "it does not stay" are alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from revisit import weights
from revisit.networks import onnx
from revisit.networks.tokenizing import load_plain_tokenizer

ID = "minilm"
TOKENS = "tokenizer.json"
LENGTH, LONGEST = 384, 256


def embed(texts: Sequence[str]) -> np.ndarray:
    """(N, 384) unit vectors, float32."""
    path = weights.file(ID)
    words, network = load_truncating_tokenizer(path.with_name(TOKENS)), onnx.load_session(path)
    vectors = np.zeros((len(texts), LENGTH), np.float32)
    for row, text in enumerate(texts):
        numbers = np.array([words.encode(text).ids], np.int64)
        inputs = {
            "input_ids": numbers,
            "attention_mask": np.ones_like(numbers),
            "token_type_ids": np.zeros_like(numbers),
        }
        mean = network.run(None, inputs)[0][0].mean(axis=0)
        vectors[row] = mean / np.linalg.norm(mean)
    return vectors


def similar_pairs_with_cosine(texts: Sequence[str], min_cosine: float) -> list[tuple[int, int, float]]:
    """Pairs of texts with a cosine of `min_cosine` or more, the most alike first."""
    vectors = embed(texts)
    likeness = vectors @ vectors.T
    pairs = [(a, b, float(likeness[a, b])) for a in range(len(texts)) for b in range(a + 1, len(texts))]
    return sorted((pair for pair in pairs if pair[2] >= min_cosine), key=lambda pair: -pair[2])


@cache
def load_truncating_tokenizer(path: Path) -> Any:
    """The tokenizer in a file."""
    tokens = load_plain_tokenizer(path)
    tokens.enable_truncation(LONGEST)
    return tokens
