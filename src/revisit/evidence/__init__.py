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
    from revisit.evidence.answers import JudgeAnswers
    from revisit.evidence.appearance import (
        IntegrityTokens,
        LabStats,
        NetworkPatches,
        PatchFeatures,
        PictureStatistics,
        StyleStats,
    )
    from revisit.evidence.camera import CameraPath, ObservedCamera, RequestedCamera
    from revisit.evidence.fidelity import FrameFidelity, PairedViews, PerceptualDistance
    from revisit.evidence.frames import CasePhases, FrameFacts, Thumbnails
    from revisit.evidence.judged import JudgeFrames
    from revisit.evidence.motion import CutSignal, FlowStats, ShotChanges
    from revisit.evidence.objects import ObjectFeatures, ObjectMasks
    from revisit.evidence.poses import PoseTrack, TruePoseTrack
    from revisit.evidence.quality import AestheticQuality, ImagingQuality
    from revisit.evidence.reference_alignment import AppearanceDifference, CameraPaths, Departures, Overlay, TargetFacts
    from revisit.evidence.target import TargetLooks, TargetObservations, TargetPhases, TargetTrack
    from revisit.evidence.video import VideoFeatures
    from revisit.evidence.views import ReturnPairs, ViewLinks, ViewPhases, ViewRelations

__all__ = [
    "AestheticQuality",
    "AppearanceDifference",
    "CameraPath",
    "CameraPaths",
    "CasePhases",
    "CutSignal",
    "Departures",
    "FlowStats",
    "FrameFacts",
    "FrameFidelity",
    "ImagingQuality",
    "IntegrityTokens",
    "JudgeAnswers",
    "JudgeFrames",
    "LabStats",
    "NetworkPatches",
    "ObjectFeatures",
    "ObjectMasks",
    "ObservedCamera",
    "Overlay",
    "PairedViews",
    "PatchFeatures",
    "PerceptualDistance",
    "PictureStatistics",
    "PoseTrack",
    "RequestedCamera",
    "ReturnPairs",
    "ShotChanges",
    "StyleStats",
    "TargetFacts",
    "TargetLooks",
    "TargetObservations",
    "TargetPhases",
    "TargetTrack",
    "Thumbnails",
    "TruePoseTrack",
    "VideoFeatures",
    "ViewLinks",
    "ViewPhases",
    "ViewRelations",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a kind when it is first used: all of them take a tenth of a second."""
    if name in __all__:
        for module in pkgutil.iter_modules(__path__, f"{__name__}."):
            kind = getattr(import_module(module.name), name, None)
            if kind is not None and kind.__module__ == module.name:
                return kind
    raise AttributeError(f"there is no kind of evidence called {name!r}; `revisit list evidence` names all")
