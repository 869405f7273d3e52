"""Calibration: labels are read with care, agreement is by hand, and each bias is found where it was put."""

from __future__ import annotations

import json
import random

import pytest

from revisit.core import UsageError
from revisit.judges.batch import JudgeClient, RetryPolicy
from revisit.judges.calibration import CalibrationPlan, calibration_report, load_judge_labels
from revisit.judges.protocol import NoReply, Reply
from revisit.judges.questions import Choice, Rating, YesNo, schema_from_form
from tests.judging import pictures

CLIPS = 12


class Scripted:
    """A judge that answers by a function of the clip's number and the question."""

    batch = 1

    def __init__(self, answer, frames) -> None:
        self.facts, self.answer = {"judge": "scripted", "model": "scripted"}, answer
        self.number = {shown.digest: k for k, shown in frames.items()}

    def check(self) -> None: ...

    def close(self) -> None: ...

    def reply(self, frames, questions, notes):
        return [Reply(self.answer(self.number[frames.digest], question)) for question in questions]


@pytest.fixture(scope="module")
def frames():
    return {k: pictures(1, seed=k, size=(8, 8)) for k in range(CLIPS)}


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return load_judge_labels(path)


def pairs(holds, subset="place"):
    """Two rows per clip: a question and its opposite."""
    for k in range(CLIPS):
        for negative in (False, True):
            yield {
                "clip": f"{k}.mp4", "question": "Is it gone?" if negative else "Is it there?", "pair": f"{subset}-{k}",
                "label": "yes" if holds(k) != negative else "no", "subset": subset,
                "polarity": "negative" if negative else "positive",
            }  # fmt: skip


def report_of(labels, answer, frames, **plan):
    def ask(judge):
        return JudgeClient(judge, patience=RetryPolicy(concurrency=1, again=0, tries=1))

    return calibration_report(
        Scripted(answer, frames), labels, lambda clip: frames[int(clip.stem)], ask, CalibrationPlan(**plan)
    )


def holds(k: int) -> bool:
    return k % 4 != 0


def sees(k: int, question) -> str:
    return "yes" if holds(k) != ("gone" in question.text) else "no"


def test_a_judge_that_sees_is_right_unbiased_and_stable(tmp_path, frames):
    labels = write(tmp_path / "a.jsonl", pairs(holds))
    report = report_of(labels, sees, frames, repeats=3, positions=True, blinded=20)
    found = report["subsets"]["place"]["yes_no"]
    assert (found["n"], found["balanced_accuracy"], found["kappa"]) == (24, 1, 1)
    assert (found["right_yes"], found["right_no"]) == (18, 6)  # of the fact, not of the words
    assert report["polarity"]["yes_bias"] == 0 and report["polarity"]["pairs"] == 12
    assert report["position"] == {"questions": 24, "answered": 24, "changed": 0, "first_share": 0.5}
    assert (report["repeats"]["always_alike"], report["repeats"]["times"]) == (1, 3)
    assert report["blinded"]["yes_no"]["balanced_accuracy"] == pytest.approx(0.5, abs=0.1)
    json.dumps(report, allow_nan=False)


def test_a_judge_that_knows_the_answers_by_heart_is_found_out_blinded(tmp_path, frames):
    labels = write(
        tmp_path / "a.jsonl", [{**row, "question": f"{row['question']} {row['label']}"} for row in pairs(holds)]
    )
    report = report_of(labels, lambda k, question: question.text.split()[-1], frames, blinded=2)
    assert report["yes_no"]["accuracy"] == report["blinded"]["yes_no"]["accuracy"] == 1


def test_one_who_always_says_yes_is_at_chance_and_contradicts_itself(tmp_path, frames):
    report = report_of(write(tmp_path / "a.jsonl", pairs(holds)), lambda k, question: "yes", frames)
    one_name = [{**row, "pair": "there or gone"} for row in pairs(holds)]  # a pair is of one clip
    assert report_of(write(tmp_path / "b.jsonl", one_name), lambda k, question: "yes", frames)["polarity"] == {
        **report["polarity"]
    }
    assert report["yes_no"]["balanced_accuracy"] == 0.5 and report["yes_no"]["kappa"] == 0
    assert report["polarity"]["yes_bias"] == 0.5 and report["polarity"]["both_yes"] == 12
    assert report["polarity"]["positive_accuracy"] == 0.75 and report["polarity"]["negative_accuracy"] == 0.25


def test_one_who_takes_the_first_option_is_found_out(tmp_path, frames):
    rows = [{"clip": f"{k}.mp4", "question": "Colour?", "label": "red", "form": "red,blue"} for k in range(CLIPS)]
    labels = write(tmp_path / "a.jsonl", rows)
    report = report_of(labels, lambda k, question: question.schema.options[0], frames, positions=True)
    assert report["choices"]["accuracy"] == 1  # the labels alone do not show it
    assert report["position"]["changed"] == 1 and report["position"]["first_share"] == 1


def test_a_fickle_judge(tmp_path, frames):
    dice = random.Random(0)
    labels = write(tmp_path / "a.jsonl", pairs(holds))
    report = report_of(labels, lambda k, question: dice.choice(["yes", "no"]), frames, repeats=4)
    assert report["repeats"]["always_alike"] < 0.5


def test_unanswered_and_failed_are_counted_and_in_no_rate(tmp_path, frames):
    def answer(k: int, question) -> str:
        if k == 0:
            raise NoReply("the server is down")
        return "well ..." if k == 1 else sees(k, question)

    report = report_of(write(tmp_path / "a.jsonl", pairs(holds)), answer, frames)
    assert (report["answered"], report["unanswered"], report["failed"]) == (20, 2, 2)
    assert report["yes_no"]["n"] == 20 and report["yes_no"]["accuracy"] == 1


def test_ratings_by_hand(tmp_path, frames):
    rows = [{"clip": f"{k}.mp4", "question": "How good?", "label": 1 + k % 5, "form": "1-5"} for k in range(10)]
    report = report_of(write(tmp_path / "a.jsonl", rows), lambda k, question: str(min(5, 2 + k % 5)), frames)
    assert report["ratings"]["exact"] == pytest.approx(0.2) and report["ratings"]["within_one"] == 1
    assert report["ratings"]["mean_difference"] == pytest.approx(0.8)
    # observed 8 of distance 1; expected over all pairs of (1..5) and (2, 3, 4, 5, 5), twice each
    expected = sum(abs(a - b) for a in range(1, 6) for b in (2, 3, 4, 5, 5)) * 4 / 10
    assert report["ratings"]["kappa_linear"] == pytest.approx(1 - 8 / expected)


def test_csv_and_several_people(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(
        "clip,question,label,subset,rater\n"
        "a.mp4,Is it there?,yes,place,ann\na.mp4,Is it there?,Yes,place,bob\na.mp4,Is it there?,no,place,cho\n"
        "b.mp4,Is it there?,yes,place,ann\nb.mp4,Is it there?,no,place,bob\n"
    )
    labels = load_judge_labels(path)
    assert [row.right for row in labels.rows] == [True] and labels.disputed == 1
    assert labels.rows[0].clip == tmp_path / "a.mp4"
    assert sorted(labels.raters.values()) == [(True, False), (True, True, False)]


@pytest.mark.parametrize(
    "row, says",
    [
        ({"clip": "a.mp4", "question": "?"}, "'label' is missing; the columns are clip, question, label"),
        ({"clip": "a.mp4", "question": "?", "label": "yes", "verdict": "x"}, "unknown column 'verdict'"),
        ({"clip": "a.mp4", "question": "?", "label": "maybe"}, "does not fit the form: expected yes or no"),
        ({"clip": "a.mp4", "question": "?", "label": "9", "form": "1-5"}, "whole number from 1 to 5"),
        ({"clip": "a.mp4", "question": "?", "label": "yes", "polarity": "up"}, "positive or negative"),
        ({"clip": "a.mp4", "question": "?", "label": "yes", "form": "yes"}, "a.jsonl, line 1: form must be yes-no"),
    ],
)
def test_a_label_that_cannot_be_used_says_why(tmp_path, row, says):
    with pytest.raises(UsageError, match=says):
        write(tmp_path / "a.jsonl", [row])


def test_files_without_labels(tmp_path):
    (tmp_path / "a.jsonl").write_text("[1]\n")
    with pytest.raises(UsageError, match="line 1: expected a JSON object"):
        load_judge_labels(tmp_path / "a.jsonl")
    (tmp_path / "b.csv").write_text("clip,question,label\n")
    with pytest.raises(UsageError, match="no labels found"):
        load_judge_labels(tmp_path / "b.csv")
    with pytest.raises(UsageError, match="no such file"):
        load_judge_labels(tmp_path / "c.csv")


def test_forms():
    assert (schema_from_form(""), schema_from_form("1-5"), schema_from_form("red, blue")) == (
        YesNo(),
        Rating(1, 5),
        Choice(("red", "blue")),
    )


def test_the_command_says_what_it_needs(tmp_path, revisit):
    assert "or --worlds with a folder" in revisit("judge", "check", check=2).stderr
    (tmp_path / "l.csv").write_text("clip,question,label\na.mp4,?,yes\n")
    assert "choose a judge" in revisit("judge", "check", "l.csv", check=2).stderr


@pytest.mark.long
@pytest.mark.slow
def test_the_command_on_rendered_worlds(tmp_path, revisit):
    env = {"REVISIT_CACHE": str(tmp_path / "cache")}
    done = revisit("judge", "check", "--worlds", "exam", "--scenes", 1, "--out", "report.json", env=env)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["judge"]["judge"] == "instrumented" and report["questions"] > 40
    assert all(part["yes_no"]["accuracy"] == 1 for part in report["subsets"].values())
    assert "blinded: hidden" in done.stdout and "chance" in done.stderr
    judge = tmp_path / "judge.yaml"
    judge.write_text("kind: instrumented\nscenes: exam/scenes\n")
    again = revisit("judge", "check", "exam/labels.jsonl", "--judge", judge, "--json", env=env)
    assert json.loads(again.stdout)["yes_no"] == report["yes_no"]  # from the recorded answers
