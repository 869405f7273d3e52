"""What WRBench's judge is told, questions from a file, and a judge per role."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revisit.control.generation import GenerationRecord
from revisit.core import Case, Clip, UsageError
from revisit.judges.settings import judge_from_source
from revisit.media import encode_mp4
from revisit.suites.wrbench.prompts import own_event_tasks, read_natural25_tasks
from revisit.suites.wrbench.questions import PROBES, format_event_context, read_custom_question_set
from revisit.suites.wrbench.read import read
from revisit.suites.wrbench.records import event_view_records, make_record_case, record_row
from tests.judging import MODEL, completion, question_of, sees_cards, serving, token

QUESTIONS = """
context: "What happens: {event} Where: {scene}. Camera: {camera}\\n"
probes:
  - {dimension: visible_spatial, answer: yes, text: "Is {subject} in its place?"}
  - {dimension: visible_state, answer: no, text: "Does nothing happen?"}
  - {dimension: returned_spatial, answer: yes, text: "Is it back in its place?"}
  - {dimension: returned_state, answer: yes, text: "Has it gone on?"}
first_look: "Say for seconds 0 to {last} whether {subject} can be judged, {seconds} answers."
"""


def told(record: GenerationRecord) -> str:
    """What a judge is told of a record, as the suite reads it from a manifest."""
    from revisit.suites.wrbench.judge_context import judge_context_annotations

    made = make_record_case(record.id, "m", Path("c.mp4"), record.prompt, record.camera, 0, record.annotations)
    return format_event_context(made.prompt, {**made.annotations, **judge_context_annotations(made)})


def test_the_judge_is_told_the_event_and_no_style(shared: Path) -> None:
    tasks = read_natural25_tasks(shared / "wrbench/natural25")
    for record in event_view_records(tasks, "path", ["yaw30_RL", "static"]):
        said, notes = told(record), record.annotations
        assert "hotograph" not in said and "deep focus" not in said and "lens" not in said
        assert f"Event: {notes['expected']}\n" in said and "In the end" not in said  # progress is no end
        assert f"Scene: {notes['scene']}, with {' and '.join(notes['anchors'])}\n" in said
        assert f"Subject: {notes['subject']}\n" in said and f"It deals with: {notes['acts_on']}\n" in said
        if notes["camera"] == "static":
            assert "Camera: it is asked to rest." in said and "should stay in view" in said
        else:
            assert "Camera: it is asked to turn right by 30 degrees and back again." in said
            assert "may be out of view while the camera is turned away" in said
    for record in event_view_records(own_event_tasks(), "words", ["yaw_LR"]):
        said = told(record)
        assert "realistic" not in said.lower() and "everything in focus" not in said
        assert f"In the end: {record.annotations['expected']}\n" in said
        assert "Camera: it is asked to turn left and back again." in said  # no degrees were told in words


def test_a_case_without_notes_is_told_by_its_prompt() -> None:
    case = Case("a", "wrbench", "m", "s", Clip(Path("c.mp4")), prompt="A cup falls.")
    assert format_event_context(case.prompt, {}) == "The video was asked to show this.\nEvent: A cup falls.\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [("- a", "expected `probes:`"), ("probes: [{dimension: taste, answer: yes, text: a}]", "probe 1 needs a dimension"),
     ("probes: [{dimension: visible_state, answer: maybe, text: a}]", "probe 1 needs"), ("{", "neither YAML nor JSON"),
     ("probes: [{dimension: visible_state, answer: no, text: a}]", "no probe asks about visible_spatial"),
     ("probes: []\nlook: a", "unknown field 'look'")],
)  # fmt: skip
def test_a_file_of_questions_that_cannot_be_used_says_why(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "questions.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=said):
        read_custom_question_set(path)
    with pytest.raises(UsageError, match="No such file"):
        read_custom_question_set(tmp_path / "nowhere.yaml")


@pytest.fixture
def clips(tmp_path: Path) -> Path:
    """One clip of one record, four seconds long."""
    row = record_row(next(event_view_records(own_event_tasks(), "path", ["yaw60_LR"], frames=33)))
    (tmp_path / "clips/mine").mkdir(parents=True)
    (tmp_path / "clips/records.jsonl").write_text(json.dumps(row) + "\n")
    frames = np.random.default_rng(0).integers(0, 255, (33, 48, 64, 3), dtype=np.uint8)
    encode_mp4(tmp_path / f"clips/mine/{row['id']}.mp4", frames, 8)
    return tmp_path / "clips"


def scripted(heard: list[str], p_right: float = 0.9) -> Any:
    """A judge that sees the subject leave and return, and says yes to everything else."""

    def answer(body: dict[str, Any]) -> Any:
        if (card := sees_cards(body)) is not None:
            return "yes" if card else "no"
        heard.append(question_of(body))
        if '"seconds"' in heard[-1]:
            return json.dumps({"subject": "a potter", "seconds": ["yes", "no", "no", "no", "yes"]})
        return completion(
            "Yes", {"content": [token("Yes", np.log(p_right), Yes=np.log(p_right), No=np.log(1 - p_right))]}
        )

    return answer


def evaluated(source: Path, out: Path, judge: str, *options: str) -> Any:
    from revisit.engine.cache import EvidenceCache
    from revisit.engine.request import Request
    from revisit.engine.run import evaluate

    metrics = ("wr_visible_spatial", "wr_visible_state", "wr_returned_spatial", "wr_returned_state")
    request = Request(str(source), suite="wrbench", metrics=metrics, options=options, judge=judge)
    chosen = request.chosen_judge()
    return evaluate(
        request.plan(judge=chosen.facts), out, request=request.as_json(), workers=0, judge=chosen,
        cache=EvidenceCache(out.parent / "cache"),
    )  # fmt: skip


def scores(run: Any) -> dict[str, float]:
    return {record.question: round(record.value, 4) for record in run.results.records if record.scored}


def test_questions_of_a_file_are_asked_and_named_in_the_protocol(clips: Path, tmp_path: Path) -> None:
    questions, config = tmp_path / "mine.yaml", tmp_path / "judge.yaml"
    questions.write_text(QUESTIONS)
    heard: list[str] = []
    with serving(scripted(heard)) as server:
        config.write_text(f"url: {server.url}\nmodel: {MODEL}\npause: 0.01\n")
        ours = evaluated(clips, tmp_path / "ours", str(config))
        asked = len(heard)
        theirs = evaluated(clips, tmp_path / "theirs", str(config), f"questions={questions}")
    assert asked == len(PROBES) + 1
    mine = heard[asked:]
    assert len(mine) == 5
    before = (
        "What happens: The potter stands still and looks at the wheel. Where: a pottery studio with a concrete floor"
    )
    assert all(text.startswith(before) for text in mine)
    assert any(
        "seconds 0 to 4 whether a potter in a clay-stained apron can be judged, 5 answers." in text for text in mine
    )
    assert scores(theirs) == {
        "wr_visible_spatial": 0.9, "wr_visible_state": 0.1, "wr_returned_spatial": 0.9, "wr_returned_state": 0.9,
    }  # fmt: skip
    # The wording is part of what makes numbers comparable, and is called by its name.
    assert ours.facts["protocol"]["hash"] != theirs.facts["protocol"]["hash"]
    named = [run.facts["protocol"]["observers"]["probe_answers"]["params"]["wording"] for run in (ours, theirs)]
    assert named[0] == "revisit" and named[1].startswith("mine.yaml ")


def test_gate_and_probes_may_have_judges_of_their_own(clips: Path, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from revisit.cli.main import app

    heard: dict[str, list[str]] = {"gate": [], "probes": []}
    with serving(scripted(heard["gate"])) as gate, serving(scripted(heard["probes"], 0.8)) as probes:
        gate.models = {"data": [{"id": "gatekeeper"}]}
        (tmp_path / "gate.yaml").write_text(f"url: {gate.url}\nmodel: gatekeeper\npause: 0.01\n")
        config = tmp_path / "judge.yaml"
        config.write_text(f"url: {probes.url}\nmodel: {MODEL}\npause: 0.01\nroles: {{gate: gate.yaml}}\n")
        run = evaluated(clips, tmp_path / "run", str(config))
    assert len(heard["gate"]) == 1 and '"seconds"' in heard["gate"][0]
    assert len(heard["probes"]) == len(PROBES) and not any('"seconds"' in text for text in heard["probes"])
    assert scores(run)["wr_visible_spatial"] == pytest.approx((0.8 + 0.8 + 0.2) / 3, abs=1e-3)
    assert run.facts["protocol"]["judge"]["roles"]["judge.judgeability"]["model"] == "gatekeeper"
    assert set(run.facts["counters"]["judge"]["roles"]) == {"judge.judgeability", "all others"}
    # The recorded answers of both replay to the same numbers, without either server.
    made = CliRunner().invoke(
        app, ["judge", "replay", str(tmp_path / "run"), "--out", str(tmp_path / "again"), "--json"]
    )
    assert made.exit_code == 0, made.output
    again = json.loads(made.stdout)
    assert again["wrbench"]["rows"] == json.loads(json.dumps(run.summary["wrbench"]["rows"]))


def test_roles_that_nobody_has_are_refused(tmp_path: Path) -> None:
    config = tmp_path / "judge.yaml"
    start = "url: http://h/v1\nmodel: m\n"
    config.write_text(start + "roles: {doorman: other.yaml}\n")
    with pytest.raises(UsageError, match="no role 'doorman'; roles are gate, "):
        judge_from_source(str(config))
    config.write_text(
        start + "roles: {gate: {url: http://g/v1, model: g}, judgeability: {url: http://j/v1, model: j}}\n"
    )
    chosen = judge_from_source(str(config))
    assert chosen.judge_of_observer("judge.judgeability").judge.facts["model"] == "j"  # the nearer name goes first
    assert chosen.judge_of_observer("judge.trigger").judge.facts["model"] == "g"
    assert chosen.judge_of_observer("judge.vqa") is chosen
    config.write_text(start + "roles: {gate: judge.yaml}\n")
    with pytest.raises(UsageError, match="cannot have roles itself"):
        judge_from_source(str(config))


def test_the_published_wording_is_not_ours(clips: Path) -> None:
    case = next(entry for entry in read(clips) if isinstance(entry, Case))
    assert "pottery" in format_event_context(case.prompt, case.annotations)


def test_only_the_judge_is_asked_and_what_was_answered_stays(clips: Path, tmp_path: Path) -> None:
    """Two calls into one run: the first without a judge, the second with nothing but the judge's questions."""
    from revisit.engine.cache import EvidenceCache
    from revisit.engine.request import Request

    cache = EvidenceCache(tmp_path / "cache")
    lite, judged = ("wr_static_hold", "camera_moved"), ("wr_visible_spatial", "wr_visible_state")
    request = Request(str(clips), suite="wrbench", metrics=(*lite, *judged))
    first = request.run(tmp_path / "run", workers=0, cache=cache)
    assert {r.question for r in first.results.records if r.reason and r.reason.kind == "no_judge"} == set(judged)
    with pytest.raises(UsageError, match="add --judge"):
        replace(request, only="judge").plan()
    heard: list[str] = []
    with serving(scripted(heard)) as server:
        (tmp_path / "judge.yaml").write_text(f"url: {server.url}\nmodel: {MODEL}\npause: 0.01\n")
        asking = replace(request, judge=str(tmp_path / "judge.yaml"), only="judge")
        assert {check.id for check in asking.plan().metrics} == set(judged)
        with pytest.raises(UsageError, match="leave --limit out"):
            replace(asking, limit=1).plan()
        second = asking.run(tmp_path / "run", workers=0, cache=cache)
    assert heard and {r.question for r in second.results.records if r.scored} >= set(judged)
    kept = {record.question: record.key for record in first.results.records}
    assert all(r.key == kept[r.question] for r in second.results.records if r.question in lite)
    assert {r.question for r in second.results.records} == {r.question for r in first.results.records}
