"""A full disk, a database that stops, and guessed cookies: a sentence, nothing lost, nothing half written."""

from __future__ import annotations

import os
import resource
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs starlette (pip install 'revisit-bench[annotate]')")

from revisit.labels.app import RaterPages
from revisit.labels.project import Project
from revisit.labels.store import RaterAnswer, Store
from tests.browsing import chromium, serving, until
from tests.labelling import Person, PostgresServer, project, questions_in, tiny_run

ADMIN = "0123456789abcdef0123"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = tmp_path_factory.mktemp("faults")
    run = tiny_run(folder, samples=("cup", "dog"))
    return project(folder / "project", run, tasks=("pairwise",), raters=2)


@contextmanager
def full_disk(folder: Path) -> Iterator[None]:
    """No byte more on the file system of a folder."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    with filler.open("ab", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"0")
    try:
        yield
    finally:
        filler.unlink()


@contextmanager
def no_longer_files(folder: Path) -> Iterator[None]:
    """No file of this process may grow beyond what the largest one there has; as a quota would."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    largest = min(path.stat().st_size for path in folder.glob("labels.sqlite*") if path.stat().st_size)
    resource.setrlimit(resource.RLIMIT_FSIZE, (min(largest, 4096), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(params=["full disk", "limited files"])
def small_disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """A folder for the labels, and how its disk becomes full."""
    if request.param == "limited files":
        yield SimpleNamespace(folder=tmp_path, full=no_longer_files)
        return
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("only root may mount a small disk")
    try:
        yield SimpleNamespace(folder=place, full=full_disk)
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


def pair_answers(page: str) -> dict[str, str]:
    return {f"q.{name}": "both" if name == "judgeable" else "left" for name in questions_in(page)}


def told(answer: Any, verb: str = "could not be stored") -> str:
    """The sentence of a 503."""
    assert answer.status_code == 503, (answer.status_code, answer.text[:300])
    assert "Traceback" not in answer.text and verb in answer.text
    return str(answer.text)


def test_a_full_disk_is_told_and_costs_no_answer(made: Project, small_disk: Any) -> None:
    store = Store(str(small_disk.folder / "labels.sqlite"))
    tokens = [store.add_rater(name)[1] for name in ("ann", "ben")]
    with serving(RaterPages(made, store, ADMIN).make_application()) as address:
        ann, ben = (Person(address, f"/r/{token}") for token in tokens)
        first, fields, page = ann.next("pairwise") or ("", {}, "")
        assert ann.post(f"/item/{first}", {**fields, **pair_answers(page)}).status_code == 303
        second, fields, page = ann.next("pairwise") or ("", {}, "")
        entered = {**fields, **pair_answers(page), "comment": "three <words> only " + "x" * 3000}
        with small_disk.full(small_disk.folder):
            refused = ann.post(f"/item/{second}", entered)
            assert "three &lt;words&gt; only" in told(refused)  # the page with all that was entered
            assert refused.text.count("checked") == len(questions_in(page))
            assert "labels" in told(ann.post(f"/draft/{second}", entered))
            told(ann.post("/undo", {"csrf": fields["csrf"]}))
            told(ben.client.get("/work"), "cannot be shown")  # nothing can be held for him
            assert ann.client.get("/").status_code == 200  # reading needs no room
        assert [answer.item for answer in store.all_answers()] == [first]
        assert ann.post(f"/item/{second}", entered).status_code == 303
        assert sorted(answer.item for answer in store.all_answers()) == sorted([first, second])
        assert len(store._query_rows("SELECT * FROM history", ())) == 2
    with sqlite3.connect(small_disk.folder / "labels.sqlite") as file:
        assert file.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as started:
        yield started


@pytest.mark.slow
def test_a_database_that_stops_within_a_request_is_told_and_costs_no_answer(
    made: Project, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(server.address, "faults")
    token = store.add_rater("ann")[1]
    noted = store._note
    with serving(RaterPages(made, store, ADMIN).make_application()) as address:
        ann = Person(address, f"/r/{token}")
        item, fields, page = ann.next("pairwise") or ("", {}, "")
        entered = {**fields, **pair_answers(page)}

        def stopping(*args: Any) -> None:  # after the answer is written, before it is committed
            server.stop()
            noted(*args)

        monkeypatch.setattr(store, "_note", stopping)
        assert "127.0.0.1" not in told(ann.post(f"/item/{item}", entered))  # nothing of the machine
        monkeypatch.setattr(store, "_note", noted)
        told(ann.post(f"/item/{item}", entered))  # still gone
        told(ann.post(f"/draft/{item}", entered))
        told(ann.client.get("/work"), "cannot be shown")
        told(ann.client.get("/"), "cannot be shown")
        told(Person(address).client.get(f"/r/{token}"), "cannot be shown")
        server.start()
        assert store.all_answers() == []  # nothing of the broken transaction
        assert ann.post(f"/item/{item}", entered).status_code == 303
        assert [answer.item for answer in store.all_answers()] == [item]
        assert len(store._query_rows("SELECT * FROM history", ())) == 1


def test_links_that_were_made_before_the_disk_was_full_are_shown(made: Project, tmp_path: Path) -> None:
    store = Store(str(tmp_path / "labels.sqlite"))
    with serving(RaterPages(made, store, ADMIN).make_application()) as address:
        boss = Person(address, f"/admin/enter/{ADMIN}")
        csrf = boss.client.get("/admin").text.partition('name="csrf" value="')[2].partition('"')[0]
        add = store.add_rater

        def adding(name: str) -> Any:
            if name != "cleo":
                return add(name)
            with no_longer_files(tmp_path):
                return add(name)

        store.add_rater = adding  # type: ignore[method-assign]
        answer = boss.post("/admin/raters", {"csrf": csrf, "names": "ann\nben\ncleo\ndora"})
        assert answer.text.count("/r/") == 2 and "could not be stored" in answer.text
        assert [rater.name for rater in store.raters()] == ["ann", "ben"]


def test_a_store_that_fails_within_a_transaction_works_afterwards(tmp_path: Path) -> None:
    from revisit.core import RevisitError

    store = Store(str(tmp_path / "labels.sqlite"))
    rater, _ = store.add_rater("ann")
    store.submit(RaterAnswer("i1", rater.id, {"q": "a"}))
    with no_longer_files(tmp_path), pytest.raises(RevisitError, match=r"labels"):
        store.submit(RaterAnswer("i2", rater.id, {"q": "x" * 100_000}))
    store.submit(RaterAnswer("i3", rater.id, {"q": "c"}))
    assert [answer.item for answer in store.all_answers()] == ["i1", "i3"]


@pytest.mark.slow
def test_the_page_keeps_what_was_entered_and_tells(made: Project, tmp_path: Path) -> None:
    store = Store(str(tmp_path / "labels.sqlite"))
    token = store.add_rater("ann")[1]
    with serving(RaterPages(made, store, ADMIN).make_application()) as address, chromium() as browser:
        tab = browser.new_context(viewport={"width": 1000, "height": 800}).new_page()
        tab.goto(f"{address}/r/{token}")
        tab.goto(f"{address}/work?task=pairwise")
        until(tab, "window.player && player.videos !== undefined && player.videos.every((v) => v.readyState >= 2)")
        place = tab.url
        questions = tab.evaluate("document.querySelectorAll('fieldset[data-question]').length")
        with no_longer_files(tmp_path):
            tab.keyboard.press("1")
            until(tab, "document.getElementById('saved').textContent.includes('could not be stored')")
            for _ in range(questions - 1):
                tab.keyboard.press("1")
            tab.keyboard.press("c")
            tab.keyboard.type("words that cost effort")
            tab.keyboard.press("Escape")
            tab.keyboard.press("Enter")
            until(tab, "document.querySelector('.problem') !== null")
            assert "could not be stored" in tab.inner_text(".problem")
            assert tab.url == place
            assert tab.evaluate("document.querySelectorAll('input:checked').length") == questions
            assert tab.input_value("textarea[name=comment]") == "words that cost effort"
            assert store.all_answers() == []
        tab.keyboard.press("Enter")  # there is room again
        until(tab, f"location.href !== {place!r}")
        (answer,) = store.all_answers()
        assert answer.comment == "words that cost effort"


# Guessing


@pytest.mark.parametrize(
    ("kind", "path"), [("rater", "/"), ("rater", "/work"), ("rater", "/media/x"), ("admin", "/admin")]
)
def test_wrong_cookies_are_limited_as_wrong_links_are(made: Project, tmp_path: Path, kind: str, path: str) -> None:
    store = Store(str(tmp_path / "labels.sqlite"))
    token = store.add_rater("ann")[1]
    with serving(RaterPages(made, store, ADMIN).make_application()) as address:
        stranger, ann, boss = Person(address), Person(address, f"/r/{token}"), Person(address, f"/admin/enter/{ADMIN}")
        codes = []
        for k in range(40):
            answer = stranger.client.get(path, headers={"cookie": f"{kind}_{made.hashed_name}=guess{k}"})
            codes.append(answer.status_code)
        assert codes[0] == 403 and set(codes) == {403, 429} and codes.index(429) <= 14
        assert answer.headers["retry-after"] == "10"
        assert stranger.client.get(f"/r/guess{os.getpid()}").status_code == 429  # one allowance for both
        assert ann.client.get("/").status_code == 200  # who has a good one does not wait
        assert boss.client.get("/admin").status_code == 200
        assert Person(address).client.get("/").status_code == 403  # no cookie is no guess
