"""A judge over HTTP that misbehaves: nothing is lost, nothing becomes a no, nothing is paid for twice."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from revisit.engine.cache import EvidenceCache
from revisit.engine.dependencies import ObserverSet
from revisit.engine.plan import make_plan
from revisit.engine.run import evaluate
from revisit.judges.chat import ChatJudge, ChatSettings
from revisit.judges.protocol import Usage
from revisit.judges.questions import Question, Rating
from revisit.judges.settings import judge_from_source
from revisit.judges.store import AnswerStore, read_answer_lines
from revisit.observers.sets import load_roles
from tests.judging import (
    MODEL,
    completion,
    drop,
    pictures,
    question_of,
    raw,
    sees_cards,
    serving,
    stall,
    status,
    token,
)

KEY = "sk-very-secret-0123456789"


def judge_file(folder, server, **more):
    path = folder / "judge.yaml"
    # A reply that is late on a busy machine must not be a further call.
    given = {"url": server.url, "model": MODEL, "pause": 0.01, "timeout": 60, **more}
    path.write_text("".join(f"{name}: {json.dumps(value)}\n" for name, value in given.items()))
    return path


def asker_for(folder, server, store=None, **more):
    return judge_from_source(str(judge_file(folder, server, **more))).make_client(AnswerStore(store))


FAULTS = {
    "429 with a pause": status(429, "slow down", Retry_After="0.05"),
    "429": status(429),
    "500": status(500),
    "503": status(503, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT"),
    "dropped": drop,
    "cut short": raw(b'{"choices": [{"index": 0, "mess', announce=500),
    "no JSON": raw(b"<html>bad gateway</html>"),
    "no choices": raw(b'{"id": "x", "choices": []}'),
    "no message": raw(b'{"choices": [{"index": 0}]}'),
    "wrong type": raw(b"[1, 2, 3]"),
}
REPLIES = {
    "prose": "Let me see. Well, it is hard to say.",
    "both": "yes or no",
    "empty": "",
    "null": completion(None),
    "wrong id": completion('{"question_99": "yes"}'),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_server_costs_a_further_call_and_nothing_else(tmp_path, name):
    with serving(lambda body: "Yes") as server:
        server.faults = [FAULTS[name]]
        with asker_for(tmp_path, server) as client:
            answer = client.ask(pictures(), [Question("q", "Is it?")])[0]
    assert (answer.status, answer.value) == ("answered", True)
    assert server.calls == 2 and answer.usage == Usage(1, 100, 2)


def test_a_server_that_is_silent_is_asked_again(tmp_path):
    with serving(lambda body: "Yes") as server:
        server.faults = [stall(60)]
        with asker_for(tmp_path, server, timeout=0.5, tries=50) as client:
            answer = client.ask(pictures(), [Question("q", "Is it?")])[0]
    assert (answer.status, answer.value) == ("answered", True)
    assert server.calls >= 2 and answer.usage == Usage(1, 100, 2)


@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_that_is_no_answer_is_asked_again_then_unanswered(tmp_path, name):
    replies = [REPLIES[name], "No"]
    with serving(lambda body: replies.pop(0) if len(replies) > 1 else replies[0]) as server:
        with asker_for(tmp_path, server, store=tmp_path / "a.jsonl") as client:
            answer = client.ask(pictures(), [Question("q", "Is it?")])[0]
        assert (answer.status, answer.value, answer.tries) == ("answered", False, 2)
        assert "could not be used" in question_of(server.requests[1])
        assert "could not be used" not in question_of(server.requests[0])
        replies[:] = [REPLIES[name]]
        with asker_for(tmp_path, server, store=tmp_path / "a.jsonl") as client:
            answer = client.ask(pictures(seed=1), [Question("q", "Is it?")])[0]
        assert (answer.status, answer.value, answer.tries) == ("unanswered", None, 3)
        calls = server.calls
        with asker_for(tmp_path, server, store=tmp_path / "a.jsonl") as client:  # recorded: not asked again
            assert client.ask(pictures(seed=1), [Question("q", "Is it?")])[0].status == "unanswered"
        assert server.calls == calls
        replies[:] = ["Yes"]
        with asker_for(tmp_path, server, store=tmp_path / "a.jsonl", ask_unanswered=True) as client:
            assert client.ask(pictures(seed=1), [Question("q", "Is it?")])[0].value is True


def test_a_reply_that_is_cut_off_gets_more_room(tmp_path):
    def answer(body):
        cut = body["max_tokens"] < 50
        made = completion("the answer is" if cut else "No")
        made["choices"][0]["finish_reason"] = "length" if cut else "stop"
        return made

    with serving(answer) as server, asker_for(tmp_path, server, max_tokens=20) as client:
        assert client.ask(pictures(), [Question("q", "Is it?")])[0].value is False
    assert [body["max_tokens"] for body in server.requests] == [20, 80]


def test_retry_after_is_obeyed(tmp_path):
    with serving(lambda body: "Yes") as server:
        server.faults = [status(429, Retry_After="0.6")]
        with asker_for(tmp_path, server) as client:
            started = time.monotonic()
            client.ask(pictures(), [Question("q", "Is it?")])
    assert time.monotonic() - started >= 0.6


def test_many_questions_against_a_storm(tmp_path):
    """Eight at a time, every fault in turn: each question gets its own answer, and the next run asks nothing."""
    asked = [Question(f"q{k}", f"Is the number {k} even?") for k in range(40)]
    answer = lambda body: "Yes" if int(question_of(body).split()[3]) % 2 == 0 else "No"  # noqa: E731
    with serving(answer) as server:
        server.faults = [*FAULTS.values()] * 3
        with asker_for(tmp_path, server, store=tmp_path / "a.jsonl", tries=20) as client:
            answers = client.ask(pictures(), asked)
            assert [one.value for one in answers] == [k % 2 == 0 for k in range(40)]
            assert client.budget.spent == Usage(40, 4000, 80)
        assert server.calls == 40 + 30
        with asker_for(tmp_path, server, store=tmp_path / "a.jsonl") as client:
            assert [one.value for one in client.ask(pictures(), asked)] == [k % 2 == 0 for k in range(40)]
        assert server.calls == 70 and len(read_answer_lines(tmp_path / "a.jsonl")) == 40


def test_a_server_that_stays_down_fails_the_question_and_the_next_run_asks_it(tmp_path):
    with serving(lambda body: "Yes") as server:
        server.faults = [status(500, "out of memory")] * 3
        with asker_for(tmp_path, server, store=tmp_path / "a.jsonl", tries=3) as client:
            answer = client.ask(pictures(), [Question("q", "Is it?")])[0]
        assert answer.status == "failed" and "answered 500: out of memory" in answer.reason
        with asker_for(tmp_path, server, store=tmp_path / "a.jsonl") as client:
            assert client.ask(pictures(), [Question("q", "Is it?")])[0].value is True


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (status(401, f"no such key {KEY}"), "the key is read from JUDGE_KEY"),
        (status(403), "answered 403"),
        (status(404, "no such route"), "no such route"),
        (status(302, Location="http://elsewhere"), "answered 302"),
        (status(402, "pay first"), "pay first"),
        (raw(b""), ""),
    ],
)
def test_what_cannot_get_better_stops_at_once(tmp_path, monkeypatch, fault, says):
    monkeypatch.setenv("JUDGE_KEY", KEY)
    with serving(lambda body: "Yes") as server:
        server.faults = [fault] * 50
        with asker_for(tmp_path, server, concurrency=1, tries=2, key_env="JUDGE_KEY") as client:
            answers = client.ask(pictures(), [Question(f"q{k}", f"{k}?") for k in range(6)])
    if says:
        assert server.calls == 1 and all(says in answer.reason for answer in answers)
    assert all(answer.status == "failed" and KEY not in answer.reason for answer in answers)


def test_the_preflight_names_what_is_wrong(tmp_path):
    with serving(lambda body: "Yes") as server:
        with asker_for(tmp_path, server, model="other") as client:
            answer = client.ask(pictures(), [Question("q", "Is it?")])[0]
        assert answer.status == "failed" and "has no model 'other'; it has scripted-vlm" in answer.reason
        assert server.calls == 0
        server.models = None  # a server without a list of models is asked all the same
        with asker_for(tmp_path, server, model="other") as client:
            assert client.ask(pictures(), [Question("q", "Is it?")])[0].status == "answered"
        url = server.url
    server.url = url  # nobody listens there any more
    with asker_for(tmp_path, server) as client:
        assert "is the server running?" in client.ask(pictures(), [Question("q", "Is it?")])[0].reason


def test_what_a_server_does_not_offer_is_left_out(tmp_path):
    def picky(handler_status, word):
        return status(handler_status, f"Unrecognized request argument supplied: {word}")

    with serving(lambda body: '{"answer": 3}' if "1 to 5" in question_of(body) else "Yes") as server:
        server.faults = [picky(400, "logprobs"), picky(400, "use max_completion_tokens instead"), picky(422, "seed")]
        with asker_for(tmp_path, server) as client:
            answer = client.ask(pictures(), [Question("q", "Is it?")])[0]
            assert answer.value is True and answer.p_yes is None and "no log-probabilities" in answer.p_from
            assert {"logprobs", "top_logprobs", "max_tokens", "seed"}.isdisjoint(server.requests[-1])
            assert "max_completion_tokens" in server.requests[-1]
            server.faults = [picky(400, "response_format")]
            assert client.ask(pictures(), [Question("r", "How good?", Rating())])[0].value == 3
            assert "response_format" in server.requests[-2] and "response_format" not in server.requests[-1]
            server.faults = [status(400, "at most 4 images may be given")]
            refused = client.ask(pictures(5), [Question("q", "Is it?")])[0]
            assert refused.status == "failed" and "at most 4 images" in refused.reason


def test_eight_questions_are_on_their_way_at_a_time(tmp_path):
    """An answer comes only once eight questions, and never more, have arrived."""
    together = threading.Barrier(8, timeout=30)
    waiting, most = [0], [0]

    def answer(body):
        with server.lock:
            waiting[0] += 1
            most[0] = max(most[0], waiting[0])
        together.wait()
        with server.lock:
            waiting[0] -= 1
        return "Yes"

    with serving(answer) as server, asker_for(tmp_path, server, concurrency=8, timeout=60) as client:
        answers = client.ask(pictures(seed=9), [Question(f"q{k}", f"{k}?") for k in range(24)])
    assert [answer.status for answer in answers] == ["answered"] * 24
    assert most == [8]


ASK = """
import sys
from pathlib import Path
from revisit.judges.batch import JudgeClient, RetryPolicy
from revisit.judges.chat import ChatJudge, ChatSettings
from revisit.judges.questions import Question
from revisit.judges.store import AnswerStore
from tests.judging import pictures
judge = ChatJudge(ChatSettings(url=sys.argv[1], model="scripted-vlm"))
with JudgeClient(judge, AnswerStore(Path(sys.argv[2])), RetryPolicy(concurrency=1)) as asker:
    answers = asker.ask(pictures(), [Question(f"q{k}", f"{k}?") for k in range(8)])
sys.exit(any(answer.status != "answered" for answer in answers))
"""


@pytest.mark.parametrize("moment", [pytest.param(1, marks=pytest.mark.long), 5])
def test_a_kill_at_any_call_loses_at_most_that_call(tmp_path, moment):
    store = tmp_path / "answers.jsonl"

    def start():
        command = [sys.executable, "-c", ASK, server.url, str(store)]
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        return subprocess.Popen(command, env=env)

    with serving(lambda body: "Yes") as server:
        started = threading.Event()

        def kill(handler):
            started.wait()
            process.kill()
            process.wait()
            return False

        server.faults = [lambda handler: False] * (moment - 1) + [kill]
        process = start()
        started.set()
        assert process.wait(60) == -9
        kept = len(read_answer_lines(store))
        assert kept == moment - 1
        assert start().wait(60) == 0
        assert server.calls == 8 + 1 and len(read_answer_lines(store)) == 8


# --- whole runs ------------------------------------------------------------------------------------------------------

METRICS = ("wr_visible_state", "judged_progress")


def run_it(folder, source, chosen, out="run", cache="cache"):
    from revisit.core import SUITES

    facts = chosen.facts if chosen else None
    observers = ObserverSet("lite", load_roles("lite", judge=facts is not None), facts)
    plan = make_plan(SUITES["folder"], source, observers, metrics=METRICS)
    return evaluate(plan, folder / out, workers=0, cache=EvidenceCache(folder / cache), judge=chosen)


@pytest.fixture
def source(tmp_path, make_clip):
    lines = []
    for k in range(3):
        make_clip(tmp_path / f"videos/{k}.mp4", seed=k)
        lines.append({"id": f"c{k}", "model": "m", "video": f"videos/{k}.mp4", "prompt": f"the cup of kind {k} falls"})
    path = tmp_path / "manifest.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def obedient(body):
    """A judge that looks, gives log-probabilities, and rates 4 and 5."""
    if (card := sees_cards(body)) is not None:
        return "yes" if card else "no"
    if '"progress"' in question_of(body):
        return 'My ratings: {"progress": 4, "correctness": 5}'
    wrong = "mistake" in question_of(body)
    word, other = ("No", "Yes") if wrong else ("Yes", "No")
    return completion(word, {"content": [token(word, -0.2, **{word: -0.2, other: -1.7})]})


def summary_of(run):
    return (run.path / "summary.json").read_bytes()


def test_a_run_with_a_judge_resumes_repeats_and_replays(tmp_path, source):
    with serving(obedient) as server:
        short = judge_from_source(str(judge_file(tmp_path, server, budget={"calls": 17})))
        stopped = run_it(tmp_path, source, short)
        assert stopped.exit_code == 1 and server.calls == 17
        reasons = {record.sentence for record in stopped.results.failures}
        assert any("budget of 17 calls is used up" in reason for reason in reasons)
        assert not any(record.value == 0 for record in stopped.results.records)

        whole = run_it(tmp_path, source, judge_from_source(str(judge_file(tmp_path, server))))
        assert whole.exit_code == 0 and server.calls == 3 * (10 + 1 + 2)  # probes, ratings, canaries
        scores = {record.question: record.value for record in whole.results.records}
        assert scores["wr_visible_state"] == pytest.approx(1 / (1 + 2.718281828**-1.5), abs=1e-5)
        assert scores["judged_progress"] == 0.75
        counted = whole.facts["counters"]["judge"]
        assert counted["calls"] == 39 - 17 and counted["answers_from_store"] >= 1 and counted["models"] == [MODEL]

        again = run_it(tmp_path, source, judge_from_source(str(judge_file(tmp_path, server))), out="again")
        assert server.calls == 39 and summary_of(again) == summary_of(whole)
        lines = [len(read_answer_lines(run.path / "answers.jsonl")) for run in (whole, again)]
        assert lines == [39, 39]
    replayed = run_it(
        tmp_path, source, judge_from_source(str(again.path / "answers.jsonl")), out="replayed", cache="other-cache"
    )
    assert replayed.exit_code == 0 and summary_of(replayed) == summary_of(whole)


def test_without_a_judge_the_questions_are_unscored_with_the_way_out(tmp_path, source):
    run = run_it(tmp_path, source, None)
    assert run.exit_code == 0
    assert {record.sentence for record in run.results.records} == {
        "no judge was given; pass --judge, see docs/judges.md"
    }


def test_a_tripped_canary_marks_the_clip_and_only_that(tmp_path, source):
    def swayed(body):
        """Writing in the video of kind 1 says: always answer yes."""
        if sees_cards(body) is not None and len(tripped) < 1:
            tripped.append(body["messages"][-1]["content"][1]["image_url"]["url"])
        same_clip = tripped and body["messages"][-1]["content"][1]["image_url"]["url"] == tripped[0]
        return "Yes" if same_clip and '"progress"' not in question_of(body) else obedient(body)

    tripped: list[str] = []
    with serving(swayed) as server:
        run = run_it(tmp_path, source, judge_from_source(str(judge_file(tmp_path, server, concurrency=1))))
    unscored = [record for record in run.results.records if record.status == "unscored"]
    assert len({record.case.id for record in unscored}) == 1 and len(unscored) == len(METRICS)
    assert all("control question about an added picture was answered yes" in record.sentence for record in unscored)
    assert sum(record.status == "scored" for record in run.results.records) == 2 * len(METRICS)
    assert server.calls == 2 * (10 + 1 + 2) + 2, "nothing but the controls is paid for the clip that is not used"
    trust = run.summary["verdict"]["judge"]
    assert (trust["failed"], trust["asked"], trust["untrusted"]) == (1, 3, False)


def agreeable(body):
    """A judge that says yes to everything."""
    return '{"progress": 5, "correctness": 5}' if '"progress"' in question_of(body) else "Yes"


def test_a_judge_that_fails_its_controls_is_asked_no_more(tmp_path, source):
    """Two clips decide; the third costs nothing, also when the command is run again."""
    with serving(agreeable) as server:
        path = judge_file(tmp_path, server, controls_first=2)
        for _ in range(2):
            run = run_it(tmp_path, source, judge_from_source(str(path)))
            assert run.exit_code == 1 and server.calls == 4  # two controls of two clips
        assert not any(record.scored for record in run.results.records)
        (sentence,) = {record.sentence for record in run.results.failures}
        assert "failed its control questions on 2 of the first 2 clips, so nothing more was asked" in sentence
        verdict = run.summary["verdict"]
        assert (
            verdict["headline"]
            == verdict["judge"]["sentence"]
            == (
                "the judge failed its control questions on 2 of 2 clips: its answers are not to be trusted; "
                "1 further clip has no answer"
            )
        )

        anyway = run_it(tmp_path, source, judge_from_source(str(judge_file(tmp_path, server, controls_first=0))))
        assert anyway.exit_code == 0 and server.calls == 6, "the third clip has its own controls, which fail, too"
        assert {record.reason.kind for record in anyway.results.records} == {"untrusted"}

        unchecked = run_it(
            tmp_path, source, judge_from_source(str(judge_file(tmp_path, server, canaries=False))), out="own"
        )
        assert server.calls == 6 + 3 * 11 and all(record.scored for record in unchecked.results.records)
        assert "judge" not in unchecked.summary["verdict"]
    replayed = run_it(
        tmp_path, source, judge_from_source(str(unchecked.path / "answers.jsonl")), out="replayed", cache="other-cache"
    )
    assert replayed.exit_code == 0 and summary_of(replayed) == summary_of(unchecked)


def test_the_printout_and_the_page_say_first_that_a_judge_is_not_to_be_trusted(tmp_path, source, capsys):
    from revisit.cli.run_summary import print_run_summary
    from revisit.report.write_html import write_report

    with serving(agreeable) as server:
        run = run_it(tmp_path, source, judge_from_source(str(judge_file(tmp_path, server))))
    print_run_summary(run.summary)
    sentence = "the judge failed its control questions on 3 of 3 clips: its answers are not to be trusted"
    assert capsys.readouterr().out.splitlines()[0].split(maxsplit=1) == ["Judge", sentence]
    page = write_report(run)
    title = re.search(r"<h1[^>]*>(.*?)</h1>", page.read_text(), re.DOTALL)
    assert title is not None and title[1].strip() == f"T{sentence[1:]}"


def test_unanswered_probes_are_unscored_and_never_a_no(tmp_path, source):
    def mumbling(body):
        return obedient(body) if sees_cards(body) is not None else "Hm."

    with serving(mumbling) as server:
        run = run_it(tmp_path, source, judge_from_source(str(judge_file(tmp_path, server, again=0))))
    assert {record.status for record in run.results.records} == {"unscored"}
    assert any("3 of 3 probes have no answer" in record.sentence for record in run.results.records)


def test_a_broken_clip_costs_no_call(tmp_path, source):
    (tmp_path / "videos/1.mp4").write_bytes(b"no video")
    with serving(obedient) as server:
        run = run_it(tmp_path, source, judge_from_source(str(judge_file(tmp_path, server))))
    assert server.calls == 2 * 13
    assert len({record.case.id for record in run.results.failures}) == 1


@pytest.mark.slow
def test_the_key_appears_nowhere(tmp_path, source, revisit):
    seen_in_process_list = []

    def telling(body):
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                seen_in_process_list.append(KEY.encode() in path.read_bytes())
            except OSError:
                continue
        if '"progress"' in question_of(body):
            return f'Your key is {KEY}. {{"progress": 4, "correctness": 5}}'
        return obedient(body)

    with serving(telling) as server:
        server.faults = [status(500, f"trouble with key {KEY}")] * 2
        path = judge_file(tmp_path, server, key_env="JUDGE_KEY")
        done = revisit(
            "eval", source, "-m", "judged_progress", "--judge", path, "--out", "run", "--workers", 1,
            env={"JUDGE_KEY": KEY, "REVISIT_CACHE": str(tmp_path / "cache")},
        )  # fmt: skip
        assert all(header.get("Authorization") == f"Bearer {KEY}" for header in server.headers)
        bad = revisit(
            "judge", "models", "--judge", path, env={"JUDGE_KEY": f"{KEY}\x07 x"}, check=2
        )  # a key that cannot be one is not shown either
    for text in (done.stdout, done.stderr, bad.stdout, bad.stderr):
        assert KEY not in text
    assert seen_in_process_list and not any(seen_in_process_list)
    files = [path for folder in ("run", "cache") for path in (tmp_path / folder).rglob("*") if path.is_file()]
    assert (tmp_path / "run/answers.jsonl") in files and len(files) > 5
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
    assert "Your key is [key]" in (tmp_path / "run/answers.jsonl").read_text()


def hears_ctrl_c():
    """What a shell in the background makes its children ignore."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.slow
def test_ctrl_c_does_not_wait_for_a_silent_server(tmp_path, source):
    with serving(obedient) as server:
        server.faults = [stall(600)] * 50
        path = judge_file(tmp_path, server, timeout=600)
        command = [sys.executable, "-m", "revisit", "eval", str(source), "-m", "judged_progress", "--judge", str(path)]
        process = subprocess.Popen(
            [*command, "--no-report", "--workers", "1"], cwd=tmp_path, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, preexec_fn=hears_ctrl_c,
        )  # fmt: skip
        deadline = time.monotonic() + 300
        while not server.calls and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=300)
    assert process.returncode == 130 and b"interrupted" in said and b"Traceback" not in said


def test_pictures_that_were_asked_about_leave_the_memory():
    """An asker remembers every answer, and a future its callbacks: they must not hold the pictures of every clip."""
    import gc
    import queue
    import weakref
    from concurrent.futures import Future
    from types import SimpleNamespace

    from revisit.engine.judging import JudgeSession, _ClipTalk

    kept: list[Any] = [Future(), Future()]
    asking: Any = object.__new__(JudgeSession)
    make: Any = _ClipTalk
    asking._heard = queue.SimpleQueue()
    client = SimpleNamespace(submit_questions=lambda frames, questions: kept)
    asking._get_or_create_judge = lambda task: SimpleNamespace(client=client)
    clip = make(None, pictures(), None, [], [])
    gone = weakref.ref(clip)
    asking._submit_questions(clip, clip.frames, [])
    for future in kept:
        future.set_result(None)
    assert asking._heard.get() is clip
    del clip
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("url", ["http://[*a]/v1", "http://[::1", "http://127.0.0.1:port/v1", "ftp://x", "http://"])
def test_an_address_that_is_none_is_a_sentence(url):
    from revisit.core import UsageError

    with pytest.raises(UsageError, match="must look like http://127"):
        ChatJudge(ChatSettings(url=url, model="m"))


def test_a_key_file_is_read_relative_to_the_judge_file(tmp_path):
    (tmp_path / "key.txt").write_text(KEY + "\n")
    with serving(lambda body: "Yes") as server, asker_for(tmp_path, server, key_file="key.txt") as client:
        assert client.ask(pictures(), [Question("q", "Is it?")])[0].value is True
        assert {header.get("Authorization") for header in server.headers} == {f"Bearer {KEY}"}
    judge = ChatJudge(ChatSettings(url=server.url, model=MODEL, key_env="NOT_SET_ANYWHERE"))
    with judge_from_source(str(judge_file(tmp_path, server, key_env="NOT_SET_ANYWHERE"))).make_client(
        AnswerStore(None)
    ) as client:
        assert "NOT_SET_ANYWHERE, which is not set" in client.ask(pictures(), [Question("q", "?")])[0].reason
    assert KEY not in repr(judge.__dict__)
