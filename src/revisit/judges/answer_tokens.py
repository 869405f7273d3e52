"""The tokens of a vocabulary that mean yes or no: "Yes", " yes", "YES.", ..."""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping

# How byte-level and SentencePiece vocabularies write spaces and line ends.
SPACES = str.maketrans({"Ġ": " ", "▁": " ", "Ċ": "\n", "ĉ": "\t", "č": "\r"})
AROUND = string.whitespace + string.punctuation + "“”‘’«»。，！？"


def answer_tokens(vocabulary: Mapping[str, int] | Iterable[tuple[str, int]]) -> tuple[list[int], list[int]]:
    """Ids of the tokens that are a whole yes, and a whole no, whatever their case and the punctuation around them."""
    pairs = vocabulary.items() if isinstance(vocabulary, Mapping) else vocabulary
    found: dict[str, list[int]] = {"yes": [], "no": []}
    for token, id in pairs:
        word = token.translate(SPACES).strip(AROUND).lower()
        if word in found:
            found[word].append(id)
    return sorted(found["yes"]), sorted(found["no"])
