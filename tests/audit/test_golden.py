"""`revisit verify`: the golden clips get their stored scores here, and a machine that is off is noticed."""

from __future__ import annotations

import copy
import json
import shutil

import pytest

from revisit.audit import golden
from revisit.audit.cards import NOT_MEASURED, score_tolerance
from revisit.catalog import card_of_id
from revisit.core import GATES, METRICS
from revisit.engine.request import Request


@pytest.fixture(scope="module")
def stored() -> golden.Answers:
    return json.loads(golden.SCORES.read_text(encoding="utf-8"))["answers"]


@pytest.mark.slow
@pytest.mark.long
def test_this_machine_is_within_the_tolerances(revisit):
    done = revisit("verify", "--json", "--workers", 0)
    found = {row["question"]: row for row in json.loads(done.stdout)}
    assert all(row["kept"] for row in found.values())
    assert sum(row["clips"] > 0 for row in found.values()) > 20


def test_the_stored_scores_are_of_this_version(stored, tmp_path):
    """A change of a version leaves its scores out of `revisit verify` until `python release/golden.py` is run."""
    clips = tmp_path / "clips"
    shutil.copytree(golden.SCORES.with_name("clips"), clips)
    plan = Request.from_options(clips).plan()
    checks = {id: GATES[id] if id in GATES else METRICS[id] for clip in stored.values() for id in clip}
    now = {id: plan.protocol_with_hash(check) for id, check in checks.items()}
    behind = {id for clip in stored.values() for id, found in clip.items() if found["protocol"] != now[id]}
    assert not behind, "run python release/golden.py, look at the difference, and store the new scores"
    gates = {gate.id for gate in plan.gates}
    assert gates <= set(stored["perfect"]), "a gate that the clips can be asked about has no stored answer"


def test_what_promises_nothing_between_machines_is_not_compared(stored):
    here = copy.deepcopy(stored)
    for clip in here.values():
        clip["camera_path"] = {**clip["camera_path"], "answer": "not_followed"}
    assert score_tolerance("camera_path") is None
    assert "camera_path" not in {spread.question for spread in golden.compare_answers(stored, here)}
    assert any("no tolerance" in line for line in card_of_id("camera_path")["machines"])
    assert not any("tolerance 50" in line for line in card_of_id("camera_path")["machines"])


def test_the_clips_tell_a_good_memory_from_a_bad_one(stored):
    """The stored scores are not those of a broken day: closed expectations of what was rendered."""
    outcome = {clip: stored[clip]["event_outcome"]["answer"] for clip in ("perfect", "resets")}
    assert outcome["perfect"] > 0.9 and outcome["resets"] < 0.1
    assert stored["truth"]["target_reappearance"]["answer"] == 1
    assert stored["perfect"]["camera_path"]["answer"] == pytest.approx(120, abs=10)  # 60 degrees out and back
    assert sum(isinstance(found["answer"], float) for found in stored["perfect"].values()) > 30


def test_every_tolerance_is_that_of_the_card(stored):
    for id in stored["perfect"]:
        if id in METRICS and id != "camera_path" and isinstance(stored["perfect"][id]["answer"], float):
            promise = NOT_MEASURED if score_tolerance(id) is None else f"tolerance {score_tolerance(id):g}"
            assert any(promise in line for line in card_of_id(id)["machines"]), id


def test_a_score_beyond_its_tolerance_a_flipped_gate_and_a_lost_score_are_noticed(stored):
    assert all(spread.is_within_tolerance for spread in golden.compare_answers(stored, stored))
    here = copy.deepcopy(stored)
    here["perfect"]["ssim"]["answer"] += 1.01 * (score_tolerance("ssim") or 0)
    here["perfect"]["psnr"]["answer"] -= 0.9 * (score_tolerance("psnr") or 0)
    here["resets"]["view_return"]["answer"] = "never left"
    here["resets"]["event_outcome"]["answer"] = "gate_closed"
    beyond = {spread.question for spread in golden.compare_answers(stored, here) if not spread.is_within_tolerance}
    assert beyond == {"ssim", "view_return", "event_outcome"}


def test_a_newer_version_is_told_and_not_compared(stored):
    here = copy.deepcopy(stored)
    for clip in here.values():
        if "ssim" in clip:
            clip["ssim"] = {"answer": 0.1, "protocol": "corrected:new"}
    [spread] = [spread for spread in golden.compare_answers(stored, here) if spread.question == "ssim"]
    assert spread.is_within_tolerance and spread.clips == 0 and spread.changed > 0
