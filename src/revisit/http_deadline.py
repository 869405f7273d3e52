"""A deadline for a whole answer: the client's own limits are for the silence between two bytes of it.

A server that sends a byte of its headers now and then would never be given up otherwise.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpcore

_this = threading.local()  # a request is sent and read by one thread


@contextmanager
def limit_reading_time(seconds: float) -> Iterator[None]:
    """What is read from a server inside has to be there within so many seconds."""
    _this.deadline = time.monotonic() + seconds
    try:
        yield
    finally:
        _this.deadline = None


def enforce_deadlines(client: Any) -> None:
    """Make an httpx client keep to `limit_reading_time`."""
    for transport in (client._transport, *client._mounts.values()):
        if (pool := getattr(transport, "_pool", None)) is not None:
            pool._network_backend = _Backend(pool._network_backend)


class _Wrapper:
    """Something of httpcore's; what a subclass does not change is its own."""

    def __init__(self, wrapped: Any) -> None:
        self._wrapped = wrapped

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wrapped, name)


class _Stream(_Wrapper):
    """A stream whose reads keep to the deadline."""

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        deadline = getattr(_this, "deadline", None)
        if deadline is not None:
            seconds = deadline - time.monotonic()
            if seconds <= 0:
                raise httpcore.ReadTimeout
            timeout = seconds if timeout is None else min(timeout, seconds)
        return self._wrapped.read(max_bytes, timeout)

    def start_tls(self, *args: Any, **kwargs: Any) -> _Stream:
        return _Stream(self._wrapped.start_tls(*args, **kwargs))


class _Backend(_Wrapper):
    def connect_tcp(self, *args: Any, **kwargs: Any) -> _Stream:
        return _Stream(self._wrapped.connect_tcp(*args, **kwargs))
