"""A small server for pages that hold other people's work: who may ask, how much, and where from.

- It listens on this machine alone unless told otherwise, and then only with a token.
- A request must name a host that is ours (a web page elsewhere may resolve its own name to this machine), and a request
  that changes something must come from a page of ours (its Origin or Referer, where the browser sends one).
- Bodies are limited in size and time, and so is how often somebody may ask.
- Pages may load nothing from elsewhere, run no script but ours, and be framed by nobody.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from revisit.core import UsageError
from revisit.core.optional import import_optional

STATIC = Path(__file__).parent / "static"
LARGEST_BODY = 256 * 1024  # bytes
SLOWEST_BODY = 60.0  # seconds
LOOPBACK = ("localhost", "127.0.0.1", "::1")
SHORTEST_TOKEN = 16
POLICY = (
    "default-src 'none'; img-src 'self' data:; media-src 'self'; style-src 'self'; script-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)

Message = MutableMapping[str, Any]  # of ASGI, whose scope is one too
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


@dataclass(frozen=True)
class ListenAddress:
    """Where a server listens, and under which names it may be asked."""

    host: str = "127.0.0.1"
    port: int = 0  # any free one
    names: tuple[str, ...] = ()  # further names, such as that of a proxy in front of it

    @property
    def allowed_host_names(self) -> frozenset[str]:
        own = () if self.host in ("0.0.0.0", "::") else (self.host,)
        return frozenset(name.lower() for name in (*LOOPBACK, *own, *self.names))


def require_token_if_public(where: ListenAddress, token: str) -> ListenAddress:
    """The place, refused where others could reach it without a token."""
    if is_loopback(where.host):
        return where
    if len(token) < SHORTEST_TOKEN:
        raise UsageError(
            f"{where.host} can be reached from other machines: give a token of at least {SHORTEST_TOKEN} characters "
            "(--token, or REVISIT_TOKEN), or leave --host out to listen on this machine alone"
        )
    if where.host in ("0.0.0.0", "::") and not where.names:
        raise UsageError(
            f"{where.host} means every address of this machine: give with --name the name that people will use"
        )
    return where


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Rates:
    """How often somebody may ask: a bucket that fills up again, one for each name."""

    def __init__(self, per_second: float, at_once: int) -> None:
        self.per_second, self.at_once = per_second, at_once
        self._left: dict[str, tuple[float, float]] = {}

    def take_if_allowed(self, name: str) -> bool:
        now = time.monotonic()
        tokens, since = self._left.get(name, (float(self.at_once), now))
        tokens = min(float(self.at_once), tokens + (now - since) * self.per_second)
        if len(self._left) > 10_000:  # forget who has been quiet: their buckets are full
            self._left = {key: bucket for key, bucket in self._left.items() if now - bucket[1] < 60}
        self._left[name] = (tokens - 1 if tokens >= 1 else tokens, now)
        return tokens >= 1


class Guard:
    """Refuses what no page of ours would ask, before the application sees it."""

    def __init__(self, app: Application, hosts: frozenset[str]) -> None:
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        if scope["type"] != "http":
            return
        headers = {bytes(name).lower(): bytes(value) for name, value in scope["headers"]}
        refusal = self._refusal_status_and_sentence(scope, headers)
        if refusal is not None:
            await _send_refusal(send, *refusal)
            return
        if b"," in headers.get(b"range", b""):  # players ask for one part; thousands would only cost us
            scope["headers"] = [(name, value) for name, value in scope["headers"] if bytes(name).lower() != b"range"]
        body = b""
        if scope["method"] == "POST":
            try:
                body = await asyncio.wait_for(self._read_limited_body(receive), SLOWEST_BODY)
            except (asyncio.TimeoutError, TimeoutError):
                await _send_refusal(send, 408, "The request took too long to arrive.")
                return
            except ConnectionError:
                return  # half a form is none
            if len(body) > LARGEST_BODY:
                await _send_refusal(send, 413, "The request is too large.")
                return
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay_body_once() -> Message:
            return waiting.pop() if waiting else await receive()

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                names = {bytes(name).lower() for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(pair for pair in HEADERS if pair[0] not in names)]
            await send(message)

        await self.app(scope, replay_body_once, send_with_headers)

    async def _read_limited_body(self, receive: Receive) -> bytes:
        """The whole body, before anybody is asked; of one that is too large, a part that shows it."""
        body, more = b"", True
        while more and len(body) <= LARGEST_BODY:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ConnectionError
            body += message.get("body", b"")
            more = message.get("more_body", False)
        return body

    def _refusal_status_and_sentence(self, scope: Message, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
        host = headers.get(b"host", b"").decode("latin-1")
        if (split_url_or_empty(f"//{host}").hostname or "").lower() not in self.hosts:
            return 421, "This server is not known by that name."
        if scope["method"] not in ("GET", "HEAD"):
            if scope["method"] != "POST":
                return 405, "This is not supported."
            origin = headers.get(b"origin") or headers.get(b"referer")
            if origin is None or split_url_or_empty(origin.decode("latin-1")).netloc.lower() != host.lower():
                return 403, "The request does not come from a page of this server."
            length = headers.get(b"content-length", b"0")
            if not length.isdigit() or len(length) > 18 or int(length) > LARGEST_BODY:
                return 413, "The request is too large."
        return None


def split_url_or_empty(address: str) -> SplitResult:
    """The parts of an address; empty ones where it is none."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


async def _send_refusal(send: Send, status: int, sentence: str) -> None:
    body = sentence.encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *HEADERS]})
    await send({"type": "http.response.body", "body": body})


def serve_until_interrupted(
    app: Application, where: ListenAddress, token: str = "", started: Callable[[str], None] = lambda address: None
) -> None:
    """Serve until interrupted; `started` is called with the address once requests are taken."""
    uvicorn = import_optional("uvicorn", "annotate")
    require_token_if_public(where, token)
    listening = _open_listening_socket(where)
    host = f"[{where.host}]" if ":" in where.host else where.host
    config = uvicorn.Config(
        Guard(app, where.allowed_host_names), log_level="warning", access_log=False, server_header=False,
        lifespan="off",
        timeout_keep_alive=30, h11_max_incomplete_event_size=64 * 1024, ws="none",
    )  # fmt: skip
    with listening:
        started(f"http://{host}:{listening.getsockname()[1]}")
        uvicorn.Server(config).run(sockets=[listening])


def _open_listening_socket(where: ListenAddress) -> Any:
    import socket

    # Not `socket.create_server`, which adds the address to the reason.
    try:
        listener = socket.socket(socket.AF_INET6 if ":" in where.host else socket.AF_INET, socket.SOCK_STREAM)
        if listener.family == socket.AF_INET6 and socket.has_dualstack_ipv6():  # `::` is every address, of IPv4 too
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((where.host, where.port))
        listener.listen(256)
        return listener
    except OSError as error:
        raise UsageError(
            f"cannot listen on {where.host}:{where.port}: {error.strerror}; choose another --port"
        ) from None


def static_files(*folders: Path) -> dict[str, Path]:
    """Name -> file of what lies in folders of ours; a later folder's file takes an earlier one's place."""
    return {path.name: path for folder in (STATIC, *folders) for path in sorted(folder.iterdir()) if path.is_file()}
