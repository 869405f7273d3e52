"""The table of the truth page: of the present versions, and as the page shows it."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

from revisit.core import GATES, METRICS

ROOT = Path(__file__).parents[2]
FIGURES = json.loads((ROOT / "benchmarks" / "truth_table.json").read_text(encoding="utf-8"))


def test_the_page_shows_the_stored_table():
    spec = importlib.util.spec_from_file_location("make_truth", ROOT / "docs" / "make_truth.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (ROOT / "docs" / "truth.md").read_text(encoding="utf-8")
    assert module.page(page, FIGURES) == page, "run docs/make_truth.py"


def test_the_stored_table_is_of_the_present_versions():
    versions = dict(FIGURES["versions"])
    again = "run benchmarks/truth_table.py on the clips again, then docs/make_truth.py"
    assert versions.pop("target_return") == GATES["target_return"].version, again
    assert versions == {name: METRICS[name].version for name in versions}, again


def test_a_reset_that_looks_most_alike_is_last_once_held_to_the_truth():
    measured, held = FIGURES["measured"]["return_consistency"], FIGURES["held"]["return_consistency"]
    assert measured["svc"] > measured["truth"] > max(measured["wan"], measured["lingbot"])
    for metric, row in FIGURES["held"].items():
        others = [value for model, value in row.items() if model != "svc" and isinstance(value, float)]
        assert row["svc"] < min(others), metric
    assert held["svc"] < 0.2
