"""The HTTP client against servers on this machine: time-outs, retries, redirects, proxies, certificates."""

from __future__ import annotations

import gc
import shutil
import ssl
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from revisit import http_client
from tests.registry import Server

BODY = bytes(range(256)) * 1000


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", *http_client.CERTIFICATES):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setattr(http_client, "WAIT", 0.01)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@contextmanager
def serving(answer: object, tls: Path | None = None) -> Iterator[str]:
    """The address of a server that answers every GET with a function of its handler."""
    handler = type("Handler", (BaseHTTPRequestHandler,), {"do_GET": answer, "log_message": lambda *_: None})
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls)
        httpd.socket = context.wrap_socket(httpd.socket, server_side=True)
    threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{httpd.server_address[1]}"
    finally:
        httpd.shutdown()
        httpd.server_close()


def hello(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("Content-Length", "5")
    request.end_headers()
    request.wfile.write(b"hello")


def trickle(request: BaseHTTPRequestHandler) -> None:
    """A byte now and then: never silent, never done."""
    request.send_response(200)
    request.send_header("Content-Length", "10000")
    request.end_headers()
    try:
        for _ in range(200):
            request.wfile.write(b"x")
            request.wfile.flush()
            time.sleep(0.05)
    except OSError:
        pass


def test_a_page_has_to_be_whole_in_time_even_where_the_server_is_never_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "PAGE", 0.3)
    monkeypatch.setattr(http_client, "TRIES", 1)
    with serving(trickle) as url, pytest.raises(http_client.Unavailable, match=r"no whole answer within 0\.3 s"):
        http_client.read_page(url)


def test_what_was_sent_leaves_the_memory_with_the_answer() -> None:
    """Pictures for a judge are megabytes, and in a circle of references they would wait for the garbage collector."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "2")
        handler.end_headers()
        handler.wfile.write(b"ok")

    gc.disable()
    try:
        with serving(answer) as url, http_client.make_http_client() as client:
            with http_client.open_response(client, "GET", url, headers={"x": "y"}) as response:
                sent = weakref.ref(response.request)
                assert http_client.read_body(response, 10, 5, time.monotonic()) == b"ok"
            del response
            assert sent() is None
    finally:
        gc.enable()


def test_a_silent_server_is_a_sentence(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "TIMEOUT", 0.2)
    monkeypatch.setattr(http_client, "TRIES", 2)
    server.moods["/a?token=secret"] = ["slow", "slow"]
    with pytest.raises(http_client.Unavailable, match=r"^http://127\.0\.0\.1:\d+/a: no answer for 0\.2 s$"):
        http_client.read_page(f"{server.url}/a?token=secret")


def test_a_server_that_asks_to_wait_is_given_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def busy(request: BaseHTTPRequestHandler) -> None:
        asked.append(time.monotonic())
        if len(asked) > 1:
            return hello(request)
        request.send_response(429)
        request.send_header("Retry-After", "1")
        request.send_header("Content-Length", "0")
        request.end_headers()

    with serving(busy) as url:
        assert http_client.read_page(url)[0] == b"hello"
    assert len(asked) == 2 and asked[1] - asked[0] >= 1


def test_a_download_goes_on_where_it_broke_byte_for_byte(server: Server, tmp_path: Path) -> None:
    server.pages["/file"] = BODY
    server.moods["/file"] = ["broken", "busy", "broken"]
    seen: list[int] = []
    http_client.download(f"{server.url}/file", tmp_path / "file", progress=lambda what, done, total: seen.append(done))
    assert (tmp_path / "file").read_bytes() == BODY and seen[-1] == len(BODY) and seen == sorted(seen)
    assert server.header("/file", "range") == f"bytes={len(BODY) * 3 // 4}-"
    assert server.header("/file", "accept-encoding") == "identity"


def test_a_download_that_is_longer_than_its_source_begins_anew(server: Server, tmp_path: Path) -> None:
    server.pages["/file"] = b"short"
    (tmp_path / "file").write_bytes(b"something longer")
    http_client.download(f"{server.url}/file", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"short"


def test_files_of_this_machine_have_addresses_too(tmp_path: Path) -> None:
    (tmp_path / "a b").write_bytes(BODY)
    http_client.download((tmp_path / "a b").as_uri(), tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == BODY == http_client.read_page((tmp_path / "a b").as_uri())[0]
    with pytest.raises(http_client.Unavailable, match="there is no such file"):
        http_client.read_page((tmp_path / "none").as_uri())
    with pytest.raises(http_client.Unavailable, match="begins with https, http or file"):
        http_client.read_page("ftp://example.org/x")


def test_no_secret_follows_a_redirect_to_another_host(server: Server) -> None:
    other = Server()
    try:
        other.pages["/b"] = b"there"
        server.redirects["/a"] = f"{other.url}/b"
        server.redirects["/here"] = "/c"
        server.pages["/c"] = b"here"
        secret = server.url.replace("//", "//me:hidden%21@")
        assert http_client.read_page(f"{secret}/a") == (b"there", f"{other.url}/b")
        assert server.header("/a", "authorization") and other.header("/b", "authorization") is None
        assert http_client.read_page(f"{secret}/here")[0] == b"here"
        assert server.header("/c", "authorization") == server.header("/a", "authorization")
        server.redirects["/loop"] = "/loop"
        with pytest.raises(http_client.Unavailable, match="redirects more than 10 times"):
            http_client.read_page(f"{server.url}/loop")
    finally:
        other.close()


def test_proxies_of_the_environment_are_asked(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    server.pages["http://nowhere.invalid/page"] = b"through the proxy"
    assert http_client.read_page("http://nowhere.invalid/page")[0] == b"through the proxy"
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server.pages["/straight"] = b"straight"
    assert http_client.read_page(f"{server.url}/straight")[0] == b"straight"
    monkeypatch.setenv("http_proxy", "socks9://127.0.0.1:1")
    with pytest.raises(http_client.Unavailable, match="the proxy that the environment names cannot be used"):
        http_client.read_page("http://nowhere.invalid/page")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_certificates_are_checked_and_those_of_the_environment_count(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "made.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", tmp_path / "key.pem", "-out", made],
        check=True, capture_output=True,
    )  # fmt: skip
    both = tmp_path / "both.pem"
    both.write_bytes((tmp_path / "key.pem").read_bytes() + made.read_bytes())

    def elsewhere(request: BaseHTTPRequestHandler) -> None:
        if request.path == "/plain":
            request.send_response(302)
            request.send_header("Location", f"{server.url}/x")
            request.end_headers()
        else:
            hello(request)

    with serving(elsewhere, both) as url:
        with pytest.raises(http_client.Unavailable, match="CERTIFICATE_VERIFY_FAILED"):
            http_client.read_page(url)
        monkeypatch.setenv("PIP_CERT", str(made))
        assert http_client.read_page(url)[0] == b"hello"
        with pytest.raises(http_client.Unavailable, match=r"it redirects from https to http://"):
            http_client.read_page(f"{url}/plain")
    assert not server.asked


def test_what_goes_wrong_for_good_is_not_tried_again(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def no(seconds: float) -> None:
        raise AssertionError("waited")

    monkeypatch.setattr(time, "sleep", no)
    with pytest.raises(http_client.Unavailable, match="the server answers 404 Not Found") as error:
        http_client.read_page(f"{server.url}/none")
    assert error.value.status == 404
    server.close()
    with pytest.raises(http_client.Unavailable, match="refused"):
        http_client.read_page(f"{server.url}/none")


def test_httpx_is_loaded_when_something_is_fetched_and_not_before() -> None:
    code = (
        "import sys, revisit, revisit.cli.main; from revisit.core import METRICS; list(METRICS); "
        "assert 'httpx' not in sys.modules, 'httpx'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
