"""Limits: how much of this machine one clip may use before it is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace

from revisit.core import UsageError

GIB = 1 << 30
_SUFFIXES = "KMGT"
_BINARY = ("memory", "file_size")  # counted in bytes, where K, M and G are powers of 1024


@dataclass(frozen=True)
class Limits:
    """What one clip may cost. The defaults admit 8K video and ten minutes at 30 frames a second."""

    pixels: int = 7680 * 4320  # per frame
    frames: int = 20_000
    seconds: int = 600  # spent waiting for the decoder; time the caller spends on frames is not counted
    memory: int = 4 * GIB  # address space of the decoding process, in bytes
    file_size: int = 8 * GIB  # of the video, or of all images of a folder together

    @classmethod
    def parse(cls, text: str) -> Limits:
        """Limits from text such as `frames=20000,seconds=60,memory=2G`; what is not named keeps its default."""
        names = [f.name for f in fields(cls)]
        changes: dict[str, int] = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            name, equals, value = (piece.strip() for piece in part.partition("="))
            if name not in names or not equals:
                raise UsageError(
                    f"{part!r} is not a limit; write name=number, separated by commas; the names are {', '.join(names)}"
                )
            changes[name] = _parse_limit(name, value)
        return replace(cls(), **changes)


def _parse_limit(name: str, text: str) -> int:
    match = re.fullmatch(rf"(\d{{1,15}}(?:\.\d{{1,6}})?)([{_SUFFIXES}]?)(?:i?B)?", text, re.IGNORECASE)
    value = 0
    if match:
        power = _SUFFIXES.index(match[2].upper()) + 1 if match[2] else 0
        value = int(float(match[1]) * (1024 if name in _BINARY else 1000) ** power)
    if value < 1:
        raise UsageError(
            f"the limit {name}={text!r} is not a number above zero; write for example 500, 20K, 33.2M or 2G"
        )
    return value


def format_size(count: int) -> str:
    """A number of bytes for a sentence: `512 bytes`, `2.0 GiB`."""
    value, unit = float(count), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{count} bytes" if unit == "bytes" else f"{value:.1f} {unit}"
