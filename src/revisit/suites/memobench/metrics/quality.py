"""Visual quality and prompt fidelity of MemoBench: ratings of single frames by networks (docs/memobench-metrics.md).

visual quality   (N(aesthetic) + N(quality)) / 2, each mean over frames put on 0-100 (Eq. 2)
image reward     100 * mean of the sigmoid of ImageReward over five frames (section 3.4)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from revisit.core import Metric, NoScore, PublishedMaker, Reason, Score, Series, Unscored, derived, metric
from revisit.evidence.frames import FrameFacts
from revisit.suites.memobench.evidence import AestheticScores, ImageQuality, ImageRewards, VisualHalves
from revisit.suites.memobench.metrics import rules

UPSTREAM_STEP = 4
AESTHETIC_RANGE = {"corrected": (1, 10), "paper": (1, 10), "upstream": (0, 10)}
REWARD_FRAMES = 5
NOTHING = np.zeros(0)
UNRATED = Reason("not_in_set", "there are no ratings")
BEAUTY = PublishedMaker("LAION's aesthetic predictor", "rated_by", ("laion-aesthetic-v2", "sac+logos+ava1-l14"))
QUALITY = PublishedMaker("CLIP-IQA+", "rated_by", ("clip-iqa", "clipiqa"))


@derived(makes=VisualHalves, needs=(), optional=(AestheticScores, ImageQuality), version=1)
def combine_visual_halves(aesthetic: AestheticScores | None, quality: ImageQuality | None) -> VisualHalves | Unscored:
    """Both halves of visual quality as far as there are any."""
    if aesthetic is None and quality is None:
        return Unscored(
            "not_in_set",
            "neither aesthetic scores nor image quality were observed; give files with them, or choose an observer "
            "set with the networks",
        )
    beauty = aesthetic or AestheticScores(NOTHING, NOTHING, "")
    technical = quality or ImageQuality(NOTHING, NOTHING, "")
    return VisualHalves(beauty.index, beauty.value, technical.index, technical.value, beauty.maker, technical.maker)


def mean_over_counted_frames(index: np.ndarray, values: np.ndarray, frames: FrameFacts, rule: str, step: int) -> float:
    """Mean over the frames that count: one in `step` upstream, else all that were rated."""
    if rules.check_rule(rule) != "upstream":
        if not len(values):
            raise NoScore("not_observed", "no frame was rated")
        return float(np.mean(values))
    sampled = frames.index[frames.index % step == 0]
    at = rules.rows_of_frames(index, sampled, "rating")
    return round(float(np.mean(values[at])), 4)


@rules.percent_metric(
    id="memo_visual_quality", version=1, title="Visual quality", needs=(FrameFacts, VisualHalves),
    paper=f"{rules.PAPER} eq. 2", upstream="VisualQuality", responds_to=("blur", "noise", "ugly frames"),
    blind_to=("memory", "camera"),
    published_by=(replace(BEAUTY, fact="aesthetic_by"), replace(QUALITY, fact="image_quality_by")),
)  # fmt: skip
def visual_quality(
    frames: FrameFacts, halves_seen: VisualHalves, *, rule: str = "corrected", step: int = UPSTREAM_STEP
) -> Score | Unscored:
    """Mean of the aesthetic score and the image quality, each on 0-100.

    Facts: both halves, raw and in percent, the range the aesthetic score is taken in, and who rated.
    """
    low, high = AESTHETIC_RANGE[rules.check_rule(rule)]
    halves = {
        "aesthetic": (halves_seen.aesthetic_index, halves_seen.aesthetic, halves_seen.aesthetic_maker, low, high),
        "image_quality": (halves_seen.quality_index, halves_seen.quality, halves_seen.quality_maker, 0, 1),
    }
    facts: dict[str, object] = {"aesthetic_range": [low, high]}
    parts = []
    for name, (index, values, maker, least, most) in halves.items():
        try:
            if not len(values):
                raise NoScore(UNRATED)
            mean = mean_over_counted_frames(index, values, frames, rule, step)
        except NoScore as error:
            facts[name] = None
            missing = f"the part {name.replace('_', ' ')} is missing: {error.unscored.sentence}"
            if rule != "upstream" or len(values):
                return Unscored(error.unscored.kind, missing, facts)
            facts["note"] = f"{missing}; upstream then uses the other part alone"
            continue
        scaled = rules.scale_to_percent(mean, least, most, rule)
        facts |= {name: mean, f"{name}_percent": scaled, f"{name}_by": maker}
        parts.append(scaled)
    return Score(rules.round_if_upstream_rule(float(np.mean(parts)), 2, rule), facts=facts)


def register_rating_metric(
    name: str, kind: type, scales: Mapping[str, tuple[float, float]], doc: str, **card: Any
) -> Metric:
    """The metric of one rating of single frames."""

    def score_mean_rating(
        frames: FrameFacts, ratings: Any, *, rule: str = "corrected", step: int = UPSTREAM_STEP
    ) -> Score | Unscored:
        scale = scales[rules.check_rule(rule)]
        mean = mean_over_counted_frames(ratings.index, ratings.value, frames, rule, step)
        facts = {"percent": rules.scale_to_percent(mean, *scale, rule), "range": list(scale), "rated_by": ratings.maker}
        return Score(mean, units=Series(frame=ratings.index, value=ratings.value), facts=facts)

    return metric(
        id=f"memo_{name}", version=1, higher_is_better=True, needs=(FrameFacts, kind), suites=("memobench",),
        paper=f"{rules.PAPER} section 3.4", blind_to=("memory", "camera"), doc=doc, **card,
    )(score_mean_rating)  # fmt: skip


aesthetic = register_rating_metric(
    "aesthetic", AestheticScores, AESTHETIC_RANGE, "Mean aesthetic score of the frames, about 0 to 10.",
    title="Aesthetic score", unit="points", range=(0, 10), upstream="AestheticScore", responds_to=("ugly frames",),
    published_by=(BEAUTY,),
)  # fmt: skip
image_quality = register_rating_metric(
    "image_quality", ImageQuality, dict.fromkeys(rules.RULES, (0, 1)), "Mean technical quality of the frames, 0 to 1.",
    title="Image quality", unit="score", range=(0, 1), upstream="ImageQuality", responds_to=("blur", "noise"),
    published_by=(QUALITY,),
)  # fmt: skip


@rules.percent_metric(
    id="memo_image_reward", version=1, title="Fit to the prompt", needs=(FrameFacts, ImageRewards),
    paper=f"{rules.PAPER} section 3.4", upstream="ImageRewardScore", responds_to=("wrong content",),
    blind_to=("memory", "camera", "the part of the prompt about the return"),
    published_by=(PublishedMaker("ImageReward", "rated_by", ("image-reward", "imagereward")),),
)  # fmt: skip
def image_reward(frames: FrameFacts, rewards: ImageRewards, *, rule: str = "corrected") -> Score | Unscored:
    """100 times the mean sigmoid of ImageReward over five frames spread over the clip.

    Facts: the mean before it is put on 0-100 (`reward`) and who rated.
    """
    rules.check_rule(rule)
    if not len(frames.index):
        return Unscored("too_short", "the clip has no frames")
    sampled = rules.sampled_frames_by_rule(0, int(frames.index[-1]), REWARD_FRAMES, rule)
    at = rules.rows_of_frames(rewards.index, sampled, "ImageReward")
    values = 1 / (1 + np.exp(-np.asarray(rewards.value[at], dtype=float)))
    reward = rules.round_if_upstream_rule(float(values.mean()), 4, rule)
    units = Series(frame=sampled, value=values)
    return Score(
        rules.scale_to_percent(reward, 0, 1, rule), reward, units, {"reward": reward, "rated_by": rewards.maker}
    )
