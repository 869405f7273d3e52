"""Registries: names to things, filled by decorators; plugins join through entry points."""

from __future__ import annotations

import difflib
import importlib
import logging
import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from typing import Generic, TypeVar

from revisit.core.errors import UsageError

T = TypeVar("T")
ENTRY_POINT_GROUP = "revisit.plugins"

# The rooms whose modules register something when they are imported. None of them imports OpenCV,
# PyAV or torch at the top of a module, so that listing what exists stays fast.
ROOMS = (
    "revisit.observers.lite",
    "revisit.observers.imports",
    "revisit.observers.small",
    "revisit.observers.paper",
    "revisit.judges",
    "revisit.judges.protocols",
    "revisit.metrics",
    "revisit.suites",
)


class Registry(Generic[T]):
    """Named things of one kind."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._things: dict[str, T] = {}

    def add(self, id: str, thing: T) -> None:
        known = self._things.get(id)
        if known is not None and _origin(known) != _origin(thing):
            raise UsageError(f"two {self.kind}s are called {id!r}: {_origin(known)} and {_origin(thing)}; rename one")
        self._things[id] = thing

    def __getitem__(self, id: str) -> T:
        load_all()
        if id not in self._things:
            near = difflib.get_close_matches(id, self._things, n=3)
            hint = f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(sorted(self._things)[:20])}"
            raise UsageError(f"there is no {self.kind} called {id!r}; {hint}")
        return self._things[id]

    def __contains__(self, id: str) -> bool:
        load_all()
        return id in self._things

    def __iter__(self) -> Iterator[str]:
        load_all()
        return iter(sorted(self._things))

    def values(self) -> list[T]:
        return [self._things[id] for id in self]


def _origin(thing: object) -> str:
    fn = getattr(thing, "fn", None) or getattr(thing, "read", None) or thing
    return f"{getattr(fn, '__module__', '?')}.{getattr(fn, '__qualname__', '?')}"


@cache
def load_all() -> None:
    """Import every room and every plugin, once per process."""
    for room in ROOMS:
        package = importlib.import_module(room)
        for module in pkgutil.iter_modules(package.__path__, f"{room}."):
            importlib.import_module(module.name)
    for point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            point.load()
        except Exception as error:  # one broken plugin must not take the others down
            logging.getLogger("revisit").warning(
                "plugin %s (%s) does not load: %s: %s", point.name, point.value, type(error).__name__, error
            )
