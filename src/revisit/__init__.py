# ruff: noqa: F403, F405
"""Revisit: how well does a video world model remember?

    results = revisit.evaluate("videos/")
    results = revisit.score(frames, reference=truth)

Plugins import what they need from here, from `revisit.evidence` and from `revisit.benchmark`; all other modules may
change. Everything is imported when it is first used: `import revisit` alone costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from revisit._version import __version__ as __version__

if TYPE_CHECKING:
    from revisit import benchmark, evidence
    from revisit.api import evaluate, failure_clips, generate, load, observe, rescore, score
    from revisit.core.cases import *
    from revisit.core.errors import *
    from revisit.core.evidence import Array
    from revisit.core.evidence import evidence as evidence_kind
    from revisit.core.frame_metric import *
    from revisit.core.frames import *
    from revisit.core.metric import *
    from revisit.core.observer import *
    from revisit.core.reasons import *
    from revisit.core.records import *
    from revisit.core.scores import *
    from revisit.core.suites import *
    from revisit.measures import frame_lpips, frame_mse, frame_psnr, frame_ssim
    from revisit.monitor.checkpoint import Checkpoint
    from revisit.monitor.lightning import lightning_callback
    from revisit.monitor.monitor import Monitor
    from revisit.results import Results
    from revisit.results.tables import standard_summary
    from revisit.set_distances import DistanceEstimate, fid, fvd, kid, kvd

_HOMES = {
    "revisit.api": "evaluate failure_clips generate load observe rescore score",
    "revisit.core.suites": "metrics_of read_card",
    "revisit.measures": "frame_lpips frame_mse frame_psnr frame_ssim",
    "revisit.monitor.checkpoint": "Checkpoint",
    "revisit.monitor.lightning": "lightning_callback",
    "revisit.monitor.monitor": "Monitor",
    "revisit.results": "Results",
    "revisit.results.tables": "standard_summary",
    "revisit.set_distances": "DistanceEstimate fid fvd kid kvd",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}  # of others `revisit.core`
_SUBMODULES = ("benchmark", "evidence")
_DEPRECATED = {
    "Verdict": "GateResult", "lpips": "frame_lpips", "mse": "frame_mse", "psnr": "frame_psnr", "ssim": "frame_ssim",
}  # fmt: skip

__all__ = [
    "ANY_SET", "Array", "Batch", "Case", "Checkpoint", "Clip", "ClipInfo", "DistanceEstimate", "Frame", "FrameStream",
    "Gate", "GateResult", "Metric", "Monitor", "Observer", "PairStream", "Reason", "Record", "Rejected", "Results",
    "RevisitError", "Sampling", "Score", "Series", "Suite", "Target", "Unscored", "UsageError", "benchmark", "derived",
    "evaluate", "every", "evidence", "evidence_kind", "failure_clips", "fid", "frame_lpips", "frame_metric",
    "frame_mse", "frame_psnr", "frame_ssim", "fvd", "gate", "generate", "kid", "kvd", "lightning_callback", "load",
    "metric", "metrics_of", "observe", "observer", "per_second", "read_card", "rescore", "score", "standard_summary",
    "suite",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"revisit.{name}")
    if name in _DEPRECATED:
        import warnings

        new = _DEPRECATED[name]
        warnings.warn(f"revisit.{name} is called revisit.{new} now", DeprecationWarning, stacklevel=2)
        return __getattr__(new)
    if name == "evidence_kind":  # `revisit.evidence` is the package of all kinds
        value = import_module("revisit.core").evidence
    elif name in __all__:
        value = getattr(import_module(_HOME.get(name, "revisit.core")), name)
    else:
        from revisit.core.text import did_you_mean_question

        near = did_you_mean_question(name, __all__) or f"it has {', '.join(__all__)}"
        raise AttributeError(f"revisit has nothing called {name!r}; {near}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
