"""Secrets: read from the environment or a file, sent in one header, and removed from everything that is saved."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from revisit.core import UsageError

SHOWN = "[key]"


@dataclass(frozen=True, repr=False)
class Secret:
    """A key that shows itself to nobody but `reveal`."""

    _value: str

    def __repr__(self) -> str:
        return SHOWN

    __str__ = __repr__

    def reveal(self) -> str:
        return self._value

    def redact(self, text: str) -> str:
        """The text without the key, which a server may have echoed."""
        return text.replace(self._value, SHOWN) if self._value else text


def find_secret(variable: str = "", file: Path | None = None) -> Secret:
    """The key from an environment variable or a file; an empty one where neither is named."""
    if variable and file is not None:
        raise UsageError("give either key_env or key_file for the judge's key, not both")
    if file is not None:
        try:
            value = file.expanduser().read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{file}: the judge's key cannot be read ({type(error).__name__})") from None
    else:
        value = os.environ.get(variable, "").strip() if variable else ""
        if variable and not value:
            raise UsageError(f"the judge's key is read from ${variable}, which is not set: export {variable}=...")
    if any(character.isspace() or not character.isprintable() or ord(character) > 126 for character in value):
        raise UsageError(
            "the judge's key contains spaces or special characters; a key is one word of plain ASCII characters"
        )
    return Secret(value)
