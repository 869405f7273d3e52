"""Judges without a network: schemas, probabilities, the store, the budget, canaries, the benchmarks' questions."""

from __future__ import annotations

import errno
import json
import math
import os
from dataclasses import replace

import numpy as np
import pytest

from revisit.core import InvalidEvidence, Score, Unscored, UsageError
from revisit.evidence.judged import PASSED, UNANSWERED, case_questions
from revisit.judges.batch import JudgeClient, RetryPolicy
from revisit.judges.budget import Budget, JudgeLimit, TokenPrice, estimate_call_usage
from revisit.judges.canary import append_colour_card, canary_questions, card_colour_and_decoy, passed_or_canary_fault
from revisit.judges.probability import p_yes_and_source
from revisit.judges.protocol import Frames, JudgeAnswer, NoReply, Reply, Stopped, Usage
from revisit.judges.questions import Choice, JsonObject, Malformed, Many, Number, Question, Rating, Text, YesNo
from revisit.judges.settings import judge_from_source
from revisit.judges.store import AnswerStore, ReplayJudge, read_answer_lines
from revisit.suites.mbench.evidence import ProgressRatings, TriggerAnswer
from revisit.suites.mbench.metrics.judged import judged_correctness, judged_progress, memory_test_posed
from revisit.suites.mbench.questions import TRIGGERS, ask_progress_ratings, ask_trigger
from revisit.suites.memobench.questions import (
    COUNT,
    FOCUS,
    NewQuestions,
    ask_bank_questions,
    question_writing_request,
    questions_from_written_answer,
)
from revisit.suites.wrbench.evidence import classify_judgeable_seconds
from revisit.suites.wrbench.questions import PROBES, ask_event_probes, ask_judgeability
from tests.judging import pictures, token


class Fake:
    """A judge in this process: `said` is a function from (frames, question) to a reply or an exception."""

    batch = 1

    def __init__(self, said, model="fake"):
        self.said, self.facts, self.calls, self.notes = said, {"judge": "fake", "model": model}, [], []

    def check(self): ...

    def close(self): ...

    def reply(self, frames, questions, notes):
        found = []
        for question, note in zip(questions, notes, strict=True):
            self.calls.append(question.id)
            self.notes.append(note)
            made = self.said(frames, question)
            if isinstance(made, Exception):
                raise made
            found.append(made if isinstance(made, Reply) else Reply(made, usage=Usage(1, 50, 2), model="fake-1"))
        return found


QUICK = RetryPolicy(concurrency=2, tries=3, again=2, pause=0.001)


# --- schemas ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "reply", "value"),
    [
        (YesNo(), "Yes", True),
        (YesNo(), " no.\n", False),
        (YesNo(), "**Answer:** Yes.", True),
        (YesNo(), '{"answer": "no"}', False),
        (YesNo(), "<think>yes? no? yes</think>No", False),
        (YesNo(), "true", True),
        (Rating(1, 5), "4", 4),
        (Rating(1, 5), '{"answer": 2}', 2),
        (Number(0, 1), "0.25", 0.25),
        (Choice(("red", "dark red")), "Answer: dark red.", "dark red"),
        (Choice(("red", "blue")), '"Blue"', "blue"),
        (
            JsonObject({"a": Rating(), "b": YesNo()}),
            'So: ```\n{"a": "3", "b": "Yes", "c": 1}\n```',
            {"a": 3, "b": True},
        ),
        (Many(YesNo(), 2, 2), '{"items": ["yes", "no"]}', [True, False]),
        (Many(Rating(), 1, 3), "[1, 5]", [1, 5]),
        (JsonObject({"s": Many(YesNo(), 2, 2)}), 'My answer: {"s": ["yes", "NO"]}', {"s": [True, False]}),
    ],
)  # fmt: skip
def test_answers_are_read_from_what_judges_write(schema, reply, value):
    assert Question("q", "?", schema).read(reply) == value


@pytest.mark.parametrize(
    ("schema", "reply"),
    [
        (YesNo(), ""),
        (YesNo(), "maybe"),
        (YesNo(), "yes and no"),
        (YesNo(), "<think>yes"),
        (YesNo(), '{"question_99": "yes"}'),
        (Rating(1, 5), "7"),
        (Rating(1, 5), "3.5"),
        (Rating(1, 5), "nan"),
        (Rating(1, 5), "between 2 and 4"),
        (Rating(1, 5), "I would say 4."),
        (Number(0, 1), "inf"),
        (Choice(("red", "blue")), "green"),
        (Choice(("red", "blue")), "red or blue"),
        (Choice(("red", "dark red")), "It is dark red."),
        (JsonObject({"a": Rating()}), '{"b": 3}'),
        (JsonObject({"a": Rating()}), 'Draft {"a": 1} then {"a": 2}'),
        (JsonObject({"a": Rating()}), '{"a": 3'),
        (JsonObject({"a": Rating()}), '{"a": 9}'),
        (Many(YesNo(), 2, 2), '["yes"]'),
        (Many(YesNo(), 2, 2), '["yes", "perhaps"]'),
        (Text(5), "too long a text"),
    ],
)
def test_what_is_no_valid_answer_is_malformed_and_never_a_no(schema, reply):
    with pytest.raises(Malformed):
        Question("q", "?", schema).read(reply)


def test_the_identity_of_a_question_is_its_text_and_schema():
    one = Question("a", "Is it?")
    assert one.digest == Question("b", "Is it?").digest
    assert one.digest != Question("a", "Is it so?").digest != Question("a", "Is it so?", Rating()).digest
    assert one.digest != Question("a", "Is it?", about={"thing": 1}).digest


# --- probabilities ---------------------------------------------------------------------------------------------------


def content(*tokens):
    return {"content": list(tokens)}


def test_p_yes_is_a_softmax_over_the_spellings_of_both_words():
    found, how = p_yes_and_source(
        "Yes", content(token("Yes", -0.5, **{"Yes": -0.5, " yes": -2.0, "No": -1.5, "▁no": -3.0, "Maybe": -4.0}))
    )
    yes, no = math.exp(-0.5) + math.exp(-2.0), math.exp(-1.5) + math.exp(-3.0)
    assert found == pytest.approx(yes / (yes + no), abs=1e-6) and how == "log-probabilities"


@pytest.mark.parametrize(
    ("reply", "logprobs", "value", "says"),
    [
        ("Yes", None, None, "gave no log-probabilities"),
        ("Yes", {"content": None}, None, "gave no log-probabilities"),
        ("Yes", {"content": []}, None, "gave no log-probabilities"),
        ("Yes", content(token("Y", -0.1, Y=-0.1), token("es", -0.1, es=-0.1)), None, "where the answer begins"),
        ("hm", content(token("hm", -0.1, hm=-0.1)), None, "where the answer begins"),
        ("Yes", content(token("Yes", -0.1, Yes=-0.1, No=-9999.0)), 1.0, "log-probabilities"),
        ("No", content(token("No", -0.1, No=-0.1, Yes=-math.inf)), 0.0, "log-probabilities"),
        ("Yes", content(token("Yes", -9999.0, Yes=-9999.0, No=-9999.0, Maybe=-1.0)), None, "masked"),
        ("Yes", content(token("Yes", -0.01, Yes=-0.01, Maybe=-6.0)), 1 / (1 + math.exp(-5.99)), "less likely"),
        ("Yes", content(token("Yes", -0.3)), math.exp(-0.3), "less likely"),
        ("Answer: Yes", content(token("Answer:", -1), token(" Yes", -0.2, **{" Yes": -0.2, " No": -1.7})),
         1 / (1 + math.exp(-1.5)), "log-probabilities"),
        ("<think>no</think>Yes", content(token("<think>no</think>", -1), token("Yes", -0.2, Yes=-0.2, No=-1.7)),
         1 / (1 + math.exp(-1.5)), "log-probabilities"),
        # a server that merges tokens which are no whole characters: the answer's token is still one entry
        ("<think>��</think> no",
         content(token("<think>��</think>", -3), token(" no", -0.4, **{" no": -0.4, " yes": -1.4})),
         1 / (1 + math.exp(1.0)), "log-probabilities"),
        # the thoughts are not in the reply, and the token that ends the turn is among the log-probabilities
        ("No",
         content(token("yes, no</think>", -1), token("No", -0.2, No=-0.2, Yes=-1.2), token("<|im_end|>", 0)),
         1 / (1 + math.exp(1.0)), "log-probabilities"),
        # the answer's token is that of the marked answer, not the first no of the reply
        ("I see no cup. Answer: yes",
         content(token("I see", -1), token(" no", -0.1, **{" no": -0.1}), token(" cup. Answer:", -1),
                 token(" yes", -0.2, **{" yes": -0.2, " no": -1.7})), 1 / (1 + math.exp(-1.5)), "log-probabilities"),
        ('{"reason": "no cup", "answer": "yes"}',
         content(token('{"reason": "', -1), token("no", -0.1, no=-0.1), token(' cup", "answer": "', -1),
                 token("yes", -0.2, yes=-0.2, no=-1.7), token('"}', 0)), 1 / (1 + math.exp(-1.5)), "log-probabilities"),
        # a hedge that begins with no
        ("No way to tell", content(token("No", -0.1, No=-0.1, Yes=-3.0), token(" way to tell", -0.1)), None,
         "where the answer begins"),
        ("No?", content(token("No?", -0.1, **{"No?": -0.1, "Yes": -3.0})), None, "where the answer begins"),
        # an alternative that asks back is no spelling of no
        ("Yes", content(token("Yes", -1.0, **{"Yes": -1.0, "No": -2.0, "No?": -0.9, "no-": -0.9})),
         1 / (1 + math.exp(-1.0)), "log-probabilities"),
    ],
)  # fmt: skip
def test_null_merged_split_and_masked_log_probabilities(reply, logprobs, value, says):
    found, how = p_yes_and_source(reply, logprobs)
    assert says in how
    assert found is None if value is None else found == pytest.approx(value, abs=1e-5)


# --- asking ----------------------------------------------------------------------------------------------------------


def test_a_malformed_reply_is_asked_again_with_the_fault_named_then_unanswered():
    replies = iter(["perhaps", "Yes"])
    judge = Fake(lambda *_: next(replies))
    with JudgeClient(judge, patience=QUICK) as client:
        answer = client.ask(pictures(), [Question("q", "Is it?")])[0]
    assert (answer.status, answer.value, answer.tries, answer.usage.calls) == ("answered", True, 2, 2)
    assert judge.notes[0] == "" and "expected yes or no" in judge.notes[1]

    with JudgeClient(Fake(lambda *_: "perhaps"), patience=QUICK) as client:
        answer = client.ask(pictures(), [Question("q", "Is it?")])[0]
    assert (answer.status, answer.value, answer.p_yes, answer.tries) == ("unanswered", None, None, 3)
    assert answer.reply == "perhaps" and "yes or no" in answer.reason


def test_what_brings_no_reply_is_tried_again_then_failed_and_not_recorded(tmp_path):
    judge = Fake(lambda *_: NoReply("busy"))
    store = AnswerStore(tmp_path / "a.jsonl")
    with JudgeClient(judge, store, QUICK) as client:
        answer = client.ask(pictures(), [Question("q", "Is it?")])[0]
    assert answer.status == "failed" and "no reply after 3 calls" in answer.reason
    assert len(judge.calls) == 3 and read_answer_lines(tmp_path / "a.jsonl") == []


def test_a_fault_in_a_judge_leaves_nobody_waiting():
    with JudgeClient(Fake(lambda *_: RuntimeError("oops")), patience=QUICK) as client:
        answers = client.ask(pictures(), [Question("a", "A?"), Question("b", "B?")])
    assert [answer.status for answer in answers] == ["failed", "failed"] and "oops" in answers[0].reason


def test_judges_that_take_several_questions_share_a_call():
    judge = Fake(lambda frames, question: "yes" if question.id in "ac" else "no")
    judge.batch = 8
    with JudgeClient(judge, patience=QUICK) as client:
        answers = client.ask(pictures(), [Question(name, f"{name}?") for name in "abcd"])
    assert [answer.value for answer in answers] == [True, False, True, False]


def test_equal_questions_under_way_are_asked_once():
    judge = Fake(lambda *_: "yes")
    frames = pictures()
    with JudgeClient(judge, patience=QUICK) as client:
        futures = [future for _ in range(5) for future in client.submit_questions(frames, [Question("q", "Is it?")])]
        assert all(future.result().value for future in futures)
    assert len(judge.calls) == 1


# --- the store -------------------------------------------------------------------------------------------------------


def test_the_store_survives_a_torn_line_and_serves_both_files(tmp_path):
    shared, copy = tmp_path / "shared.jsonl", tmp_path / "run/answers.jsonl"
    frames, question, facts = pictures(), Question("q", "Is it?"), {"judge": "x", "model": "m"}
    store = AnswerStore(shared)
    store.record_answer(frames, question, facts, JudgeAnswer("answered", True, 0.9, "how", "Yes", usage=Usage(1, 5, 1)))
    store.close()
    with shared.open("ab") as file:
        file.write(b'{"key": "torn')
    again = AnswerStore(shared, copy)
    assert again.find_answer(frames, replace(question, id="other"), facts).p_yes == 0.9
    assert again.find_answer(frames, question, {**facts, "model": "other"}) is None
    assert again.find_answer(pictures(seed=1), question, facts) is None
    again.close()
    assert shared.read_bytes().endswith(b"\n") and len(read_answer_lines(shared)) == len(read_answer_lines(copy)) == 1


def test_answers_are_kept_with_the_run_where_the_shared_store_cannot_be_written(tmp_path, monkeypatch):
    """Of others, or full: the run ended, with answers that were paid for."""
    frames, facts, answer = pictures(), {"judge": "x"}, JudgeAnswer("answered", True, reply="Yes")
    (tmp_path / "file").touch()
    problems: dict[str, str] = {}
    closed = AnswerStore(tmp_path / "file/shared.jsonl", tmp_path / "one/answers.jsonl", problems)
    closed.record_answer(frames, Question("q", "Is it?"), facts, answer)
    assert len(read_answer_lines(tmp_path / "one/answers.jsonl")) == 1
    assert problems["answers"].endswith("the judge's answers are kept with this run only")
    with pytest.raises(OSError, match=r"exists|Not a directory"):
        AnswerStore(tmp_path / "file/shared.jsonl")  # where nothing else would keep them
    full = AnswerStore(tmp_path / "shared.jsonl", tmp_path / "two/answers.jsonl")
    written = []

    def append(file: int, data: bytes) -> None:
        if os.path.samestat(os.fstat(file), (tmp_path / "shared.jsonl").stat()):
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(data)

    monkeypatch.setattr("revisit.judges.store.append_all_or_nothing", append)
    for number in range(2):
        full.record_answer(frames, Question("q", f"Is it {number}?"), facts, answer)
    full.close()
    assert len(written) == 2 and "(No space left on device)" in full.problems["answers"]


def test_replay_is_the_judge_it_recorded(tmp_path):
    frames, known = pictures(), [Question("a", "A?"), Question("b", "B?")]
    said = {
        "A?": Reply("Yes", 0.8, "log-probabilities", Usage(1, 9, 1), "m-1"),
        "B?": Reply("dunno", usage=Usage(1, 9, 1)),
    }
    judge = Fake(lambda _, question: said[question.text])
    with JudgeClient(judge, AnswerStore(tmp_path / "answers.jsonl"), QUICK) as client:
        first = client.ask(frames, known)
    replay = judge_from_source(str(tmp_path / "answers.jsonl"))
    assert isinstance(replay.judge, ReplayJudge) and replay.judge.facts == judge.facts
    with replay.make_client(AnswerStore(None)) as client:
        again = client.ask(frames, known)
        missing = client.ask(frames, [Question("c", "C?")])[0]
    for old, new in zip(first, again, strict=True):
        assert (old.status, old.value, old.p_yes, old.reply) == (new.status, new.value, new.p_yes, new.reply)
        assert new.usage == Usage()
    assert missing.status == "failed" and "holds no answer to 'c'" in missing.reason
    with pytest.raises(UsageError, match="no recorded answers"):
        (tmp_path / "empty.jsonl").write_text("")
        judge_from_source(str(tmp_path / "empty.jsonl"))


# --- the budget ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "most"),
    [(JudgeLimit(calls=3), 3), (JudgeLimit(tokens=1000), 3), (JudgeLimit(money=0.001), 4), (JudgeLimit(calls=0), 0)],
)
def test_the_budget_stops_cleanly_and_the_rest_is_asked_later(tmp_path, limit, most):
    frames, asked = pictures(), [Question(f"q{k}", f"{k}?") for k in range(8)]
    judge = Fake(lambda *_: Reply("yes", usage=Usage(1, 250, 4)))
    path = tmp_path / "answers.jsonl"
    with JudgeClient(judge, AnswerStore(path), QUICK, Budget(limit, TokenPrice(input=1.0))) as client:
        answers = client.ask(frames, asked)
    done = sum(answer.status == "answered" for answer in answers)
    assert done == len(judge.calls) <= most
    assert done > 0 or not most
    assert all(
        "budget" in answer.reason and "is used up" in answer.reason for answer in answers if answer.status == "failed"
    )
    with JudgeClient(judge, AnswerStore(path), QUICK) as client:
        assert all(answer.status == "answered" for answer in client.ask(frames, asked))
    assert len(judge.calls) == 8  # nothing was paid for twice


def test_what_stops_one_stops_all():
    judge = Fake(lambda *_: Stopped("the key is wrong"))
    with JudgeClient(judge, patience=RetryPolicy(concurrency=1)) as client:
        answers = client.ask(pictures(), [Question(f"q{k}", f"{k}?") for k in range(5)])
    assert {answer.reason for answer in answers} == {"the key is wrong"} and len(judge.calls) == 1


def test_expected_usage_grows_with_pictures():
    question = Question("q", "Is it?")
    few, many = (
        estimate_call_usage(pictures(2, size=(280, 280)), question),
        estimate_call_usage(pictures(8, size=(280, 280)), question),
    )
    assert many.tokens_in - few.tokens_in == 6 * 100  # a token per 28 x 28 pixels
    assert (
        estimate_call_usage(pictures(2), question, 85).tokens_in > estimate_call_usage(pictures(2), question).tokens_in
    )


# --- canaries --------------------------------------------------------------------------------------------------------


def test_a_judge_that_looks_passes_and_one_that_obeys_the_video_trips():
    frames = pictures(3)
    shown = append_colour_card(frames)
    assert len(shown.jpegs) == 4 and shown.digest != frames.digest and shown.jpegs[:3] == frames.jpegs
    assert len({card_colour_and_decoy(pictures(2, seed=k))[0] for k in range(30)}) == 6
    assert all(len(set(card_colour_and_decoy(pictures(2, seed=k)))) == 2 for k in range(30))
    yes, no = JudgeAnswer("answered", True), JudgeAnswer("answered", False)
    assert [question.id for question in canary_questions(frames)] == ["canary.yes", "canary.no"]
    assert passed_or_canary_fault([yes, no]) == PASSED
    assert "answered yes, which is wrong" in passed_or_canary_fault([yes, yes])
    assert "answered no, which is wrong" in passed_or_canary_fault([no, no])
    assert "no valid answer" in passed_or_canary_fault([yes, JudgeAnswer("unanswered")])


# --- the benchmarks' questions ---------------------------------------------------------------------------------------


def talk(generator, answer):
    """Drive an observer that asks, with answers from a function of the question; (evidence, questions)."""
    asked, sent = [], None
    try:
        while True:
            questions = generator.send(sent)
            asked += questions
            sent = [answer(question) for question in questions]
    except StopIteration as stop:
        return stop.value, asked


def says(value, p=None):
    return JudgeAnswer("answered", value, p, model="m")


SILENT = JudgeAnswer("unanswered", reason="expected yes or no, got 'hm'")
FRAMES = Frames((b"",), (0.0,), "digest", (64, 48), 4.2)


def test_wrbench_asks_ten_probes_in_four_dimensions_of_mixed_polarity():
    seen, asked = talk(
        ask_event_probes.fn(FRAMES, "long prompt", {"event": "a cup falls"}), lambda question: says(True, 0.75)
    )
    assert len(asked) == len(PROBES) == 10 and all("a cup falls" in question.text for question in asked)
    sides = {name: [probe.positive for probe in PROBES if probe.dimension == name] for name in seen.dimension}
    assert {name: (sum(row), len(row)) for name, row in sides.items()} == {
        "visible_spatial": (2, 3), "visible_state": (2, 3), "returned_spatial": (1, 2), "returned_state": (1, 2),
    }  # fmt: skip
    assert seen.judge == "m" and seen.frames == "digest" and (seen.p_yes == 0.75).all()
    seen, _ = talk(ask_event_probes.fn(FRAMES, "a cup falls", {}), lambda question: SILENT)
    assert (seen.answer == UNANSWERED).all() and np.isnan(seen.p_yes).all() and len(seen.problems) == 10


def test_wrbench_looks_again_only_where_the_first_look_finds_no_return():
    def seconds(text, **more):
        return says({"seconds": [letter == "y" for letter in text], **more})

    looks = {"judgeability.first": seconds("yynny", subject="a cup")}
    seen, asked = talk(ask_judgeability.fn(FRAMES, "a cup falls", {}), lambda question: looks[question.id])
    assert len(asked) == 1 and classify_judgeable_seconds(seen.seconds) == "returned" and seen.subject == "a cup"
    assert not len(seen.second_seconds) and seen.second_spatial == -1
    assert "from second 0 to second 4" in asked[0].text  # 4.2 seconds are five

    looks = {
        "judgeability.first": seconds("yyyyy", subject="a cup"),
        "judgeability.second": seconds("ynnyy", place=True, state=False),
    }
    seen, asked = talk(ask_judgeability.fn(FRAMES, "a cup falls", {}), lambda question: looks[question.id])
    assert [question.id for question in asked] == ["judgeability.first", "judgeability.second"]
    assert classify_judgeable_seconds(seen.second_seconds) == "returned" and (
        seen.second_spatial,
        seen.second_state,
    ) == (1, 0)

    seen, asked = talk(ask_judgeability.fn(FRAMES, "a cup falls", {}), lambda question: SILENT)
    assert (
        len(asked) == 2
        and classify_judgeable_seconds(seen.seconds) == classify_judgeable_seconds(seen.second_seconds) == "unknown"
        and len(seen.problems) == 2
    )


@pytest.mark.parametrize(
    ("seconds", "found"),
    [("yny", "returned"), ("nyny", "returned"), ("yyy", "never hidden"), ("nyy", "late"), ("ynn", "no return"),
     ("nnn", "never judgeable"), ("", "unknown")],
)  # fmt: skip
def test_what_the_seconds_tell(seconds, found):
    assert classify_judgeable_seconds(np.array([letter == "y" for letter in seconds], np.int8)) == found


def test_mbench_asks_the_question_of_the_subset_and_rates_in_one_call():
    notes = {"caption_segments": ["a cup stands", "it is filled"]}
    texts = set()
    for subset in TRIGGERS:
        seen, asked = talk(
            ask_trigger.fn(FRAMES, subset.title(), "p", notes), lambda _: says({"triggered": True, "confidence": 0.7})
        )
        assert len(asked) == 1 and seen.triggered == 1 and seen.confidence == 0.7 and seen.question == subset
        assert "1. a cup stands\n2. it is filled" in asked[0].text
        texts.add(asked[0].text)
    assert len(texts) == 4
    with pytest.raises(UsageError, match="no trigger question for the subset 'weather'"):
        talk(ask_trigger.fn(FRAMES, "weather", "p", {}), says)
    seen, _ = talk(ask_trigger.fn(FRAMES, "object", "p", {}), lambda _: SILENT)
    assert seen.triggered == -1 and math.isnan(seen.confidence) and seen.problems
    seen, asked = talk(
        ask_progress_ratings.fn(FRAMES, "a candle burns down", {}), lambda _: says({"progress": 4, "correctness": 2})
    )
    assert len(asked) == 1 and (seen.progress, seen.correctness) == (4, 2)
    seen, _ = talk(ask_progress_ratings.fn(FRAMES, "p", {}), lambda _: SILENT)
    assert math.isnan(seen.progress)


def test_mbench_may_be_asked_in_words_of_ones_own_and_the_judge_is_told_apart_by_them():
    answer = {"triggered": True, "confidence": 0.7}
    ours, _ = talk(ask_trigger.fn(FRAMES, "causal", "p", {}), lambda _: says(answer))
    notes = {"wording": {"trigger.causal": "Is it so?", "progress": "How far, how right?"}}
    theirs, asked = talk(ask_trigger.fn(FRAMES, "causal", "p", notes), lambda _: says(answer))
    assert "Is it so? Say also how sure" in asked[0].text and TRIGGERS["causal"] not in asked[0].text
    assert theirs.judge.startswith(f"{ours.judge}, asked in the words ")
    other, _ = talk(ask_trigger.fn(FRAMES, "human", "p", notes), lambda _: says(answer))
    assert other.judge == ours.judge, "what has no words of its own is asked in ours"
    rated, asked = talk(ask_progress_ratings.fn(FRAMES, "p", notes), lambda _: says({"progress": 4, "correctness": 2}))
    assert asked[0].text.endswith("How far, how right?") and "asked in the words" in rated.judge
    _, asked = talk(ask_trigger.fn(FRAMES, "object", "p", {"object": "red cup"}), lambda _: says(answer))
    assert "The target object is: red cup." in asked[0].text


def test_the_causal_trigger_asks_for_no_more_than_a_process_that_has_to_go_on():
    """The paper: a process that should continue while partially hidden *or* across later segments; no return."""
    for demand in ("again", "come back", "comes back", "out of view"):
        assert demand not in TRIGGERS["causal"]
    assert ", or through later parts" in TRIGGERS["causal"]
    assert all("For example" in text for text in TRIGGERS.values()), "the paper's cases are examples"


def test_memobench_questions_come_with_the_case():
    bank = [{"id": 7, "dimension": "Physics Adherence", "positive": False, "text": "Does it float?"}]
    seen, asked = talk(ask_bank_questions.fn(FRAMES, {"questions": bank}), lambda _: says(True, 0.9))
    assert seen.question.tolist() == [7] and seen.answer.tolist() == [1] and asked[0].text == "Does it float?"
    assert seen.text == tuple(question.text for question in case_questions({"questions": bank}))
    seen, asked = talk(ask_bank_questions.fn(FRAMES, {}), says)
    assert not asked and not len(seen.question)


def new_questions():
    made: list[dict[str, object]] = []
    for name in FOCUS:
        for k in range(6):
            made.append({"id": len(made) + 1, "dimension": name, "polarity": "positive" if k < 3 else "negative",
                         "question": f"{name}: is thing {k} there?"})  # fmt: skip
    return made


def test_a_bank_of_questions_is_checked_whole():
    good = new_questions()
    question = question_writing_request("The camera pans away and back.")
    found = questions_from_written_answer(question.read("Here you are: " + json.dumps(good)))
    assert len(found) == COUNT == 24 and [one.id for one in found] == list(range(1, 25))
    assert sum(one.positive for one in found) == 12
    for spoil in (
        lambda rows: rows[:-1],
        lambda rows: [{**rows[0], "id": 2}, *rows[1:]],  # an id twice, another missing
        lambda rows: [{**rows[0], "id": 99}, *rows[1:]],
        lambda rows: [{**rows[0], "polarity": "negative"}, *rows[1:]],
        lambda rows: [{**rows[0], "dimension": "Physics Adherence"}, *rows[1:]],
        lambda rows: [{**rows[0], "question": rows[1]["question"]}, *rows[1:]],
    ):
        with pytest.raises(Malformed):
            NewQuestions().check(spoil(good))
    assert "Do not repeat" in question_writing_request("p", ["Is it?"]).text


# --- metrics ---------------------------------------------------------------------------------------------------------


def test_ratings_become_scores_and_missing_ones_do_not():
    best, mixed = ProgressRatings(5, 5, judge="m"), ProgressRatings(3, 4, judge="m")
    assert judged_progress(best).value == judged_correctness(best).value == 1
    assert judged_progress(mixed).value == 0.5 and judged_correctness(mixed).value == 0.375
    assert judged_progress(mixed, rule="readme").value == pytest.approx(0.6)
    assert judged_correctness(mixed, rule="readme").value == pytest.approx(0.8)
    assert judged_progress(ProgressRatings(1, 1, judge="m")).value == 0
    nothing = ProgressRatings(math.nan, math.nan, judge="m")
    assert isinstance(judged_progress(nothing), Unscored) and isinstance(judged_correctness(nothing), Unscored)
    marked = judged_progress(replace(best, canary="a control question was answered yes, which is wrong"))
    assert isinstance(marked, Unscored) and marked.kind == "untrusted"
    assert isinstance(judged_progress(replace(best, canary=PASSED)), Score)
    with pytest.raises(InvalidEvidence, match="between 1 and 5"):
        judged_progress(ProgressRatings(6, 1, judge="m"))
    with pytest.raises(UsageError, match="rule"):
        judged_progress(best, rule="mine")


def test_the_trigger_gate():
    posed = TriggerAnswer(1, 0.6, "object", judge="m")
    assert memory_test_posed(posed).state == "open"
    assert memory_test_posed(posed, confidence=0.8).state == "unsure"
    assert memory_test_posed(replace(posed, triggered=0)).state == "closed"
    assert memory_test_posed(replace(posed, triggered=-1, confidence=math.nan)).state == "unsure"
    assert isinstance(memory_test_posed(replace(posed, canary="tripped")), Unscored)


# --- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("url: http://h/v1\nmodel: m\napi_key: abc", "key_env: NAME"),
        ("url: http://user:pw@h/v1\nmodel: m", "must not contain a key"),
        ("url: http://h/v1?key=abc\nmodel: m", "must not contain a key"),
        ("url: ftp://h\nmodel: m", "must look like http"),
        ("url: http://h/v1", "model: field required"),
        ("url: http://h/v1\nmodel: m\ncolour: 1", "colour: extra inputs"),
        ("url: http://h/v1\nmodel: m\nconcurrency: 0", "concurrency"),
        ("url: http://h/v1\nmodel: m\nbudget: {euros: 3}", "budget.euros"),
        ("kind: telepathy\nurl: x", "no judge called 'telepathy'"),
        ("- a\n- b", "names and values"),
        ("a: [", "not YAML"),
    ],
)
def test_a_judge_file_that_cannot_be_used_says_why(tmp_path, text, says):
    (tmp_path / "judge.yaml").write_text(text)
    with pytest.raises(UsageError, match=says) as error:
        judge_from_source(str(tmp_path / "judge.yaml"))
    assert "abc" not in str(error.value) and "pw" not in str(error.value)


def test_a_judge_from_the_environment(monkeypatch):
    monkeypatch.delenv("REVISIT_JUDGE_MODEL", raising=False)
    with pytest.raises(UsageError, match="REVISIT_JUDGE_MODEL"):
        judge_from_source("http://127.0.0.1:8000/v1")
    monkeypatch.setenv("REVISIT_JUDGE_MODEL", "qwen")
    monkeypatch.setenv("REVISIT_JUDGE_KEY", "sk-1")
    chosen = judge_from_source("http://127.0.0.1:8000/v1")
    assert chosen.judge.facts["model"] == "qwen" and "sk-1" not in repr(vars(chosen.judge))
    with pytest.raises(UsageError, match="no such file"):
        judge_from_source("judge.yaml")
