"""Sweeps: parameters are found and refused, scores change with them, and rankings are compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from revisit.audit.page import write_sweep_page
from revisit.audit.sweep import parse_parameter, sweep_parameter
from revisit.audit.text import sweep_table
from revisit.core import SUITES, UsageError
from revisit.engine.dependencies import ObserverSet, Parameters
from revisit.engine.plan import Plan, make_plan
from revisit.observers.sets import load_roles
from tests.conftest import Cli


@pytest.fixture
def videos(tmp_path: Path, make_clip: Any) -> Path:
    """Two models with two clips each."""
    for model, seeds in (("one", (0, 1)), ("two", (2, 3))):
        for seed in seeds:
            make_clip(tmp_path / "videos" / model / f"clip{seed % 2}.mp4", seed=seed)
    return tmp_path / "videos"


@pytest.fixture
def plan_of(videos: Path) -> Any:
    def make(overrides: Parameters | None) -> Plan:
        observers = ObserverSet("lite", load_roles("lite"))
        metrics = ("motion_smoothness", "flicker")
        return make_plan(SUITES["folder"], videos, observers, metrics=metrics, overrides=overrides)

    return make


def test_a_parameter_is_parsed_with_its_values() -> None:
    found = parse_parameter("lite.target.size=1,0.5,true,word")
    assert (found.targets, found.values) == ((("lite.target", "size"),), (1, 0.5, True, "word"))


@pytest.mark.parametrize(
    "wrong", ["motion_smoothness", "motion_smoothness.tau", "tau=1", "a.b=", ".b=1", "a.b=1,,2", "a.b=["]
)
def test_what_is_no_parameter_is_refused(wrong: str) -> None:
    with pytest.raises(UsageError, match="takes ID"):
        parse_parameter(wrong)


def test_scores_change_and_rankings_are_compared(plan_of: Any, tmp_path: Path) -> None:
    found = sweep_parameter(
        plan_of, parse_parameter("motion_smoothness.tau=0.05,0.15,0.6"), tmp_path / "sweep", workers=0
    )
    assert list(found["metrics"]) == ["motion_smoothness"]  # flicker does not depend on it
    assert [row["value"] for row in found["rows"]] == [0.05, 0.15, 0.6]
    assert [row["default"] for row in found["rows"]] == [False, True, False]
    means = [row["metrics"]["motion_smoothness"]["models"]["one"]["mean"] for row in found["rows"]]
    assert means == sorted(means) and means[0] < means[2]
    standing = found["rows"][1]["metrics"]["motion_smoothness"]
    assert standing["tau_clips"] == 1 and standing["clips_compared"] == 4 and standing["models_compared"] == 2
    # one number per clip, moved by a monotone function: the order of clips stays
    assert all(row["metrics"]["motion_smoothness"]["tau_clips"] == 1 for row in found["rows"])
    shown = sweep_table(found)
    assert "0.15 *" in shown and "tau, models" in shown and max(map(len, shown.splitlines())) <= 110


def test_only_metric_parameters_decode_nothing_again(plan_of: Any, tmp_path: Path) -> None:
    sweep_parameter(plan_of, parse_parameter("motion_smoothness.tau=0.3"), tmp_path / "sweep", workers=0)
    counters = json.loads((tmp_path / "sweep/value-1/run.json").read_text())["counters"]
    assert counters["decodes"] == 0 and counters["evidence_from_cache"] > 0


@pytest.mark.parametrize(
    ("param", "sentence"),
    [
        ("motion_smothness.tau=1", "did you mean motion_smoothness"),
        ("motion_smoothness.tua=1", "its parameters are tau"),
        ("flicker.tau=1", "flicker has no parameter 'tau'"),
        ("motion_smoothness.tau=soft", "'soft' is not a number"),
        ("event_outcome.tau=1", "this evaluation does not use"),
    ],
)
def test_unknown_ids_names_and_values_are_one_sentence(plan_of: Any, tmp_path: Path, param: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        sweep_parameter(plan_of, parse_parameter(param), tmp_path / "sweep", workers=0)


def test_the_command_takes_a_source_and_a_run(revisit: Cli, videos: Path, tmp_path: Path) -> None:
    revisit("eval", videos, "--out", "run", "--no-report", "-m", "motion_smoothness", "--workers", 0)
    done = revisit("audit", "sweep", "run", "-p", "motion_smoothness.tau=0.1,0.3", "--json", "--workers", 0)
    found = json.loads(done.stdout)
    assert found[0]["parameter"] == "motion_smoothness.tau" and found[0]["default"] == 0.15
    assert (tmp_path / "runs/sweep-run/index.html").is_file()
    wrong = revisit("audit", "sweep", videos, "-p", "nothing.x=1", "-m", "flicker", check=2)
    assert wrong.stderr.strip().count("\n") == 0 and "this evaluation does not use" in wrong.stderr


def test_sweeps_of_one_source_stand_on_one_page_and_those_of_another_are_refused(
    revisit: Cli, videos: Path, tmp_path: Path
) -> None:
    revisit("eval", videos, "--out", "run", "--no-report", "-m", "motion_smoothness,scene_cuts", "--workers", 0)
    for parameter in ("motion_smoothness.tau=0.1,0.3", "scene_cuts.threshold=0.2", "motion_smoothness.tau=0.2"):
        revisit("audit", "sweep", "run", "-p", parameter, "--workers", 0, "--out", "page")
    cuts, smoothness = json.loads((tmp_path / "page/sweep.json").read_text())
    assert cuts["parameter"] == "scene_cuts.threshold"
    assert [row["value"] for row in smoothness["rows"]] == [0.15, 0.2]
    page = (tmp_path / "page/index.html").read_text()
    assert "scene_cuts.threshold" in page and "motion_smoothness.tau" in page
    other = revisit("audit", "sweep", videos, "-p", "scene_cuts.threshold=0.2", "--out", "page", check=2)
    assert "holds sweeps of" in other.stderr and "--out" in other.stderr


def sweep_of(models: int, value: str) -> dict[str, Any]:
    """A sweep in which every model scores the same."""
    names = [f"model {k}" for k in range(models)]
    scores = {"models": {name: {"n": 1, "of": 1, "mean": 0.5} for name in names}, "tau_models": None, "tau_clips": None}
    row = {"value": value, "default": True, "metrics": {"flicker": scores}}
    content = {"parameter": "a.b", "default": value, "suite": "folder", "cases": 1, "set": "lite", "read": "tau"}
    metrics = {"flicker": {"title": "Flicker", "higher_is_better": False}}
    return {**content, "models": names, "metrics": metrics, "rows": [row]}


def test_more_models_than_colours_are_a_table_only(tmp_path: Path) -> None:
    for models, pictures in ((9, 1), (10, 0)):
        page = write_sweep_page(tmp_path, [sweep_of(models, "1")]).read_text()
        assert page.count('<svg class="figure"') == pictures and f"model {models - 1}" in page


def test_a_column_is_no_wider_than_its_scores_where_a_value_is_a_sentence() -> None:
    heads = sweep_table(sweep_of(1, "a red ball that lies on the table")).splitlines()[3]
    assert heads.split() == ["a", "red", "ball", "that…", "*"]
