"""Revisit: how well does a video world model remember?

    results = revisit.evaluate("videos/")
    results = revisit.score(frames, reference=truth)

Everything below is imported when it is first used: `import revisit` alone costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from revisit._version import __version__ as __version__

if TYPE_CHECKING:
    from revisit.api import evaluate, generate, load, observe, score
    from revisit.core import (
        Batch,
        Case,
        Clip,
        Reason,
        Record,
        Rejected,
        Score,
        Series,
        Suite,
        Target,
        Unscored,
        Verdict,
        derived,
        gate,
        metric,
        observer,
        suite,
    )  # fmt: skip
    from revisit.measures import lpips, mse, psnr, ssim
    from revisit.results import Results

_HOMES = {
    "revisit.api": ("evaluate", "generate", "load", "observe", "score"),
    "revisit.core": (
        "Batch", "Case", "Clip", "Reason", "Record", "Rejected", "Score", "Series", "Suite", "Target", "Unscored",
        "Verdict", "derived", "gate", "metric", "observer", "suite",
    ),
    "revisit.measures": ("lpips", "mse", "psnr", "ssim"),
    "revisit.results": ("Results",),
}  # fmt: skip
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Batch", "Case", "Clip", "Reason", "Record", "Rejected", "Results", "Score", "Series", "Suite", "Target",
    "Unscored", "Verdict", "derived", "evaluate", "gate", "generate", "load", "lpips", "metric", "mse", "observe",
    "observer", "psnr", "score", "ssim", "suite",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"revisit has nothing called {name!r}; it has {', '.join(__all__)}")
    from importlib import import_module

    found = getattr(import_module(_HOME[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
