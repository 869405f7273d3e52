"""The instrumented judge: it reads rendered worlds from their pixels, and knows nothing once it is blinded."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import revisit.judges.instrumented as instrumented
from revisit.core import SUITES, UsageError
from revisit.engine.cache import EvidenceCache
from revisit.engine.dependencies import ObserverSet
from revisit.engine.judging import read_judge_frames_of_clip
from revisit.engine.plan import make_plan
from revisit.engine.run import evaluate
from revisit.judges.batch import JudgeClient, RetryPolicy
from revisit.judges.calibration import CalibrationPlan, calibration_report, load_judge_labels
from revisit.judges.canary import append_colour_card, canary_questions, passed_or_canary_fault
from revisit.judges.instrumented import InstrumentedJudge, read_scene_description
from revisit.judges.protocol import Frames
from revisit.judges.questions import Question
from revisit.judges.settings import judge_from_source
from revisit.observers.sets import load_roles
from revisit.suites.mbench.metrics.judged import judged_correctness, judged_progress, memory_test_posed
from revisit.suites.mbench.questions import ask_progress_ratings, ask_trigger
from revisit.suites.memobench.metrics.answers import score_pass_rate
from revisit.suites.memobench.questions import ask_bank_questions
from revisit.suites.wrbench.metrics.probes import mean_probe_score
from revisit.suites.wrbench.metrics.reobservation import reobservation_gate
from revisit.suites.wrbench.questions import ask_event_probes, ask_judgeability
from revisit.worlds.exam import KINDS, STORIES, exam_film, render_exam, true_answers
from tests.judging import pictures

# A lasting event, a move, a change and none; a turn, an orbit, a screen and the dark.
CHOSEN = (STORIES[0], STORIES[1], STORIES[3], STORIES[7])


def rendered(folder: Path, stories) -> Path:
    kinds = [kind for kind in KINDS if kind != "timid_camera"]  # costs most, and asks what frozen_camera asks
    render_exam(folder, stories=stories, kinds=kinds, size=(108, 192))
    return folder


@pytest.fixture(scope="module")
def exam(tmp_path_factory) -> Path:
    return rendered(tmp_path_factory.mktemp("exam"), CHOSEN[:1])


@pytest.fixture(scope="module")
def judge(exam) -> InstrumentedJudge:
    return InstrumentedJudge(exam / "scenes")


def client(who) -> JudgeClient:
    return JudgeClient(who, patience=RetryPolicy(concurrency=1, again=0))


def clip(exam: Path, story: int, kind: str) -> Frames:
    return read_judge_frames_of_clip(exam / f"clips/{story:02d}-{CHOSEN[story].name}-{kind}.mp4", at_most=8)


@pytest.mark.long
@pytest.mark.slow
def test_it_recovers_the_truth_and_falls_to_chance_when_blinded(tmp_path):
    exam = rendered(tmp_path, CHOSEN)
    judge = InstrumentedJudge(exam / "scenes")
    labels = load_judge_labels(exam / "labels.jsonl")
    frames: dict[Path, Frames] = {}
    seen = {
        path: frames.setdefault(path, read_judge_frames_of_clip(path, at_most=8))
        for path in {row.clip for row in labels.rows}
    }
    report = calibration_report(judge, labels, seen.__getitem__, client, CalibrationPlan(positions=True, blinded=5))
    assert report["unanswered"] == report["failed"] == 0
    for ask in ("hidden", "returned", "spatial", "state"):
        found, blind = (part["subsets"][ask]["yes_no"] for part in (report, report["blinded"]))
        assert found["n"] >= 24 and found["balanced_accuracy"] >= 0.95, ask
        assert 0.35 <= blind["balanced_accuracy"] <= 0.65, ask
    assert 0.42 <= report["blinded"]["yes_no"]["balanced_accuracy"] <= 0.58
    assert report["polarity"]["both_yes"] == report["polarity"]["both_no"] == 0
    assert report["position"]["changed"] == 0 and report["position"]["first_share"] == 0.5


def test_the_truth_of_failures_follows_from_their_definition():
    film = exam_film(0, CHOSEN[0], (54, 96))
    right = {
        kind: true_answers(film, kind) for kind in ("perfect", "frozen_camera", "vanish", "teleport", "state_reset")
    }
    assert right["perfect"] == {"hidden": True, "returned": True, "spatial": True, "state": True}
    assert right["frozen_camera"] == {"hidden": False, "returned": False}
    assert right["vanish"] == {"hidden": True, "returned": False}
    assert right["teleport"] == {"hidden": True, "returned": True, "spatial": False, "state": True}
    assert right["state_reset"] == {"hidden": True, "returned": True, "spatial": True, "state": False}


def test_a_description_tells_nothing_of_a_clip(exam):
    """It follows from the world and the script alone: the same whatever became of the target, and when."""
    scene = read_scene_description(exam / f"scenes/00-{CHOSEN[0].name}.npz")
    with np.load(exam / f"scenes/00-{CHOSEN[0].name}.npz") as arrays:
        assert set(arrays.files) == {
            "views", "lit", "marks", "place", "look", "amount", "went", "prompt", "kind", "seconds", "questions",
            "asks", "negate",
        }  # fmt: skip
    assert scene.went.min() == -1 and scene.went.max() == 1


def test_it_may_not_look_anywhere_else():
    """Neither the worlds nor anything but descriptions and pictures is within its reach."""
    tree = ast.parse(Path(instrumented.__file__).read_text(encoding="utf-8"))
    used = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    assert not any(name.startswith(("revisit.worlds", "revisit.observers", "revisit.engine")) for name in used)


@pytest.mark.slow
def test_every_judged_metric_end_to_end(exam, judge):
    """Through the protocols of the benchmarks: the metrics tell perfect memory from failing memory."""
    scene = read_scene_description(exam / f"scenes/00-{CHOSEN[0].name}.npz")
    prompt = scene.prompt
    bank = [
        {"id": k, "dimension": "Continuity of Memory", "positive": not negate, "text": text}
        for k, (text, (_, negate)) in enumerate(scene.questions.items(), 1)
    ]

    def heard(kind: str):
        frames = clip(exam, 0, kind)

        def evidence(talk):
            questions = next(talk)
            with client(judge) as asking:
                while True:
                    try:
                        questions = talk.send(asking.ask(frames, questions))
                    except StopIteration as stop:
                        return stop.value

        return {
            "probes": evidence(ask_event_probes.fn(frames, prompt, {})),
            "gate": reobservation_gate.fn(evidence(ask_judgeability.fn(frames, prompt, {}))),
            "trigger": memory_test_posed.fn(evidence(ask_trigger.fn(frames, "causal", prompt, {}))),
            "ratings": evidence(ask_progress_ratings.fn(frames, prompt, {})),
            "answers": evidence(ask_bank_questions.fn(frames, {"questions": bank})),
        }

    right, gone, reset, frozen = (heard(kind) for kind in ("perfect", "vanish", "state_reset", "frozen_camera"))
    for axis in ("visible_spatial", "visible_state", "returned_spatial", "returned_state"):
        assert mean_probe_score(right["probes"], axis).value == 1, axis
    assert mean_probe_score(gone["probes"], "returned_spatial").value == 0
    assert mean_probe_score(reset["probes"], "returned_spatial").value == 1
    assert mean_probe_score(reset["probes"], "returned_state").value == 0
    assert [heard["gate"].state for heard in (right, gone, frozen)] == ["open", "closed", "closed"]
    assert [heard["trigger"].state for heard in (right, gone, frozen)] == ["open", "open", "closed"]
    assert judged_progress.fn(right["ratings"]).value == 1 and judged_progress.fn(reset["ratings"]).value == 0
    passed = [
        score_pass_rate(heard["answers"], "Continuity of Memory", "corrected").value for heard in (right, reset, gone)
    ]
    assert passed == [100, 75, 25]  # of hidden, returned, spatial and state
    assert judged_correctness.fn(right["ratings"]).value == 1 > judged_correctness.fn(reset["ratings"]).value


@pytest.mark.slow
def test_a_whole_run_with_canaries(exam, tmp_path):
    """Through the engine: decoding, pictures, questions, canaries, evidence, gates and scores."""
    scene = read_scene_description(exam / f"scenes/00-{CHOSEN[0].name}.npz")
    bank = [
        {"id": k, "dimension": "Continuity of Memory", "positive": not negate, "text": text}
        for k, (text, (_, negate)) in enumerate(scene.questions.items(), 1)
    ]
    video, kinds = f"clips/00-{CHOSEN[0].name}-{{}}.mp4", ("perfect", "state_reset", "frozen_camera")
    more = {"id": "cup", "prompt": scene.prompt, "annotations": {"questions": bank}}
    lines = [{"model": kind, "video": video.format(kind), **more} for kind in kinds]
    manifest = exam / "manifest.jsonl"
    manifest.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "judge.yaml").write_text(f"kind: instrumented\nscenes: {exam / 'scenes'}\nagain: 0\n")
    chosen = judge_from_source(str(tmp_path / "judge.yaml"))
    metrics = (
        "wr_visible_spatial", "wr_returned_spatial", "wr_returned_state", "judged_progress", "memo_vqa_cm",
        "judged_memory", "judged_own",
    )  # fmt: skip
    asks = {ask: text for text, (ask, negate) in scene.questions.items() if not negate}
    own = [{"text": asks[ask], "answer": "yes", "dimension": ask} for ask in ("returned", "state") if ask in asks]
    (tmp_path / "own.yaml").write_text(json.dumps(own))
    observers = ObserverSet("lite", load_roles("lite", judge=True), chosen.judge.facts)
    options = {"questions": str(tmp_path / "own.yaml")}
    plan = make_plan(SUITES["folder"], manifest, observers, metrics=metrics, options=options)
    run = evaluate(plan, tmp_path / "run", workers=0, cache=EvidenceCache(tmp_path / "cache"), judge=chosen)
    assert run.exit_code == 0
    scores = {
        model: {
            record.question: record.value
            for record in run.results.records
            if record.case.id == f"cup@{model}#0" and not record.is_gate
        }
        for model in kinds
    }
    assert scores["perfect"] == dict(zip(metrics, (1, 1, 1, 1, 100, 1, 1), strict=True))
    assert scores["state_reset"] == dict(zip(metrics, (1, 1, 0, 0, 75, 0.5, 0.5), strict=True))
    assert scores["frozen_camera"]["judged_memory"] is None and scores["frozen_camera"]["judged_own"] is not None
    assert scores["frozen_camera"]["wr_returned_state"] is None  # its gate is closed: there was no return


def test_it_passes_the_canaries_by_looking(exam, judge):
    frames = clip(exam, 0, "perfect")
    with client(judge) as asking:
        assert passed_or_canary_fault(asking.ask(append_colour_card(frames), canary_questions(frames))) == "passed"
        assert (
            passed_or_canary_fault(asking.ask(frames, canary_questions(frames))) != "passed"
        )  # no card behind the frames


def test_what_it_cannot_place_or_does_not_know_stays_unanswered(exam, judge):
    known = Question("x", "Is it hidden?", about={"ask": "hidden"})
    with client(judge) as asking:
        noise, prose = (
            asking.ask(pictures(4, size=(108, 192)), [known])[0],
            asking.ask(
                clip(exam, 0, "perfect"), [Question("y", "Is it beautiful?"), Question("z", "?", about={"ask": "mood"})]
            ),
        )
    assert [answer.status for answer in (noise, *prose)] == ["unanswered"] * 3


def test_the_order_of_the_frames_matters(exam, judge):
    frames = clip(exam, 0, "partial_return")
    backwards = replace(frames, jpegs=frames.jpegs[::-1], digest="backwards")
    question = Question("x", "Seen again?", about={"ask": "returned"})
    with client(judge) as asking:
        assert asking.ask(frames, [question])[0].value is False
        hidden = asking.ask(backwards, [Question("h", "Hidden after it was seen?", about={"ask": "hidden"})])[0]
    assert hidden.value is False  # it comes into sight and stays


def test_a_judge_file(exam, tmp_path):
    path = exam / "judge.yaml"
    path.write_text("kind: instrumented\nscenes: scenes\n")
    assert judge_from_source(str(path)).judge.facts["judge"] == "instrumented"
    path.write_text("kind: instrumented\nscenes: clips\n")
    with pytest.raises(UsageError, match="no scene descriptions"):
        judge_from_source(str(path))
    path.write_text("kind: instrumented\nmodel: x\n")
    with pytest.raises(UsageError, match="takes only `scenes:`"):
        judge_from_source(str(path))
    np.savez(tmp_path / "a.npz", views=np.zeros(3))
    with pytest.raises(UsageError, match="not a scene description"):
        InstrumentedJudge(tmp_path).scenes  # noqa: B018
