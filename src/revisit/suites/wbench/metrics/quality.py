"""Quality: how frames look and how they follow each other, as VBench measures it, and what only files tell."""

from __future__ import annotations

from typing import Any

import numpy as np

from revisit.core import Metric, PublishedMaker, Score, Series, Unscored, metric
from revisit.evidence.appearance import AestheticQuality, ImagingQuality
from revisit.evidence.motion import FlowStats
from revisit.suites.wbench.evidence import NeighbourDifference, ResultFile
from revisit.suites.wbench.metrics.rules import CARD

FAMILY = "wbench_quality"
# VBench's dynamic degree: flow of 6 pixels at a short side of 256, in 4 of 16 sampled steps; here of the width of 16:9.
MOVES = 6 / 256 * 9 / 16
DYNAMIC = 0.25
SAMPLED = 8.0  # steps a second of which that is asked


def register_rating_metric(id: str, kind: type, title: str, paper: str, doc: str) -> Metric:
    """The metric of a rating of single frames."""

    def score_frame_ratings(ratings: Any) -> Score | Unscored:
        if not len(ratings.index):
            return Unscored("not_observed", "no frame was rated")
        if unrated := int((~np.isfinite(ratings.value)).sum()):
            return Unscored("not_observed", f"{unrated} of {len(ratings.index)} frames have no rating")
        value = np.clip(ratings.value, 0, 1)
        units = Series(frame=ratings.index, value=value)
        return Score(float(value.mean()), units=units, facts={"network": ratings.net})

    return metric(
        id=f"wb_{id}", version=1, title=title, needs=(kind,), upstream=f"{id}_quality", responds_to=("ugly frames",),
        blind_to=("memory", "camera"), doc=doc, **{**CARD, "paper": paper},
    )(score_frame_ratings)  # fmt: skip


aesthetic = register_rating_metric(
    "aesthetic", AestheticQuality, "Aesthetic quality", "LAION aesthetic predictor", "Mean beauty of the frames."
)
imaging = register_rating_metric(
    "imaging", ImagingQuality, "Imaging quality", "MUSIQ", "Mean technical quality of the frames."
)


@metric(
    id="wb_flicker", version=1, title="Temporal flickering", needs=(NeighbourDifference,),
    upstream="temporal_flickering", responds_to=("flicker",), blind_to=("memory", "frozen camera"),
    rewards_unchanged=True, **CARD,
)  # fmt: skip
def temporal_flickering(neighbours: NeighbourDifference) -> Score | Unscored:
    """1 minus the mean absolute difference of neighbouring frames: a picture that rests scores best."""
    if not len(neighbours.index):
        return Unscored("too_short", "one frame cannot flicker")
    value = 1 - neighbours.difference
    return Score(float(value.mean()), units=Series(frame=neighbours.index, value=value))


@metric(
    id="wb_dynamic", version=1, title="Dynamic degree", needs=(FlowStats,), upstream="dynamic_degree",
    published_by=(PublishedMaker("RAFT", "flow_by", names=("raft",)),), responds_to=("frozen picture",),
    blind_to=("memory", "what moves"), **CARD,
)  # fmt: skip
def dynamic_degree(flow: FlowStats) -> Score | Unscored:
    """1 where a quarter of the steps of an eighth of a second move fast, else 0; by the 90th percentile of the flow."""
    if not len(flow.index):
        return Unscored("too_short", "one frame cannot move")
    fast = flow.p90 / np.maximum(flow.seconds * SAMPLED, 1e-9) > MOVES
    return Score(float(fast.mean() >= DYNAMIC), raw=float(fast.mean()), facts={"flow_by": "DIS"})


@metric(
    id="wb_smoothness", version=1, title="Motion smoothness", needs=(FlowStats,), upstream="motion_smoothness",
    published_by=(PublishedMaker("AMT", "flow_by", names=("amt",)),), responds_to=("jitter", "flicker"),
    blind_to=("memory", "frozen camera"), rewards_unchanged=True, **CARD,
)  # fmt: skip
def motion_smoothness(flow: FlowStats) -> Score | Unscored:
    """1 minus what flow leaves of the difference of neighbouring frames; published is AMT's interpolation."""
    if not len(flow.index):
        return Unscored("too_short", "one frame has no motion")
    value = np.clip(1 - flow.warp_error, 0, 1)
    return Score(float(value.mean()), units=Series(frame=flow.index, value=value), facts={"flow_by": "DIS"})


def register_result_file_metric(id: str, title: str, upstream: str, network: str) -> Metric:
    """The metric of a column whose network is not part of Revisit: the benchmark's own result of the case."""

    def score_from_result_file(results: ResultFile) -> Score | Unscored:
        if upstream not in results.name:
            return Unscored("no_file", f"the evaluator's folder has no result of {upstream} for this case")
        value = float(results.value[results.name.index(upstream)])
        if not 0 <= value <= 1:
            return Unscored("mismatch", f"{upstream} is {value:g} in the evaluator's file, and not from 0 to 1")
        return Score(value, facts={"from": results.maker})

    return metric(
        id=f"wb_{id}", version=1, title=title, needs=(ResultFile,), upstream=upstream, responds_to=("ugly frames",),
        blind_to=("memory", "camera"), **CARD,
        doc=f"As the benchmark's own evaluator wrote it ({network}, which Revisit does not have).",
    )(score_from_result_file)  # fmt: skip


hpsv3 = register_result_file_metric("hpsv3", "HPSv3 quality", "hpsv3_quality", "HPSv3")
plausibility = register_result_file_metric(
    "plausibility", "Visual plausibility", "visual_plausibility", "a network of its own"
)
