"""Replies of judges, labelled by hand: what is no answer never becomes one, and no plain answer is lost.

`judge_replies/house.jsonl` was written with the rule of docs/judges.md in hand, before the parser;
`judge_replies/independent.jsonl` by somebody who had not seen the parser.
"""

from __future__ import annotations

import json
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from revisit.judges.protocol import JudgeAnswer, Usage
from revisit.judges.questions import Choice, JsonObject, Malformed, Many, Number, Question, Rating, Schema, Text, YesNo
from revisit.judges.settings import judge_from_source
from revisit.judges.store import AnswerStore, read_answer_lines
from revisit.judges.wording import wording_digest
from tests.judges.test_judge_faults import asker_for, judge_file, run_it, source
from tests.judging import completion, pictures, question_of, sees_cards, serving, status, token

__all__ = ["source"]  # a fixture

FOLDER = Path(__file__).parents[1] / "judge_replies"
HALVES = ("house", "independent")


def replies(half: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / f"{half}.jsonl").read_text(encoding="utf-8").split("\n") if line]


def schema_of(described: dict[str, Any]) -> Schema:
    kind = described["kind"]
    if kind == "rating":
        return Rating(described["low"], described["high"])
    if kind == "number":
        return Number(described["low"], described["high"])
    if kind == "choice":
        return Choice(tuple(described["options"]))
    if kind == "record":
        return JsonObject({name: schema_of(field) for name, field in described["fields"].items()})
    if kind == "many":
        return Many(schema_of(described["item"]), described["count"], described["count"])
    assert kind == "yes_no"
    return YesNo()


def read(row: dict[str, Any]) -> Any:
    """The answer that is read, None where there is none."""
    try:
        return Question("q", "?", schema_of(row["schema"])).read(row["reply"])
    except Malformed:
        return None


def compare(half: str) -> tuple[int, int, list[str], list[str]]:
    """Replies with an answer, replies without, those that became one wrongly, and those that were lost."""
    rows = [(row, read(row)) for row in replies(half)]
    wrong = [
        f"{row['reply']!r} -> {value!r}, expected {row['answer']!r}"
        for row, value in rows
        if value is not None and (type(value) is bool, value) != (type(row["answer"]) is bool, row["answer"])
    ]
    lost = [
        f"{row['reply']!r}, expected {row['answer']!r}"
        for row, value in rows
        if value is None and row["answer"] is not None
    ]
    answers = sum(row["answer"] is not None for row, _ in rows)
    return answers, len(rows) - answers, wrong, lost


@pytest.mark.parametrize("half", HALVES)
def test_what_is_no_answer_never_becomes_one(half):
    _, nothing, wrong, _ = compare(half)
    assert nothing >= 50 and not wrong, "\n".join(wrong)


@pytest.mark.parametrize("half", HALVES)
def test_no_plain_answer_is_lost(half):
    answers, _, _, lost = compare(half)
    assert answers >= 50 and not lost, "\n".join(lost)


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("I don't know. Answer: no", None),
        ("It cannot be determined from these frames.\nAnswer: no", None),
        ("I can not say that.\n\nThe answer is yes", None),
        ("There is no way to tell.\n\nAnswer: no", None),
        ('I am not sure. {"answer": "yes"}', None),
        ("It is unclear in frame 3. Frame 5 shows the cup.\nAnswer: yes", True),
        ("The cup cannot be seen in frame 8.\nAnswer: no", False),
        ("yes<|im_end|>", True),
        ("No.</s>", False),
        ("yes<|im_end|>\n<|im_start|>user\nIs it?", None),
    ],
)
def test_a_guess_is_no_answer_and_the_end_of_a_turn_is_no_word(reply, value):
    assert read({"schema": {"kind": "yes_no"}, "reply": reply}) is value


# --- the way of users ------------------------------------------------------------------------------------------------


def refuses(kind: str) -> list[str]:
    """Replies of both halves to a kind of question that are no answers."""
    return [
        row["reply"]
        for half in HALVES
        for row in replies(half)
        if (row["schema"]["kind"], row["answer"]) == (kind, None)
    ]


@pytest.mark.long
def test_a_run_with_a_judge_that_writes_prose_is_unscored_and_never_a_zero(tmp_path, source):
    """Every reply that is no answer, over HTTP, in a whole run: nothing is scored, and each record says why."""
    prose, ratings = (
        cycle(refuses("yes_no")),
        cycle(["In frame 4 the cup is gone", *refuses("rating"), *refuses("record")]),
    )

    def answer(body):
        card = sees_cards(body)
        if card is not None:
            return "yes" if card else "no"
        return next(ratings if '"progress"' in question_of(body) else prose)

    with serving(answer) as server:
        run = run_it(tmp_path, source, judge_from_source(str(judge_file(tmp_path, server, again=5, concurrency=1))))
    assert server.calls >= len(refuses("yes_no"))
    assert {(record.status, record.reason.kind) for record in run.results.records} == {("unscored", "unanswered")}
    lines = [
        line
        for line in read_answer_lines(run.path / "answers.jsonl")
        if not line["question"]["id"].startswith("canary")
    ]
    assert len(lines) == 3 * 11  # ten probes and the ratings of three clips
    for line in lines:
        told = line["answer"]
        assert (told["status"], told["value"], told["p_yes"]) == ("unanswered", None, None)
        assert told["reason"]


@pytest.mark.slow
def test_a_hedge_with_log_probabilities_gets_no_probability(tmp_path, source):
    """The first token of a hedge is a no with nearly all of the probability."""

    def answer(body):
        card = sees_cards(body)
        if card is not None:
            return "yes" if card else "no"
        if '"progress"' in question_of(body):
            return '{"progress": 4, "correctness": 5}'
        tokens = [token("No", -0.01, No=-0.01, Yes=-5.0), token(" way", -0.1), token(" to tell.", -0.1)]
        return completion("No way to tell.", {"content": tokens})

    with serving(answer) as server:
        run = run_it(tmp_path, source, judge_from_source(str(judge_file(tmp_path, server, again=0))))
    found = {(record.question, record.status) for record in run.results.records}
    assert found == {("wr_visible_state", "unscored"), ("judged_progress", "scored")}


def test_the_command_says_that_a_hedge_is_no_answer(tmp_path, revisit, make_clip):
    make_clip(tmp_path / "clip.mp4", seed=1)
    with serving(lambda body: "There is no way to tell from these frames.") as server:
        judge_file(tmp_path, server, again=1)
        done = revisit("judge", "ask", "clip.mp4", "Is the cup there?", "--judge", "judge.yaml", "--json", check=1)
    answer = json.loads(done.stdout)
    assert (answer["status"], answer["value"], answer["tries"]) == ("unanswered", None, 2)
    assert "There is no way to tell" in answer["reply"] and "expected yes or no" in answer["reason"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"finish_reason": "length"}, "cut off"),
        ({"finish_reason": "content_filter"}, "filter"),
        ({"message": {"role": "assistant", "content": "No", "refusal": "I will not say."}}, "refused: I will not say."),
    ],
)
def test_a_reply_that_did_not_end_by_itself_is_no_answer(tmp_path, change, says):
    made = completion("No")
    made["choices"][0] |= change
    with serving(lambda body: made) as server, asker_for(tmp_path, server, again=0) as client:
        answer = client.ask(pictures(), [Question("q", "Is it?")])[0]
    assert (answer.status, answer.value) == ("unanswered", None) and says in answer.reason


def test_a_server_without_log_probabilities_is_asked_for_a_structured_answer(tmp_path):
    with serving(lambda body: '{"answer": "no"}' if "response_format" in body else "I have no idea.") as server:
        server.faults = [status(400, "logprobs are not supported")]
        with asker_for(tmp_path, server) as client:
            answer = client.ask(pictures(), [Question("q", "Is it?")])[0]
    assert (answer.status, answer.value, answer.tries) == ("answered", False, 1)
    assert ["response_format" in body for body in server.requests] == [False, True]


# --- answers that an earlier version recorded ------------------------------------------------------------------------


RECORDED = {  # reply -> what the former reader took it for, and what it is
    "There is no way to tell from these frames.": (False, None),
    "Yes.": (True, True),
    "I see no cup in frame 3.\nAnswer: yes": (True, True),
}


def record(path: Path, judge: Any) -> None:
    """Write the answers as the former version did."""
    store = AnswerStore(path)
    for reply, (value, _) in RECORDED.items():
        answer = JudgeAnswer(
            "answered", value, 0.25, "log-probabilities", reply, usage=Usage(1, 100, 9), model="m", tries=1
        )
        store.record_answer(pictures(), Question("q", f"{reply}?"), judge.facts, answer)
    store.close()


def test_recorded_replies_are_read_anew(tmp_path):
    asked = [Question("q", f"{reply}?") for reply in RECORDED]
    with serving(lambda body: "No") as server:
        judge = judge_from_source(str(judge_file(tmp_path, server)))
        record(tmp_path / "answers.jsonl", judge.judge)
        with judge.make_client(AnswerStore(tmp_path / "answers.jsonl")) as client:
            hedge, plain, marked = client.ask(pictures(), asked)
            assert client.from_store == 2 and server.calls == 1  # the hedge is asked again, and nothing else
    assert (hedge.status, hedge.value, hedge.reply) == ("answered", False, "No")
    assert (plain.value, plain.p_yes, marked.value) == (True, 0.25, True)
    assert marked.p_yes is None and "another word" in marked.p_from


def test_a_replay_reads_recorded_replies_anew(tmp_path):
    with serving(lambda body: "No") as server:
        record(tmp_path / "answers.jsonl", judge_from_source(str(judge_file(tmp_path, server))).judge)
    with judge_from_source(str(tmp_path / "answers.jsonl")).make_client(AnswerStore(None)) as client:
        answers = client.ask(pictures(), [Question("q", f"{reply}?") for reply in RECORDED])
    assert [answer.value for answer in answers] == [right for _, right in RECORDED.values()]
    assert answers[0].status == "unanswered" and "expected yes or no" in answers[0].reason
    assert server.calls == 0


def test_a_recorded_reply_that_was_cut_off_stays_unanswered(tmp_path):
    made = completion("No")
    made["choices"][0]["finish_reason"] = "length"
    question = Question("q", "Is it?")
    kept = tmp_path / "answers.jsonl"
    with serving(lambda body: made) as server, asker_for(tmp_path, server, store=kept, again=0) as client:
        client.ask(pictures(), [question])
    with judge_from_source(str(kept)).make_client(AnswerStore(None)) as client:
        answer = client.ask(pictures(), [question])[0]
    assert answer.status == "unanswered" and "cut off" in answer.reason


def test_answers_that_were_paid_for_keep_their_address():
    """The words that are sent and the digests of questions are those of earlier versions."""
    fields = {"a": Rating(), "b": Choice(("x", "y")), "c": Many(Number(), 2, 3), "d": Text()}
    assert wording_digest() == "d9b08c245799"
    assert Question("a", "Is it?").digest == "dd54e7e5fac15b249ed950cd"
    assert Question("a", "Rate.", JsonObject(fields)).digest == "bdded7c6a0852efe065c5798"
