"""The store: nothing lost, nothing doubled, with SQLite and with a real PostgreSQL server; killed, and under load."""

from __future__ import annotations

import signal
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from revisit.core import UsageError
from revisit.labels.label_files import labels_of_project
from revisit.labels.project import open_project
from revisit.labels.queue import ItemQueue
from revisit.labels.store import RaterAnswer, Store
from tests.labelling import Person, PostgresServer, address_in, questions_in, running, tiny_run


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """A PostgreSQL server of our own on a free port."""
    with PostgresServer() as server:
        yield server.address


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path) -> Iterator[Store]:
    if request.param == "sqlite":
        made = Store(str(tmp_path / "labels.sqlite"))
    else:
        made = Store(request.getfixturevalue("postgres"))
        with made._transaction() as run:
            for table in ("raters", "answers", "drafts", "holds", "history"):
                run(f"DELETE FROM {table}", ())
    yield made
    made.close()


def test_one_answer_per_rater_and_item_with_undo_and_history(store):
    ann, token = store.add_rater("  Ann  O'Hara; DROP TABLE raters;-- ")
    assert ann.name == "Ann O'Hara; DROP TABLE raters;--" and store.find_rater_by_token(token) == ann
    assert store.find_rater_by_token(token + "x") is None and store.find_rater_by_token("") is None
    with pytest.raises(UsageError, match="already"):
        store.add_rater(ann.name)
    with pytest.raises(UsageError, match="printable"):
        store.add_rater("\x07")
    first = RaterAnswer("i1", ann.id, {"q": "a"}, comment="100 % ? %s 'x'; \U0001f600", seconds=2.5, swapped=True)
    for answer in (first, first, RaterAnswer("i2", ann.id, {"q": "b"})):
        store.submit(answer)
    found = store.all_answers()
    assert [(one.item, one.answers, one.comment, one.swapped) for one in found] == [
        ("i1", {"q": "a"}, "100 % ? %s 'x'; \U0001f600", True), ("i2", {"q": "b"}, "", False),
    ]  # fmt: skip
    assert store.answer_count_by_item() == {"i1": 1, "i2": 1} and store.answered_item_ids(ann.id) == ["i1", "i2"]
    assert store.undo_last_answer(ann.id) == "i2"
    assert store.read_draft("i2", ann.id)["answers"] == {"q": "b"}
    assert store.answered_item_ids(ann.id) == ["i1"]
    store.save_draft("i1", ann.id, "{}")  # comes after the answer was sent: too late
    assert store.read_draft("i1", ann.id) == {}
    assert len(store._query_rows("SELECT * FROM history", ())) == 4
    assert store.undo_last_answer(ann.id) == "i1" and store.undo_last_answer(ann.id) is None
    new = store.renew_token(ann.id)
    assert store.find_rater_by_token(token) is None and store.find_rater_by_token(new) == ann
    store.close_rater(ann.id)
    assert store.find_rater_by_token(new) is None


def test_so_many_raters_per_item_and_no_more(store):
    raters = [store.add_rater(f"rater {k}")[0] for k in range(6)]

    def choose(answered, busy, held):
        return next((i for i in ("x", "y") if i not in answered and busy.get(i, 0) < 2), None)

    taken = [store.hold_chosen_item(rater.id, choose) for rater in raters]
    assert taken == ["x", "x", "y", "y", None, None]
    store.submit(RaterAnswer("x", raters[0].id, {"q": "a"}))
    assert store.hold_chosen_item(raters[4].id, choose) is None  # answered counts as much as held
    assert store.hold_chosen_item(raters[0].id, choose) is None


def test_threads_that_take_at_once_never_take_too_many(store):
    raters = [store.add_rater(f"rater {k}")[0] for k in range(12)]
    taken: list[str | None] = []

    def choose(answered, busy, held):
        return next((i for i in map(str, range(20)) if i not in answered and busy.get(i, 0) < 2), None)

    def work(rater):
        for _ in range(5):
            item = store.hold_chosen_item(rater, choose)
            if item is not None:
                store.submit(RaterAnswer(item, rater, {"q": "a"}))
                taken.append(item)
        store.close()

    threads = [threading.Thread(target=work, args=(rater.id,)) for rater in raters]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = store.answer_count_by_item()
    assert sum(counts.values()) == len(taken) == 40 and set(counts.values()) == {2}


def test_projects_that_share_a_database_do_not_meet(postgres):
    one, other = Store(postgres, "0123ab"), Store(postgres, "0123cd")
    rater, token = one.add_rater("ann")
    one.submit(RaterAnswer("i1", rater.id, {"q": "a"}))
    assert other.find_rater_by_token(token) is None and not other.raters() and not other.all_answers()
    assert Store(postgres, "0123ab").all_answers()[0].item == "i1"


def test_a_database_that_is_not_there_is_told(tmp_path):
    pytest.importorskip("psycopg")
    with pytest.raises(UsageError, match="cannot be reached"):
        Store("postgresql://nobody@127.0.0.1:1/none?connect_timeout=2")


def answers(page: str) -> dict[str, str]:
    return {f"q.{name}": "both" if name == "judgeable" else "left" for name in questions_in(page)}


def raters_at_work(
    address: str, links: list[str], seconds: float
) -> tuple[list[tuple[str, str]], list[float], list[str]]:
    """Raters who answer as fast as they can: what was acknowledged, how long each submit took, and what went wrong."""
    acknowledged: list[tuple[str, str]] = []
    took: list[float] = []
    wrong: list[str] = []
    end = time.monotonic() + seconds

    def work(link: str) -> None:
        try:
            person = Person(address, link)
            while time.monotonic() < end:
                found = person.next("pairwise")
                if found is None:
                    break
                item, fields, page = found
                begun = time.monotonic()
                answer = person.post(f"/item/{item}", {**fields, **answers(page), "seconds": "0"})
                took.append(time.monotonic() - begun)
                if answer.status_code == 303:
                    acknowledged.append((link, item))
                elif answer.status_code != 429:
                    wrong.append(f"{answer.status_code}: {answer.text[:200]}")
                time.sleep(0.35 if seconds < 60 else 1.0)  # nobody answers faster than once in a second
        except Exception as error:
            wrong.append(repr(error))

    threads = [threading.Thread(target=work, args=(link,)) for link in links]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return acknowledged, took, wrong


@pytest.mark.parametrize(
    ("kind", "seconds"),
    [
        ("sqlite", 2),
        ("postgres", 2),
        pytest.param("sqlite", 120, marks=pytest.mark.long),
        pytest.param("postgres", 120, marks=pytest.mark.long),
    ],
)
@pytest.mark.slow
def test_twenty_raters_at_once(request, tmp_path, kind, seconds):
    models = [f"m{k}" for k in range(4 if seconds < 20 else 8)]
    samples = [f"s{k}" for k in range(2 if seconds < 20 else 4)]
    run = tiny_run(tmp_path, models, samples)
    extra = [] if kind == "sqlite" else ["--store", request.getfixturevalue("postgres")]
    names = [word for k in range(20) for word in ("--rater", f"{kind} {seconds} {k}")]
    raters = ["--raters", "20"]
    where = str(tmp_path / "project")
    with running(str(run), "--out", where, "--port", "0", *raters, *extra, *names) as (process, said):
        assert process.stdout is not None
        links = [process.stdout.readline().strip().rpartition(" ")[2] for _ in range(20)]
        links = [link[link.index("/r/") :] for link in links]
        acknowledged, took, wrong = raters_at_work(address_in(said), links, seconds)
        assert process.poll() is None
    assert not wrong
    assert len(acknowledged) == len(set(acknowledged))
    assert len(acknowledged) >= (10 if seconds < 60 else 400)
    made = open_project(Path(where))
    kept = Store(extra[1] if extra else made.default_store, made.hashed_name)
    mine = {rater.id for rater in kept.raters() if rater.name.startswith(f"{kind} {seconds} ")}
    found = [(one.item, one.rater) for one in kept.all_answers() if one.rater in mine]
    assert len(found) == len(set(found)) == len(acknowledged)  # none lost, none doubled
    labels = [label for label in labels_of_project(made, kept) if label.rater.startswith(f"{kind} {seconds} ")]
    assert len({(label.item, label.rater) for label in labels}) == len(acknowledged)
    percentile = statistics.quantiles(took, n=20)[-1]
    print(f"{kind}, {seconds} s: {len(took)} submits, 95th percentile {1000 * percentile:.0f} ms")  # noqa: T201


@pytest.mark.long
def test_killing_the_server_loses_nothing_acknowledged(tmp_path):
    run = tiny_run(tmp_path, [f"m{k}" for k in range(5)], ["s1", "s2", "s3"])
    where = str(tmp_path / "project")
    acknowledged: list[tuple[str, str]] = []
    with running(str(run), "--out", where, "--port", "0", "--rater", "ann", "--rater", "ben") as (process, said):
        assert process.stdout is not None
        links = [process.stdout.readline().strip().rpartition(" ")[2] for _ in range(2)]
        address = address_in(said)

        def work(link: str) -> None:
            person = Person(address, link[link.index("/r/") :])
            for _ in range(30):
                try:
                    found = person.next("pairwise")
                    if found is None:
                        return
                    item, fields, page = found
                    if person.post(f"/item/{item}", {**fields, **answers(page)}).status_code == 303:
                        acknowledged.append((link, item))
                except Exception:
                    return  # the server is gone

        threads = [threading.Thread(target=work, args=(link,)) for link in links]
        for thread in threads:
            thread.start()
        while len(acknowledged) < 12:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        for thread in threads:
            thread.join()
    made = open_project(Path(where))
    kept = Store(made.default_store)
    found = [(one.item, one.rater) for one in kept.all_answers()]
    assert len(found) == len(set(found)) >= len(acknowledged) >= 12
    by_rater = {rater.name: set(kept.answered_item_ids(rater.id)) for rater in kept.raters()}
    for link, item in acknowledged:
        assert item in by_rater["ann" if link == links[0] else "ben"]
    assert ItemQueue(made, kept).hold_next_item(kept.raters()[0]) is not None  # and it goes on
