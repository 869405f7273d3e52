"""Registries: names to things, filled by decorators; plugins join through entry points.

A benchmark is a folder of `revisit.suites`, or a package that a plugin's entry point names. Its files are found by
their names: PARTS register evidence, observers, metrics, questions, importers and the suite, and are imported with
everything else; others
(`world`, `commands`) are imported when somebody asks for them.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import pkgutil
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Generic, TypeVar

from revisit.core.errors import UsageError
from revisit.core.text import suggest_names

T = TypeVar("T")
ENTRY_POINT_GROUP = "revisit.plugins"

# The rooms whose modules register something when they are imported. None of them imports OpenCV,
# PyAV or torch at the top of a module, so that listing what exists stays fast.
ROOMS = ("revisit.observers", "revisit.metrics")
BENCHMARKS = "revisit.suites"
PARTS = ("evidence", "observers", "metrics", "questions", "imports", "suite")


packages_with_registrations = {"revisit"}  # and those of plugins and scripts, whose modules have registered something


class Registry(Generic[T]):
    """Named things of one kind; those of a part that is not imported with everything else are there when asked for."""

    def __init__(self, kind: str, part: str = "") -> None:
        self.kind = kind
        self.part = part
        self._things: dict[str, T] = {}

    def add(self, id: str, thing: T) -> T:
        """The thing, under this name from now on."""
        existing = self._things.get(id)
        if existing is not None and _qualified_name(existing) != _qualified_name(thing):
            raise UsageError(
                f"two {self.kind}s are called {id!r}: {_qualified_name(existing)} and {_qualified_name(thing)}; "
                "rename one"
            )
        self._things[id] = thing
        packages_with_registrations.add(_qualified_name(thing).partition(".")[0])
        return thing

    def __getitem__(self, id: str) -> T:
        self._import_modules()
        if id not in self._things:
            raise UsageError(f"there is no {self.kind} called {id!r}; {suggest_names(id, sorted(self._things))}")
        return self._things[id]

    def registered(self, id: str) -> T | None:
        """The thing of this name, if a module that is imported already registered it."""
        return self._things.get(id)

    def __contains__(self, id: str) -> bool:
        self._import_modules()
        return id in self._things

    def __iter__(self) -> Iterator[str]:
        self._import_modules()
        return iter(sorted(self._things))

    def values(self) -> list[T]:
        return [self._things[id] for id in self]

    def _import_modules(self) -> None:
        if self.part:
            import_part_of_benchmarks(self.part)
        else:
            import_registering_modules()


def _qualified_name(thing: object) -> str:
    fn = getattr(thing, "fn", None) or getattr(thing, "read", None) or thing
    return f"{getattr(fn, '__module__', '?')}.{getattr(fn, '__qualname__', '?')}"


@cache
def import_registering_modules() -> None:
    """Import every room, every benchmark and every plugin, once per process."""
    for room in ROOMS:
        _import_package_and_modules(room)
    for part in PARTS:
        import_part_of_benchmarks(part)


@cache
def import_part_of_benchmarks(part: str) -> tuple[ModuleType, ...]:
    """A part of all benchmarks that have it, a file or a folder of files: of ours, then of plugins."""
    suites = importlib.import_module(BENCHMARKS)
    ours = [f"{BENCHMARKS}.{name}" for _, name, is_folder in pkgutil.iter_modules(suites.__path__) if is_folder]
    modules = []
    for folder in (*ours, *(plugin.__name__ for plugin in _load_plugin_modules() if hasattr(plugin, "__path__"))):
        if importlib.util.find_spec(f"{folder}.{part}") is None:
            continue
        try:
            modules.append(_import_package_and_modules(f"{folder}.{part}"))
        except Exception as error:
            if folder in ours:
                raise
            _warn_not_loaded(f"plugin {folder}, its {part}", error)
    return tuple(modules)


@cache
def _load_plugin_modules() -> tuple[ModuleType, ...]:
    """The packages and modules that entry points name; one that does not load costs only itself."""
    from importlib.metadata import entry_points  # here, because `revisit --version` can do without

    modules = []
    for point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            loaded = point.load()
        except Exception as error:
            _warn_not_loaded(f"plugin {point.name} ({point.value})", error)
        else:
            modules += [loaded] if isinstance(loaded, ModuleType) else []
    return tuple(modules)


def _import_package_and_modules(name: str) -> ModuleType:
    package = importlib.import_module(name)
    for module in pkgutil.iter_modules(getattr(package, "__path__", ()), f"{name}."):
        importlib.import_module(module.name)
    return package


def _warn_not_loaded(thing_name: str, error: Exception) -> None:
    logging.getLogger("revisit").warning("%s does not load: %s: %s", thing_name, type(error).__name__, error)
