"""One HTTP client for weights and judges.

Proxies and certificates are those of the environment. A server may be silent for `TIMEOUT` seconds, and a page has to
be there within `PAGE` seconds; what may be temporary is tried again, and a broken download goes on where it broke. A
secret goes to the host it was given for and to no other, and no sentence shows one.
httpx and ssl are imported when the first address is asked: they take longer to load than most commands take to run.
"""

from __future__ import annotations

import base64
import os
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from revisit._version import __version__
from revisit.core import RevisitError

if TYPE_CHECKING:
    import ssl

    import httpx

TRIES, WAIT = 4, 0.5  # attempts; seconds before the second, doubled each time
LONGEST_WAIT = 60.0  # seconds that a server may ask for
CONNECT, TIMEOUT, PAGE = 10.0, 60.0, 300.0  # seconds to connect, of silence, and for a whole page
REDIRECTS = 10
PIECE = 1 << 20
LARGEST_PAGE = 64 << 20
BUSY = {408, 409, 425, 429}  # and all from 500 on: another attempt may help
CERTIFICATES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")  # SSL_CERT_FILE is known to Python itself
Progress = Callable[[str, int, "int | None"], None]  # (what, bytes so far, bytes in all)
T = TypeVar("T")


class Unavailable(RevisitError):
    """What cannot be had now: no network, no such file, no permission. `again`: another attempt may help."""

    exit_code = 3

    def __init__(
        self, sentence: str, status: int = 0, *, url: str = "", again: bool = False, wait: float | None = None
    ):
        super().__init__(f"{url_without_secrets(url)}: {sentence}" if url else sentence)
        self.sentence, self.status, self.again, self.wait = sentence, status, again, wait


def ignore_progress(what: str, done: int, total: int | None) -> None:
    """Shows nothing."""


def url_without_secrets(url: str) -> str:
    """An address without what is secret in it."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def split_credentials_from_url(url: str) -> tuple[str, dict[str, str]]:
    """The address without user and password, and the header that says them instead."""
    parts = urllib.parse.urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, {}
    credentials = base64.b64encode(urllib.parse.unquote(user).encode()).decode()
    return urllib.parse.urlunsplit((parts.scheme, host, *parts[2:])), {"Authorization": f"Basic {credentials}"}


def is_same_origin(a: str, b: str) -> bool:
    """Whether both addresses are of one host, port and scheme."""
    ports = {"https": 443, "http": 80}
    one, other = ((p.scheme, p.hostname, p.port or ports.get(p.scheme)) for p in map(urllib.parse.urlsplit, (a, b)))
    return one == other


def is_worth_retrying(status: int) -> bool:
    """Whether a server that answers with this status may answer better later."""
    return status in BUSY or status >= 500


def parse_retry_after(header: str) -> float | None:
    """Seconds that a server asks us to wait: it gives a number, or a date."""
    try:
        return max(float(header), 0.0)
    except ValueError:
        pass
    try:
        return max(parsedate_to_datetime(header).timestamp() - time.time(), 0.0)
    except (ValueError, TypeError):
        return None


@lru_cache(maxsize=4)
def _ssl_context(certificates: tuple[str | None, ...]) -> ssl.SSLContext:
    """The certificates of the system, of certifi and of the environment."""
    import ssl

    import certifi

    context = ssl.create_default_context()
    for path in (certifi.where(), *filter(None, certificates)):
        if Path(path).is_dir():
            context.load_verify_locations(capath=path)
        elif Path(path).is_file():
            context.load_verify_locations(cafile=path)
    return context


def make_http_client(headers: Mapping[str, str] | None = None, timeout: float | None = None) -> httpx.Client:
    """A client. It follows no redirects by itself: `open_response` does, where it is told to."""
    import httpx

    silence = TIMEOUT if timeout is None else timeout
    try:
        client = httpx.Client(
            verify=_ssl_context(tuple(os.environ.get(name) for name in CERTIFICATES)),
            headers={"User-Agent": f"revisit/{__version__}", **(headers or {})},
            timeout=httpx.Timeout(silence, connect=min(CONNECT, silence)),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
        )
    except (ImportError, ValueError, httpx.InvalidURL) as error:  # a proxy of a kind that httpx does not speak
        raise Unavailable(f"the proxy that the environment names cannot be used: {error}") from error
    from revisit.http_deadline import enforce_deadlines

    enforce_deadlines(client)
    return client


@contextmanager
def open_response(
    client: httpx.Client, method: str, url: str, redirects: int = 0, within: float = PAGE, **request: Any
) -> Iterator[httpx.Response]:
    """A server's answer, begun within so many seconds; its body is still to come. Unavailable where it does not come.

    A redirect takes no secret to another host, and does not leave HTTPS.
    """
    import httpx

    from revisit.http_deadline import limit_reading_time

    response = None
    try:
        outgoing = client.build_request(method, url, **request)
        for _ in range(redirects + 1):
            with limit_reading_time(within):
                response = client.send(outgoing, stream=True)
            if not redirects or response.next_request is None:
                yield response
                return
            response.close()
            onward = response.next_request
            if onward.url.scheme not in ("https", outgoing.url.scheme):
                raise Unavailable(
                    f"it redirects from {outgoing.url.scheme} to {url_without_secrets(str(onward.url))}", url=url
                )
            outgoing = onward
        raise Unavailable(f"it redirects more than {redirects} times", url=url)
    except httpx.ConnectTimeout:
        raise Unavailable(f"it cannot be reached within {client.timeout.connect:g} s", url=url, again=True) from None
    except httpx.TimeoutException:
        raise Unavailable(f"no answer for {client.timeout.read:g} s", url=url, again=True) from None
    except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL) as error:
        # A refused connection, an unknown host and a certificate that does not hold stay as they are.
        lasting = (httpx.ConnectError, httpx.ProxyError, httpx.UnsupportedProtocol, httpx.InvalidURL)
        cause = " ".join(str(error).split()) or type(error).__name__
        broke = "the transfer broke: " if isinstance(error, (httpx.ReadError, httpx.RemoteProtocolError)) else ""
        raise Unavailable(f"{broke}{cause}", url=url, again=not isinstance(error, lasting)) from error
    finally:
        if response is not None:
            response.close()
            # It and its stream refer to each other, and would keep what was sent, pictures and all, for a while.
            response.stream = httpx.ByteStream(b"")


def read_body(response: httpx.Response, max_bytes: int, seconds: float, started: float) -> bytes:
    """The body of an answer, of at most so many bytes and within so many seconds since it was `started`."""
    body = bytearray()
    for piece in response.iter_bytes():
        body += piece
        if len(body) > max_bytes:
            raise Unavailable(f"the answer is larger than {max_bytes >> 20} MiB", url=str(response.url))
        if time.monotonic() - started > seconds:  # a server that sends a byte now and then
            raise Unavailable(f"no whole answer within {seconds:g} s", url=str(response.url), again=True)
    return bytes(body)


def _open_get(client: httpx.Client, url: str, headers: Mapping[str, str]) -> Any:
    if urllib.parse.urlsplit(url).scheme not in ("https", "http"):
        raise Unavailable("expected an address that begins with https, http or file", url=url)
    address, secret = split_credentials_from_url(url)
    return open_response(client, "GET", address, REDIRECTS, headers={**headers, **secret})


def _require_success(response: httpx.Response, url: str) -> None:
    """Raise Unavailable unless the server gives what it was asked for."""
    status = response.status_code
    if not 200 <= status < 300:
        wait = parse_retry_after(response.headers.get("retry-after", ""))
        sentence = f"the server answers {status} {response.reason_phrase}".rstrip()
        raise Unavailable(sentence, status, url=url, again=is_worth_retrying(status), wait=wait)


def _retry_while_unavailable(attempt: Callable[[], T]) -> T:
    """What an attempt returns, after as many of them as it takes."""
    for tried in range(TRIES):
        try:
            return attempt()
        except Unavailable as error:
            if not error.again or tried + 1 == TRIES:
                raise
            time.sleep(max(WAIT * 2**tried, min(error.wait or 0.0, LONGEST_WAIT)))
    raise AssertionError


def path_of_file_url(url: str) -> Path:
    """The path that an address beginning with file: names."""
    from urllib.request import url2pathname

    return Path(url2pathname(urllib.parse.urlsplit(url).path))


def _existing_file_of_url(url: str) -> Path | None:
    """The file on this machine that an address names, if it names one."""
    if urllib.parse.urlsplit(url).scheme != "file":
        return None
    path = path_of_file_url(url)
    if not path.is_file():
        raise Unavailable("there is no such file", url=url)
    return path


def read_page(url: str, headers: Mapping[str, str] | None = None) -> tuple[bytes, str]:
    """The bytes of a page and its address after redirects."""
    if path := _existing_file_of_url(url):
        return path.read_bytes(), url

    def attempt() -> tuple[bytes, str]:
        started = time.monotonic()
        with make_http_client() as client, _open_get(client, url, headers or {}) as response:
            _require_success(response, url)
            return read_body(response, LARGEST_PAGE, PAGE, started), str(response.url)

    return _retry_while_unavailable(attempt)


def download(
    url: str,
    to: Path,
    *,
    headers: Mapping[str, str] | None = None,
    most: int | None = None,
    progress: Progress = ignore_progress,
    what: str = "",
) -> None:
    """Put a file at `to`; bytes that are there already are the beginning of it."""

    def append_pieces(pieces: Iterator[bytes], done: int, total: int | None) -> None:
        if most is not None and total is not None and total > most:
            raise Unavailable(f"it has {total} bytes, expected {most}", url=url)
        with to.open("ab" if done else "wb") as file:
            for piece in pieces:
                done += len(piece)
                if most is not None and done > most:
                    raise Unavailable(f"it has more than the {most} bytes expected", url=url)
                file.write(piece)
                progress(what or to.name, done, total)

    def attempt() -> None:
        start = to.stat().st_size if to.exists() else 0
        # The bytes themselves, not a packed form of them: their number and their place in the file count.
        request_headers = {
            **(headers or {}),
            "Accept-Encoding": "identity",
            **({"Range": f"bytes={start}-"} if start else {}),
        }
        with make_http_client() as client, _open_get(client, url, request_headers) as response:
            if response.status_code == 416 and start:  # what is there is longer than the file: begin anew
                to.unlink()
                raise Unavailable("the file there is shorter than what is here", 416, url=url, again=True)
            _require_success(response, url)
            done = start if response.status_code == 206 else 0
            announced = response.headers.get("content-length", "")
            append_pieces(response.iter_raw(), done, done + int(announced) if announced.isdigit() else None)

    if path := _existing_file_of_url(url):
        with path.open("rb") as file:
            append_pieces(iter(lambda: file.read(PIECE), b""), 0, path.stat().st_size)
    else:
        _retry_while_unavailable(attempt)
