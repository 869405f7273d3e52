"""Kinds of evidence: what observers write and metrics read, all importable from here.

One module per family. An array with a leading axis of frames comes with `index`, the frame numbers
in the clip. Positions are fractions of the frame (0-1, x right, y down) unless a name ends in `_px`.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from revisit.evidence.answers import JudgeAnswers
    from revisit.evidence.appearance import IntegrityTokens, LabStats, NetworkPatches, PatchFeatures, StyleStats
    from revisit.evidence.camera import AskedCamera, CameraPath, SeenCamera
    from revisit.evidence.fidelity import FrameFidelity, PairedViews, PerceptualDistance
    from revisit.evidence.frames import CasePhases, FrameFacts, Thumbnails
    from revisit.evidence.judged import Judgeability, JudgeFrames, ProbeAnswers, ProgressRatings, TriggerAnswer
    from revisit.evidence.mbench import (
        BodyFeatures,
        FaceFeatures,
        FoldPairs,
        GeometryTrack,
        GramDistances,
        ObjectFeatures,
        ObjectMasks,
        ObjectRegion,
        PairMatches,
        TextFeatures,
        WarpedViews,
    )
    from revisit.evidence.memory_clips import (
        AestheticScores,
        DepthMaps,
        Detections,
        IdentityTokens,
        ImageQuality,
        ImageRewards,
        VisualHalves,
        WarpErrors,
    )
    from revisit.evidence.motion import CutSignal, FlowStats, Outset, ShotChanges
    from revisit.evidence.poses import ActionTrack, PoseTrack, TruePoseTrack
    from revisit.evidence.quality import AestheticQuality, FeatureError, ImagingQuality
    from revisit.evidence.reference_alignment import CameraWays, Departures, Looks, Overlay, TargetFacts
    from revisit.evidence.target import TargetLooks, TargetPhases, TargetSight, TargetTrack
    from revisit.evidence.views import ReturnPairs, ViewLinks, ViewPhases, ViewRelations

__all__ = [
    "ActionTrack", "AestheticQuality", "AestheticScores", "AskedCamera", "BodyFeatures", "CameraPath", "CameraWays",
    "CasePhases", "CutSignal", "Departures", "DepthMaps", "Detections", "FaceFeatures", "FeatureError", "FlowStats",
    "FoldPairs", "FrameFacts", "FrameFidelity", "GeometryTrack", "GramDistances", "IdentityTokens", "ImageQuality",
    "ImageRewards", "ImagingQuality", "IntegrityTokens", "JudgeAnswers", "JudgeFrames", "Judgeability", "LabStats",
    "Looks", "NetworkPatches", "ObjectFeatures", "ObjectMasks", "ObjectRegion", "Outset", "Overlay", "PairMatches",
    "PairedViews", "PatchFeatures", "PerceptualDistance", "PoseTrack", "ProbeAnswers", "ProgressRatings",
    "ReturnPairs", "SeenCamera", "ShotChanges", "StyleStats", "TargetFacts", "TargetLooks", "TargetPhases",
    "TargetSight", "TargetTrack", "TextFeatures", "Thumbnails", "TriggerAnswer", "TruePoseTrack", "ViewLinks",
    "ViewPhases", "ViewRelations", "VisualHalves", "WarpErrors", "WarpedViews",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a kind when it is first used: all of them take a tenth of a second."""
    if name in __all__:
        for module in pkgutil.iter_modules(__path__, f"{__name__}."):
            kind = getattr(import_module(module.name), name, None)
            if kind is not None and kind.__module__ == module.name:
                return kind
    raise AttributeError(f"there is no kind of evidence called {name!r}; `revisit list evidence` names all")
