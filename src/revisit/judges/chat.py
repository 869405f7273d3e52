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
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import Field

from revisit.core.text import read_package_yaml
from revisit.judges.budget import estimate_answer_tokens
from revisit.judges.probability import p_yes_and_source
from revisit.judges.protocol import CUT_OFF, Frames, NoReply, Reply, Usage
from revisit.judges.questions import JsonObject, JsonSchema, Many, Question, YesNo
from revisit.judges.wording import RULES, frames_intro, question_prompt, wording_digest
from revisit.media import encode_mp4
from revisit.servers.endpoint import Endpoint, EndpointSettings

# MemoBench's public script plays clips of more than 100 frames at 24 frames a second, and others at 16.
MANY, FAST, SLOW = 100, 24.0, 16.0
ALTERNATIVES = 20  # log-probabilities asked for at each token
# What may be left out, and the words by which a server's complaint names it.
OPTIONAL = read_package_yaml("revisit.judges", "optional.yaml")


class ChatSettings(EndpointSettings):
    """What a judge file says of a server."""

    structured: bool = True
    logprobs: bool = True
    max_tokens: int | None = Field(default=None, gt=0)  # of a reply; by the question's schema if not given
    video: bool = False  # frames are sent as one mp4 (video_url), for servers that take videos
    parameters: dict[str, Any] = Field(default_factory=lambda: {"temperature": 0, "seed": 0})


class ChatJudge(Endpoint):
    """A model behind an HTTP endpoint."""

    noun = "judge"
    batch = 1
    optional = OPTIONAL

    def __init__(self, settings: ChatSettings) -> None:
        super().__init__(settings)
        self.settings = settings
        self.facts: Mapping[str, object] = {
            "judge": "openai",
            "model": settings.model,
            # Two servers may serve different weights, or cut them down differently, under one name.
            "server": settings.server or self.url,
            **{name: getattr(settings, name) for name in ("parameters", "max_tokens", "structured", "logprobs")},
            "wording": wording_digest(),
            **({"video": True} if settings.video else {}),
        }

    def reply(self, frames: Frames, questions: Sequence[Question], notes: Sequence[str]) -> list[Reply]:
        """The reply to one question."""
        replies = []
        for question, note in zip(questions, notes, strict=True):
            answer = self.post_json("/chat/completions", partial(self.request_body, frames, question, note))
            replies.append(self._reply_from_completion(question, answer))
        return replies

    def request_body(self, frames: Frames, question: Question, note: str = "") -> dict[str, object]:
        """What is sent: rules, frames, then the question."""
        images: list[dict[str, object]] = [
            {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"}}
            for jpeg in frames.jpegs
        ]
        if self.settings.video and len(images) > 1:
            film = base64.b64encode(encode_frames_as_mp4(frames)).decode()
            images = [{"type": "video_url", "video_url": {"url": f"data:video/mp4;base64,{film}"}}]
        pictures = [{"type": "text", "text": frames_intro(frames.times)}, *images] if images else []
        content = [*pictures, {"type": "text", "text": question_prompt(question, note)}]
        settings = self.settings
        body: dict[str, object] = {
            "model": settings.model,
            "messages": [{"role": "system", "content": question.rules or RULES}, {"role": "user", "content": content}],
            **{name: value for name, value in settings.parameters.items() if value is not None},
        }
        # A reply that was cut off is asked for again with more room.
        most = (settings.max_tokens or 16 + 3 * estimate_answer_tokens(question.schema)) * (4 if note else 1)
        body["max_completion_tokens" if "max_tokens" in self.left_out else "max_tokens"] = most
        plain = isinstance(question.schema, YesNo) and settings.logprobs and "logprobs" not in self.left_out
        if plain:
            body |= {"logprobs": True, "top_logprobs": ALTERNATIVES}
        if not plain and settings.structured and "response_format" not in self.left_out:
            schema = {"name": "answer", "strict": True, "schema": _reply_object_schema(question)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return {name: value for name, value in body.items() if name not in self.left_out - {"max_tokens"}}

    def _reply_from_completion(self, question: Question, body: bytes) -> Reply:
        """The reply in a server's answer; NoReply where it is not one."""
        try:
            content = json.loads(body)
            choice = min(content["choices"], key=lambda choice: choice.get("index") or 0)
            message = choice["message"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise NoReply("the server's reply is not a chat completion") from None
        text = message.get("content") if isinstance(message, dict) else None
        text = self.redact(text if isinstance(text, str) else "")
        probability, source = None, ""
        if isinstance(question.schema, YesNo):
            logprobs = choice.get("logprobs")
            probability, source = p_yes_and_source(text, logprobs if isinstance(logprobs, dict) else None)
        model = self.redact(str(content.get("model", "")))
        fault = self.redact(_reply_fault(choice.get("finish_reason"), message))
        return Reply(text, probability, source, _usage_from_completion(content.get("usage")), model, fault)


def encode_frames_as_mp4(frames: Frames) -> bytes:
    """An mp4 file of these pictures; an odd last row or column is left out."""
    even = (rgb[: rgb.shape[0] // 2 * 2, : rgb.shape[1] // 2 * 2] for rgb in frames.pictures())
    with tempfile.TemporaryDirectory(prefix="revisit-judge-") as folder:
        path = Path(folder) / "clip.mp4"
        encode_mp4(path, even, FAST if len(frames.jpegs) > MANY else SLOW)
        return path.read_bytes()


def _reply_object_schema(question: Question) -> JsonSchema:
    """The schema of a reply, which servers want to be an object."""
    schema = question.schema.json()
    if isinstance(question.schema, JsonObject):
        return schema
    name = "items" if isinstance(question.schema, Many) else "answer"
    return {"type": "object", "properties": {name: schema}, "required": [name], "additionalProperties": False}


def _reply_fault(finish: Any, message: Any) -> str:
    """Why a reply is no answer, whatever it says; "" where nothing stopped or replaced it."""
    if finish == "length":
        return CUT_OFF
    if finish == "content_filter":
        return "the server's filter stopped the reply"
    refusal = message.get("refusal") if isinstance(message, dict) else None
    return f"the judge refused: {' '.join(refusal.split())[:200]}" if isinstance(refusal, str) and refusal else ""


def _usage_from_completion(usage: Any) -> Usage:
    counts = usage if isinstance(usage, dict) else {}
    tokens = [counts.get(name) for name in ("prompt_tokens", "completion_tokens")]
    tokens_in, tokens_out = (value if isinstance(value, int) and value >= 0 else 0 for value in tokens)
    return Usage(1, tokens_in, tokens_out)
