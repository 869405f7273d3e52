"""The last answer of a function of evidence, for several metrics that ask the same of one clip."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def keep_last(function: Function) -> Function:
    """The same function of a record, which is not worked out again when it is next asked about the same record.

    A record is the same if it is the same object. The last record and its answer are kept; nobody may change either.
    """
    last: tuple[Any, tuple[Any, ...], dict[str, Any], Any] | None = None

    @wraps(function)
    def answer(record: Any, *settings: Any, **named: Any) -> Any:
        nonlocal last
        kept = last  # another thread may replace it meanwhile
        if kept is not None and kept[0] is record and kept[1:3] == (settings, named):
            return kept[3]
        result = function(record, *settings, **named)
        last = record, settings, named, result
        return result

    return answer  # type: ignore[return-value]
