"""Heavy libraries, imported when a test uses them: every worker reads all test files, and runs few of them."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any

import pytest


class Later:
    """A library by its name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # pytest asks everything in a file whether it is a test or a fixture
            raise AttributeError(name)
        return getattr(importlib.import_module(self._name), name)


def later(name: str, reason: str) -> Any:
    """The library; a file of tests whose library is missing is skipped."""
    if find_spec(name) is None:
        pytest.skip(reason, allow_module_level=True)
    return Later(name)
