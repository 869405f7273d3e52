"""Any OpenAI-compatible server: chat completions with images (vLLM, llama.cpp, SGLang, hosted services).

What a server does not offer is found out once and left out from then on: log-probabilities, structured output,
`seed`, the name of the token limit. A yes-or-no question is asked for one plain word, so that the probability of
that word can be read, while the server gives probabilities; everything else is sent as JSON Schema where the server
takes one. A reply that did not end by itself is no answer. The frames come before the question, so that a server with
a prefix cache encodes them once per clip.
"""

from __future__ import annotations

import base64
import json
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from revisit import http_client
from revisit.core import UsageError
from revisit.judges.asking import CUT_OFF, Frames, NoReply, Refused, Reply, Stopped, Usage
from revisit.judges.budget import words_of
from revisit.judges.pictures import as_video
from revisit.judges.probability import p_yes
from revisit.judges.questions import Many, Question, Record, YesNo
from revisit.judges.wording import RULES, after, before, fingerprint

LARGEST_REPLY = 4 << 20  # bytes
ALTERNATIVES = 20  # log-probabilities asked for at each token
# What may be left out, and the words by which a server's complaint names it.
OPTIONAL = {
    "logprobs": ("logprobs",),
    "response_format": ("response_format", "json_schema", "structured", "schema"),
    "max_tokens": ("max_tokens", "max_completion_tokens"),
    "seed": ("seed",),
    "temperature": ("temperature",),
}


class ChatSettings(BaseModel):
    """What a judge file says of a server."""

    model_config = ConfigDict(extra="forbid")

    url: str  # up to and with /v1
    model: str
    server: str = ""  # a name for who answers, where its url may change; the url otherwise
    key_env: str = ""
    key_file: Path | None = None
    timeout: float = Field(default=120.0, gt=0)  # seconds for one call, from the first byte sent to the last received
    structured: bool = True
    logprobs: bool = True
    max_tokens: int | None = Field(default=None, gt=0)  # of a reply; by the question's schema if not given
    video: bool = False  # frames are sent as one mp4 (video_url), for servers that take videos
    parameters: dict[str, Any] = Field(default_factory=lambda: {"temperature": 0, "seed": 0})


class ChatJudge:
    """A model behind an HTTP endpoint."""

    batch = 1

    def __init__(self, settings: ChatSettings) -> None:
        try:
            parts = urlsplit(settings.url)
            sound = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:  # brackets around what is no address, or a port that is no number
            sound = False
        if not sound:
            told = settings.url.rpartition("@")[2][:200]  # not what may be a password
            raise UsageError(f"the url of a judge must look like http://127.0.0.1:8000/v1, not {told!r}")
        if parts.username or parts.password or parts.query:
            raise UsageError(
                "the url of a judge must not contain a key or password; use key_env (a variable) or key_file (a file)"
            )
        self.settings, self.url = settings, settings.url.rstrip("/")
        self.facts: Mapping[str, Any] = {
            "judge": "openai",
            "model": settings.model,
            # Two servers may serve different weights, or cut them down differently, under one name.
            "server": settings.server or self.url,
            "parameters": settings.parameters,
            "max_tokens": settings.max_tokens,
            "structured": settings.structured,
            "logprobs": settings.logprobs,
            "wording": fingerprint(),
            **({"video": True} if settings.video else {}),
        }
        self._secret = Secret("")
        self._left_out: set[str] = set()
        self._lock = threading.Lock()
        self._client: Any = None

    def check(self) -> None:
        """Raise Stopped where the server cannot be reached, refuses the key, or does not have the model."""
        known = self.models()
        if known and self.settings.model not in known:
            raise Stopped(f"{self.url} has no model {self.settings.model!r}; it has {', '.join(known[:10])}")

    def models(self) -> list[str]:
        """Names of the models that the server lists; none where it has no list."""
        try:
            status, body, _ = self._send("GET", "/models", None)
        except NoReply as error:
            raise Stopped(f"{self.url} cannot be asked: {error}; is the server running?") from None
        if status in (401, 403):
            raise Stopped(self._refusal(status, body))
        try:
            listed = json.loads(body)["data"] if status == 200 else []
            return [str(model["id"]) for model in listed]
        except (ValueError, KeyError, TypeError):
            return []

    def reply(self, frames: Frames, questions: Sequence[Question], notes: Sequence[str]) -> list[Reply]:
        """The reply to one question."""
        return [self._ask(frames, question, note) for question, note in zip(questions, notes, strict=True)]

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def _ask(self, frames: Frames, question: Question, note: str) -> Reply:
        while True:
            asked = self.body(frames, question, note)
            status, body, headers = self._send("POST", "/chat/completions", asked)
            if status == 200:
                return self._read(question, body)
            if http_client.is_busy(status):
                if status == 429 and b"insufficient_quota" in body:
                    raise Stopped(self._refusal(status, body))
                raise NoReply(self._refusal(status, body), http_client.retry_after(headers.get("retry-after", "")))
            if status in (401, 402, 403, 404) or status < 400:
                raise Stopped(self._refusal(status, body))
            if not self._leave_out(body, asked):
                raise Refused(self._refusal(status, body))

    def body(self, frames: Frames, question: Question, note: str = "") -> dict[str, Any]:
        """What is sent: rules, frames, then the question."""
        images: list[dict[str, Any]] = [
            {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"}}
            for jpeg in frames.jpegs
        ]
        if self.settings.video and len(images) > 1:
            film = base64.b64encode(as_video(frames.jpegs)).decode()
            images = [{"type": "video_url", "video_url": {"url": f"data:video/mp4;base64,{film}"}}]
        shown = [{"type": "text", "text": before(frames.times)}, *images] if images else []
        content = [*shown, {"type": "text", "text": after(question, note)}]
        settings = self.settings
        body: dict[str, Any] = {
            "model": settings.model,
            "messages": [{"role": "system", "content": RULES}, {"role": "user", "content": content}],
            **{name: value for name, value in settings.parameters.items() if value is not None},
        }
        # A reply that was cut off is asked for again with more room.
        most = (settings.max_tokens or 16 + 3 * words_of(question.schema)) * (4 if note else 1)
        body["max_completion_tokens" if "max_tokens" in self._left_out else "max_tokens"] = most
        plain = isinstance(question.schema, YesNo) and settings.logprobs and "logprobs" not in self._left_out
        if plain:
            body |= {"logprobs": True, "top_logprobs": ALTERNATIVES}
        if not plain and settings.structured and "response_format" not in self._left_out:
            schema = {"name": "answer", "strict": True, "schema": _object_schema(question)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return {name: value for name, value in body.items() if name not in self._left_out - {"max_tokens"}}

    def _read(self, question: Question, body: bytes) -> Reply:
        """The reply in a server's answer; NoReply where it is not one."""
        try:
            content = json.loads(body)
            choice = min(content["choices"], key=lambda choice: choice.get("index") or 0)
            message = choice["message"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise NoReply("the server's reply is not a chat completion") from None
        text = message.get("content") if isinstance(message, dict) else None
        text = self._secret.redact(text if isinstance(text, str) else "")
        probability, how = None, ""
        if isinstance(question.schema, YesNo):
            logprobs = choice.get("logprobs")
            probability, how = p_yes(text, logprobs if isinstance(logprobs, dict) else None)
        model = self._secret.redact(str(content.get("model", "")))
        fault = self._secret.redact(_fault(choice.get("finish_reason"), message))
        return Reply(text, probability, how, _usage(content.get("usage")), model, fault)

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None) -> tuple[int, bytes, Mapping[str, str]]:
        """Status, body and headers of one call, received whole and within the time-out."""
        within = self.settings.timeout
        try:
            client, url = self._connection(), self.url + path
            begun = time.monotonic()  # the first call also loads the library
            with http_client.answering(client, method, url, within=within, json=body) as response:
                return (
                    response.status_code,
                    http_client.received(response, LARGEST_REPLY, within, begun),
                    response.headers,
                )
        except http_client.Unavailable as error:
            raise NoReply(self._secret.redact(error.said[:200])) from None
        except RuntimeError:  # the client was closed under way
            raise NoReply("asking was interrupted") from None

    def _connection(self) -> Any:
        """The client, made when first needed: a plan needs no key."""
        with self._lock:
            if self._client is None:
                self._secret = find_secret(self.settings.key_env, self.settings.key_file)
                key = self._secret.reveal()
                # No redirects: the key goes to the server that was named and to no other.
                self._client = http_client.connect(
                    {"Authorization": f"Bearer {key}"} if key else {}, self.settings.timeout
                )
            return self._client

    def _leave_out(self, body: bytes, asked: Mapping[str, Any]) -> bool:
        """Whether a server's complaint names something that can be left out, which it then is from now on."""
        complaint = body.decode("utf-8", "replace").lower()
        for name, words in OPTIONAL.items():
            if name in asked and any(word in complaint for word in words):
                self._left_out |= {name, "top_logprobs"} if name == "logprobs" else {name}
                return True
        return False

    def _refusal(self, status: int, body: bytes) -> str:
        text = body.decode("utf-8", "replace")
        try:
            error = json.loads(text)["error"]
            text = str(error["message"] if isinstance(error, dict) else error)
        except (ValueError, KeyError, TypeError, RecursionError):
            pass
        said = " ".join(self._secret.redact(text).split())[:200]
        where = self.settings.key_env or self.settings.key_file
        hint = f"; the key is read from {where or 'nowhere: set key_env or key_file'}" if status in (401, 403) else ""
        hint = "; is the url right, including /v1?" if status == 404 else hint
        return f"the server answered {status}{': ' + said if said else ''}{hint}"


def _object_schema(question: Question) -> dict[str, Any]:
    """The schema of a reply, which servers want to be an object."""
    schema = question.schema.json()
    if isinstance(question.schema, Record):
        return schema
    name = "items" if isinstance(question.schema, Many) else "answer"
    return {"type": "object", "properties": {name: schema}, "required": [name], "additionalProperties": False}


def _fault(finish: Any, message: Any) -> str:
    """Why a reply is no answer, whatever it says; "" where nothing stopped or replaced it."""
    if finish == "length":
        return CUT_OFF
    if finish == "content_filter":
        return "the server's filter stopped the reply"
    refusal = message.get("refusal") if isinstance(message, dict) else None
    return f"the judge refused: {' '.join(refusal.split())[:200]}" if isinstance(refusal, str) and refusal else ""


def _usage(counted: Any) -> Usage:
    found = counted if isinstance(counted, dict) else {}
    tokens = [found.get(name) for name in ("prompt_tokens", "completion_tokens")]
    tokens_in, tokens_out = (value if isinstance(value, int) and value >= 0 else 0 for value in tokens)
    return Usage(1, tokens_in, tokens_out)


SHOWN = "[key]"


@dataclass(frozen=True, repr=False)
class Secret:
    """A key that shows itself to nobody but `reveal`."""

    _value: str

    def __repr__(self) -> str:
        return SHOWN

    __str__ = __repr__

    def reveal(self) -> str:
        return self._value

    def redact(self, text: str) -> str:
        """The text without the key, which a server may have echoed."""
        return text.replace(self._value, SHOWN) if self._value else text


def find_secret(variable: str = "", file: Path | None = None) -> Secret:
    """The key from an environment variable or a file; an empty one where neither is named."""
    if variable and file is not None:
        raise UsageError("give either key_env or key_file for the judge's key, not both")
    if file is not None:
        try:
            value = file.expanduser().read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{file}: the judge's key cannot be read ({type(error).__name__})") from None
    else:
        value = os.environ.get(variable, "").strip() if variable else ""
        if variable and not value:
            raise UsageError(f"the judge's key is read from ${variable}, which is not set: export {variable}=...")
    if any(character.isspace() or not character.isprintable() or ord(character) > 126 for character in value):
        raise UsageError(
            "the judge's key contains spaces or special characters; a key is one word of plain ASCII characters"
        )
    return Secret(value)
