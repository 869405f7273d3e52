"""Fetching over HTTP: proxies and certificates of the environment, secrets sent to one host only, broken transfers
taken up where they broke."""

from __future__ import annotations

import base64
import hashlib
import http.client
import os
import socket
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from revisit import __version__
from revisit.core import RevisitError

TRIES, WAIT, TIMEOUT = 4, 0.5, 60.0  # attempts; seconds before the second, doubled each time; seconds of silence
PIECE = 1 << 20
LARGEST_PAGE = 64 << 20
CERTIFICATES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")  # SSL_CERT_FILE is known to Python itself
SCHEMES = ("https", "http", "file")
Progress = Callable[[str, int, "int | None"], None]  # (what, bytes so far, bytes in all)


class Unavailable(RevisitError):
    """A source that cannot be had now: no network, no such file, no permission."""

    exit_code = 3

    def __init__(self, said: str, status: int = 0) -> None:
        super().__init__(said)
        self.status = status


def silent(what: str, done: int, total: int | None) -> None:
    """Shows nothing."""


def shown(url: str) -> str:
    """An address without what is secret in it."""
    parts = urllib.parse.urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urllib.parse.urlunsplit((parts.scheme, host, parts.path, "", ""))


def without_secret(url: str) -> tuple[str, dict[str, str]]:
    """The address without user and password, and the header that says them instead."""
    parts = urllib.parse.urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, {}
    said = base64.b64encode(urllib.parse.unquote(user).encode()).decode()
    return urllib.parse.urlunsplit((parts.scheme, host, *parts[2:])), {"Authorization": f"Basic {said}"}


def same_host(a: str, b: str) -> bool:
    """Whether both addresses are of one host, port and scheme."""
    one, other = urllib.parse.urlsplit(a), urllib.parse.urlsplit(b)
    ports = {"https": 443, "http": 80}
    return (one.scheme, one.hostname, one.port or ports.get(one.scheme)) == (
        other.scheme, other.hostname, other.port or ports.get(other.scheme),
    )  # fmt: skip


class Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a redirect, but takes no secret to another host, and does not leave HTTPS."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if urllib.parse.urlsplit(newurl).scheme not in ("https", req.type):
            raise urllib.error.URLError(f"it redirects from {req.type} to {shown(newurl)}")
        made = super().redirect_request(req, fp, code, msg, headers, newurl)
        if made is not None and not same_host(req.full_url, newurl):
            made.headers.pop("Authorization", None)
        return made


@lru_cache(maxsize=4)
def _opener(certificates: tuple[str | None, ...]) -> urllib.request.OpenerDirector:
    context = ssl.create_default_context()
    for path in filter(None, certificates):
        if Path(path).is_dir():
            context.load_verify_locations(capath=path)
        elif Path(path).is_file():
            context.load_verify_locations(cafile=path)
    return urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), Redirects())


def _open(url: str, headers: Mapping[str, str], first: int = 0) -> Any:
    if urllib.parse.urlsplit(url).scheme not in SCHEMES:
        raise Unavailable(f"{shown(url)}: expected an address that begins with https, http or file")
    address, secret = without_secret(url)
    request = urllib.request.Request(address, headers={"User-Agent": f"revisit/{__version__}", **headers, **secret})
    if first:
        request.add_header("Range", f"bytes={first}-")
    opener = _opener(tuple(os.environ.get(name) for name in CERTIFICATES))
    return opener.open(request, timeout=TIMEOUT)


Broken = (OSError, http.client.HTTPException)  # URLError, timeouts and resets are OSErrors


def _refused(url: str, error: Exception) -> Unavailable:
    """The sentence for an answer or a failure."""
    if isinstance(error, urllib.error.HTTPError):
        return Unavailable(f"{shown(url)}: the server answers {error.code} {error.reason}", error.code)
    cause = getattr(error, "reason", None) or error
    if isinstance(cause, (TimeoutError, socket.timeout)):
        cause = f"no answer for {TIMEOUT:g} s"
    return Unavailable(f"{shown(url)}: {' '.join(str(cause).split()) or type(error).__name__}")


def _again(error: Exception) -> bool:
    """Whether another attempt may help."""
    if isinstance(error, urllib.error.HTTPError):
        return error.code in (408, 425, 429) or error.code >= 500
    cause = getattr(error, "reason", error)
    hopeless = (ssl.SSLCertVerificationError, FileNotFoundError, ConnectionRefusedError, socket.gaierror, str)
    return not isinstance(cause, hopeless)


def read(url: str, headers: Mapping[str, str] | None = None) -> tuple[bytes, str]:
    """The bytes of a page and its address after redirects."""
    for attempt in range(TRIES):
        try:
            with _open(url, headers or {}) as answer:
                body = answer.read(LARGEST_PAGE + 1)
                where = answer.geturl()
                announced = answer.headers.get("Content-Length")
            if len(body) > LARGEST_PAGE:
                raise Unavailable(f"{shown(url)}: the page is larger than {LARGEST_PAGE >> 20} MiB")
            if announced and announced.isdigit() and len(body) != int(announced):
                raise ConnectionError(f"the transfer broke after {len(body)} of {announced} bytes")
            return body, where
        except Broken as error:
            if attempt + 1 == TRIES or not _again(error):
                raise _refused(url, error) from error
            time.sleep(WAIT * 2**attempt)
    raise AssertionError


def download(
    url: str,
    to: Path,
    *,
    headers: Mapping[str, str] | None = None,
    most: int | None = None,
    progress: Progress = silent,
    what: str = "",
) -> str:
    """SHA-256 of the file that now lies at `to`; bytes that are there already are the beginning of it."""
    failed: Exception = ConnectionError("nothing came")
    for attempt in range(TRIES):
        if attempt:
            time.sleep(WAIT * 2 ** (attempt - 1))
        try:
            _transfer(url, to, headers or {}, most, progress, what or to.name)
            return sha256(to)
        except Broken as error:
            if _of_the_disk(error):
                raise
            if isinstance(error, urllib.error.HTTPError) and error.code == 416 and to.exists():
                to.unlink()  # what is there is longer than the file: begin anew
            elif not _again(error):
                raise _refused(url, error) from error
            failed = error
    raise _refused(url, failed) from failed


def _of_the_disk(error: Exception) -> bool:
    network = (ConnectionError, TimeoutError, urllib.error.URLError, socket.gaierror, ssl.SSLError)
    return isinstance(error, OSError) and error.errno is not None and not isinstance(error, network)


def _transfer(url: str, to: Path, headers: Mapping[str, str], most: int | None, progress: Progress, what: str) -> None:
    """Append to `to` what is missing of it, or write it anew where the server sends all."""
    here = to.stat().st_size if to.exists() else 0
    with _open(url, headers, here) as answer:
        goes_on = here > 0 and getattr(answer, "status", 200) == 206
        done = here if goes_on else 0
        announced = answer.headers.get("Content-Length")
        total = done + int(announced) if announced and announced.isdigit() else None
        if most is not None and total is not None and total > most:
            raise Unavailable(f"{shown(url)}: it has {total} bytes, expected {most}")
        with to.open("ab" if goes_on else "wb") as file:
            while piece := answer.read(PIECE):
                done += len(piece)
                if most is not None and done > most:
                    raise Unavailable(f"{shown(url)}: it has more than the {most} bytes expected")
                file.write(piece)
                progress(what, done, total)
    if total is not None and done < total:
        raise ConnectionError(f"the transfer broke after {done} of {total} bytes")


def sha256(path: Path) -> str:
    """SHA-256 in hex of the bytes of a file."""
    made = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            made.update(piece)
    return made.hexdigest()
