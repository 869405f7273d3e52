"""Captions as the numbers that text networks read, in as many parts as their length takes.

A caption that is longer than a network reads is cut between sentences; a sentence that is longer still, anywhere.
Vocabularies: `tokenizer.json`, or CLIP's `vocab.json` and `merges.txt`, or a SentencePiece model (`spiece.model`), in
the folder of the network. All CLIPs have one vocabulary, which has an entry of its own, `clip-vocabulary`.
Broken characters are not repaired, as the original of CLIP does with the library ftfy.
"""

from __future__ import annotations

import html
import importlib
import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from revisit import weights
from revisit.core import MissingPrerequisite

CLIP_VOCABULARY = "clip-vocabulary"
START, END = "<|startoftext|>", "<|endoftext|>"
WORDS = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
SENTENCE_END = re.compile(r"(?<=[.!?;])\s+")
PUNCTUATION = str.maketrans("", "", string.punctuation)
SIGLIP_END = 1


@dataclass(frozen=True)
class Captions:
    """How one network reads captions."""

    encode: Callable[[str], list[int]]  # without the tokens at both ends
    start: tuple[int, ...]
    end: int
    pad: int
    length: int  # tokens that the network reads, with both ends

    def split_into_token_lists(self, caption: str) -> list[list[int]]:
        """The tokens of a caption, in one list or in several that the network can read, each with both ends."""
        room = self.length - len(self.start) - 1
        tokens = self.encode(caption)
        runs = [tokens]
        if len(tokens) > room:
            runs = [run[k : k + room] for run in self._pack_sentences(caption, room) for k in range(0, len(run), room)]
        return [[*self.start, *run, self.end] for run in runs]

    def _pack_sentences(self, caption: str, max_tokens: int) -> list[list[int]]:
        """Tokens of as many sentences at a time as there is room for."""
        runs: list[list[int]] = []
        for sentence in SENTENCE_END.split(caption.strip()):
            tokens = self.encode(sentence)
            if runs and len(runs[-1]) + len(tokens) <= max_tokens:
                runs[-1] = runs[-1] + tokens
            elif tokens:
                runs.append(tokens)
        return runs

    def pad_tokens(self, tokens: Sequence[int]) -> list[int]:
        """A part at the full length."""
        return [*tokens, *[self.pad] * (self.length - len(tokens))]


def read_clip_captions(folder: Path, length: int) -> Captions:
    """CLIP's reading of captions, from the vocabulary in the network's folder or from the one that all CLIPs share."""
    if not any((folder / name).is_file() for name in ("tokenizer.json", "vocab.json")):
        folder = weights.folder(CLIP_VOCABULARY)
    words = _load_clip_tokenizer(folder)
    ends = [words.token_to_id(token) for token in (START, END)]
    if None in ends:
        raise MissingPrerequisite(f"{folder}: its vocabulary has no {START} or no {END}, which CLIP's has")

    def encode(text: str) -> list[int]:
        plain = re.sub(r"\s+", " ", html.unescape(html.unescape(text))).strip()
        return words.encode(plain, add_special_tokens=False).ids

    return Captions(encode, (ends[0],), ends[1], 0, length)


def _load_clip_tokenizer(folder: Path) -> Any:
    tokenizers = import_tokenizer_library("tokenizers")
    if (folder / "tokenizer.json").is_file():
        return load_plain_tokenizer(folder / "tokenizer.json")
    files = folder / "vocab.json", folder / "merges.txt"
    if not all(file.is_file() for file in files):
        raise MissingPrerequisite(
            f"{folder}: captions need the vocabulary of CLIP: tokenizer.json, or vocab.json and merges.txt"
        )
    model = tokenizers.models.BPE.from_file(*map(str, files), end_of_word_suffix="</w>", unk_token=END)
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.normalizer = tokenizers.normalizers.Sequence(
        [tokenizers.normalizers.NFC(), tokenizers.normalizers.Lowercase()]
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [
            tokenizers.pre_tokenizers.Split(tokenizers.Regex(WORDS), behavior="removed", invert=True),
            tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    return tokenizer


def read_siglip_captions(folder: Path, length: int) -> Captions:
    """SigLIP's reading of captions: small letters, no punctuation, padded with the token of the end."""
    tokenizer_file, pieces_file = folder / "tokenizer.json", folder / "spiece.model"
    if tokenizer_file.is_file():
        words = load_plain_tokenizer(tokenizer_file)

        def token_ids(text: str) -> list[int]:
            return words.encode(text, add_special_tokens=False).ids
    elif pieces_file.is_file():
        pieces = import_tokenizer_library("sentencepiece")
        token_ids = pieces.SentencePieceProcessor(model_file=str(pieces_file)).encode
    else:
        raise MissingPrerequisite(f"{folder}: captions need the vocabulary of SigLIP: tokenizer.json or spiece.model")

    def encode(text: str) -> list[int]:
        return token_ids(" ".join(text.lower().translate(PUNCTUATION).split()))

    return Captions(encode, (), SIGLIP_END, SIGLIP_END, length)


def load_plain_tokenizer(path: Path, reader: Callable[[str], Any] | None = None) -> Any:
    """The vocabulary of a file, which neither cuts nor pads; of a tokenizer.json, unless told how to read it."""
    reader = reader or import_tokenizer_library("tokenizers").Tokenizer.from_file
    try:
        tokenizer = reader(str(path))
    except Exception as error:  # the library raises plain Exception
        raise MissingPrerequisite(f"{path}: it cannot be read as a vocabulary ({error}); fetch it again") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def import_tokenizer_library(name: str) -> Any:
    """A library that reads vocabularies."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingPrerequisite(f"{name} is not installed: pip install 'revisit-bench[networks]'") from error
