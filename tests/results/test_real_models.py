"""Eight published models on five real scenes: the first lines and the first screen say what the eye sees.

`real_records.json` has what gates and metrics found on these clips (`make_real_records.py`); the long test makes it
anew. `eye.json` was written by eye before any tool ran; doubtful entries ('?') are left out.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from revisit.cli import run_summary
from revisit.core import SUITES, Case, Clip, Record, import_registering_modules
from revisit.report.verdict import verdict_content
from revisit.results import Results
from revisit.results.funnel import LEAVES, looks_away_and_returns
from revisit.results.look_away_counts import ASK, count_look_aways
from revisit.results.verdict import Verdict, make_verdict
from tests.results.make_real_records import FILE, GATES, stored_records

import_registering_modules()
Eye = Mapping[str, Mapping[str, Any]]
# What the gates say otherwise than the eye, or cannot tell, on the clips on which the truth leaves and returns.
UNCLEAR = {"Real_024/cogvideo", "Real_024/opensora"}  # foam fills the frame before a camera that rests


@pytest.fixture(scope="module")
def eye(shared: Path) -> Eye:
    labels = json.loads((shared / "memobench_more/eye.json").read_text())
    return {name: entry for name, entry in labels.items() if name != "_"}


@pytest.fixture(scope="module")
def results() -> Results:
    cases: dict[str, Case] = {}
    records = []
    stored = json.loads(FILE.read_text())
    for name, entry in stored.items():
        scene, _, model = name.partition("/")
        truth = Clip(Path(f"gt/{scene}"))
        is_truth = model == "gt"
        clip = truth if is_truth else Clip(Path(name))
        cases[name] = Case(
            f"{scene}@{model}", "folder", model, scene, clip, None if is_truth else truth, truth=is_truth
        )
        for id, said in entry.items():
            if id in GATES:
                records.append(Record(cases[name], id, True, said[0], label=said[1]))
            else:
                records.append(Record(cases[name], id, False, "scored", said, protocol="corrected:1"))
    return Results(list(cases.values()), records)


@pytest.fixture(scope="module")
def verdict(results: Results) -> Verdict:
    return make_verdict(results, SUITES["folder"].card)


def _asked(eye: Eye) -> list[str]:
    return [name.split("/")[0] for name, seen in eye.items() if name.endswith("/gt") and seen["view"] == LEAVES[0]]


def _returns(eye: Eye) -> dict[str, int]:
    """Model -> clips on which it returns, for the eye, where the truth does."""
    models = {name.split("/")[1] for name in eye} - {"gt"}
    return {model: sum(eye[f"{s}/{model}"]["view"] == LEAVES[0] for s in _asked(eye)) for model in sorted(models)}


def test_every_clip_is_counted_as_the_eye_sees_it(results: Results, eye: Eye) -> None:
    wrong, unclear, compared = set(), set(), 0
    for case in (*results.cases, *results.truths):
        name = f"{case.sample}/{case.model}"
        view = eye[name]["view"]
        if view == "?":
            continue
        label = results.of(case)["view_return"].label
        compared += 1
        if label == "cannot tell":
            unclear.add(name)
        elif label != view:
            wrong.add(name)
        else:
            assert looks_away_and_returns(results, case) == (view == LEAVES[0]), name
    assert compared >= 38 and not wrong and unclear == UNCLEAR


def test_the_counts_are_those_of_the_eye(results: Results, eye: Eye) -> None:
    counts = count_look_aways(results)
    assert counts is not None and counts.asked_by == "truth"
    assert _asked(eye) == ["Real_007", "Real_024"]
    assert {count.model: count.returned for count in counts.models} == _returns(eye)
    assert all(count.asked == 2 for count in counts.models)
    # Both returns of svc are resets: an empty beaker (targets.json), and no foam (eye.json). Nobody else's is.
    assert eye["Real_024/svc"]["event"].startswith("none: reset")
    assert {count.model: count.reset for count in counts.models if count.reset} == {"svc": 2}
    assert {count.model: count.went_on for count in counts.models if count.went_on} == {"lingbot": 2, "wan": 1}


def test_the_first_ten_lines_say_so(verdict: Verdict, eye: Eye, capsys: pytest.CaptureFixture[str]) -> None:
    models: dict[str, Any] = {model: {"scores": {}, "funnel": []} for model in _returns(eye)}
    run_summary.print_verdict(verdict.as_json(), {"models": models, "metrics": {}, "truth": {"name": "truth"}})
    lines = capsys.readouterr().out.splitlines()[:10]
    assert lines[0].startswith(ASK)
    never = [model for model, count in _returns(eye).items() if not count]
    said, _, others = lines[0].partition("never seen to")
    assert "lingbot and svc on 2 of 2 clips where the truth does" in said and "wan on 1 of 2" in said
    assert len(never) == 5 and all(model in others and model not in said for model in never)
    overall = next(line for line in lines if line.startswith("Overall"))
    assert "3 of 8 models look away and come back, wan on only 1 of 2 clips" in overall
    assert "lingbot (2 of 2 clips) and wan (1 of 1) come back to a world that went on" in overall
    assert "svc (2 of 2 clips) comes back with the world reset" in overall
    assert "decide nothing" not in " ".join(lines)


def test_the_first_screen_says_so(verdict: Verdict, eye: Eye) -> None:
    page = verdict_content(verdict, {"models": {}})
    assert page["headline"] == (
        "lingbot (2 of 2 clips) and wan (1 of 1) come back to a world that went on; "
        "svc (2 of 2 clips) comes back with the world reset; "
        "3 of 8 models look away and come back, wan on only 1 of 2 clips"
    )
    assert page["details"] == []
    counts = [row["count"] for row in page["look_away"]["rows"]]
    assert {count.model: count.text for count in counts} == {m: f"{n} of 2" for m, n in _returns(eye).items()}
    assert [count.model for count in counts if count.returned] == ["lingbot", "svc", "wan"]


def test_noise_strikes_the_eye_before_a_camera_that_stops(verdict: Verdict, eye: Eye) -> None:
    assert eye["Barnyard_001/wan"]["collapse"] == "turns to noise"
    assert ("wan", "Barnyard_001") in {(moment.model, moment.sample) for moment in verdict.moments}
    assert all(moment.metric != "camera_standstill" for moment in verdict.moments)


@pytest.mark.long
def test_the_stored_records_are_those_of_a_run(tmp_path: Path, shared: Path, eye: Eye, revisit: Any) -> None:
    targets = {}
    for clip in (*(shared / "memobench/videos").glob("*.mp4"), *(shared / "memobench_more").glob("*.mp4")):
        scene, _, model = clip.stem.rpartition("_")
        (tmp_path / "clips" / model).mkdir(parents=True, exist_ok=True)
        shutil.copy(clip, tmp_path / "clips" / model / f"{scene}.mp4")
        seen = eye[f"{scene}/{model}"]
        if "box" in seen:
            targets[f"{model}/{scene}"] = {"box": seen["box"], "target": seen["name"]}
    (tmp_path / "clips/targets.json").write_text(json.dumps(targets))
    revisit("eval", tmp_path / "clips", "--set", "lite", "--out", tmp_path / "run", "--no-report")
    from revisit.results.run import Run

    found, stored = stored_records(Run(tmp_path / "run").results), json.loads(FILE.read_text())
    assert found.keys() == stored.keys()
    for name, entry in stored.items():
        assert _same(found[name], entry), name


def _same(found: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
    if found.keys() != stored.keys():
        return False
    return all(found[id] == said if id in GATES else abs(found[id] - said) < 0.01 for id, said in stored.items())
