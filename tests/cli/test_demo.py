"""The demo, as a user runs it: five models, told apart by the metrics meant for them."""

from __future__ import annotations

import json
from functools import partial

import pytest

from revisit.suites.folder import world
from revisit.worlds.demo import DemoScene, render_demo


@pytest.fixture
def smaller(monkeypatch):
    """The first scene with a sixth of the pixels and half the frames."""
    scene = DemoScene("ball", "moved", "yaw:{away}:60@20,yaw:{back}:60@20")
    monkeypatch.setattr(world, "render_demo", partial(render_demo, size=(144, 256)))
    monkeypatch.setattr(world, "SCENES", (scene,))


@pytest.mark.slow
@pytest.mark.parametrize("size", ["smaller", pytest.param("whole", marks=pytest.mark.long)])
def test_the_demo_tells_the_five_models_apart(revisit, tmp_path, request, size):
    if size == "smaller":
        request.getfixturevalue("smaller")
    done = revisit("demo", "--scenes", 1, "--json")
    summary = json.loads(done.stdout)
    models = summary["models"]

    def mean(model, metric):
        return models[model]["scores"][metric].get("mean")

    assert set(models) == {"perfect", "frozen", "forgets", "resets", "drifts"}
    # A frozen camera does not pose the test: no memory metric scores it, and the funnel says where it stopped.
    funnel = {stage["stage"]: stage["n"] for stage in models["frozen"]["funnel"]}
    assert funnel["readable"] == 1 and funnel["camera moved"] == 0 and funnel["memory scored"] == 0
    for metric in ("target_reappearance", "target_identity", "return_consistency", "event_outcome"):
        assert mean("frozen", metric) is None
        assert mean("perfect", metric) is not None
    # Each failure is below perfect memory on the metric meant for it, by far.
    assert mean("forgets", "target_reappearance") == 0 and mean("perfect", "target_reappearance") == 1
    assert mean("resets", "event_outcome") < 0.2 < 0.9 < mean("perfect", "event_outcome")
    assert mean("drifts", "lighting_consistency") < mean("perfect", "lighting_consistency") - 0.1
    if size == "whole":  # else both return at the bound
        assert mean("drifts", "return_consistency") < mean("perfect", "return_consistency")
    # What was asked of the camera, 60 degrees out and back, is what is recovered.
    assert mean("perfect", "camera_path") == pytest.approx(120, abs=6)
    counters = json.loads((tmp_path / "demo/run/run.json").read_text())["counters"]
    # the reference once for each worker, of which there may be more than rooms
    assert counters["clips_decoded"] == 6 and counters["decodes"] == 5 + counters["most_decodes_of_one_clip"]
    assert counters["most_runs_of_one_observer_on_one_clip"] == 1
    page = (tmp_path / "demo/run/report/index.html").read_text()
    assert "does not pose the test" in page.replace("\n", " ")
