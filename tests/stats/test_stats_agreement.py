"""Agreement: perfect and chance, nothing to compare, malformed input, and golden numbers."""

from __future__ import annotations

import json

import pytest

from revisit.stats.agreement import cohen_kappa, unanimous_and_pairwise_agreement, yes_no_agreement


def test_perfect_inverted_and_constant_answers():
    right = [True, True, False, False, False]
    perfect = yes_no_agreement(right, right)
    assert (perfect["accuracy"], perfect["balanced_accuracy"], perfect["f1"], perfect["kappa"]) == (1, 1, 1, 1)
    inverted = yes_no_agreement([not x for x in right], right)
    assert (inverted["accuracy"], inverted["balanced_accuracy"], inverted["f1"]) == (0, 0, 0)
    always = yes_no_agreement([True] * 5, right)
    assert (always["recall"], always["precision"], always["balanced_accuracy"], always["kappa"]) == (1, 0.4, 0.5, 0)


def test_by_hand():
    said = [True] * 40 + [True] * 10 + [False] * 20 + [False] * 30
    right = [True] * 40 + [False] * 10 + [True] * 20 + [False] * 30
    found = yes_no_agreement(said, right)
    assert (found["right_yes"], found["wrong_yes"], found["wrong_no"], found["right_no"]) == (40, 10, 20, 30)
    assert found["accuracy"] == pytest.approx(0.7)
    assert found["precision"] == pytest.approx(0.8)
    assert found["recall"] == pytest.approx(2 / 3)
    assert found["f1"] == pytest.approx(8 / 11)
    assert found["balanced_accuracy"] == pytest.approx((2 / 3 + 3 / 4) / 2)
    assert found["kappa"] == pytest.approx(0.4)  # expected agreement 0.5 * 0.6 + 0.5 * 0.4


def test_nothing_to_compare_is_none_and_not_zero():
    empty = yes_no_agreement([], [])
    assert (empty["n"], empty["accuracy"], empty["balanced_accuracy"], empty["kappa"]) == (0, None, None, None)
    one_class = yes_no_agreement([True, True], [True, True])
    assert one_class["accuracy"] == 1 and one_class["balanced_accuracy"] is None and one_class["kappa"] is None
    assert unanimous_and_pairwise_agreement([["yes"], []]) is None


def test_weights_count_distance():
    near, far = [1, 2, 3, 4, 5], [2, 3, 4, 5, 5]
    kappas = [cohen_kappa(near, far, weights) for weights in ("nominal", "linear", "quadratic")]
    assert kappas == sorted(kappas, key=float) and len(set(kappas)) == 3
    assert cohen_kappa(["a", "b"], ["a", "b"]) == 1


def test_repeats():
    assert unanimous_and_pairwise_agreement([["yes", "yes", "yes"], ["yes", "yes", "no"], ["no"]]) == pytest.approx(
        (0.5, 2 / 3)
    )


def test_golden_kappa(shared):
    raters = json.loads((shared / "golden/agree2.json").read_text())
    golden = json.loads((shared / "golden/stats_oracle.json").read_text())["kappa"]
    for weights, value in golden.items():
        assert cohen_kappa(raters["a"], raters["b"], weights) == pytest.approx(value, abs=1e-12)
