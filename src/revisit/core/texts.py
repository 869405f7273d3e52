"""Text helpers: text that can be saved as UTF-8 (JSON may contain lone surrogates) and shown, and counted nouns."""

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


def shown_text(text: str) -> str:
    """Text that only says something: what drives a terminal, turns the way of reading or cannot be seen is U+FFFD.

    Line ends and tabs become spaces. Markup is left to who writes markup.
    """
    return "".join(
        " " if character in "\n\r\t" else character if character.isprintable() else "\ufffd" for character in text
    )


def counted(n: int, noun: str) -> str:
    """A number with its noun: 1 clip, 2 clips."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
