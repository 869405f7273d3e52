"""Protocol: everything that must be equal for two numbers to be comparable, hashed."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def digest(facts: Any, length: int = 12) -> str:
    """Short SHA-256 of any JSON-able value, equal for equal values on every machine."""
    return sha256_hex_prefix(canonical_json(facts).encode(), length)


def canonical_json(facts: Any) -> str:
    """The one text of a JSON-able value that is hashed."""
    return _ENCODER.encode(facts)


def sha256_hex_prefix(text: bytes, length: int) -> str:
    return hashlib.sha256(text).hexdigest()[:length]


def _encode_for_json(value: Any) -> Any:
    if isinstance(value, tuple | set | frozenset):
        return sorted(value) if not isinstance(value, tuple) else list(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a value of type {type(value).__name__} cannot be part of a protocol")


# Made once: it is asked for often.
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=_encode_for_json)
