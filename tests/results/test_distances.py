"""Distances of models: matched to the truth of their scenes, refused below the least number, decided scene by scene."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from revisit.core import Case, Clip, Record, Series, import_registering_modules
from revisit.results import Results
from revisit.results.distances import distance_sentences, distance_table, model_to_truth_distances
from revisit.stats.kernel_distance import kernel_distance

import_registering_modules()
DIMENSIONS = 64


def results_of(scenes: int, shifts: dict[str, float], missing: tuple[str, ...] = ()) -> tuple[Results, dict]:
    """Models whose features lie some way off those of the truth; `missing` cases have none."""
    rng = np.random.default_rng(0)
    cases, records, series, rows = [], [], {}, {}

    def add(case: Case, feature: np.ndarray) -> None:
        cases.append(case)
        if case.id not in missing:
            facts = {"maker": "i3d-kinetics-400", "frames": 16, "size": 224, "action": "yoga"}
            records.append(Record(case, "video_action", False, "scored", 0.5, facts=facts))
            series[case.id, "video_action"] = Series(dimension=np.arange(DIMENSIONS), feature=feature)
            rows[case.id] = feature

    for k in range(scenes):
        true = rng.normal(size=DIMENSIONS)
        reference = Clip(Path(f"truth/{k}.mp4"))
        add(Case(f"{k}@truth", "folder", "truth", f"truth-{k}", reference, truth=True), true)
        for model, shift in shifts.items():
            made = true + shift + rng.normal(0, 0.3, DIMENSIONS)
            add(
                Case(f"{k}@{model}", "folder", model, f"s{k}", Clip(Path(f"{model}/{k}.mp4")), reference=reference),
                made,
            )
    return Results(cases, records, series=series), rows


def test_distances_of_models_are_those_of_their_features() -> None:
    results, rows = results_of(24, {"near": 0.1, "far": 0.6}, missing=("3@far",))
    kvd, fvd = model_to_truth_distances(results, {"i3d-kinetics-400": "af5c50f0"})
    scenes = [k for k in range(24) if k != 3]
    far, true = (np.stack([rows[f"{k}@{of}"] for k in scenes]) for of in ("far", "truth"))
    expected = kernel_distance(far, true, scenes, scenes)
    assert kvd["models"]["far"]["value"] == pytest.approx(expected.value)
    assert kvd["models"]["far"]["interval"] == pytest.approx(list(expected.interval))
    assert (kvd["models"]["far"]["scenes"], kvd["models"]["near"]["clips"]) == (23, 24)
    assert (kvd["network"], kvd["digest"], kvd["frames"], kvd["size"]) == ("i3d-kinetics-400", "af5c50f0", 16, "224 px")
    assert kvd["best"] is None  # they were not asked the same scenes
    assert (
        fvd["least_scenes"] == 288
        and "value" not in fvd["models"]["near"]
        and "288" in fvd["models"]["near"]["unscored"]
    )
    assert any("Unscored, too few: FVD needs 288 scenes and has 24" in said for said in distance_sentences([kvd, fvd]))


def test_the_nearest_is_named_only_beyond_doubt() -> None:
    decided, *_ = model_to_truth_distances(results_of(24, {"near": 0.1, "far": 0.6})[0])
    assert decided["best"] == "near" and "near is nearest" in distance_sentences([decided])[0]
    undecided, *_ = model_to_truth_distances(results_of(24, {"one": 0.3, "other": 0.3})[0])
    assert undecided["best"] is None and "undecided" in distance_sentences([undecided])[0]
    table = distance_table([undecided])
    assert "no model is the nearest" in table["note"] and table["columns"] == ["KVD ↓"]
    assert table["rows"][0]["cells"][0]["interval"] == undecided["models"]["one"]["interval"]


def test_without_truth_or_features_there_are_none() -> None:
    results, _ = results_of(4, {"a": 0.1})
    assert model_to_truth_distances(Results(results.cases, results.records)) == []
    assert model_to_truth_distances(results_of(4, {"a": 0.1}, missing=tuple(f"{k}@a" for k in range(4)))[0]) == []
