"""Who may see and send what: paths, forged forms, other people's links, oversized bodies, SQL, markup, hosts, rates."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from revisit.core import UsageError
from revisit.labels.app import RaterPages
from revisit.labels.label_files import labels_of_project
from revisit.labels.store import Store
from revisit.web.server import LARGEST_BODY, ListenAddress, Rates, is_loopback, require_token_if_public
from tests.browsing import serving
from tests.labelling import FRAMES, Person, project, questions_in, tiny_run

ADMIN = "0123456789abcdef0123"


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Any]:
    """A project that is served, with two raters and whoever runs it."""
    pytest.importorskip("starlette", reason="needs starlette (pip install 'revisit-bench[annotate]')")
    folder = tmp_path_factory.mktemp("site")
    made = project(
        folder / "project", tiny_run(folder, samples=("cup", "dog")), tasks=("pairwise", "trigger", "marks"), raters=2
    )
    store = Store(made.default_store)
    tokens = {name: store.add_rater(name)[1] for name in ("ann", "ben")}
    with serving(RaterPages(made, store, ADMIN).make_application()) as address:
        people = {name: Person(address, f"/r/{token}") for name, token in tokens.items()}
        yield SimpleNamespace(project=made, store=store, address=address, tokens=tokens, folder=folder, **people)


def pair_answers(page: str) -> dict[str, str]:
    return {f"q.{name}": "both" if name == "judgeable" else "left" for name in questions_in(page)}


def test_paths_outside_the_project_cannot_be_reached(site):
    media = next(iter(site.project.files))
    assert site.ann.client.get(f"/media/{media}").status_code == 200
    secret = site.folder / "project/project.json"
    tried = [
        "../project.json", "..%2fproject.json", "%2e%2e/project.json", "....//project.json", str(secret),
        f"%2f{secret}", f"{media}/../../project.json", f"{media}%00.mp4", "labels.sqlite", "file:///etc/passwd", "",
    ]  # fmt: skip
    for path in tried:
        for place in ("media", "static"):
            answer = site.ann.client.get(f"/{place}/{path}")
            assert answer.status_code in (400, 404), (place, path)
            assert "secret" not in answer.text
    with socket.create_connection(site.address.removeprefix("http://").split(":")) as raw:  # no library tidies this up
        raw.sendall(b"GET /static/../../project.py HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        assert b"404" in raw.recv(4096).splitlines()[0]


def test_media_have_ranges_and_neither_names_nor_paths(site):
    name, path = next(iter(site.project.files.items()))
    part = site.ann.client.get(f"/media/{name}", headers={"range": "bytes=10-19"})
    assert part.status_code == 206 and part.content == path.read_bytes()[10:20]
    assert part.headers["content-range"] == f"bytes 10-19/{path.stat().st_size}"
    beyond = site.ann.client.get(f"/media/{name}", headers={"range": "bytes=999999999-"})
    assert beyond.status_code == 416
    told = " ".join(f"{key}: {value}" for key, value in part.headers.items()) + name
    assert path.name not in told and path.stem not in told and str(path.parent) not in told


def test_pages_tell_no_model_and_no_path(site):
    _, _, page = site.ann.next("pairwise")
    for word in ("alpha", "beta", "gamma", str(site.folder), "project.json"):
        assert word not in page
    assert "<b>here</b>" not in page and "&lt;b&gt;here&lt;/b&gt;" in page  # prompts are text


def test_without_a_link_there_is_nothing(site):
    stranger = Person(site.address)
    media = next(iter(site.project.files))
    for path in (
        "/",
        "/work",
        f"/media/{media}",
        "/guide",
        f"/item/{site.project.items[0].id}",
        "/admin",
        "/admin/labels.zip",
    ):
        assert stranger.client.get(path).status_code == 403, path
    assert stranger.client.get("/r/" + "x" * 32).status_code == 404
    assert stranger.client.get("/admin/enter/wrong").status_code == 404
    assert site.ann.client.get("/admin").status_code == 403  # a rater is not who runs the project


def test_forged_forms_are_refused(site):
    item, fields, page = site.ann.next("pairwise")
    good = {**fields, **pair_answers(page)}
    before = len(site.store.all_answers())
    forged = [
        (site.ann, {**good, "csrf": ""}, {}),
        (site.ann, {**good, "csrf": "0" * 64}, {}),
        (site.ann, good, {"origin": "https://evil.example"}),
        (site.ann, good, {"origin": "null"}),
        (site.ann, good, {"origin": site.address.replace("127.0.0.1", "127.0.0.1.evil.example")}),
    ]
    for person, form, headers in forged:
        assert person.post(f"/item/{item}", form, **headers).status_code == 403, headers
    bare = site.ann.client.post(f"/item/{item}", data=good)  # neither Origin nor Referer
    assert bare.status_code == 403
    for method in ("put", "delete", "patch"):
        assert getattr(site.ann.client, method)(f"/item/{item}").status_code == 405
    assert len(site.store.all_answers()) == before
    assert site.ann.post(f"/item/{item}", good).status_code == 303
    assert len(site.store.all_answers()) == before + 1


def test_another_raters_link_and_items_are_not_mine(site):
    item, fields, _ = site.ben.next("trigger")
    good = {**fields, "q.trigger": "yes"}
    assert site.ann.post(f"/item/{item}", good).status_code in (403, 404)  # signed for ben, and held for him
    own = site.ann.next("trigger")
    assert site.ann.client.get(f"/item/{site.project.items[-1].id}").status_code == 404  # never shown to her
    stolen = site.ann.post(f"/item/{own[0]}", {**own[1], "csrf": fields["csrf"], "q.trigger": "no"})
    assert stolen.status_code == 403
    assert site.ben.post(f"/item/{item}", {**good, "comment": "only mine"}).status_code == 303
    for path in ("/", f"/item/{own[0]}", "/work"):
        assert "only mine" not in site.ann.page(path).text
    closed, token = site.store.add_rater("carl")
    site.store.close_rater(closed.id)
    assert Person(site.address).client.get(f"/r/{token}").status_code == 404


def test_oversized_bodies_are_refused(site):
    item, fields, page = site.ann.next("pairwise")
    big = {**fields, **pair_answers(page), "comment": "x" * LARGEST_BODY}
    assert site.ann.post(f"/item/{item}", big).status_code == 413

    def endless() -> Iterator[bytes]:
        for _ in range(64):
            yield b"comment=" + b"x" * 16384 + b"&"

    answer = site.ann.client.post(f"/item/{item}", content=endless(), headers=site.ann.origin)
    assert answer.status_code in (411, 413)
    many = "&".join(f"f{k}=1" for k in range(2000))
    assert site.ann.client.post(f"/item/{item}", content=many, headers=site.ann.origin).status_code == 400
    long = {**fields, **pair_answers(page), "comment": "x" * 5000}
    assert site.ann.post(f"/item/{item}", long).status_code == 422
    assert all(one.item != item for one in site.store.all_answers() if one.rater == "ann")


def test_sql_and_markup_in_comments_are_text(site):
    evil = "'); DROP TABLE answers; -- \"</textarea><script>alert(1)</script><img src=x onerror=alert(2)>{{ 7*7 }}"
    item, fields, page = site.ann.next("pairwise")
    assert site.ann.post(f"/item/{item}", {**fields, **pair_answers(page), "comment": evil}).status_code == 303
    kept = next(one for one in site.store.all_answers() if one.item == item and one.comment)
    assert kept.comment == evil
    undo = site.ann.post("/undo", {"csrf": fields["csrf"]})
    shown = site.ann.client.get(undo.headers["location"])
    assert "<script>alert" not in shown.text and "&lt;script&gt;alert(1)" in shown.text and "49" not in fields
    policy = shown.headers["content-security-policy"]
    assert "script-src 'self'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    boss = Person(site.address, f"/admin/enter/{ADMIN}")
    name = "<svg onload=alert(3)> '; DELETE FROM raters; --"
    csrf = boss.client.get("/admin").text.split('name="csrf" value="')[1].split('"')[0]
    made = boss.post("/admin/raters", {"csrf": csrf, "names": name})
    assert made.status_code == 200 and "<svg" not in made.text and "&lt;svg onload" in made.text
    assert {"ann", "ben"} <= {rater.name for rater in site.store.raters()}
    assert boss.post("/admin/raters", {"csrf": fields["csrf"], "names": "x"}).status_code == 403


def test_answers_that_do_not_fit_are_refused_and_nothing_is_lost(site):
    item, fields, page = site.ben.next("pairwise")
    good = pair_answers(page)
    for change in ({"q.camera": ""}, {"q.camera": "a"}, {"q.camera": "left; drop"}, {"q.judgeable": "maybe"}):
        answer = site.ben.post(f"/item/{item}", {**fields, **good, **change, "comment": "kept while you correct it"})
        assert answer.status_code == 422 and "kept while you correct it" in answer.text
    mark, fields, _ = site.ben.next("marks")
    bad = [
        {"q.target": "hidden, returned", "frame.gone": "9", "frame.back": "9"},
        {"q.target": "hidden, returned", "frame.gone": "3"},
        {"q.target": "never hidden", "frame.gone": "3"},
        {"q.target": "hidden, not returned", "frame.gone": str(FRAMES)},
        {"q.target": "hidden, not returned", "frame.gone": "-1"},
        {"q.target": "never hidden", "boxes": "[[0, 0, 1, 1]]"},
        {"q.target": "never hidden", "boxes": '[{"box": [0.5, 0, 0.2, 1]}]'},
        {"q.target": "never hidden", "boxes": "{"},
        {"q.target": "never hidden", "boxes": "[]"},
    ]
    for change in bad:
        assert site.ben.post(f"/item/{mark}", {**fields, **change}).status_code == 422, change
    odd = site.ben.post(f"/item/{mark}", {**fields, "q.target": "cannot tell", "seconds": "1e99"})
    assert odd.status_code == 303  # a page with a wrong clock loses no answer
    assert next(one.seconds for one in site.store.all_answers() if one.item == mark) == 0


def test_hosts_that_are_not_ours_are_refused(site):
    for host in ("evil.example", "127.0.0.1.evil.example", "", "localhost.evil.example:80", "[::2]"):
        answer = site.ann.client.get("/", headers={"host": host})
        assert answer.status_code in (400, 421), host
    port = site.address.rpartition(":")[2]
    assert Person(site.address).client.get("/", headers={"host": f"localhost:{port}"}).status_code == 403


def test_listening_elsewhere_needs_a_token():
    for host in ("0.0.0.0", "192.168.1.4", "::", "example.org"):
        with pytest.raises(UsageError, match="token"):
            require_token_if_public(ListenAddress(host), "")
        with pytest.raises(UsageError, match="token"):
            require_token_if_public(ListenAddress(host), "short")
    with pytest.raises(UsageError, match="--name"):
        require_token_if_public(ListenAddress("0.0.0.0"), ADMIN)
    assert require_token_if_public(
        ListenAddress("0.0.0.0", names=("labels.example.org",)), ADMIN
    ).allowed_host_names >= {
        "labels.example.org",
        "localhost",
    }
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost"))
    assert not any(is_loopback(host) for host in ("0.0.0.0", "10.0.0.1", "localhost.example.org", ""))


def test_who_asks_too_often_waits(site, monkeypatch):
    rates = Rates(per_second=1, at_once=3)
    assert [rates.take_if_allowed("a") for _ in range(5)] == [True, True, True, False, False]
    assert rates.take_if_allowed("b")
    stranger = Person(site.address)
    codes = [stranger.client.get(f"/r/guess{k}").status_code for k in range(40)]
    assert 429 in codes and codes.index(429) <= 14


def test_the_download_has_every_answer_and_only_for_who_runs_it(site):
    import io
    import json
    import zipfile

    boss = Person(site.address, f"/admin/enter/{ADMIN}")
    content = boss.client.get("/admin/labels.zip")
    with zipfile.ZipFile(io.BytesIO(content.content)) as archive:
        lines = [json.loads(line) for line in archive.read("labels.jsonl").decode().splitlines()]
    assert len(lines) == len(labels_of_project(site.project, site.store)) > 5
    assert {line["rater"] for line in lines} == {"ann", "ben"}
