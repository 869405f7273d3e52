# ruff: noqa: F403, F405
"""Kinds of evidence: what observers write and metrics read, all importable from here.

Those that only one benchmark uses are in `evidence.py` of its folder.

One module per family. An array with a leading axis of frames comes with `index`, the frame numbers
in the clip. Positions are fractions of the frame (0-1, x right, y down) unless a name ends in `_px`.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from revisit.evidence.appearance import *
    from revisit.evidence.camera import *
    from revisit.evidence.frames import *
    from revisit.evidence.judged import *
    from revisit.evidence.motion import *
    from revisit.evidence.reference import *
    from revisit.evidence.target import *
    from revisit.evidence.views import *


def __getattr__(name: str) -> Any:
    """A kind, or with `__all__` their names; modules are imported on first use, for all take a tenth of a second."""
    names = []
    if name == "__all__" or name[0].isupper():
        for module in pkgutil.iter_modules(__path__, f"{__name__}."):
            for kind in vars(import_module(module.name)).values():
                if hasattr(kind, "evidence_id") and kind.__module__ == module.name:
                    if kind.__name__ == name:
                        return kind
                    names.append(kind.__name__)
    if name == "__all__":
        return names
    raise AttributeError(f"there is no kind of evidence called {name!r}; `revisit list evidence` names all")
