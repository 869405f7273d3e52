"""A metric, an observer and a suite, one file each, join through entry points: the example of CONTRIBUTING."""

from __future__ import annotations

import json

import pytest


def test_a_plugin_metric_and_observer_join_the_folder_suite(revisit, plugin_path, make_clip, tmp_path):
    make_clip(tmp_path / "videos/mine/a.mp4")
    env = {"PYTHONPATH": plugin_path}
    listed = revisit("list", "metrics", "--json", env=env).stdout
    assert "example.saturation_kept" in {row["id"] for row in json.loads(listed)}
    done = revisit("eval", "videos", "-m", "example.saturation_kept", "--no-report", "--json", "--workers", 1, env=env)
    score = json.loads(done.stdout)["models"]["mine"]["scores"]["example.saturation_kept"]
    assert score["n"] == 1 and 0.9 < score["mean"] <= 1


@pytest.mark.long
def test_a_plugin_of_five_lines_is_asked_of_every_folder_and_runs_in_workers(revisit, plugin_path, make_clip, tmp_path):
    for seed, name in enumerate(("a", "b")):
        make_clip(tmp_path / f"videos/mine/{name}.mp4", seed=seed)
    env = {"PYTHONPATH": plugin_path}
    named = ("-m", "example.brightness_change")
    done = revisit("eval", "videos", *named, "--no-report", "--json", "--workers", 2, env=env)
    score = json.loads(done.stdout)["models"]["mine"]["scores"]["example.brightness_change"]
    assert score["n"] == 2 and 0 <= score["mean"] < 20
    assert "Difference of the mean brightness" in revisit("show", "example.brightness_change", env=env).stdout


def test_a_plugin_suite_is_recognised_by_its_layout(revisit, plugin_path, make_clip, tmp_path):
    make_clip(tmp_path / "a.mp4")
    (tmp_path / "best.playlist").write_text("a.mp4\n../outside.mp4\n")
    env = {"PYTHONPATH": plugin_path}
    done = revisit("eval", "best.playlist", "--no-report", "--json", "--workers", 0, env=env, check=1)
    summary = json.loads(done.stdout)
    assert summary["suite"] == "playlist"
    assert summary["models"]["best"]["scores"]["example.saturation_kept"]["n"] == 1
    assert summary["rejected"] == [{"id": "../outside.mp4", "reason": "it lies outside the playlist's folder"}]


def test_a_broken_plugin_costs_only_itself(revisit, plugin_path, tmp_path):
    site = tmp_path / "site" / "broken-1.dist-info"
    site.mkdir()
    (site / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (site / "entry_points.txt").write_text("[revisit.plugins]\nbroken = no_such_module\n")
    done = revisit("list", "metrics", "--json", env={"PYTHONPATH": plugin_path})
    assert "example.saturation_kept" in done.stdout
    assert "plugin broken (no_such_module) does not load" in done.stderr


def test_a_benchmark_is_a_folder_that_nothing_else_knows(revisit, plugin_path):
    """A fifth benchmark, through the commands: layout, suite, metric, board, and a command of its own."""
    env = {"PYTHONPATH": plugin_path}
    arguments = ("--seeds", 1, "--size", "64x112", "--frames", 17, "--workers", 0)
    made = json.loads(revisit("world", "render", "--suite", "flashback", *arguments, "--json", env=env).stdout)
    assert made["flashback"]["evaluate"] == "revisit eval worlds/flashback --suite flashback"
    assert revisit("flashback", "worlds/flashback", env=env).stdout == "2 of 2 videos are there\n"
    assert "flashback" in revisit("--help", env=env).stdout

    source = ("eval", "worlds/flashback", "--out", "run", "--no-report", "--json", "--workers", 0)
    summary = json.loads(revisit(*source, env=env).stdout)
    assert summary["suite"] == "flashback"
    means = {model: facts["scores"]["flashback_light"]["mean"] for model, facts in summary["models"].items()}
    assert means["lighting"] < means["perfect"] <= 1

    [board] = json.loads(revisit("leaderboard", "run", "--json", env=env).stdout)
    assert board["columns"][0]["title"] == "Light"
    assert {row["model"] for row in board["rows"]} == {"perfect", "lighting"}
