"""Diagnoses of real clips against notes made by eye: contradictions, what strikes first, and collapse.

`real_records.json` holds what metrics and gates answered about 45 real clips, beside their references and alone, as
`benchmarks/diagnosis_real.py` stores it; `eye_kinds.json` what the notes stand for, settled before any diagnosis ran.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from noted_kinds import NotedKinds, compare, read_noted_kinds

import revisit
from revisit.core import METRICS, Case, Clip, Reason, Record
from revisit.diagnosis.diagnose import SURE, Diagnosis, Finding, diagnose
from revisit.diagnosis.kinds import READ

HERE = Path(__file__).parent
CASE = Case("c", "folder", "m", "s", Clip(Path("c.mp4")))
COLLAPSED = ("Barnyard_001/wan", "HongKong_001/wan", "Real_024/matrixgame", "ZenGarden_001/matrixgame")
DECAYS_TOO = ("Real_007/matrixgame",)  # an eye sees it decay as well, though its notes do not say so


def record(question: str, line: dict) -> Record:
    reason = Reason(line["reason"], "as stored") if "reason" in line else None
    return Record(
        CASE, question, line.get("gate", False), line["status"], line.get("value"), line.get("raw"),
        line.get("label", ""), reason, line.get("facts", {}),
    )  # fmt: skip


@cache
def diagnoses(situation: str) -> dict[str, Diagnosis]:
    table = json.loads((HERE / "real_records.json").read_text(encoding="utf-8"))
    ending = f"/{situation}"
    return {
        name.removesuffix(ending): diagnose({question: record(question, line) for question, line in of.items()})
        for name, of in table.items()
        if name.endswith(ending)
    }


@cache
def notes() -> dict[str, NotedKinds]:
    return read_noted_kinds(HERE / "eye_kinds.json")


def kinds(diagnosis: Diagnosis) -> set[str]:
    return {finding.kind for finding in diagnosis.findings}


def test_counts_of_contradicted_and_missed_kinds() -> None:
    def diagnosis(findings: str, doubtful: str = "", untold: str = "") -> Diagnosis:
        some, few = (tuple(Finding(kind, kind, 1, 1, (), "") for kind in each.split()) for each in (findings, doubtful))
        return Diagnosis(some, few, dict.fromkeys(untold.split(), "why"), "")

    noted = {
        "a": NotedKinds(("vanish",), ("vanish",), ("cut",)),
        "b": NotedKinds(("blur",), ("blur",), ()),
        "c": NotedKinds((), (), ()),
    }
    seen = {
        "a": diagnosis("cut blur", "vanish"),
        "b": diagnosis("style", untold="blur cut"),
        "elsewhere": diagnosis(""),
    }
    found = compare(seen, noted)
    assert found.clips == 2 and found.findings == 3 and found.contradicted == [("a", "blur"), ("b", "style")]
    assert found.first == 2 and found.first_missed == ["b"]
    assert found.decided == pytest.approx(38 / 40) and found.clear == pytest.approx(37 / 40, abs=1e-3)


def test_the_notes_name_kinds_and_cover_the_stored_clips() -> None:
    known = {kind for note in notes().values() for kind in (*note.first, *note.shown, *note.open)}
    assert known <= set(revisit_kinds())
    assert set(diagnoses("ref")) == set(diagnoses("alone")) == set(notes())
    assert sum(bool(note.first) for note in notes().values()) == 16


def revisit_kinds() -> list[str]:
    from revisit.diagnosis.kinds import KINDS

    return list(KINDS)


@pytest.mark.parametrize(("situation", "decided", "findings"), [("ref", 0.6, 30), ("alone", 0.2, 5)])
def test_findings_are_seldom_contradicted_and_much_is_decided(situation: str, decided: float, findings: int) -> None:
    found = compare(diagnoses(situation), notes())
    assert found.findings >= findings
    assert len(found.contradicted) <= 0.1 * found.findings, found.contradicted
    assert found.clear >= decided


def test_what_strikes_the_eye_first_is_found_or_doubtful() -> None:
    found = compare(diagnoses("ref"), notes())
    assert found.first == 16 and len(found.first_missed) <= 4, found.first_missed


@pytest.mark.parametrize("situation", ["ref", "alone"])
def test_collapse_where_the_picture_decays_and_nowhere_else(situation: str) -> None:
    collapsed = {clip for clip, diagnosis in diagnoses(situation).items() if "collapse" in kinds(diagnosis)}
    assert collapsed == {*COLLAPSED, *DECAYS_TOO}


def test_a_threshold_of_collapse_from_other_scenes_finds_the_same_clips() -> None:
    """Halfway between decayed and other clips of four scenes, tried on the fifth and on clips of other sources."""
    table = json.loads((HERE / "real_records.json").read_text(encoding="utf-8"))
    margins = {
        name.removesuffix("/alone"): of["time_to_collapse"]["facts"]["margin"]
        for name, of in table.items()
        if name.endswith("/alone")
    }
    others = json.loads((HERE / "other_margins.json").read_text(encoding="utf-8"))
    arguable = {clip for clip, note in notes().items() if "collapse" in (*note.shown, *note.open)} - set(COLLAPSED)
    for scene in {clip.split("/")[0] for clip in margins}:
        rest = {clip: margin for clip, margin in margins.items() if not clip.startswith(scene) and clip not in arguable}
        decayed = min(margin for clip, margin in rest.items() if clip in COLLAPSED)
        threshold = (decayed + max(margin for clip, margin in rest.items() if clip not in COLLAPSED)) / 2
        found = {clip for clip, margin in margins.items() if clip.startswith(scene) and margin >= threshold}
        assert {clip for clip in COLLAPSED if clip.startswith(scene)} <= found <= {*COLLAPSED, *arguable}
        assert max(others.values()) < threshold
    assert len(others) >= 50


def test_truths_show_no_failure() -> None:
    for situation in ("ref", "alone"):
        truths = {clip: kinds(diagnosis) for clip, diagnosis in diagnoses(situation).items() if clip.endswith("/gt")}
        assert len(truths) == 5 and not any(truths.values()), truths


def test_a_camera_is_not_charged_where_the_reference_rests() -> None:
    for clip, diagnosis in diagnoses("ref").items():
        if clip.startswith("ZenGarden_001"):
            assert not kinds(diagnosis) & {"frozen_camera", "timid_camera", "partial_return", "late_return"}, clip


def test_nobody_returns_in_part_where_the_truth_never_returns() -> None:
    for clip, diagnosis in diagnoses("ref").items():
        if clip.startswith(("Barnyard_001", "HongKong_001")):
            assert not kinds(diagnosis) & {"partial_return", "late_return"}, clip


def test_gate_and_diagnosis_do_not_contradict_each_other() -> None:
    for situation in ("ref", "alone"):
        for clip, diagnosis in diagnoses(situation).items():
            if diagnosis.words.startswith(("left, ", "returned")):
                assert "frozen_camera" not in kinds(diagnosis), (clip, diagnosis.words)
            if diagnosis.words.startswith("never left"):
                assert not kinds(diagnosis) & {"late_return", "partial_return", "camera_drift"}, (clip, diagnosis.words)


def test_a_reset_outside_of_the_box_is_named() -> None:
    assert "state_reset" in kinds(diagnoses("ref")["Real_024/svc"])
    assert "state_reset" in kinds(diagnoses("ref")["Real_007/svc"])


def test_without_a_reference_an_absent_target_needs_evidence() -> None:
    for clip, diagnosis in diagnoses("alone").items():
        said = [finding.kind for finding in (*diagnosis.findings, *diagnosis.doubtful)]
        assert "vanish" not in said, clip


def test_the_page_has_these_figures() -> None:
    beside, alone = compare(diagnoses("ref"), notes()), compare(diagnoses("alone"), notes())
    page = (HERE.parents[1] / "docs/diagnosis.md").read_text(encoding="utf-8")
    rows = {
        row.split("|")[1].strip(): [cell.strip() for cell in row.split("|")[2:-1]]
        for row in page.splitlines()
        if row.startswith("| ")
    }
    assert [rows["findings (0.75 or more)"][k] for k in (1, 3)] == [str(one.findings) for one in (beside, alone)]
    contradicted = rows["of them contradicted (95 % interval)"]
    for cell, one in ((contradicted[1], beside), (contradicted[3], alone)):
        low, high = (round(100 * share) for share in one.contradicted_interval)
        assert cell == f"{len(one.contradicted)} ({low} to {high} %)"
    first = rows["first thing noted is found or doubtful, of 16 clips"]
    assert [first[k] for k in (1, 3)] == [str(one.first - len(one.first_missed)) for one in (beside, alone)]
    decided, either = rows["kinds decided"], rows["kinds decided or doubtful"]
    assert [decided[k] for k in (1, 3)] == [f"{round(100 * one.clear)} %" for one in (beside, alone)]
    assert [either[k] for k in (1, 3)] == [f"{round(100 * one.decided)} %" for one in (beside, alone)]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("clip", ["Real_024/matrixgame", "HongKong_001/wan", "Real_024/opensora", "ZenGarden_001/gt"])
def test_stored_answers_are_those_of_this_version(shared: Path, clip: str, tmp_path: Path) -> None:
    """The clip is observed anew, without a reference: what is found is what the stored answers say."""
    scene, model = clip.split("/")
    folder = next(f for f in ("memobench/videos", "memobench_more") if (shared / f / f"{scene}_gt.mp4").is_file())
    eye = json.loads((shared / "memobench_more/eye.json").read_text(encoding="utf-8"))[clip]
    line: dict[str, object] = {"id": clip, "model": "m", "video": str(shared / folder / f"{scene}_{model}.mp4")}
    if "box" in eye:
        line["target"] = {"name": eye["name"], "box": eye["box"]}
    manifest = tmp_path / "manifest.jsonl"
    manifest.write_text(json.dumps(line) + "\n", encoding="utf-8")
    asked = [*(question for question in READ if question in METRICS), "target_identity"]  # which asks its gate, too
    run = revisit.evaluate(manifest, out=tmp_path / "run", metrics=asked, roots=[shared], truth=False, report=False)
    (case,) = run.cases
    made, kept = diagnose(run.of(case)), diagnoses("alone")[clip]
    assert kinds(made) == kinds(kept)
    assert set(made.untold) == set(kept.untold)
    assert all(finding.confidence >= SURE for finding in made.findings)
