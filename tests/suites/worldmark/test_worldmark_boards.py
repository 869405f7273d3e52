"""Boards, tables and files: the page's findings, a model's numbers, and stand-ins in columns of their own."""

from __future__ import annotations

import csv
import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revisit
from revisit.core import SUITES, Case, Clip, Record
from revisit.media import encode_mp4
from revisit.results import Results
from revisit.results.run import Run
from revisit.results.score_names import STAND_IN
from revisit.suites.worldmark.evidence import ACTIONS
from revisit.suites.worldmark.metrics import COLUMNS
from revisit.suites.worldmark.summary import (
    aggregate_model_cell,
    published_table_statistics,
    published_worldmark_boards,
    worldmark_run_boards,
)
from revisit.suites.worldmark.world import MODELS, camera_poses_of_keys, keys_followed_by_model, write_worldmark_layout
from tests.painted_datasets import film

SCRIPT = Path(__file__).parents[3] / "benchmarks/worldmark_pairs.py"


def load_script() -> Any:
    spec = importlib.util.spec_from_file_location("worldmark_pairs", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


worldmark_pairs = load_script()


def test_the_pages_findings_follow_from_its_tables() -> None:
    """As the benchmark's page prints them, in its digits and in more."""
    findings = published_table_statistics()
    assert findings["sd of Local"] == pytest.approx(2.56, abs=0.005)
    assert findings["sd of Global"] == pytest.approx(13.08, abs=0.005)
    rho = [findings[f"Spearman of QA_q with {head}"] for head in ("Local", "Global", "Rev", "RL_t")]
    assert rho == pytest.approx([0.78, 0.76, 0.76, -0.82], abs=0.005)
    assert findings["third minus first of DA_r"] == pytest.approx(-13.9, abs=0.05)
    assert findings["third minus first of DA_t"] == pytest.approx(-4.0, abs=0.06)


def test_the_four_tables_are_those_of_the_page(shared: Path) -> None:
    truth = json.loads((shared / "worldmark/tables.json").read_text())
    for board in published_worldmark_boards():
        table = truth[board.title.rpartition(", ")[2]]
        assert {row.model for row in board.rows} == set(table)
        for row in board.rows:
            assert [row.cells[COLUMNS[head]].mean for head in truth["columns"]] == table[row.model]
    assert (
        len(published_worldmark_boards()) == 4 and sum(len(board.rows) for board in published_worldmark_boards()) == 30
    )


def record(k: int, metric: str, value: float, **facts: object) -> Record:
    case = Case(f"c{k}@m", "worldmark", "m", f"real/{k % 3:03d}", Clip(Path("a.mp4")), condition="WS")
    return Record(case=case, question=metric, is_gate=False, status="scored", value=value, facts=facts)


def test_a_models_numbers_are_added_up_as_the_benchmark_does() -> None:
    """Against the benchmark's formulas, written down here: pooled keys, a product of means, the value at a mean."""
    keys = [[90.0, -20.0], [60.0], [70.0, 80.0, None]]
    cuts, mutations = [True, False, False, False], [0.5, 0.0, 0.25, None]
    errors = [0.02, 0.2, 0.05]
    records = [
        *(record(k, "worldmark_direction_translation", 0.0, keys=[{"score": one} for one in some])
          for k, some in enumerate(keys)),
        *(record(k, "worldmark_local", 0.0, cut=cut, mutations=share)
          for k, (cut, share) in enumerate(zip(cuts, mutations, strict=True))),
        *(record(k, "worldmark_global", 0.0, error=error) for k, error in enumerate(errors)),
    ]  # fmt: skip
    results = Results(list({one.case.id: one.case for one in records}.values()), records)
    pooled = aggregate_model_cell(results, "worldmark_direction_translation", False)
    assert pooled.mean == pytest.approx(np.mean([90, -20, 60, 70, 80])) and pooled.interval is not None
    local = aggregate_model_cell(results, "worldmark_local", True)
    assert local.mean == pytest.approx(100 * (1 - 1 / 4) * (1 - np.mean([0.5, 0, 0.25])))
    assert aggregate_model_cell(results, "worldmark_global", True).mean == pytest.approx(
        100 / (1 + np.mean(errors) / 0.05)
    )


def test_a_mean_over_clips_has_the_interval_of_every_table() -> None:
    good = [record(k, "worldmark_quality", 97.0 + k) for k in range(3)]
    results = Results([one.case for one in good], good)
    cell, table = aggregate_model_cell(results, "worldmark_quality", False), results.cell("worldmark_quality")
    assert cell == table and cell.few_scenes and cell.mean == 98.0


def test_a_direction_below_zero_is_zero_upstream() -> None:
    wrong = [record(k, "worldmark_direction_rotation", -60.0, keys=[{"score": -60.0}]) for k in range(3)]
    results = Results([one.case for one in wrong], wrong)
    means = [aggregate_model_cell(results, "worldmark_direction_rotation", upstream).mean for upstream in (False, True)]
    assert means == [-60.0, 0.0]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A camera that turns left and back, twelve seconds at eight frames a second, and one that stays."""
    folder = tmp_path_factory.mktemp("worldmark")
    frames, _ = film("yaw:left:40@48,yaw:right:40@47")
    for model, pictures in (("mine", frames), ("Genie3", np.repeat(frames[:1], len(frames), axis=0))):
        encode_mp4(folder / "clips/real/first" / model / "003_007.mp4", pictures, 8.0)
    revisit.evaluate(folder / "clips", suite="worldmark", out=folder / "run")
    yield folder / "run"


def test_stand_ins_have_columns_of_their_own(run: Path) -> None:
    """Dense inverse search is not SEA-RAFT: published columns and files stay empty."""
    rows = list(csv.DictReader((run / "final_master_first_real.csv").open()))
    assert [row["model"] for row in rows] == ["Genie3", "mine"]
    assert all(row[head] == "" for row in rows for head in COLUMNS)
    standing = {(row["model"], row["metric"]) for row in csv.DictReader((run / "stand_ins.csv").open())}
    assert ("mine", f"worldmark_stability_rotation{STAND_IN}") in standing
    results = Run(run).results
    mine, still = (
        {m: results.score(f"first/real/003_007@{model}", m) for m in results.metrics} for model in ("mine", "Genie3")
    )
    assert (mine["worldmark_stability_rotation"] or 0) > 90 and (mine["worldmark_latency_rotation"] or 0) > 90
    assert still["worldmark_stability_rotation"] == 0 == still["worldmark_latency_rotation"]
    assert mine["worldmark_local"] is None and mine["worldmark_direction_rotation"] is None


def test_upstream_says_whom_it_leaves_out(run: Path) -> None:
    from revisit.results.leaderboards import RunFacts

    read = Run(run)
    facts = RunFacts("r", read.facts, read.plan, read.results, read.summary)
    _, corrected = worldmark_run_boards(facts)
    assert {row.model for row in corrected.rows} == {"mine", "Genie3"}
    assert any("dense inverse search (stand-in)" in column.title for column in corrected.columns)
    renamed = {**read.facts, "protocol": {**read.facts["protocol"], "name": "upstream"}}
    _, upstream = worldmark_run_boards(RunFacts("r", renamed, read.plan, read.results, read.summary))  # type: ignore[arg-type]
    assert {row.model for row in upstream.rows} == {"mine"} and "Genie3" in upstream.note


def test_the_page_has_the_numbers_of_the_pairs() -> None:
    """Written by benchmarks/worldmark_pairs.py --write; every pair in the order of the benchmark's authors."""
    numbers = json.loads(worldmark_pairs.NUMBERS.read_text(encoding="utf-8"))
    page = worldmark_pairs.PAGE.read_text(encoding="utf-8")
    assert worldmark_pairs.with_tables(page, numbers) == page
    for pair in numbers["pairs"].values():
        for rule in ("corrected", "upstream"):
            good, bad = pair[rule]
            assert good > bad + 5, pair


@pytest.mark.long
@pytest.mark.usefixtures("small_weights")
def test_the_pairs_are_measured_as_the_page_says(shared: Path, tmp_path: Path) -> None:
    source = worldmark_pairs.lay_out(shared, tmp_path)
    revisit.evaluate(source, suite="worldmark", set="small", out=tmp_path / "run")
    measured, stored = worldmark_pairs.measure(tmp_path / "run"), json.loads(worldmark_pairs.NUMBERS.read_text())
    for pair, row in stored["pairs"].items():
        assert measured["pairs"][pair]["corrected"] == pytest.approx(row["corrected"], abs=0.5)


def test_the_layout_is_read_as_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("revisit.suites.worldmark.world.SCENES", ((7,),))
    told: list[str] = []
    source = write_worldmark_layout(tmp_path, (64, 96), told.append, 3)
    cases = [one for one in SUITES["worldmark"].read(source) if isinstance(one, Case)]
    assert {case.model for case in cases} == set(MODELS) and len(told) == len(MODELS)
    assert {case.condition for case in cases} == {"LR"} and cases[0].annotations["focal"] == pytest.approx(
        0.832, abs=0.01
    )
    assert SUITES["worldmark"].recognises(source)


@pytest.mark.parametrize("keys", ACTIONS.values())
def test_models_follow_keys_of_their_own(keys: str) -> None:
    paths = {model: camera_poses_of_keys(keys_followed_by_model(model, keys), len(keys), 4) for model in MODELS}
    assert {len(path) for path in paths.values()} == {4 * len(keys) + 1}
    assert np.ptp(paths["frozen"], axis=0).max() == 0
    assert np.allclose(paths["perfect"], paths["forgets"]) and not np.allclose(paths["perfect"], paths["opposite"])


def test_the_pages_table_of_lengths_is_the_measured_one() -> None:
    project = SCRIPT.parents[1]
    page = (project / "docs/worldmark.md").read_text(encoding="utf-8")
    for row in json.loads((project / "benchmarks/worldmark_lengths.json").read_text(encoding="utf-8")):
        memory, evidence = row["largest_process_mb"] / 1000, row["evidence_mb"]
        cells = (f"{row['seconds']} s", row["frames"], f"{row['processor_seconds']:.0f} s", f"{memory:.2f} GB")
        assert f"| {' | '.join(map(str, cells))} | {evidence:.1f} MB |" in page
