"""Outcome of an unseen event: like the truth, reset, or neither."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from revisit.core import InvalidEvidence, Score, Unscored
from revisit.evidence.frames import CasePhases
from revisit.evidence.reference import PairedViews
from revisit.metrics.outcome import best_shift_and_difference, event_outcome
from revisit.metrics.overlay import box_blur, row_medians
from revisit.observers.fidelity import paired_views
from tests.looking import as_frames, look, read, wall, window

PHASES = CasePhases(4, 8, "given")
BEFORE = [window(wall(), 0)] * 4
AWAY = [window(wall(), 900)] * 4
BLUE, RED = (30, 60, 220), (230, 40, 30)


def marked(colour: tuple[int, int, int], x: int = 120) -> np.ndarray:
    picture = window(wall(), 0).copy()
    picture[70:110, x : x + 50] = colour
    return picture


def outcome(clip: list[np.ndarray], truth: list[np.ndarray]) -> Score | Unscored:
    seen: PairedViews = look(paired_views, as_frames(clip), reference=as_frames(truth))
    answer = event_outcome(seen, PHASES)
    assert isinstance(answer, Score | Unscored)
    return answer


TRUTH = [*BEFORE, *AWAY, *[marked(BLUE)] * 4]


def value(back: np.ndarray) -> float:
    score = outcome([*BEFORE, *AWAY, *[back] * 4], TRUTH)
    assert isinstance(score, Score)
    return score.value


def test_the_truth_scores_one_and_a_reset_zero():
    assert value(marked(BLUE)) == 1
    assert value(window(wall(), 0)) == pytest.approx(0, abs=0.02)


def test_another_outcome_lies_between():
    assert 0.2 < value(marked(RED)) < 0.8


def test_a_small_shift_noise_and_light_are_forgiven():
    rng = np.random.default_rng(0)
    noisy = np.clip(np.roll(marked(BLUE), 6, axis=1) + rng.normal(12, 8, BEFORE[0].shape), 0, 255).astype(np.uint8)
    assert value(noisy) > 0.85


def test_no_event_is_unscored():
    answer = outcome(TRUTH, [*BEFORE, *AWAY, *BEFORE])
    assert isinstance(answer, Unscored)
    assert answer.kind == "nothing_happened"


def test_another_view_is_unscored():
    answer = outcome([*BEFORE, *AWAY, *AWAY], TRUTH)
    assert isinstance(answer, Unscored)
    assert answer.kind == "no_overlap"
    answer = outcome(TRUTH, [*BEFORE, *AWAY, *AWAY])
    assert isinstance(answer, Unscored)
    assert answer.kind == "no_return"


def test_malformed_evidence_says_what_a_valid_one_looks_like():
    seen: PairedViews = look(paired_views, as_frames(TRUTH), reference=as_frames(TRUTH))
    with pytest.raises(InvalidEvidence, match="not a JPEG file of 160 x 89"):
        event_outcome(replace(seen, height=89), PHASES)
    late = event_outcome(seen, CasePhases(4, 99, "given"))
    assert isinstance(late, Unscored)


@pytest.mark.long
def test_an_empty_beaker_is_told_from_a_filled_one(shared: Path):
    """The real event: a liquid was poured in. One model returns with an empty beaker, two with liquid in it."""
    truth, _ = read(shared / "memobench/videos/Real_007_gt.mp4")
    scores = {}
    for model in ("gt", "svc", "lingbot", "wan"):
        frames, fps = read(shared / f"memobench/videos/Real_007_{model}.mp4")
        score = event_outcome(look(paired_views, frames, fps, reference=truth), CasePhases(36, 64, "given"))
        assert isinstance(score, Score), score
        scores[model] = score.value
    assert scores["gt"] == 1
    assert scores["svc"] < 0.25
    assert min(scores["lingbot"], scores["wan"]) > 0.5


@pytest.mark.parametrize(("start", "reach"), [((0, 0), 4), ((-6, 8), 1)])
def test_the_best_shift_is_that_of_rolling_and_taking_medians_one_by_one(start, reach):
    rng = np.random.default_rng(1)
    moving = box_blur(rng.uniform(0, 255, (45, 80)), 2)
    fixed = np.roll(moving, (start[0] + 1, start[1] - 1), axis=(0, 1)) + rng.normal(20, 2, moving.shape)
    region = rng.random(moving.shape) < 0.6
    tries = []
    for y in range(start[0] - reach, start[0] + reach + 1):
        for x in range(start[1] - reach, start[1] + reach + 1):
            change = (np.roll(moving, (y, x), axis=(0, 1)) - fixed)[region]
            tries.append((float(np.median(np.abs(change - np.median(change)))), abs(y) + abs(x), y, x))
    away, _, y, x = min(tries)
    assert best_shift_and_difference(moving, fixed, region, start, reach) == (y, x, away)
    assert (y, x) == (start[0] + 1, start[1] - 1)


@pytest.mark.parametrize("count", [1, 2, 9, 10])
def test_row_medians_are_those_of_numpy(count):
    values = np.random.default_rng(count).normal(size=(7, count))
    assert np.array_equal(row_medians(values), np.median(values, axis=1))
    assert np.isnan(row_medians(values[:, :0])).all()
