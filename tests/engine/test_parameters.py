"""`--param ID.name=value`: parameters of the user's own, for every suite, and in the protocol's hash."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import revisit
from revisit.cli.main import app
from revisit.core import UsageError
from revisit.engine.parameters import parse_parameters
from tests.mbench import small_dataset


def invoke(*arguments: object):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def answers(run: Path, id: str) -> list[dict]:
    found = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
    return [record for record in found if record.get("metric") == id]


def test_a_parameter_changes_the_score_in_closed_form_and_the_tag(tmp_path: Path, make_clip) -> None:
    """Lighting is exp(-D / tau): with another tau the same D gives another score, known beforehand."""
    root = small_dataset(tmp_path / "set", make_clip)
    shared = (
        "eval",
        root,
        "-m",
        "mb_rendering_lighting",
        "--option",
        "subsets=environment",
        "--workers",
        0,
        "--no-report",
    )
    invoke(*shared, "--out", tmp_path / "one")
    invoke(*shared, "--out", tmp_path / "two", "--param", "mb_rendering_lighting.tau=3")
    (one,), (two,) = (answers(tmp_path / name, "mb_rendering_lighting") for name in ("one", "two"))
    assert one["raw"] == two["raw"] > 0
    assert one["score"] == pytest.approx(math.exp(-one["raw"] / 10))
    assert two["score"] == pytest.approx(math.exp(-one["raw"] / 3))
    assert one["protocol"] != two["protocol"]
    facts = json.loads((tmp_path / "two/run.json").read_text())
    assert facts["request"]["parameters"] == {"mb_rendering_lighting": {"tau": 3.0}}
    again = json.loads(invoke("eval", tmp_path / "two", "--rescore", "--json", "--no-report").stdout)
    assert again["metrics"]["mb_rendering_lighting"]["protocol"] == [two["protocol"]]
    assert answers(tmp_path / "two", "mb_rendering_lighting")[-1]["score"] == two["score"]


def test_it_works_in_other_suites_and_in_plan(tmp_path: Path, make_clip) -> None:
    make_clip(tmp_path / "videos/a.mp4")
    shared = (tmp_path / "videos", "-m", "motion_smoothness")
    tags = []
    for flags in ((), ("-p", "motion_smoothness.tau=0.5")):
        plan = json.loads(invoke("plan", *shared, *flags, "--json").stdout)
        tags.append(plan["metrics"]["motion_smoothness"])
    assert tags[0] != tags[1]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("mb_rendering_lighting", "--param takes ID.name=value"),
        ("mb_rendering_lighting.tau=", "--param takes ID.name=value"),
        ("mb_rendering_lightning.tau=1", "did you mean mb_rendering_lighting"),
        ("mb_rendering_lighting.tua=1", "has no parameter 'tua'; its parameters are"),
        ("mb_rendering_lighting.tau=soft", "'soft' is not a number"),
    ],
)
def test_what_is_wrong_is_one_sentence(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse_parameters([text])


def test_what_nothing_uses_and_what_is_said_twice_is_refused(tmp_path: Path, make_clip) -> None:
    with pytest.raises(UsageError, match="twice"):
        parse_parameters(["mb_rendering_lighting.tau=1", "mb_rendering_lighting.tau=2"])
    make_clip(tmp_path / "videos/a.mp4")
    flags = ["plan", str(tmp_path / "videos"), "-m", "motion_smoothness", "-p", "mb_rendering_lighting.tau=2"]
    done = CliRunner().invoke(app, flags)
    assert isinstance(done.exception, UsageError)
    assert "this evaluation does not use 'mb_rendering_lighting'" in str(done.exception)


def test_python_checks_parameters_as_the_command_does(tmp_path: Path, make_clip) -> None:
    """A number without a point is the same setting, and what nothing uses is refused, also of frames in memory."""
    make_clip(tmp_path / "videos/a.mp4")
    shared: dict[str, Any] = {"metrics": ["drift_look"], "workers": 0}
    params: dict[str, dict[str, Any]]
    for name, params in (("one", {}), ("two", {"drift_look": {"least": 8}})):
        revisit.evaluate(tmp_path / "videos", out=tmp_path / name, params=params, **shared)
    (one,), (two,) = ({line["protocol"] for line in answers(tmp_path / name, "drift_look")} for name in ("one", "two"))
    assert one == two
    frames = np.zeros((3, 32, 48, 3), np.uint8)
    for params, sentence in (
        ({"drift_lok": {"least": 8}}, "did you mean drift_look"),
        ({"drift_look": {"most": 8}}, "has no parameter 'most'"),
        ({"drift_look": {"least": "long"}}, "is not a number"),
        ({"motion_smoothness": {"tau": 1.0}}, "does not use 'motion_smoothness'"),
    ):
        with pytest.raises(UsageError, match=sentence):
            revisit.score(frames, metrics=["drift_look"], params=params)
        with pytest.raises(UsageError, match=sentence):
            revisit.evaluate(tmp_path / "videos", out=tmp_path / "three", params=params, **shared)


def test_a_batch_of_no_frames_is_refused(tmp_path: Path, make_clip) -> None:
    make_clip(tmp_path / "videos/a.mp4")
    with pytest.raises(UsageError, match="--batch 0"):
        revisit.evaluate(tmp_path / "videos", out=tmp_path / "run", batch=0)
