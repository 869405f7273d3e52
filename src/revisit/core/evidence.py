"""Evidence: frozen dataclasses of arrays and plain values, checked when they are made and saved without pickles.

A kind of evidence has an id, which is also the role an observer set fills. Fields are numpy
arrays, numbers, strings, booleans or None; `to_arrays` and `from_arrays` turn a record into
members of an npz file and back.

A field says what its array looks like: `box: Annotated[Array, "N, 4; finite"]`. Axes come first: numbers, or names that
stand for one length wherever they occur in the record, such as N, also as N + 1 or N - 1. Then what its values are:

    finite    none of them is nan or infinite
    rising      each is above the one before; `in order`: none is below it; `each once`: no duplicates
    0 to 1    none lies outside of these bounds, but for nan; `0 or 1`: each is one of the two

Rules are about the rows of one clip: while a batch mixes several (`allow_rows_of_several_clips`), only shapes count.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from revisit.core.errors import InvalidEvidence
from revisit.core.registry import Registry

T = TypeVar("T", bound=type)
Array = np.ndarray
Declared = tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]
PLAIN = "plain_fields_json"  # npz member that holds the fields that are not arrays

EVIDENCE: Registry[type] = Registry("evidence")
_mixed: ContextVar[bool] = ContextVar("rows of several clips", default=False)


@contextmanager
def allow_rows_of_several_clips() -> Iterator[None]:
    """Records made within hold rows of several clips, one clip after another; each clip's are checked when split."""
    before = _mixed.set(True)
    try:
        yield
    finally:
        _mixed.reset(before)


def evidence(id: str) -> Callable[[T], T]:
    """Register a frozen dataclass as a kind of evidence; its arrays are checked whenever a record is made.

    A field says what its array looks like: `mean: Annotated[Array, "N, 3; finite"]`. Axes come first: numbers, or names
    that stand for one length wherever they occur in the record. Behind the semicolon stands what the values are:
    `finite`, `rising`, `in order`, `each once`, `0 to 1`, `0 or 1`.

    Parameters
    ----------
    id
        Name of the kind, which is also the role that an observer of a set fills.

    Returns
    -------
    callable
        The decorator, which goes above `@dataclass(frozen=True)`.

    Examples
    --------
    >>> @revisit.evidence_kind(id="saturation")
    ... @dataclass(frozen=True)
    ... class Saturation:
    ...     "Mean saturation of each frame, 0 (grey) to 1."
    ...     index: Annotated[revisit.Array, "N; rising"]
    ...     mean: Annotated[revisit.Array, "N; finite, 0 to 1"]
    >>> Saturation(np.arange(3), np.array([0.5, 0.5, 0.25]))
    Saturation(index=int64 (3,), mean=float64 (3,))
    >>> Saturation(np.arange(3), np.zeros(2))
    Traceback (most recent call last):
    revisit.core.errors.InvalidEvidence: Saturation.mean has shape (2,); it must be (N), where N is 3 as in index
    """

    def register(cls: T) -> T:
        if not dataclasses.is_dataclass(cls):
            raise TypeError(f"{cls.__name__}: @evidence goes above @dataclass(frozen=True)")
        setattr(cls, "evidence_id", id)  # noqa: B010 - a name mypy need not know
        _add_validation_to_init(cls)
        setattr(cls, "__repr__", _repr_with_array_shapes)  # noqa: B010 - arrays by their shapes
        EVIDENCE.add(id, cls)
        return cls

    return register


def _repr_with_array_shapes(record: Any) -> str:
    values = ((f.name, getattr(record, f.name)) for f in dataclasses.fields(record) if f.repr)
    parts = (
        f"{name}={value.dtype} {value.shape}" if isinstance(value, np.ndarray) else f"{name}={value!r}"
        for name, value in values
    )
    return f"{type(record).__name__}({', '.join(parts)})"


def evidence_id(kind: type) -> str:
    """The id of a kind of evidence, or of a derived record."""
    identifier = getattr(kind, "evidence_id", None)
    if identifier is None:
        raise TypeError(f"{kind.__name__} is not a kind of evidence: decorate it with @evidence(id=...)")
    return str(identifier)


def _add_validation_to_init(kind: type) -> None:
    dataclass_init = kind.__init__  # type: ignore[misc]
    rules = functools.cache(lambda: declared_array_rules(kind))  # read when the first record is made

    @functools.wraps(dataclass_init)
    def validating_init(record: Any, *values: Any, **keywords: Any) -> None:
        dataclass_init(record, *values, **keywords)
        _check_record(record, rules())

    setattr(kind, "__init__", validating_init)  # noqa: B010 - of a dataclass, which has no other hook behind it


def _check_record(record: Any, declared: Declared) -> None:
    """Raise InvalidEvidence unless all arrays look as their fields say."""
    kind = type(record).__name__
    lengths: dict[str, tuple[int, str]] = {}  # axis -> its length, and the field that has it
    for name, axes, rules in declared:
        if (value := getattr(record, name)) is None:
            continue
        array = np.asarray(value)
        _check_shape(f"{kind}.{name}", name, array.shape, axes, lengths)
        for rule in rules:
            if not _mixed.get() and (wrong := _rule_violation(array, rule)):
                raise InvalidEvidence(f"{kind}.{name} {wrong}")


def declared_array_rules(kind: type) -> Declared:
    """Name, axes and rules of each field that declares them."""
    rows = []
    hints = get_type_hints(kind, include_extras=True)
    for f in dataclasses.fields(kind):
        if get_origin(hints[f.name]) is Annotated:
            axes, _, rules = get_args(hints[f.name])[1].partition(";")
            rows.append((f.name, tuple(_split_at_commas(axes)), tuple(_split_at_commas(rules))))
    return tuple(rows)


def _split_at_commas(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _check_shape(
    field: str, name: str, shape: tuple[int, ...], axes: tuple[str, ...], lengths: dict[str, tuple[int, str]]
) -> None:
    if len(shape) == len(axes):
        for axis, length in zip(axes, shape, strict=True):
            if axis.isidentifier():
                lengths.setdefault(axis, (length, name))
    letters = [axis.partition(" ")[0] for axis in axes]
    expected = []
    for axis, letter in zip(axes, letters, strict=True):
        length_of_axis = int(letter) if letter.isdecimal() else lengths.get(letter, (None, ""))[0]
        offset = int(axis.removeprefix(letter).replace(" ", "") or 0)  # of N + 1
        expected.append(None if length_of_axis is None else max(length_of_axis + offset, 0))
    if len(shape) != len(axes) or any(want not in (None, has) for want, has in zip(expected, shape, strict=True)):
        lengths_in_words = [
            f"{axis} is {lengths[axis][0]} as in {lengths[axis][1]}" for axis in {*letters} & lengths.keys()
        ]
        where = f", where {' and '.join(sorted(lengths_in_words))}" if lengths_in_words else ""
        raise InvalidEvidence(f"{field} has shape {shape}; it must be ({', '.join(axes)}){where}")


def _rule_violation(values: np.ndarray, rule: str) -> str:
    """What is wrong with the values of an array by one of its rules; "" if nothing is."""
    if rule == "finite":
        good = values.dtype.kind != "f" or bool(np.isfinite(values).all())
        return "" if good else "has values that are not finite; every row needs a number"
    if rule == "rising":
        sentence = "must be increasing: frame numbers in the order of the clip, without duplicates"
        return sentence if (np.diff(values) <= 0).any() else ""
    if rule == "in order":
        return "must not decrease: frame numbers in the order of the clip" if (np.diff(values) < 0).any() else ""
    if rule == "each once":
        return "" if len(np.unique(values)) == values.size else "has a duplicate; each number may occur once"
    if " or " in rule:
        allowed = np.isin(values, [float(one) for one in rule.split(" or ")])
        return "" if allowed.all() else f"must be {rule} in every row"
    low, _, high = rule.partition(" to ")
    outside = (values < float(low)) | (values > float(high))
    return f"must lie between {low} and {high}; one value is {values[outside][0]:.4g}" if outside.any() else ""


def to_arrays(record: Any) -> dict[str, np.ndarray]:
    """Arrays that hold the whole record."""
    arrays: dict[str, np.ndarray] = {}
    plain: dict[str, object] = {}
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
    plain = json.loads(arrays[PLAIN].tobytes().decode())
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()}
    return kind(**{**values, **{name: array for name, array in arrays.items() if name != PLAIN}})
