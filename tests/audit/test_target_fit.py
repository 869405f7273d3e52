"""The fit of the target gate: what it computes, and that the stored model and figures are those of the stored table."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from revisit.audit.target_fit import (
    HIDDEN,
    LABELS,
    auc,
    bounded_logistic,
    calibration,
    choose,
    fit,
    left_out,
    outcomes,
    read_table,
    tempered,
    usable,
)
from revisit.core import GATES, OBSERVERS, digest
from revisit.metrics.target_probability import LAYOUT, LOOKS, label_probabilities, target_models

FOLDER = Path(__file__).parents[2] / "benchmarks" / "target"
MODEL = Path(__file__).parents[2] / "src" / "revisit" / "metrics" / "target_model.json"


@pytest.fixture(scope="module")
def table():
    return read_table(FOLDER / "features.jsonl")


def test_a_logistic_fit_is_that_of_an_independent_library():
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(0)
    x = rng.random((300, 3))
    y = (x @ [2.0, 3.0, 1.0] - 3 + rng.logistic(size=300) > 0).astype(float)
    solved = bounded_logistic(x, y, np.ones(300), np.array([True, True, True]))
    theirs = linear_model.LogisticRegression(C=1 / 0.3, tol=1e-8, max_iter=1000).fit(x, y)
    assert solved[1:] == pytest.approx(theirs.coef_[0], abs=5e-3)
    assert solved[0] == pytest.approx(theirs.intercept_[0], abs=1e-2)


def test_a_weight_never_has_the_wrong_sign():
    rng = np.random.default_rng(1)
    x = rng.random((200, 2))
    y = (x[:, 0] > 0.5).astype(float)
    solved = bounded_logistic(x, y, np.ones(200), np.array([False, True]))
    assert solved[1] == 0 and solved[2] >= 0


def test_the_stored_model_is_the_fit_of_the_stored_table(table):
    stored = json.loads(MODEL.read_text(encoding="utf-8"))
    again = "make the table, fit again (docs/target-gate.md) and look at the difference"
    assert stored["provenance"]["table"] == digest(table), again
    assert stored["provenance"]["gate"] == GATES["target_return"].version, again
    for name, version in stored["provenance"]["observers"].items():
        assert OBSERVERS[name].version == version, again
    for kind in (LAYOUT, LOOKS):
        model = fit(table, kind)
        for stage in ("hidden", "returned"):
            assert stored["models"][kind][stage]["weights"] == pytest.approx(model[stage]["weights"], abs=2e-3), again


def test_figures_are_of_the_stored_table(table):
    figures = json.loads((FOLDER / "figures.json").read_text(encoding="utf-8"))
    assert figures["provenance"]["table"] == digest(table)
    for kind, least in ((LAYOUT, 0.90), (LOOKS, 0.93)):
        real = figures[kind]["scenes_left_out"]["real"]
        assert real["n"] == sum(not line["simulated"] for line in usable(table, kind))
        assert real["right_of_decided"]["share"] >= least


def test_a_clip_is_never_judged_by_its_own_scene(table, monkeypatch):
    seen = []
    real = [line for line in usable(table, LAYOUT) if not line["simulated"]]

    def fit_of_others(lines, kind):
        seen.append({scene for line in lines for scene in line["scenes"]})
        return target_models()[kind]

    monkeypatch.setattr("revisit.audit.target_fit.fit", fit_of_others)
    left_out(real, LAYOUT, lambda line: line["scenes"][0])
    scenes = sorted({line["scenes"][0] for line in real})
    assert len(seen) == len(scenes) > 10
    assert all(scene not in others for scene, others in zip(scenes, seen, strict=True))


def test_every_feature_speaks_in_its_direction():
    model = target_models()[LAYOUT]
    features = dict.fromkeys(HIDDEN[LAYOUT], 0.5) | dict.fromkeys(model["returned"]["weights"], 0.5)
    before = label_probabilities(model, features)
    assert sum(before.values()) == pytest.approx(1)
    for name, more_is_hidden in HIDDEN[LAYOUT].items():
        if name in model["returned"]["weights"]:
            continue
        after = label_probabilities(model, {**features, name: 1.0})
        change = before["never hidden"] - after["never hidden"]
        assert change >= 0 if more_is_hidden else change <= 0


def test_temperature_one_changes_nothing_and_level_is_the_lowest_that_is_right_enough():
    chances = np.array([[0.9, 0.06, 0.04], [0.2, 0.7, 0.1], [0.3, 0.1, 0.6], [0.15, 0.55, 0.3]])
    assert tempered(chances, 1.0) == pytest.approx(chances)
    assert tempered(chances, 2.0).max(axis=1).max() < 0.9
    label = np.array([0, 1, 2, 2])  # the least sure one is wrong
    temperature, level = choose(chances, label, np.ones(4, bool), (0.95, 0.95))
    counted = outcomes(tempered(chances, temperature), label, np.full(4, level))
    assert counted["right"] == counted["decided"] == 3 and counted["hides_right"] == 2 and counted["hides"] == 3
    assert counted["labels"][LABELS[2]]["cannot tell"] == 1


def test_calibration_of_a_known_model():
    """Labels drawn from the probabilities themselves: the curve lies on the diagonal."""
    rng = np.random.default_rng(3)
    chances = rng.dirichlet((0.4, 0.4, 0.4), size=6000)
    label = np.array([rng.choice(3, p=row) for row in chances])
    found = calibration(chances, label)
    assert all(abs(step["confidence"] - step["share"]) < 0.05 for step in found["curve"])
    assert found["auc"] == pytest.approx(0.76, abs=0.04) and 0.85 < found["at_0.9"]["share"] < 0.95
    assert auc(np.array([0.1, 0.9]), np.array([False, True])) == 1.0
