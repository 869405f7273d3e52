"""Which checkpoint to keep: named when it beats the others, with the clips that would decide when it does not."""

from __future__ import annotations

import numpy as np

from revisit.core import Reason, Record
from revisit.results import Results
from revisit.results.compare import Contender
from revisit.results.trend import COVERAGE, choose_checkpoints, score_trends
from tests.results.test_compare import SCENE, entry


def checkpoints(levels, noise=0.02):
    rng = np.random.default_rng(0)  # its own, so that the order of tests does not matter
    return [
        entry(f"step-{k}", {"event_outcome": np.clip(SCENE + level + rng.normal(0, noise, 12), 0, 1)})
        for k, level in enumerate(levels)
    ]  # fmt: skip


def test_the_best_one_is_named_when_it_beats_each_of_the_others() -> None:
    points = checkpoints((0.0, 0.1, 0.3, 0.05, 0.06, 0.04))
    (choice,) = choose_checkpoints(points, ["event_outcome"], [point.name for point in points])
    assert choice.decided_best == "step-2" and "keep step-2" in choice.sentence
    assert choice.as_json()["better_at"] == ["step-1", "step-2"] and choice.looks.may_stop
    assert "3 looks since" in choice.progress_sentence


def test_where_it_is_open_it_says_with_whom_and_how_many_clips_would_decide() -> None:
    points = checkpoints((0.0, 0.3, 0.31), noise=0.05)
    (choice,) = choose_checkpoints(points, ["event_outcome"], ["a", "b", "c"])
    assert choice.decided_best is None and choice.as_json()["open_with"]
    assert "is not told from" in choice.sentence and "decide" in choice.sentence
    same = checkpoints((0.0,)) * 2
    (choice,) = choose_checkpoints(same, ["event_outcome"], ["a", "a"])
    assert choice.decided_best is None and choice.sentence.startswith("no difference between a (1) and a (2) (0.")


def test_checkpoints_that_score_the_same_lead_together_and_too_few_scenes_are_said() -> None:
    levels = {"a": (1.0, 0.9), "b": (0.4, 0.5), "c": (1.0, 0.9)}
    points = [entry(name, {"event_outcome": scores}) for name, scores in levels.items()]
    (choice,) = choose_checkpoints(points, ["event_outcome"], list(levels))
    assert choice.sentence == "a and c (0.95) lead alike, but are not told from b (+0.50 to b); 3 scenes are needed"
    (curve,) = score_trends([points[1], points[0], points[2]], ["event_outcome"])
    assert curve.monotone_direction == "rises" and curve.sentence.startswith(
        "rises and never falls; 2 scenes cannot tell"
    )
    (curve,) = score_trends([points[1], points[0]], ["event_outcome"])
    assert curve.sentence.startswith("rises at every step; ")


def test_an_early_checkpoint_without_a_score_hides_no_choice() -> None:
    early, *others = checkpoints((0.0, 0.1, 0.3))
    reason = Reason("gate_closed", "never left")
    early = Contender("early", early.results.mapped(
        lambda one: one.with_changed_fields(status="unscored", value=None, reason=reason)))  # fmt: skip
    memory, coverage = choose_checkpoints([early, *others], ["event_outcome"], ["early", "middle", "late"])
    assert memory.decided_best == "late" and memory.sentence.startswith("keep late")
    assert memory.sentence.endswith("; no score: early") and memory.improving_checkpoints == ["late"]
    assert coverage.question == COVERAGE and coverage.labels == ("early", "middle", "late")
    (alone, _) = choose_checkpoints([early, *others, early], ["event_outcome"], ["a", "b", "c", "d"])
    assert alone.labels == ("b", "c") and alone.as_json()["best"] == "c"
    (only,) = choose_checkpoints([early, others[0]], ["event_outcome"], ["a", "b"])
    assert only.question == COVERAGE  # one alone has nothing to be compared with


def test_looks_that_could_not_be_tested_are_no_reason_to_stop() -> None:
    points = [entry(f"step-{k}", {"event_outcome": [0.5 + 0.01 * k, 0.62 + 0.03 * k]}) for k in range(5)]
    (choice,) = choose_checkpoints(points, ["event_outcome"], [point.name for point in points])
    assert choice.progress_sentence == "no gain beyond doubt so far"
    assert choice.as_json()["looks_since"] == 0 and choice.as_json()["stop"] is False


def test_a_checkpoint_that_stands_still_does_not_win() -> None:
    still = checkpoints((0.4,))[0]
    refused = [
        record
        if k < 6
        else record.with_changed_fields(status="unscored", value=None, reason=Reason("gate_closed", "never left"))
        for k, record in enumerate(still.results.records)
    ]
    still = Contender("still", Results(still.results.cases, refused))
    choices = choose_checkpoints([*checkpoints((0.0, 0.1)), still], ["event_outcome"], ["a", "b", "still"])
    memory, coverage = choices
    assert memory.leading_checkpoint == "still" and memory.decided_best is None and "50%" in memory.sentence
    assert (
        coverage.question == COVERAGE and coverage.leading_checkpoint in ("a", "b") and isinstance(refused[0], Record)
    )


def test_a_best_checkpoint_that_is_no_proven_gain_does_not_contradict_itself() -> None:
    """Of two checkpoints the better one is tested at 5 %; a look during training has a smaller share of that."""
    base = np.linspace(0.2, 0.6, 9)
    better = base + 0.03 + np.array([0.12, -0.05, 0.08, -0.06, 0.10, -0.02, 0.07, -0.04, 0.05])
    points = [entry(f"step-{k}", {"event_outcome": own}) for k, own in enumerate((base, base - 0.3, better))]
    (choice,) = choose_checkpoints(points, ["event_outcome"], [point.name for point in points])
    assert choice.decided_best == "step-2" and not choice.improving_checkpoints
    assert "no gain" not in choice.progress_sentence and "more proof" in choice.progress_sentence
