"""One clip with everything: a case, and a record of every kind of evidence that observers make.

The clip slides over a wall and back; a box on it changes in view, leaves, changes unseen, and returns. What classical
observers see is observed; what takes a network, a judge or a file is written by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import ANY_SET, OBSERVERS, Case, Clip, Frame, Target, evidence_id
from revisit.evidence.appearance import AestheticQuality, ImagingQuality, IntegrityTokens, NetworkPatches
from revisit.evidence.camera import PoseTrack, TruePoseTrack
from revisit.evidence.judged import JudgeAnswers
from revisit.evidence.motion import ShotChanges, VideoFeatures
from revisit.evidence.reference import PerceptualDistance
from revisit.evidence.target import ObjectFeatures, ObjectMasks, TargetLooks
from revisit.suites.folder.evidence import MemoryAnswers
from revisit.suites.mbench.evidence import (
    BodyFeatures,
    FaceFeatures,
    GeometryTrack,
    GramDistances,
    PairMatches,
    ProgressRatings,
    TextFeatures,
    TriggerAnswer,
    WarpedViews,
)
from revisit.suites.memobench.evidence import AestheticScores, DepthMaps, Detections, ImageQuality, ImageRewards
from revisit.suites.memobench.metrics.answers import DIMENSIONS
from revisit.suites.mind.evidence import ActionTrack, DistanceFromStart, FeatureError
from revisit.suites.wbench.evidence import (
    BackgroundVectors,
    CaseRatings,
    DreamSimDistances,
    Reprojections,
    ResultFile,
)
from revisit.suites.worldmark.evidence import (
    FrameVectors,
    GeometryError,
    KeyFlow,
    KeyParallax,
    SmallFrameVectors,
    VideoRating,
)
from revisit.suites.wrbench.evidence import Judgeability, ProbeAnswers
from tests.looking import as_frames, look, wall, window

COUNT, FPS = 33, 8.0
CHANGED, HIDDEN, RETURNED = 4, 11, 22
FARTHEST = 360  # columns of the wall that the window slides away, and back
TARGET = Target("box", (0.5, 0.4, 0.7, 0.75))
CAMERA = "yaw:right:30@16,yaw:left:30@16"
JUDGED = (
    "scene_adherence", "subject_adherence", "event_edit_adherence", "subject_action_adherence",
    "perspective_switch_adherence", "causal_fidelity",
)  # fmt: skip
AXES = ("visible_spatial", "visible_state", "returned_spatial", "returned_state")


def case(**changes: Any) -> Case:
    """The case of the clip, as far as any suite asks for something."""
    annotations = {"mark_time": 0, "total_time": COUNT, "action": "right_then_left", "segments": ["a wall", "a box"]}
    annotations |= {"actions": ["right", "left"], "loop": True, "judged": {"scene_adherence": "a wall"}}
    known: dict[str, Any] = {
        "camera": CAMERA, "target": TARGET, "phases": (HIDDEN, RETURNED), "condition": "mem_test",
        "annotations": annotations | changes.pop("annotations", {}),
    }  # fmt: skip
    return Case("s@m", "any", "m", "s", Clip(Path("a.mp4")), **(known | changes))


@cache
def pictures() -> tuple[list[Frame], list[Frame]]:
    """The frames of the clip and of its reference: the same with a little noise and in another light."""
    rng = np.random.default_rng(0)
    way = FARTHEST * (1 - np.abs(np.linspace(-1, 1, COUNT)))
    clip, reference = [], []
    for k, x in enumerate(way.astype(int)):
        scene = wall()
        scene[72:135, 160:224] = (200, 40, 40)
        scene[72:135:8, 160:224] = 250
        if k >= CHANGED:
            scene[72:93, 160:224] = (240, 220, 40)
        if k >= RETURNED:
            scene[114:135, 160:224] = (40, 220, 80)
        truth = window(scene, x)
        reference.append(truth)
        clip.append(np.clip(truth * 0.97 + rng.normal(0, 3, truth.shape), 0, 255).astype(np.uint8))
    return as_frames(clip, FPS), as_frames(reference, FPS)


def yaw_path(degrees: float = 30.0, way: float = 0.2) -> np.ndarray:
    """(N, 4, 4) a camera that turns to the right while it goes there, and comes back."""
    there = 1 - np.abs(np.linspace(-1, 1, COUNT))
    angle = np.radians(degrees) * there
    poses = np.tile(np.eye(4), (COUNT, 1, 1))
    poses[:, 0, 0] = poses[:, 2, 2] = np.cos(angle)
    poses[:, 0, 2], poses[:, 2, 0] = np.sin(angle), -np.sin(angle)
    poses[:, 0, 3] = way * there
    return poses


def observed() -> Iterator[Any]:
    """What the classical observers make of the clip."""
    inputs = {"target": TARGET, "phases": (HIDDEN, RETURNED)}
    for observer in OBSERVERS.values():
        known = all(name in inputs for name in observer.inputs)
        if {"lite", ANY_SET} & set(observer.sets) and observer.kind in ("frame", "sequence") and known:
            params = {name: inputs[name] for name in observer.inputs}
            if observer.id == "lite.fidelity":
                params["families"] = "rgb gray_border torchmetrics"
            clip, reference = pictures()
            yield look(observer, clip, FPS, reference if observer.pairs else None, **params)


def by_hand() -> Iterator[Any]:
    """What a network, a judge or a file would tell."""
    rng = np.random.default_rng(1)
    index = np.arange(COUNT)
    some = np.array([0, 4, 8, 22, 26, 32])
    slight = 0.02 * rng.random(COUNT)
    vectors = np.eye(8)[0] + 0.1 * rng.random((len(some), 8))
    early, late = np.array([0, 2, 4]), np.array([32, 30, 28])
    tokens = rng.normal(size=(COUNT, 6, 6, 16)) + np.linspace(0, 3, COUNT)[:, None, None, None]
    tokens /= np.linalg.norm(tokens, axis=-1, keepdims=True)

    yield ActionTrack(index, np.ones(COUNT, int), index * 0, index * 0, np.full(COUNT, 2))
    yield PoseTrack(index, yaw_path(28, 0.19), False, "colmap")
    yield TruePoseTrack(index, yaw_path(), True, "unreal")
    yield DistanceFromStart(np.array([0, 16, 32]), np.array([0.0, 0.02, 0.001]))
    yield PerceptualDistance(index, index, 0.1 + slight, "lpips_alex", "00", 320, 180)
    yield FeatureError(index, index, 0.1 + slight, "efficientnet-lite0")
    yield ShotChanges(index[1:], index[1:] / FPS, slight[1:], slight[1:], "transnetv2")
    yield from (kind(index, 0.5 + slight, "a network") for kind in (ImagingQuality, AestheticQuality, ImageQuality))
    yield AestheticScores(index, 5 + slight, "a network")
    yield ImageRewards(index, slight, "a network")
    yield DepthMaps(index, 2 + rng.random((COUNT, 6, 8)), False, "a network")
    yield Detections(index, index, np.full(COUNT, 0.1), np.full(COUNT, 0.8), "a box", 0.0, "a network")
    yield NetworkPatches(index, tokens, tokens.reshape(COUNT, -1)[:, :16] + 1, "a network")
    yield IntegrityTokens(some, rng.random((6, 9, 8)), np.ones((6, 9), bool), rng.random((6, 8)), "a network", False)
    yield VideoFeatures(index[:16], rng.random((1, 400)), 224, "a network", "yoga")

    yield GeometryTrack(
        index, yaw_path(28, 0.19), np.tile(np.array([[40.0, 0, 32], [0, 40, 24], [0, 0, 1]]), (COUNT, 1, 1)),
        np.full(COUNT, 2.0), 64, 48, "c2w", "the file", 0.5, 0.01, "", "a network",
    )  # fmt: skip
    grid = np.stack(np.meshgrid(np.arange(4.0, 60, 6), np.arange(4.0, 44, 6)), axis=-1).reshape(-1, 2)
    points = np.tile(np.hstack([grid, grid + 0.3]), (3, 1))
    yield PairMatches(
        early, late, early, late, np.full(3, 0.1), np.arange(4) * len(grid), points, "fold", "", "a matcher"
    )
    scene = rng.integers(0, 255, (3, 48, 64), dtype=np.uint8)
    yield WarpedViews(early, late, scene, (scene * 0.95).astype(np.uint8), np.ones(scene.shape, bool), "fold", "")
    mask = np.zeros((COUNT, 48, 64), bool)
    mask[:, 10:40, 10:50] = True
    yield ObjectMasks(index, mask, "a network")
    there = (index < HIDDEN) | (index >= RETURNED)
    yield TargetLooks(
        index, index / FPS, np.where(there, 0.8, 0.2) + slight, np.full(COUNT, 0.45), np.where(there, 0.75, 0.2),
        np.full(COUNT, 0.9), np.tile(np.array(TARGET.box), (COUNT, 1)), np.where(there, 0.9, 0.1),
        np.where(there, 0.85, 0.2), np.where(there, 0.85, 0.2), np.where(there, 0.9, 0.1), np.full(COUNT, 0.4),
        np.tile(np.array(TARGET.box), (COUNT, 1)), 0.5, 3, "a network",
    )  # fmt: skip
    yield ObjectFeatures(index, some, vectors, "a network")
    yield FaceFeatures(some, some, vectors, "a network")
    yield BodyFeatures(np.arange(len(some)), vectors, "a network")
    fold = np.array([False, False, True])
    yield GramDistances(late, early, fold, 0.1 + rng.random((3, 2)), 2 + rng.random((3, 2)), np.full((3, 2), 2.5), "n")
    yield TextFeatures(some, np.array([0, 0, 0, 1, 1, 1]), vectors, vectors[:2], False, "a network")

    out = np.where(index[:-2] < COUNT // 2 - 1, 40.0, -40.0)
    yield KeyFlow(index[:-2], out, 0.1 * out, "a method")
    yield KeyParallax(np.array([0, 1]), np.ones(2), np.ones(2), np.ones(2), np.full(2, 5), "a network", "a method")
    whole = np.eye(8)[0] + 0.1 * rng.random((COUNT, 8))
    yield from (kind(index, whole, "a network") for kind in (FrameVectors, SmallFrameVectors))
    yield GeometryError(some, 0.01 * rng.random(6), 0.01, 0.5, "a network")
    yield VideoRating(3.5, 2.5, 4, "a network")

    yield JudgeAnswers(**answers([*DIMENSIONS.values()] * 2))
    yield ProbeAnswers(**answers([*AXES] * 2))
    yield MemoryAnswers(**answers(["returns", "place", "things", "state", "own: door"]))
    yield ProgressRatings(4.0, 3.0, judge="a judge")
    yield TriggerAnswer(1, 0.9, "left", judge="a judge")
    yield CaseRatings(JUDGED, np.full(len(JUDGED), 0.75), judge="a judge")
    yield BackgroundVectors(some, vectors, "clip-vit-b-32-openai")
    yield DreamSimDistances(index, slight + 0.3 * (1 - np.abs(np.linspace(-1, 1, COUNT))), "dreamsim")
    yield Reprojections(early, early + 2, np.full(3, 0.01), np.full(3, 0.02), np.full(3, 5000), "", "da3")
    yield ResultFile(("hpsv3_quality", "visual_plausibility"), np.array([0.6, 0.7]), "a file")
    yield Judgeability(np.array([1, 0, 0, 1]), "a box", np.zeros(0), -1, -1, judge="a judge")


def answers(dimensions: list[str]) -> dict[str, Any]:
    """Questions about these, every other one right with no, and what a judge says to them."""
    count = len(dimensions)
    positive = np.arange(count) % 2 == 0
    return {
        "question": np.arange(count), "dimension": tuple(dimensions), "positive": positive,
        "answer": positive.astype(int), "p_yes": np.where(positive, 0.9, 0.3), "judge": "a judge",
    }  # fmt: skip


@cache
def everything() -> dict[str, Any]:
    """The records of all kinds by the id of their kind."""
    return {evidence_id(type(record)): record for record in (*observed(), *by_hand())}
