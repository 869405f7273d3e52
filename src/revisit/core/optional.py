"""Optional dependencies: libraries that are imported where they are used."""

from __future__ import annotations

import importlib
from typing import Any

from revisit.core.errors import MissingPrerequisite


def import_optional(module: str, extra: str) -> Any:
    """A module of an optional dependency, or the command that installs the `extra` which brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        missing = isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == name
        problem = "is not installed" if missing else f"is installed, but cannot be imported ({error})"
        raise MissingPrerequisite(f"{name} {problem}; `pip install 'revisit-bench[{extra}]'` brings it") from None
