"""Evidence: frozen dataclasses of arrays and plain values, saved without pickles.

A kind of evidence has an id, which is also the role an observer set fills. Fields are numpy
arrays, numbers, strings, booleans or None; `to_arrays` and `from_arrays` turn a record into
members of an npz file and back.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from revisit.core.registry import Registry

T = TypeVar("T", bound=type)
PLAIN = "plain_fields_json"  # npz member that holds the fields that are not arrays

EVIDENCE: Registry[type] = Registry("evidence")


def evidence(id: str) -> Callable[[T], T]:
    """Register a frozen dataclass as a kind of evidence."""

    def register(cls: T) -> T:
        if not dataclasses.is_dataclass(cls):
            raise TypeError(f"{cls.__name__}: @evidence goes above @dataclass(frozen=True)")
        setattr(cls, "evidence_id", id)  # noqa: B010 - a name mypy need not know
        EVIDENCE.add(id, cls)
        return cls

    return register


def evidence_id(kind: type) -> str:
    """The id of a kind of evidence, or of a derived record."""
    found = getattr(kind, "evidence_id", None)
    if found is None:
        raise TypeError(f"{kind.__name__} is not a kind of evidence: decorate it with @evidence(id=...)")
    return str(found)


def to_arrays(record: Any) -> dict[str, np.ndarray]:
    """Arrays that hold the whole record."""
    arrays: dict[str, np.ndarray] = {}
    plain: dict[str, Any] = {}
    for f in dataclasses.fields(record):
        value = getattr(record, f.name)
        if isinstance(value, np.ndarray):
            if value.dtype.hasobject:
                raise TypeError(f"{type(record).__name__}.{f.name} holds Python objects; evidence holds numbers")
            arrays[f.name] = value
        else:
            plain[f.name] = value
    arrays[PLAIN] = np.frombuffer(json.dumps(plain).encode(), dtype=np.uint8)
    return arrays


def from_arrays(kind: type, arrays: Mapping[str, np.ndarray]) -> Any:
    """The record that `to_arrays` took apart."""
    values: dict[str, Any] = json.loads(arrays[PLAIN].tobytes().decode())
    values.update({name: array for name, array in arrays.items() if name != PLAIN})
    for name, value in values.items():
        if isinstance(value, list):
            values[name] = tuple(value)
    return kind(**values)
