"""Pictures from text, by a server with OpenAI's `images/generations`.

A picture comes from a server, or from the `drawings.jsonl` of an earlier folder, which draws the same pictures once
more without a network.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, field_validator

from revisit import http_client
from revisit.core import UsageError, digest
from revisit.core.text import parse_numbered_json_lines, parse_width_and_height, read_yaml_file
from revisit.media.digest import file_digest
from revisit.servers.endpoint import Endpoint, EndpointSettings, checked_settings
from revisit.servers.retries import NoReply, Refused

DRAWINGS = "drawings.jsonl"  # beside the pictures of a folder: what each was drawn from
LARGEST_PICTURE = 64 << 20  # bytes of an answer
MOST_PIXELS = 64 << 20
# What a server may not know, and the words by which its complaint names it.
OPTIONAL = {"response_format": ("response_format",), "size": ("size",), "n": ("'n'", '"n"')}
Facts = Mapping[str, object]  # of a server: model, address and parameters, which its pictures depend on
Drawing = dict[str, Any]  # a line of drawings.jsonl
PNG = b"\x89PNG\r\n\x1a\n"


class ImagePrice(BaseModel):
    """What a picture costs, or a million tokens, where the server counts them."""

    model_config = ConfigDict(extra="forbid")

    picture: float = Field(default=0.0, ge=0)
    input: float = Field(default=0.0, ge=0)
    output: float = Field(default=0.0, ge=0)
    currency: str = "USD"

    def cost_of_picture(self, usage: Mapping[str, int]) -> float:
        """What one picture cost."""
        tokens = usage.get("input_tokens", 0) * self.input + usage.get("output_tokens", 0) * self.output
        return self.picture + tokens / 1e6


class ImageBudget(BaseModel):
    """What one invocation may spend; None for as much as it takes."""

    model_config = ConfigDict(extra="forbid")

    pictures: int | None = Field(default=None, ge=0)
    money: float | None = Field(default=None, ge=0)


class ImageSettings(EndpointSettings):
    """What a file of settings says of a text-to-image server."""

    timeout: float = Field(default=300.0, gt=0)
    size: str = ""  # width x height; the caller's where it is left out
    concurrency: int = Field(default=4, ge=1, le=64)
    tries: int = Field(default=6, ge=1)
    pause: float = Field(default=1.0, ge=0)
    price: ImagePrice = ImagePrice()
    budget: ImageBudget = ImageBudget()
    parameters: dict[str, Any] = Field(default_factory=dict)  # sent as they are, such as quality or seed

    @field_validator("size")
    @classmethod
    def _require_valid_size(cls, text: str) -> str:
        if text:
            parse_picture_size(text)
        return text


@dataclass(frozen=True)
class ImageRequest:
    """One picture to draw."""

    id: str  # name of its file
    prompt: str
    size: tuple[int, int]  # width, height
    number: int = 0  # of several pictures of one prompt


@dataclass(frozen=True)
class DrawnPicture:
    """A picture as a server drew it: the bytes of a PNG file, its size, and what the server said of it."""

    png: bytes
    size: tuple[int, int]
    usage: Mapping[str, int] = field(default_factory=dict)
    revised_prompt: str = ""


class ImageServer(Endpoint):
    """A text-to-image model behind an HTTP endpoint."""

    noun = "image server"
    largest = LARGEST_PICTURE
    optional = OPTIONAL

    def __init__(self, settings: ImageSettings) -> None:
        super().__init__(settings)
        self.settings = settings
        self.facts: Facts = {
            "images": "openai", "model": settings.model, "server": settings.server or self.url,
            "parameters": settings.parameters,
        }  # fmt: skip

    def request_body(self, request: ImageRequest) -> dict[str, object]:
        """What is sent."""
        width, height = request.size
        body = {
            "model": self.settings.model,
            "prompt": request.prompt,
            "n": 1,
            "size": f"{width}x{height}",
            "response_format": "b64_json",
            **self.settings.parameters,
        }
        return {name: value for name, value in body.items() if value is not None and name not in self.left_out}

    def draw(self, request: ImageRequest) -> DrawnPicture:
        """One picture of a prompt; NoReply, Refused or Stopped where there is none."""
        return self._parse_picture_answer(self.post_json("/images/generations", partial(self.request_body, request)))

    def _parse_picture_answer(self, answer: bytes) -> DrawnPicture:
        """The picture in a server's answer; NoReply where there is none."""
        try:
            content = json.loads(answer)
            (first, *_) = content["data"]
            encoded, url = first.get("b64_json"), first.get("url")
            if not encoded and not url:
                raise KeyError("b64_json")
            data = base64.b64decode(encoded, validate=True) if encoded else self._fetch_picture(str(url))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, binascii.Error):
            raise NoReply("the server's reply holds no picture") from None
        png, size = to_png_and_size(data)
        counts = content.get("usage")
        counted = [(name, counts.get(name)) for name in ("input_tokens", "output_tokens") if isinstance(counts, dict)]
        usage = {name: int(value) for name, value in counted if isinstance(value, int) and value >= 0}
        return DrawnPicture(png, size, usage, self.redact(str(first.get("revised_prompt") or "")))

    def _fetch_picture(self, url: str) -> bytes:
        """A picture that the server names by an address; without the key, which is for the server itself."""
        if url.startswith("data:"):
            return base64.b64decode(url.partition(",")[2], validate=True)
        if urlsplit(url).scheme != "https" and not http_client.is_same_origin(url, self.url):
            raise Refused(
                f"the server names a picture at {http_client.url_without_secrets(url)[:200]}, which is not fetched"
            )
        try:
            return http_client.read_page(url)[0]
        except http_client.Unavailable as error:
            raise NoReply(f"the picture that the server names cannot be fetched: {error.sentence[:200]}") from None


class RecordedImages:
    """Pictures of an earlier folder (`drawings.jsonl`), as the server that drew them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = read_drawings(path)
        servers = {digest(line["images"]): line["images"] for line in lines}
        if len(servers) != 1:
            names = ", ".join(sorted(str(one.get("model")) for one in servers.values())) or "nobody"
            raise UsageError(f"{path}: expected the pictures of one server, found those of {names}")
        self.facts: Facts = next(iter(servers.values()))
        self.settings = ImageSettings(url="http://recorded", model=str(self.facts.get("model", "")), tries=1)
        self.lines = {str(line["key"]): line for line in lines}

    def check(self) -> None:
        """Nobody has to be reached."""

    def draw(self, request: ImageRequest) -> DrawnPicture:
        """The recorded picture."""
        line = self.lines.get(picture_key(self.facts, request))
        file = self.path.parent / Path(str(line["file"])).name if line else None  # of this folder, whatever it says
        if line is None or file is None or not file.is_file():
            raise Refused(f"{self.path} holds no picture of {request.id!r} with this prompt and size; use a server")
        if file_digest(file) != line["sha256"]:
            raise Refused(f"{file} is not the picture that was drawn; use a server")
        png, size = to_png_and_size(file.read_bytes())
        return DrawnPicture(png, size, dict(line.get("usage") or {}), str(line.get("revised_prompt", "")))

    def close(self) -> None:
        """Nothing is open."""


ImageBackend = ImageServer | RecordedImages  # draws pictures, one attempt at a time


def open_image_backend(choice: str) -> ImageBackend:
    """Who draws: a YAML file of settings, or the `drawings.jsonl` of an earlier folder.

    Parameters
    ----------
    said
        Path of the file. A key stands in neither: settings name a variable (`key_env`) or a file (`key_file`).
    """
    path = Path(choice)
    if not path.is_file():
        raise UsageError(f"{choice}: no such file; --images takes a YAML file with url and model, or a {DRAWINGS}")
    if path.suffix == ".jsonl":
        return RecordedImages(path)
    content = read_yaml_file(path)
    if not isinstance(content, dict):
        raise UsageError(f"{path}: expected names and values, such as `url: http://127.0.0.1:8000/v1`")
    with checked_settings(content, path, "docs/build.md"):
        return ImageServer(ImageSettings(**content).with_key_file_in(path.parent))


def parse_picture_size(text: str) -> tuple[int, int]:
    """Width and height of a picture, from text such as 1280x720."""
    width, height = parse_width_and_height(text)
    if not 16 <= width <= 8192 or not 16 <= height <= 8192:
        raise UsageError(f"{text!r} is no size of a picture: both numbers lie between 16 and 8192")
    return width, height


def picture_key(facts: Facts, request: ImageRequest) -> str:
    """Address of a picture: its prompt, size and number, and who draws it."""
    what = {"prompt": request.prompt, "size": list(request.size), "number": request.number}
    return digest({"images": dict(facts), **what}, 40)


def to_png_and_size(data: bytes) -> tuple[bytes, tuple[int, int]]:
    """A picture as the bytes of a PNG file, and its width and height; NoReply where it is none."""
    import cv2

    if not data or len(data) > LARGEST_PICTURE:
        raise NoReply("the server's reply holds no picture")
    try:
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    except cv2.error:
        pixels = None
    if pixels is None or pixels.shape[0] * pixels.shape[1] > MOST_PIXELS:
        raise NoReply("what the server sent is no picture that can be read")
    size = (pixels.shape[1], pixels.shape[0])
    if data.startswith(PNG):
        return data, size
    return cv2.imencode(".png", pixels)[1].tobytes(), size


def read_drawings(path: Path) -> list[Drawing]:
    """The lines of a drawings.jsonl; one that a kill left torn is passed over."""
    if not path.is_file():
        return []
    drawings = []
    for _, row in parse_numbered_json_lines(path.read_text(encoding="utf-8", errors="replace")):
        if isinstance(row, dict) and all(isinstance(row.get(name), str) for name in ("key", "file", "sha256")):
            drawings.append({**row, "images": dict(row.get("images") or {})})
    return drawings
