"""The scorers scored: what the table says of scores that are known, the trial of one world, and what is kept of it."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from revisit.audit import benchmark_trials as table
from revisit.audit.benchmark_trials import (
    MODELS,
    PERFECT,
    content_digest,
    draw_figure,
    suites_on_trial,
    trial_protocols,
    try_benchmarks,
)
from revisit.core import METRICS, SUITES, UsageError

DOCS = Path(__file__).parents[2] / "docs"


def script():
    spec = importlib.util.spec_from_file_location("make_scorers", DOCS / "make_scorers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def worlds_of(values, count=4):
    """Scores of some worlds: a number for each model, the same with a little of its own in every world."""
    suite = suites_on_trial(["wbench"])[0]
    return [
        {
            protocol: {
                metric: {
                    model: {
                        "mean": None if values[model] is None else values[model] + 0.001 * world, "n": 1, "of": 1,
                        "why": "at_rest" if values[model] is None else "", "stand_in": "",
                    }
                    for model in MODELS
                }
                for metric in suite.memory_or_control_by_metric
            }
            for protocol in trial_protocols(suite)
        }
        for world in range(count)
    ]  # fmt: skip


def known(**changes):
    values = dict.fromkeys(MODELS, 0.2) | {PERFECT: 0.9} | changes
    return table.make_trial_table({"wbench": worlds_of(values)}, set="lite", size=(64, 96), frames=17)


def row(content, measure, protocol="upstream"):
    return next(one for one in content["rows"] if (one["measure"], one["protocol"]) == (measure, protocol))


def test_verdicts_follow_from_differences_in_the_same_worlds():
    content = known(frozen_camera=None, vanish=0.9, noise=0.95)
    memory, control = row(content, "wb_spatial"), row(content, "wb_navigation")
    verdicts = {model: cell["verdict"] for model, cell in memory["cells"].items()}
    assert verdicts["frozen_camera"] == table.ABSTAINS and memory["cells"]["frozen_camera"]["why"] == "at_rest"
    assert verdicts["vanish"] == table.SAME and verdicts["noise"] == table.BETTER
    assert verdicts["partial_return"] == table.WORSE and verdicts["opposite_camera"] == "", "not asked of memory"
    assert memory["perfect_first"] is False and memory["published"]
    assert control["cells"]["vanish"]["verdict"] == "" and control["cells"]["opposite_camera"]["verdict"] == table.WORSE
    assert row(known(), "wb_navigation")["perfect_first"] is True
    low, high = memory["cells"][PERFECT]["interval"]
    assert low < 0.9015 < high and memory["cells"][PERFECT]["worlds"] == 4
    nothing = known(**{PERFECT: None})
    assert row(nothing, "wb_spatial")["perfect_first"] is None
    assert "no: target gone, noise" in table.table_as_text(content)


def test_measures_come_from_the_cards():
    suites = suites_on_trial()
    assert {"mind", "memobench", "wrbench", "mbench", "wbench"} <= {suite.id for suite in suites}
    for suite in suites:
        assert set(suite.memory_or_control_by_metric) <= set(METRICS) and set(
            suite.memory_or_control_by_metric.values()
        ) <= {"memory", "control"}
        assert len(trial_protocols(suite)) == 2, "the published protocol, and ours"
        assert all(METRICS[metric].higher_is_better is not None for metric in suite.memory_or_control_by_metric)
    with pytest.raises(UsageError, match="names no measures"):
        suites_on_trial(["folder"])


def test_a_figure_knows_what_it_shows(tmp_path):
    content = known(frozen_camera=0.9)
    path = draw_figure(content, tmp_path / "one.png")
    assert script().drawn_from(path) == content_digest(content) != content_digest(known())
    page = script().page(content)
    assert "A frozen camera is given as much as the perfect one, or more, by 5 of 5" in page
    assert "**0.90 [0.90, 0.90]**" in page


def test_what_is_kept_is_of_these_measures_and_the_page_shows_it():
    """`python benchmarks/scorers.py`, after a measure has changed."""
    content = json.loads((DOCS / "scorers.json").read_text(encoding="utf-8"))
    assert content["worlds"] >= 12
    for one in content["rows"]:
        if one["suite"] in SUITES:  # a plugin's need not be installed here
            assert METRICS[one["measure"]].version == one["version"], f"{one['measure']} has changed since"
    ours = {(suite.id, metric) for suite in suites_on_trial() for metric in suite.memory_or_control_by_metric}
    assert ours <= {(one["suite"], one["measure"]) for one in content["rows"]}
    assert (DOCS / "scorers.md").read_text(encoding="utf-8") == script().page(content)
    assert script().drawn_from(DOCS / "scorers.png") == content_digest(content)


def test_a_world_that_fails_costs_only_itself(tmp_path, monkeypatch):
    from revisit.audit import benchmark_trials

    def broken(job, tell):
        if job.world == 1:
            raise ValueError("no such place")
        return worlds_of(dict.fromkeys(MODELS, 0.5))[0]

    monkeypatch.setattr(benchmark_trials, "_score", broken)
    scores, failures = try_benchmarks(tmp_path, suites=["wbench"], worlds=3, workers=0)
    assert len(scores["wbench"]) == 2 and failures == ["wbench, world 1, failed: ValueError: no such place"]


@pytest.mark.long
def test_a_world_is_tried_and_not_tried_again(tmp_path):
    settings = {"suites": ["wbench"], "worlds": 1, "set": "lite", "size": (64, 96), "frames": 17, "workers": 0}
    scores, failures = try_benchmarks(tmp_path, **settings)
    assert not failures
    upstream, corrected = (scores["wbench"][0][protocol]["wb_navigation"] for protocol in ("upstream", "corrected"))
    assert (corrected[PERFECT]["mean"] or 0) > 0.9 and corrected["frozen_camera"]["mean"] == 0
    assert (upstream["frozen_camera"]["mean"] or 0) > 0.4, "the published score gives a frozen camera credit"
    assert not (tmp_path / "wbench/world_00").exists()
    told = []
    assert try_benchmarks(tmp_path, progress=lambda done, of, what: told.append(what), **settings) == (scores, [])
    assert told == ["wbench, world 0: was there"]
