"""An OpenAI-compatible endpoint: its address, its key, and one call at a time.

A call makes one attempt. What goes wrong is one of three: NoReply (try again), Refused (this cannot be asked so), and
Stopped (ask nothing further: a wrong key, a spent budget). A key is read from a variable or a file, goes to the server
that was named and to no other, and is taken out of everything that a server says.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from revisit import http_client
from revisit.core import UsageError
from revisit.core.text import join_names
from revisit.servers.retries import NoReply, Refused, Stopped

LARGEST_REPLY = 4 << 20  # bytes
REDACTED = "[key]"
Kind = TypeVar("Kind", bound="EndpointSettings")


class EndpointSettings(BaseModel):
    """What a settings file says of a server."""

    model_config = ConfigDict(extra="forbid")

    url: str  # up to and with /v1
    model: str
    server: str = ""  # a name for who answers, where its url may change; the url otherwise
    key_env: str = ""
    key_file: Path | None = None
    timeout: float = Field(default=120.0, gt=0)  # seconds for one call, from the first byte sent to the last received

    def with_key_file_in(self: Kind, folder: Path) -> Kind:
        """The same, with the file of the key in the folder where a relative path starts."""
        return self.model_copy(update={"key_file": folder / self.key_file.expanduser()}) if self.key_file else self


@contextmanager
def checked_settings(content: Mapping[Any, object], where: object, page: str) -> Iterator[None]:
    """Settings of a file that hold no key; a wrong one, found in this block, is a sentence that names the page."""
    if any(str(name).lower() in ("key", "api_key", "token", "password", "secret") for name in content):
        raise UsageError(f"{where}: do not write the key here; use `key_env: NAME` or `key_file: path`")
    try:
        yield
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"{where}: {name}: {first['msg'].lower()}; {page} lists all settings") from None


class Endpoint:
    """A server, its key and its connection. `noun` says in sentences what the server is, such as a judge."""

    noun = "server"
    largest = LARGEST_REPLY  # bytes of an answer
    optional: Mapping[str, tuple[str, ...]] = {}  # what may be left out, and the words by which a complaint names it

    def __init__(self, settings: EndpointSettings) -> None:
        try:
            parts = urlsplit(settings.url)
            sound = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:  # brackets around what is no address, or a port that is no number
            sound = False
        if not sound:
            address = settings.url.rpartition("@")[2][:200]  # not what may be a password
            raise UsageError(f"the url of a {self.noun} must look like http://127.0.0.1:8000/v1, not {address!r}")
        if parts.username or parts.password or parts.query:
            raise UsageError(
                f"the url of a {self.noun} must not contain a key or password; use key_env (a variable) or key_file "
                "(a file)"
            )
        self.endpoint, self.url = settings, settings.url.rstrip("/")
        self.secret = SecretStr("")
        self.left_out: set[str] = set()
        self._lock = threading.Lock()
        self._client: Any = None

    def check(self) -> None:
        """Raise Stopped where the server cannot be reached, refuses the key, or does not have the model."""
        names = self.models()
        if names and self.endpoint.model not in names:
            raise Stopped(f"{self.url} has no model {self.endpoint.model!r}; it has {join_names(names, 11)}")

    def models(self) -> list[str]:
        """Names of the models that the server lists; none where it has no list."""
        try:
            status, body, _ = self.send_request("GET", "/models", None)
        except NoReply as error:
            raise Stopped(f"{self.url} cannot be asked: {error}; is the server running?") from None
        if status in (401, 403):
            raise Stopped(self.refusal_text(status, body))
        try:
            listed = json.loads(body)["data"] if status == 200 else []
            return [str(model["id"]) for model in listed]
        except (ValueError, KeyError, TypeError):
            return []

    def close(self) -> None:
        """Let go of connections; calls under way end with NoReply."""
        if self._client is not None:
            self._client.close()

    def post_json(self, path: str, make_body: Callable[[], Mapping[str, object]]) -> bytes:
        """The body of a good answer; the request is sent again without what a server complains of, where it can be."""
        body = make_body()
        status, answer, headers = self.send_request("POST", path, body)
        if status == 200:
            return answer
        if http_client.is_worth_retrying(status):
            if status == 429 and b"insufficient_quota" in answer:
                raise Stopped(self.refusal_text(status, answer))
            wait = http_client.parse_retry_after(headers.get("retry-after", ""))
            raise NoReply(self.refusal_text(status, answer), wait)
        if status in (401, 402, 403, 404) or status < 400:
            raise Stopped(self.refusal_text(status, answer))
        complaint = answer.decode("utf-8", "replace").lower()
        for name, words in self.optional.items():
            if name in body and any(word in complaint for word in words):
                self.left_out |= {name, "top_logprobs"} if name == "logprobs" else {name}
                return self.post_json(path, make_body)
        raise Refused(self.refusal_text(status, answer))

    def send_request(
        self, method: str, path: str, body: Mapping[str, object] | None
    ) -> tuple[int, bytes, Mapping[str, str]]:
        """Status, body and headers of one call, received whole and within the time-out."""
        within = self.endpoint.timeout
        try:
            client, url = self._client_with_key(), self.url + path
            started = time.monotonic()  # the first call also loads the library
            with http_client.open_response(client, method, url, within=within, json=body) as response:
                content = http_client.read_body(response, self.largest, within, started)
                return response.status_code, content, response.headers
        except http_client.Unavailable as error:
            raise NoReply(self.redact(error.sentence[:200])) from None
        except RuntimeError:  # the client was closed under way
            raise NoReply("asking was interrupted") from None

    def refusal_text(self, status: int, body: bytes) -> str:
        """What a server says of a request that it does not take, as a sentence."""
        text = body.decode("utf-8", "replace")
        try:
            error = json.loads(text)["error"]
            text = str(error["message"] if isinstance(error, dict) else error)
        except (ValueError, KeyError, TypeError, RecursionError):
            pass
        message = " ".join(self.redact(text).split())[:200]
        where = self.endpoint.key_env or self.endpoint.key_file
        hint = f"; the key is read from {where or 'nowhere: set key_env or key_file'}" if status in (401, 403) else ""
        hint = "; is the url right, including /v1?" if status == 404 else hint
        return f"the server answered {status}{': ' + message if message else ''}{hint}"

    def _client_with_key(self) -> Any:
        """The client, made when first needed: a plan needs no key."""
        with self._lock:
            if self._client is None:
                self.secret = read_secret(self.noun, self.endpoint.key_env, self.endpoint.key_file)
                key = self.secret.get_secret_value()
                # No redirects: the key goes to the server that was named and to no other.
                headers = {"Authorization": f"Bearer {key}"} if key else {}
                self._client = http_client.make_http_client(headers, self.endpoint.timeout)
            return self._client

    def redact(self, text: str) -> str:
        """The text without the key, which a server may have echoed."""
        key = self.secret.get_secret_value()
        return text.replace(key, REDACTED) if key else text


def read_secret(noun: str, variable: str, file: Path | None) -> SecretStr:
    """The key from an environment variable or a file; an empty one where neither is named."""
    if variable and file is not None:
        raise UsageError(f"give either key_env or key_file for the {noun}'s key, not both")
    if file is not None:
        try:
            value = file.expanduser().read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{file}: the {noun}'s key cannot be read ({type(error).__name__})") from None
    else:
        value = os.environ.get(variable, "").strip() if variable else ""
        if variable and not value:
            raise UsageError(f"the {noun}'s key is read from ${variable}, which is not set: export {variable}=...")
    if any(character.isspace() or not character.isprintable() or ord(character) > 126 for character in value):
        raise UsageError(
            f"the {noun}'s key contains spaces or special characters; a key is one word of plain ASCII characters"
        )
    return SecretStr(value)
