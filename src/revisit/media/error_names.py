"""Names: error messages about a clip start with its name, printable on one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from revisit.core import InvalidEvidence, MediaError
from revisit.core.text import truncate_text


def printable_line(text: str, longest: int = 300) -> str:
    """The text without control characters and on one line, so that a file name cannot write to the terminal."""
    clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return truncate_text(clean, longest)


@contextmanager
def raise_media_errors_naming_file(path: Path) -> Iterator[None]:
    """Put the name of the file in front of errors raised inside: of the disk, of its format, of what it holds."""
    name = printable_line(path.name or str(path))
    try:
        yield
    except (MediaError, InvalidEvidence) as error:
        sentence = str(error).removeprefix(f"{name}: ")  # readers inside may have named it
        raise MediaError(f"{name}: {sentence}") from error.__cause__
    except OSError as error:
        raise MediaError(f"{name}: it cannot be read ({error.strerror or type(error).__name__})") from error
