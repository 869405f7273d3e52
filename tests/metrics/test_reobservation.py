"""The judged gate and the probes: the temporal rule, unanswered seconds, second looks, polarity."""

from __future__ import annotations

import numpy as np
import pytest

from revisit.core import METRICS, GateResult, InvalidEvidence, Score, Unscored
from revisit.suites.wrbench.evidence import Judgeability, ProbeAnswers
from revisit.suites.wrbench.metrics.reobservation import reobservation_gate

visible_spatial, returned_state = METRICS["wr_visible_spatial"], METRICS["wr_returned_state"]


def judged(text: str, again: str = "", spatial: int = -1, state: int = -1, canary: str = "") -> Judgeability:
    """y yes, n no; one letter per second."""
    first, second = (np.array([letter == "y" for letter in row], np.int8) for row in (text, again))
    return Judgeability(first, "a cup", second, spatial, state, judge="test", canary=canary)


@pytest.mark.parametrize(
    ("seconds", "state", "label"),
    [
        ("yynny", "open", "hidden, returned"),
        ("ynyyy", "open", "hidden, returned"),
        ("nynyn", "open", "hidden, returned"),
        ("yyyyy", "closed", "never hidden"),
        ("nnyyy", "closed", "not seen at first"),
        ("yyynn", "closed", "hidden, not returned"),
        ("nnnnn", "closed", "never seen"),
    ],
)
def test_the_rule_on_seconds(seconds: str, state: str, label: str) -> None:
    made = reobservation_gate(judged(seconds))
    assert isinstance(made, GateResult)
    assert (made.state, made.label) == (state, label)
    assert made.state == "open" or made.reason


def test_a_second_look_can_only_add() -> None:
    assert reobservation_gate(judged("yyyyy", "yynny", 1, 1)).state == "open"
    assert reobservation_gate(judged("yyyyy", "yynny", 1, 0)).state == "closed"  # place and state are shared
    assert reobservation_gate(judged("yyyyy", "yyyyy", 1, 1)).state == "closed"  # its seconds have to agree
    assert reobservation_gate(judged("yynny", "yyyyy", 0, 0)).state == "open"
    assert reobservation_gate(judged("", "yynny", 1, 1)).state == "open"


def test_a_judge_that_obeys_the_video_decides_nothing() -> None:
    assert reobservation_gate(judged("yynny", canary="passed")).state == "open"
    tripped = reobservation_gate(judged("yynny", canary="it named the wrong colour"))
    assert tripped.state == "unsure" and "wrong colour" in str(tripped.reason)


def test_no_answers_are_unscored_and_malformed_ones_raise() -> None:
    assert isinstance(reobservation_gate(judged("")), Unscored)
    with pytest.raises(InvalidEvidence, match="must be 0 or 1"):
        reobservation_gate(Judgeability(np.array([1, 7]), "a cup", np.zeros(0), -1, -1, judge="test"))


def answers(axis: str, p_yes: list[float], positive: list[bool], said: list[int] | None = None) -> ProbeAnswers:
    count = len(p_yes)
    given = [int(p > 0.5) if p == p else -1 for p in p_yes] if said is None else said
    return ProbeAnswers(
        np.arange(count), (axis,) * count, np.array(positive), np.array(given), np.array(p_yes, float), "test"
    )


def test_polarity_and_probabilities() -> None:
    made = visible_spatial(answers("visible_spatial", [0.9, 0.7, 0.2], [True, True, False]))
    assert isinstance(made, Score)
    assert made.value == pytest.approx((0.9 + 0.7 + 0.8) / 3)
    assert made.facts["from_probabilities"]
    always_yes = visible_spatial(answers("visible_spatial", [1.0, 1.0], [True, False]))
    assert always_yes.value == pytest.approx(0.5)  # a judge that says yes to everything gains nothing


def test_words_where_there_are_no_probabilities() -> None:
    nan = float("nan")
    made = returned_state(answers("returned_state", [nan, nan], [True, False], [1, 0]))
    assert made.value == 1 and not made.facts["from_probabilities"]


def test_missing_probes_leave_the_axis_unscored() -> None:
    nan = float("nan")
    made = returned_state(answers("returned_state", [0.9, nan], [True, False]))
    assert isinstance(made, Unscored) and made.kind == "unanswered" and "1 of 2" in made.sentence
    assert isinstance(returned_state(answers("visible_spatial", [0.9], [True])), Unscored)
