"""WRBench's tables from its published rows: averages, daggers, totals, correlations, contrasts."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from revisit.results import Cell
from revisit.suites.wrbench.tables import (
    AVERAGED,
    ModelRow,
    best_models_by_condition,
    event_factor_contrasts,
    left_to_right_support_ratio,
    measure_correlations,
    output_weighted_means,
    published_model_rows,
)

SPARSE = {
    "hailuo_2_3", "hunyuan_game_craft", "kling_v2_6", "lingbot_world", "lingbot_world_act", "wan2_2_i2v_plus",
    "wan2_7_i2v", "wanx2_1_i2v_turbo",
}  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> dict[str, ModelRow]:
    return {row.model: row for row in published_model_rows()[1]}


def test_the_shipped_numbers_are_the_published_ones(rows: dict[str, ModelRow], shared: Path) -> None:
    with (shared / "wrbench/results/wrbench_23model_results.csv").open() as file:
        for given in csv.DictReader(file):
            row = rows[given["model_id"]]
            assert row.outputs == int(given["n_outputs"])
            assert row.average == pytest.approx(float(given["Avg"]), abs=1e-6)
            assert row.has_few_returns == (given["low_n_flag"] == "true")
            assert row.support == pytest.approx(float(given["gate_applicable_rate"]), abs=1e-9)
            assert row.condition == given["viewpoint_condition_type"].replace("-", "_")


def test_eight_daggers(rows: dict[str, ModelRow]) -> None:
    assert {model for model, row in rows.items() if row.has_few_returns} == SPARSE


def test_averages_of_the_paper_and_the_three_it_rounded_otherwise(rows: dict[str, ModelRow], shared: Path) -> None:
    printed = {row["name"]: row["avg"] for row in json.loads((shared / "golden/wrbench_table2.json").read_text())}
    aliases = {"Hydra": "HyDRA", "Lingbot World": "Lingbot World Cam", "Lingbot Act": "Lingbot World Act"}
    off = {}
    for row in rows.values():
        name = aliases.get(row.title, row.title)
        if abs(printed[name] - row.average) > 0.0005 - 1e-9:
            off[name] = (printed[name], round(row.average, 5))
    assert set(off) == {"Wan-Fun 2.1-14B", "Lingbot World Cam", "Hunyuan WorldPlay"}


def test_totals_weigh_by_outputs(rows: dict[str, ModelRow]) -> None:
    expected = {
        "precision": (0.702164, 7500), "alignment": (0.460351, 7800), "hold": (0.922987, 700),
        "integrity": (0.793863, 9600), "visible_spatial": (0.769871, 9600), "visible_state": (0.590682, 9600),
        "returned_spatial": (0.661170, 2073), "returned_state": (0.612556, 2073),
    }  # fmt: skip
    made = output_weighted_means(rows.values())
    for measure, (value, n) in expected.items():
        assert made[measure].n == n
        assert made[measure].mean == pytest.approx(value, abs=2e-6)


def test_correlations_of_the_paper(rows: dict[str, ModelRow]) -> None:
    made = measure_correlations(list(rows.values()))
    assert made["visible_spatial"]["visible_state"] == pytest.approx(0.970, abs=5e-4)
    assert made["returned_spatial"]["returned_state"] == pytest.approx(0.943, abs=5e-4)
    between = [
        made[v][r] or 0 for v in ("visible_spatial", "visible_state") for r in ("returned_spatial", "returned_state")
    ]
    assert min(between) == pytest.approx(0.60, abs=5e-3)
    assert max(between) == pytest.approx(0.79, abs=5e-3)
    assert made["support"]["visible_spatial"] == pytest.approx(-0.42, abs=5e-3)
    assert made["support"]["integrity"] == pytest.approx(-0.15, abs=5e-3)
    assert made["support"]["returned_state"] == pytest.approx(-0.15, abs=5e-3)


def test_frontiers_by_viewpoint_condition(rows: dict[str, ModelRow]) -> None:
    made = best_models_by_condition(rows.values())
    assert made["geometry_cache"]["support"] == ("Gen3C", 0.73)
    assert made["source_video"]["alignment"][0] == "Hydra"
    # WanX2.1 has the highest returned score of the prompt-only models, from 3 clips: it does not lead.
    assert made["prompt_only"]["returned_spatial"][0] == "HappyHorse 1.0 I2V"


def test_a_row_without_a_measure_has_no_average() -> None:
    row = ModelRow("m", "m", "prompt_only", 100, {measure: Cell(100, 100, 0.5) for measure in AVERAGED[:-1]})
    assert row.average is None
    assert ModelRow("m", "m", "prompt_only", 0).has_few_returns


def test_retention() -> None:
    assert left_to_right_support_ratio(0.575, 0.885) == pytest.approx(0.65, abs=5e-3)
    assert left_to_right_support_ratio(0.5, 0.0) is None


def test_contrasts_find_the_factor_that_acts() -> None:
    means = {
        f"model{k}": {
            "none": {"returned_state": 0.8 + k / 1000}, "spatial": {"returned_state": 0.8 - k / 900},
            "state_only": {"returned_state": 0.6 - k / 500}, "full": {"returned_state": 0.6 - k / 700},
        }
        for k in range(1, 13)
    }  # fmt: skip
    made = {contrast["factor"]: contrast for contrast in event_factor_contrasts(means, ["returned_state", "unknown"])}
    assert made["changes"]["mean"] == pytest.approx(-0.2, abs=0.02)
    changes = made["changes"]
    assert changes["p"] is not None and changes["p_holm"] is not None
    assert changes["p"] <= changes["p_holm"] < 0.01
    assert abs(made["moves"]["mean"]) < 0.02
    assert event_factor_contrasts({"one": {"none": {"returned_state": 1}}}, ["returned_state"]) == []
