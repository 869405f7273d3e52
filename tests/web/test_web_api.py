"""The addresses of `revisit view` and `annotate`, asked with whatever schemathesis thinks of, over real HTTP."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from revisit.core import UsageError
from revisit.labels.app import RaterPages
from revisit.labels.store import Store
from revisit.report.live_server import make_live_application
from revisit.web import server
from revisit.web.server import Rates
from tests.browsing import serving
from tests.labelling import Person, project, tiny_run
from tests.run_directories import make_scenes
from tests.web.test_web_player import numbered

pytest.importorskip("starlette", reason="needs starlette (pip install 'revisit-bench[annotate]')")

# What may be answered, besides what every address may (`ALWAYS`): no sense, not for you, not there, too much.
VIEW = {
    ("/", "GET"): (200, 307),
    ("/diff", "GET"): (200, 404, 409),
    ("/{run}/", "GET"): (200,),
    ("/{run}/state", "GET"): (200,),
    ("/{run}/scenes/{key}.js", "GET"): (200,),
    ("/{run}/frames/{name}/{frame}.jpg", "GET"): (200,),
    ("/{run}/media/{name}", "GET"): (200, 206, 416),
    ("/{run}/files/{name}", "GET"): (200,),
}
ANNOTATE = {
    ("/", "GET"): (200,),
    ("/r/{token}", "GET"): (303,),
    ("/work", "GET"): (200, 303),
    ("/guide", "GET"): (200,),
    ("/item/{id}", "GET"): (200,),
    ("/item/{id}", "POST"): (303, 422),
    ("/right/{id}", "GET"): (200,),
    ("/draft/{id}", "POST"): (204,),
    ("/undo", "POST"): (303,),
    ("/media/{name}", "GET"): (200, 206, 416),
    ("/static/{name}", "GET"): (200, 206, 416),
    ("/admin/enter/{token}", "GET"): (303,),
    ("/admin", "GET"): (200,),
    ("/admin/raters", "POST"): (200, 422),
    ("/admin/raters/{id}/{what}", "POST"): (200, 303),
    ("/admin/labels.zip", "GET"): (200,),
}
FIELDS = ("names", "comment", "boxes", "seconds", "frame.gone", "frame.back", "q.target", "q.trigger", "q.camera")
ALWAYS = (400, 403, 404, 405, 413, 429)


def described(ways: dict[tuple[str, str], tuple[int, ...]], known: dict[str, Sequence[str]]) -> dict[str, Any]:
    """The addresses as OpenAPI says it; half of the names in them are `known` ones, so that more than a 404 comes."""
    paths: dict[str, Any] = {}
    for (path, method), codes in ways.items():
        names = [part.partition("}")[0] for part in path.split("{")[1:]]
        text = {"type": "string", "minLength": 1}
        asked: list[dict[str, Any]] = [
            {"name": name, "in": "path", "required": True,
             "schema": {"anyOf": [{"enum": list(known[name])}, text]} if name in known else text}
            for name in names
        ]  # fmt: skip
        asked.append({"name": "task", "in": "query", "schema": {"type": "string"}})
        asked.append({"name": "Range", "in": "header", "schema": {"type": "string", "pattern": "^bytes=[0-9,-]*$"}})
        way: dict[str, Any] = {"parameters": asked, "responses": {str(code): {"description": "."} for code in codes}}
        way["responses"] |= {str(code): {"description": "refused"} for code in ALWAYS}
        if method == "POST":
            fields = {"type": "object", "properties": {name: {"type": "string"} for name in FIELDS}}
            way["requestBody"] = {"content": {"application/x-www-form-urlencoded": {"schema": fields}}}
        paths.setdefault(path, {})[method.lower()] = way
    return {"openapi": "3.0.3", "info": {"title": "Revisit", "version": "1"}, "paths": paths}


def routes(app: Any) -> set[tuple[str, str]]:
    return {(route.path, method) for route in app.routes for method in route.methods - {"HEAD"}}


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Any]:
    """A labelling project and a run, both served."""
    folder = tmp_path_factory.mktemp("api")
    made = project(folder / "project", tiny_run(folder, samples=("cup",)), tasks=("trigger", "marks"), raters=2)
    store = Store(made.default_store)
    pages = RaterPages(made, store, "0123456789abcdef0123")
    pages.asking = pages.guessing = Rates(1e9, 10**9)
    labels = pages.make_application()
    numbered(folder / "seen" / "clip.mp4", 25, 24)
    run = make_scenes(folder / "seen", ["a"], ["one"], video=folder / "seen" / "clip.mp4")
    view = make_live_application([run], folder / "copies")
    with serving(labels) as at_labels, serving(view) as at_view:
        ann = Person(at_labels, f"/r/{store.add_rater('ann')[1]}")
        ann.client.get("/admin/enter/0123456789abcdef0123")
        yield SimpleNamespace(project=made, store=store, pages=pages, labels=labels, view=view, at_labels=at_labels,
                              at_view=at_view, ann=ann)  # fmt: skip


def ask(description: dict[str, Any], address: str, examples: int, **sent: Any) -> int:
    """Everything schemathesis thinks of; how many requests it took."""
    schemathesis = pytest.importorskip(
        "schemathesis", reason="needs schemathesis (pip install 'revisit-bench[release]')"
    )
    from hypothesis import HealthCheck, given, settings

    asked = 0
    csrf = sent.pop("csrf", "")
    schema = schemathesis.openapi.from_dict(description)
    for found in schema.get_all_operations():
        operation = found.ok()

        @settings(max_examples=examples, deadline=None, database=None, derandomize=True,
                  suppress_health_check=list(HealthCheck))  # fmt: skip
        @given(case=operation.as_strategy())
        def one(case: Any) -> None:
            nonlocal asked
            asked += 1
            if isinstance(case.body, dict):
                case.body = {**case.body, "csrf": csrf}
            answer = case.call(base_url=address, allow_redirects=False, **sent)
            assert answer.status_code < 500, answer.text[:300]
            case.validate_response(answer)
            headers = {name.lower() for name in answer.headers}
            assert "content-security-policy" in headers and "x-content-type-options" in headers

        one()
    return asked


@pytest.fixture(autouse=True)
def denormals():
    """Hypothesis refuses to draw numbers where an earlier test of this process had torch flush the smallest ones."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_flush_denormal(False)


def test_the_description_is_that_of_the_real_addresses(site):
    assert routes(site.view) == set(VIEW) and routes(site.labels) == set(ANNOTATE)


@pytest.mark.long
def test_no_request_breaks_the_viewer(site):
    run = next(iter(site.ann.client.get(site.at_view + "/").headers["location"].strip("/").split("/")))
    known = {"run": [run], "name": ["summary.json", "records.jsonl"], "key": ["one"], "frame": ["0", "000001"]}
    assert ask(described(VIEW, known), site.at_view, 25) > 7 * 10


@pytest.mark.long
def test_no_request_breaks_the_labelling(site):
    items = [item.id for item in site.project.items]
    known = {"id": items, "name": [*site.project.files, "player.js"], "what": ["renew", "close"]}
    cookies = dict(site.ann.client.cookies)
    token = next(value for name, value in cookies.items() if name.startswith("rater_"))
    origin = {"origin": site.at_labels}
    csrf = site.pages._form_signature(token)
    asked = ask(described(ANNOTATE, known), site.at_labels, 15, cookies=cookies, headers=origin, csrf=csrf)
    assert asked > 16 * 8


# What no description says


def raw(address: str, sent: bytes) -> bytes:
    """The answer to bytes that are sent as they are."""
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as wire:
        wire.sendall(sent)
        answer = b""
        while more := wire.recv(65536):
            answer += more
        return answer


def head(site: Any, path: str, *more: str) -> bytes:
    host = site.at_labels.removeprefix("http://")
    cookies = "; ".join(f"{name}={value}" for name, value in site.ann.client.cookies.items())
    lines = [f"POST {path} HTTP/1.1", f"Host: {host}", f"Cookie: {cookies}", f"Origin: {site.at_labels}", *more]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode()


def test_numbers_that_are_too_long_and_addresses_that_are_none_are_refused(site):
    item, fields, _ = site.ann.next("marks")
    digits = "9" * 5000
    hidden = {**fields, "q.target": "hidden, returned"}
    assert site.ann.post(f"/item/{item}", {**hidden, "frame.gone": digits, "frame.back": "9"}).status_code == 422
    for boxes in ("[" * 50_000, '[{"box": [0, 0, 1, 1], "frame": 1e999}]', f'[{{"box": [{digits}, 0, 1, 1]}}]'):
        assert site.ann.post(f"/item/{item}", {**hidden, "boxes": boxes}).status_code == 422
    for origin in ("http://[", "http://[::1", "//", "x" * 9000):
        assert site.ann.post("/undo", fields, origin=origin).status_code == 403
    assert site.ann.client.get(f"{site.at_view}/1-run/frames/aa/{digits}.jpg").status_code == 404
    assert raw(site.at_labels, head(site, "/undo", f"Content-Length: {digits}")).split()[1] in (b"400", b"413")


def test_many_ranges_are_not_answered_one_by_one(site):
    name, path = next(iter(site.project.files.items()))
    size = path.stat().st_size
    for asked in ("bytes=" + ",".join(["0-"] * 5000), "bytes=" + ",".join(f"{k}-{k}" for k in range(0, 9000, 2))):
        answer = site.ann.client.get(f"/media/{name}", headers={"range": asked})
        assert answer.status_code == 200 and len(answer.content) == size
    for asked in ("bytes=5-2", "bytes=-", f"bytes={'9' * 5000}-", "bytes=a-b", "lines=1-2", "bytes=1-2-3"):
        answer = site.ann.client.get(f"/media/{name}", headers={"range": asked})
        assert answer.status_code in (200, 206, 400, 416) and len(answer.content) <= size, asked


def test_half_a_form_is_none():
    """A rater's browser went away while it sent an answer: the first half of it is no answer."""
    told: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        told.append((await receive())["body"].decode())

    async def sent(*messages: Any) -> None:
        coming = list(messages)

        async def receive() -> Any:
            return coming.pop(0)

        async def send(message: Any) -> None:
            pass

        headers = [(b"host", b"localhost"), (b"origin", b"http://localhost")]
        scope = {"type": "http", "method": "POST", "path": "/", "headers": headers}
        await server.Guard(app, frozenset({"localhost"}))(scope, receive, send)

    first = {"type": "http.request", "body": b"q.trigger=yes&comm", "more_body": True}
    asyncio.run(sent(first, {"type": "http.disconnect"}))
    assert not told
    asyncio.run(sent(first, {"type": "http.request", "body": b"ent=late", "more_body": False}))
    assert told == ["q.trigger=yes&comment=late"]


def test_slow_clients_keep_nobody_waiting_and_are_given_up(site, monkeypatch):
    monkeypatch.setattr(server, "SLOWEST_BODY", 0.5)
    host, port = site.at_labels.removeprefix("http://").split(":")
    slow = [socket.create_connection((host, int(port)), timeout=20) for _ in range(40)]
    try:
        for wire in slow[:-1]:
            wire.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        slow[-1].sendall(head(site, "/undo", "Content-Length: 100") + b"csrf=")
        assert site.ann.page("/").status_code == 200, "others are served meanwhile"
        assert slow[-1].recv(100).split()[1] == b"408"
    finally:
        for wire in slow:
            wire.close()


def test_an_address_in_use_is_named_once_with_the_reason():
    with socket.create_server(("127.0.0.1", 0)) as other:
        where = server.ListenAddress("127.0.0.1", other.getsockname()[1])
        with pytest.raises(UsageError) as refused:
            server.serve_until_interrupted(SimpleNamespace(), where)
    assert str(refused.value).count("127.0.0.1") == 1 and "Address already in use; choose" in str(refused.value)
