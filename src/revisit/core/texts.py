"""Texts that can be written down (JSON may hold halves of characters, which no UTF-8 file can), and counted nouns."""

from __future__ import annotations

from typing import Any


def mended(value: Any) -> Any:
    """The same value with every lone surrogate in its texts replaced by U+FFFD, down through lists and mappings."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [mended(item) for item in value]
    if isinstance(value, dict):
        return {mended(name): mended(item) for name, item in value.items()}
    return value


def counted(n: int, noun: str) -> str:
    """A number with its noun: 1 clip, 2 clips."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
