"""Answers that are kept: of the last evidence for several metrics of one clip, of a reference for several models."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from hashlib import blake2b
from typing import Any, TypeVar

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])


def cache_for_last_record(function: Function) -> Function:
    """The same function of a record and settings, which works nothing out twice for the record that it was last given.

    A record is the same if it is the same object. The last one and its answers are kept; nobody may change them.
    """
    last: tuple[Any, dict[Any, Any]] = None, {}

    @wraps(function)
    def cached_answer(record: Any, *settings: Any, **named: Any) -> Any:
        nonlocal last
        kept, answers = last  # another thread may replace it meanwhile
        if kept is not record:
            answers = {}
            last = record, answers
        key = settings, *named.items()
        if key not in answers:
            answers[key] = function(record, *settings, **named)
        return answers[key]

    return cached_answer  # type: ignore[return-value]


def cache_recent_results(max_results: int) -> Callable[[Function], Function]:
    """Keep so many answers of a function of arrays and plain values, for who asks about equal ones.

    Nobody may change the answers. Models of one scene have the same reference, but each a record of its own with it.
    """

    def decorate(function: Function) -> Function:
        answers: dict[bytes, Any] = {}

        @wraps(function)
        def cached_answer(*arguments: Any) -> Any:
            digest = blake2b()
            for value in arguments:
                if isinstance(value, np.ndarray):
                    digest.update(f"{value.dtype} {value.shape}".encode())
                    digest.update(np.ascontiguousarray(value).data)
                else:
                    digest.update(repr(value).encode())
            key = digest.digest()
            if key not in answers:
                result = function(*arguments)
                while len(answers) >= max_results:
                    answers.pop(next(iter(answers)), None)
                answers[key] = result
                return result
            return answers[key]

        return cached_answer  # type: ignore[return-value]

    return decorate
